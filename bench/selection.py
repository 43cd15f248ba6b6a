"""Selects from ten million scored rows: CPU seconds of each strategy, by rows and by trained tokens."""

from __future__ import annotations

import time

import numpy as np

from turnmill.options import Select
from turnmill.selection import Scored, select
from turnmill.strategies import strategies

ROWS = 10_000_000


def drawn(rows: int) -> Scored:
    """A pool of random scores."""
    random = np.random.default_rng(0)
    trained = random.integers(10, 300, rows)
    return Scored(trained, trained + 50, random.lognormal(1, 0.5, rows) * trained, np.full(rows, np.nan), trained + 49,
                  trained)  # fmt: skip


def main() -> None:
    """Print a line for each strategy and budget."""
    pool = drawn(ROWS)
    for name in strategies.names():
        for options in (Select(strategy=name, rows=ROWS // 10), Select(strategy=name, tokens=10 * ROWS)):
            start = time.process_time()
            kept = int((select(pool, options, seed=0).codes == 0).sum())
            unit = "rows" if options.rows else "trained tokens"
            print(f"{name:<13} budget in {unit:<15} {time.process_time() - start:5.2f} s  {kept:,} of {ROWS:,} rows")


if __name__ == "__main__":
    main()
