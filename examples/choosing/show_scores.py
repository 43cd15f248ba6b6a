"""Prints the rows that a model knows best and least: `python show_scores.py OUT`."""

from __future__ import annotations

import sys

import pyarrow.parquet as pq
from click import echo

table = pq.read_table(f"{sys.argv[1]}/scores").sort_by("perplexity").to_pylist()
for row in [*table[:3], *table[-3:]]:
    place = f"{row['source']}, {row['row_id'][:8]}"
    echo(f"   perplexity {row['perplexity']:8.2f} over {row['predicted']:4} tokens   {place}")
echo(f"   {len(table)} examples are scored, {sum(row['predicted'] for row in table):,} tokens")
