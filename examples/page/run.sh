#!/usr/bin/env bash
# The page over a shelf of real rows: it is built, a server with a worker and a sidecar is begun, jobs prepare, train and
# audit, and Chromium walks through every screen and takes a picture of each. Some minutes. Writes into page/.
set -euo pipefail
cd "$(dirname "$0")/../.."
make --silent .venv/.installed ui
CHROMIUM=$(ui/e2e/chromium.sh)
export PATH="$PWD/.venv/bin:$PATH" OMP_NUM_THREADS=1 CHROMIUM
rm -rf page
mkdir -p page
pids=()
trap 'for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null || true; done' EXIT

say() { printf '\n%s\n' "$*"; }
begin() {  # NAME COMMAND...: a service in the background, until it says its address
    local said="page/$1.log"; shift
    "$@" 2>"$said" &
    pids+=($!)
    until grep -q 'http://' "$said"; do sleep 0.2; kill -0 $! || { cat "$said"; exit 1; }; done
}
address() { grep -o 'http://[^/ ]*' "page/$1.log" | head -n 1; }
job() {  # OPTIONS: start a job, wait for its end, say its id
    local id status
    id=$(curl -sS --json "$1" "$server/v1/training/jobs" | python -c 'import json, sys; print(json.load(sys.stdin)["id"])')
    until status=$(curl -sS "$server/v1/training/jobs/$id" | python -c 'import json, sys; print(json.load(sys.stdin)["status"])')
          [[ $status =~ ^(done|failed|cancelled)$ ]]; do sleep 0.5; done
    [ "$status" = done ] || { curl -sS "$server/v1/training/jobs/$id/log" >&2; exit 1; }
    echo "$id"
}

say "1. A shelf of real rows, some of them broken, and a model that is small enough for every machine."
python examples/page/make_shelf.py page 2>/dev/null
turnmill dataset list --shelf page/datasets_training || true  # one of its directories is a problem on purpose

say "2. The server, with a worker and a sidecar."
export TURNMILL_SIDECAR_SECRET
TURNMILL_SIDECAR_SECRET=$(python -c 'import secrets; print(secrets.token_hex(16))')
begin sidecar turnmill sidecar --data page/sidecar --models tiny=page/models/tiny --port 0
begin server turnmill serve --database page/turnmill.db --models tiny=page/models/tiny --workers 1 \
    --sidecar "$(address sidecar)" --port 0
server=$(address server)
echo "$server/page/"

say "3. Jobs: real rows are prepared, a model is trained on facts, and asked what it learned."
job '{"kind": "prepare", "dataset": "weighted", "model": "tiny", "max_tokens": 1024}'
job '{"kind": "prepare", "dataset": "tool-calls", "model": "tiny", "max_tokens": 1024, "strategy": "hard-focus",
    "select_rows": 50, "max_perplexity": 0}'
job '{"kind": "prepare", "dataset": "faulty", "model": "tiny", "max_tokens": 1024}'
trained=$(job '{"dataset": "world-facts", "model": "tiny", "method": "full", "max_tokens": 256, "max_steps": 40,
    "batch_size": 2, "gradient_accumulation_steps": 1, "learning_rate": 0.003}')
echo "$trained"
job "{\"kind\": \"audit\", \"dataset\": \"world-facts\", \"job\": \"$trained\", \"samples\": 20, \"max_new_tokens\": 16}"

say "4. Chromium walks through every screen."
TURNMILL_SERVER=$server TURNMILL_PICTURES=$PWD/page/pictures npm --prefix ui exec -- \
    playwright test --config ui/playwright.config.ts --project tour

say "The pictures are in page/pictures. \`make docs\` puts them into the documentation; \`turnmill serve\` shows the page."
