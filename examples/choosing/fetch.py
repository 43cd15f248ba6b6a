"""Copies the real rows of this example out of the cache, fetched once: `python fetch.py DIRECTORY`."""

from __future__ import annotations

import sys
from pathlib import Path

from click import echo

sys.path.insert(0, str(Path(__file__).parents[1]))
from demo import FILES, FURTHER_FILES, fetched

for path in fetched(Path(sys.argv[1]), (*FURTHER_FILES, *FILES)):
    echo(f"   {path} ({path.stat().st_size:,} bytes)")
