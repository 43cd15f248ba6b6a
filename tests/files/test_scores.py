"""The cache of scores: added to by any number of writers, whole or not there."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from turnmill.files.scores import Entry, ScoreCache

IDENTITY = {"scorer": "ngram", "version": 1}


def key(number: int) -> bytes:
    return number.to_bytes(16, "big")


def entry(value: float, reason: str | None = None) -> Entry:
    return Entry([value, 2 * value], math.inf, reason)


def segments(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.arrow"))


def test_what_was_added_is_found_by_the_next(tmp_path):
    ScoreCache(tmp_path, IDENTITY).add([(key(1), entry(0.1)), (key(256), entry(0.3, "too long"))])
    found = ScoreCache(tmp_path, IDENTITY).find([key(256), key(5), key(1)])
    assert found == {key(256): entry(0.3, "too long"), key(1): entry(0.1)}


def test_another_scorer_finds_nothing(tmp_path):
    ScoreCache(tmp_path, IDENTITY).add([(key(1), entry(0.1))])
    assert ScoreCache(tmp_path, {**IDENTITY, "version": 2}).find([key(1)]) == {}


def test_two_writers_lose_nothing(tmp_path):
    first, second = ScoreCache(tmp_path, IDENTITY), ScoreCache(tmp_path, IDENTITY)
    for number in range(10):
        (first if number % 2 else second).add([(key(number), entry(number))])
    first.add([(key(0), entry(0))])
    found = ScoreCache(tmp_path, IDENTITY).find([key(number) for number in range(10)])
    assert [found[key(number)].run_nll[0] for number in range(10)] == list(range(10))


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-1], lambda data: b"", lambda data: data[:99] + b"\1" + data[100:]]
)
def test_a_damaged_file_is_passed_over_and_the_others_hold(tmp_path, damage):
    cache = ScoreCache(tmp_path, IDENTITY)
    cache.add([(key(1), entry(0.1))])
    bad = segments(tmp_path)[0]
    cache.add([(key(2), entry(0.2))])
    bad.write_bytes(damage(bad.read_bytes()))
    assert ScoreCache(tmp_path, IDENTITY).find([key(1), key(2)]) == {key(2): entry(0.2)}


def test_nothing_added_writes_nothing(tmp_path):
    ScoreCache(tmp_path, IDENTITY).add([])
    assert segments(tmp_path) == []


def test_keys_that_end_in_zeros_are_told_apart(tmp_path):
    ScoreCache(tmp_path, IDENTITY).add([(b"\1" + bytes(15), entry(0.1)), (b"\1\1" + bytes(14), entry(0.2))])
    found = ScoreCache(tmp_path, IDENTITY).find([b"\1" + bytes(15), b"\1\1" + bytes(14), bytes(16)])
    assert [value.run_nll[0] for value in found.values()] == [0.1, 0.2]
