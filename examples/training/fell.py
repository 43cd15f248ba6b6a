"""Says how the held-out loss moved between two evaluations, and fails where it did not fall: `python fell.py A B`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from click import echo

before, after = (json.loads(Path(argument, "summary.json").read_text("utf-8"))["metrics"] for argument in sys.argv[1:3])
for key in sorted(key for key in before if key.endswith("/loss") and key in after):
    echo(f"   {key:<28} {before[key]:.4f} to {after[key]:.4f}")
sys.exit("it did not fall" if after["eval/loss"] >= before["eval/loss"] else 0)
