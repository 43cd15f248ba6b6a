"""Compares every finished step of one cache with that of another: `python same_bytes.py CACHE OTHER`."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

from click import echo


def digests(folder: Path) -> dict[str, str]:
    """Path of each file in a step's folder → its sha256."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def main() -> None:
    """Print a line a step; end with 1 where one differs."""
    ours, theirs = map(Path, sys.argv[1:])
    different = 0
    for folder in sorted(path for path in theirs.iterdir() if path.is_dir() and path.name[0] != "."):
        found = digests(folder)
        is_same = found == digests(ours / folder.name)
        different += not is_same
        echo(f"   {folder.name[:30]:<32}{len(found):>3} files  {'the same bytes' if is_same else 'DIFFERENT'}")
    raise SystemExit(bool(different))


if __name__ == "__main__":
    main()
