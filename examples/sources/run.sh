#!/usr/bin/env bash
# Three pinned datasets on a stand-in hub, taken to chats and texts; a second run that does nothing; another template;
# then the same graph on a Ray cluster of two nodes, a worker of which is killed. Some minutes. Writes into sources/.
set -euo pipefail
cd "$(dirname "$0")/../.."
make --silent .venv/.installed
export PATH="$PWD/.venv/bin:$PATH"
rm -rf sources
mkdir -p sources
mine=sources/mine.py
all=("$mine:instructions" "$mine:tool_calls" "$mine:conversations")

say() { printf '\n%s\n' "$*"; }

say "1. A hub on this machine, with three datasets of real rows at one commit."
python examples/sources/hub.py sources &
hub=$!
trap 'kill $hub 2>/dev/null || true' EXIT
until [ -s sources/hub.url ]; do sleep 0.2; done
export HF_ENDPOINT
HF_ENDPOINT=$(cat sources/hub.url)

say "2. What would be made, and the graph of one of them."
turnmill steps run "${all[@]}" --cache sources/steps --dry-run
turnmill steps graph "${all[0]}" --cache sources/steps

say "3. Every source: fetched, checked, each chat once, rendered, and as text by content."
turnmill steps run "${all[@]}" --cache sources/steps

say "4. Again: nothing is left to do."
turnmill steps run "${all[@]}" --cache sources/steps

say "5. One of them held against what was published, and what it adds to a mix."
turnmill sources verify "${all[0]}" --cache sources/steps --rows 1
turnmill sources run "${all[0]}" --cache sources/steps

say "6. Another template: the chats stay, the texts are made anew."
turnmill steps run "${all[@]}" --cache sources/steps --template llama3

say "7. The same graph on a Ray cluster of two nodes, a worker of which is killed in the middle."
python examples/sources/on_ray.py sources/ray "${all[@]}"

say "8. Every step of that run beside the one of this machine, file by file."
python examples/sources/same_bytes.py sources/steps sources/ray
