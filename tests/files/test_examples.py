from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnmill.files import examples as stored
from turnmill.files.examples import Examples, ExampleWriter
from turnmill.files.inventory import rows_of
from turnmill.rendered import KINDS, Example, Run


def example(number: int, *weights: float, message: int = 1) -> Example:
    """Two tokens a run."""
    runs = [Run(2 * n + 2, message, KINDS[n % len(KINDS)], weight) for n, weight in enumerate(weights)]
    ids = list(range(number, number + 2 * len(weights)))
    return Example(f"id{number}", 0, "src", "a.jsonl", number + 1, ids, runs, [len(ids)])


def write(path, examples: list[Example]) -> None:
    writer = ExampleWriter(path)
    for one in examples:
        writer.write(one)
    writer.close()


def test_examples_come_back_as_they_were_written(tmp_path):
    made = [example(number, 0.0, 1.0, 0.5) for number in range(5)]
    write(tmp_path / "a.arrow", made)
    found = Examples([tmp_path / "a.arrow"])
    assert [found[number] for number in range(len(found))] == made


@pytest.mark.parametrize("counts", [(3, 0, 5), (0,), (0, 0, 1), (7, 7)])
def test_numbers_run_through_files_and_batches(tmp_path, monkeypatch, counts):
    monkeypatch.setattr(stored, "BATCH_EXAMPLES", 3)
    paths, number = [tmp_path / f"{place}.arrow" for place in range(len(counts))], 0
    for path, count in zip(paths, counts, strict=True):
        write(path, [example(number + n, 1.0) for n in range(count)])
        assert rows_of(path) == count
        number += count
    found = Examples(paths)
    assert len(found) == sum(counts)
    assert [found[n].source_line for n in range(len(found))] == list(range(1, sum(counts) + 1))
    assert found.lengths().tolist() == [2] * sum(counts)


@pytest.mark.parametrize("number", [-1, 2])
def test_there_is_no_example_outside(tmp_path, number):
    write(tmp_path / "a.arrow", [example(0, 1.0), example(1, 1.0)])
    with pytest.raises(IndexError):
        Examples([tmp_path / "a.arrow"])[number]


@given(weights=st.lists(st.floats(0, 4, width=32), min_size=1, max_size=12), message=st.integers(-1, 2**20))
def test_every_weight_and_message_survives(tmp_path_factory, weights, message):
    path = tmp_path_factory.mktemp("examples") / "a.arrow"
    made = example(3, *weights, message=message)
    write(path, [made])
    assert Examples([path])[0] == made


def test_the_same_examples_are_the_same_bytes(tmp_path):
    for name in ("a.arrow", "b.arrow"):
        write(tmp_path / name, [example(number, 0.0, 1.0) for number in range(2500)])
    assert (tmp_path / "a.arrow").read_bytes() == (tmp_path / "b.arrow").read_bytes()


def test_released_examples_are_read_again(tmp_path):
    made = [example(number, 0.0, 1.0) for number in range(3)]
    write(tmp_path / "a.arrow", made)
    found = Examples([tmp_path / "a.arrow"])
    row = found.row(1)
    found.release()
    assert row["input_ids"].tolist() == made[1].input_ids
    assert [found[number] for number in range(len(found))] == made
