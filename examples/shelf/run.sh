#!/usr/bin/env bash
# A shelf with its database, server, worker and sidecar, all on this machine: datasets are generated and uploaded, a job
# carries one to the sidecar and trains a tiny model, the server is restarted meanwhile, and the model is asked what it
# learned. Some minutes. Writes into shelf/.
set -euo pipefail
cd "$(dirname "$0")/../.."
make --silent .venv/.installed
export PATH="$PWD/.venv/bin:$PATH" OMP_NUM_THREADS=1
rm -rf shelf
mkdir -p shelf
cp -r examples/shelf/datasets_training shelf/

say() { printf '\n%s\n' "$*"; }
begin() {  # NAME COMMAND...: a service in the background, until it says its address
    local said="shelf/$1.log"; shift
    : > "$said"
    "$@" 2>>"$said" &
    pids+=($!)
    until grep -q 'http://' "$said"; do sleep 0.2; kill -0 $! || { cat "$said"; exit 1; }; done
}
address() { grep -o 'http://[^ ]*' "shelf/$1.log" | head -n 1; }
stop() { kill "$1" 2>/dev/null && wait "$1" 2>/dev/null || true; }
pids=()
trap 'for pid in "${pids[@]}"; do stop "$pid"; done' EXIT

ask() { curl -sS -H "Authorization: Bearer $TURNMILL_TOKEN" "$@"; }
field() { python -c 'import json, sys; value = json.load(sys.stdin)
for name in sys.argv[1:]: value = value[name]
print(value)' "$@"; }

say "1. A dataset is generated; a model that is small enough for every machine is made."
python shelf/datasets_training/world-facts/generate.py
python examples/shelf/tiny_model.py shelf/tiny 2>/dev/null
turnmill template export chatml --to shelf/tiny >/dev/null
turnmill dataset list --shelf shelf/datasets_training

say "2. A token, the sidecar, and the server with a worker."
export TURNMILL_TOKEN TURNMILL_SIDECAR_SECRET
TURNMILL_TOKEN=$(turnmill access-token new example --scope admin --expires 1d --database shelf/turnmill.db 2>/dev/null)
TURNMILL_SIDECAR_SECRET=$(python -c 'import secrets; print(secrets.token_hex(16))')
begin sidecar turnmill sidecar --data shelf/sidecar --models tiny=shelf/tiny --port 0
sidecar=$(address sidecar)
serve() {
    begin server turnmill serve --database shelf/turnmill.db --models tiny=shelf/tiny --max-megabytes 1 \
        --workers 1 --sidecar "$sidecar" --port "$1"
    server_pid=$!
}
serve 0
server=$(address server)
port=${server##*:}; port=${port%%/*}
echo "$server"

say "3. Uploads: one that is good, one with a broken line, one that is too large, one without a token."
head -n 20 shelf/datasets_training/world-facts/world_facts_v1.jsonl > shelf/few-facts.jsonl
ask -F file=@shelf/few-facts.jsonl "$server/training/datasets"; echo
{ cat shelf/few-facts.jsonl; echo '{"instruction": "What is missing?"}'; } > shelf/broken.jsonl
ask -F file=@shelf/broken.jsonl "$server/training/datasets"; echo
yes "$(head -n 1 shelf/few-facts.jsonl)" | head -c 3000000 > shelf/large.jsonl || true
ask -F file=@shelf/large.jsonl "$server/training/datasets"; echo
curl -sS -F file=@shelf/few-facts.jsonl "$server/training/datasets"; echo

say "4. What is on the shelf, the first rows of one dataset, and what the model would learn of a row."
ask "$server/training/datasets" > shelf/listing.json
python -m json.tool < shelf/listing.json | sed -n 1,24p
ask "$server/training/datasets/preview?name=few-facts&lines=2"; echo
ask --json '{"line": 1, "model": "tiny"}' "$server/training/datasets/by-name/few-facts/explain" > shelf/explained.json
cut -c 1-600 shelf/explained.json

say "5. A job carries the dataset to the sidecar, which prepares it and trains; its events are followed."
job=$(ask --json '{"dataset": "world-facts", "model": "tiny", "method": "full", "max_tokens": 256, "max_steps": 60,
    "batch_size": 2, "gradient_accumulation_steps": 1, "learning_rate": 0.003}' "$server/training/jobs" | field id)
: > shelf/events.txt
ask -N "$server/training/jobs/$job/events" >> shelf/events.txt 2>/dev/null & follower=$!
until grep -q '"step"' shelf/events.txt; do sleep 0.2; kill -0 $follower || { cat shelf/events.txt; exit 1; }; done
seen=$(grep '^id: ' shelf/events.txt | tail -n 1 | cut -d ' ' -f 2)

say "6. The server is killed in the middle, and begun again: the sidecar went on, and the job is followed from event $seen."
kill -KILL "$server_pid"; wait "$server_pid" 2>/dev/null || true
wait "$follower" || true
serve "$port"
ask -N -H "Last-Event-ID: $seen" "$server/training/jobs/$job/events" | grep '^data: ' | tail -n 4
turnmill job show "$job" --server "$server"
test "$(ask "$server/training/jobs/$job" | field status)" = done
ask "$server/training/datasets/by-name/world-facts" | field status

say "7. The model is brought back from the sidecar, and asked what it was trained on."
turnmill job start world-facts --kind audit --set "job=$job" --set model=tiny --set samples=6 --set max_new_tokens=8 \
    --set max_tokens=256 --server "$server" --json --follow | tail -n 1 | field result measures

say "8. Everything is stopped; what came of it lies in shelf/."
