"""Streams two epochs of OUT by two ranks and counts what they saw: `python two_ranks.py OUT`."""

from __future__ import annotations

import sys
from collections import Counter

from click import echo

from turnmill.stream.prepared_stream import PreparedStream

RANKS = 2
streams = [PreparedStream(sys.argv[1], batch_size=2, rank=rank, ranks=RANKS) for rank in range(RANKS)]
for epoch in range(2):
    batches = [list(stream) for stream in streams]
    rows = Counter(row_id for own in batches for batch in own for item in batch for row_id in item["row_ids"])
    echo(
        f"   epoch {epoch}: {[len(own) for own in batches]} batches, {sum(rows.values())} examples, "
        f"{len(rows)} different ones"
    )
