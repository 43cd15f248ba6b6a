"""Repeats found in columns are those that are found among objects."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_at_once import exact_duplicates, exchange_duplicates
from turnmill.dedup import Entry, Place
from turnmill.dedup.repeats import ENTRY, entry_of, halves, ids_of, repeated, repeats, weights_hash

NONE = "0" * 31
KEY = st.sampled_from([f"{NONE}1", f"1{NONE}", "ab" * 16, f"{'ab' * 8}{'cd' * 8}"])
ROWS = st.lists(
    st.tuples(KEY, st.one_of(KEY, st.just("")), st.sampled_from(["", "0.0,1.0"]), st.integers(0, 2), st.integers(1, 9)),
    max_size=30,
    unique_by=lambda row: row[3:],
)


def as_entries(rows: list[tuple]) -> tuple[list[Entry], np.ndarray]:
    objects = [Entry(row[0], row[2], Place(0, f"{row[3]}", row[4]), row[1], n) for n, row in enumerate(rows)]
    columns = np.zeros(len(rows), dtype=ENTRY)
    for name, column in (("id", 0), ("exchange", 1)):
        columns[f"{name}_high"], columns[f"{name}_low"] = halves([row[column] for row in rows])
    columns["weights"] = [weights_hash(row[2]) for row in rows]
    columns["file"], columns["line"] = [row[3] for row in rows], [row[4] for row in rows]
    columns["row"] = np.arange(len(rows))
    return objects, columns


@pytest.mark.parametrize(("way", "of_objects"), [("exact", exact_duplicates), ("first-exchange", exchange_duplicates)])
@given(rows=ROWS)
def test_columns_and_objects_agree(way, of_objects, rows):
    objects, columns = as_entries(rows)
    found = repeats(columns, way)
    expected = {loser.entry.row: loser.winner.row for loser in of_objects(objects)}
    assert dict(zip(found.losers.tolist(), found.winners.tolist(), strict=True)) == expected


@given(ROWS)
def test_an_entry_is_the_same_row_again(rows):
    objects, columns = as_entries(rows)
    again = [entry_of(column, entry.place) for column, entry in zip(columns, objects, strict=True)]
    assert [(entry.id, entry.row, entry.place) for entry in again] == [
        (entry.id, entry.row, entry.place) for entry in objects
    ]
    assert ids_of(columns) == [entry.id for entry in objects]


@given(st.lists(st.sampled_from([0, 1, 5, 2**64 - 1])))
def test_keys_that_occur_more_than_once(keys):
    found = repeated(np.array(keys, dtype=np.uint64))
    assert found.tolist() == [key != 0 and keys.count(key) > 1 for key in keys]
