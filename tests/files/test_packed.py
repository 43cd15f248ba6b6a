from __future__ import annotations

import pyarrow.parquet as pq
import pytest

from turnmill.files import packed as stored
from turnmill.files.examples import Examples, ExampleWriter
from turnmill.files.packed import is_weighted, map_plan, write_packed, write_plan
from turnmill.rendered import Example, Run
from turnmill.tokens.pack import plan_of


@pytest.fixture
def examples(tmp_path):
    def made(*weights: list[float]) -> Examples:
        writer = ExampleWriter(tmp_path / "a.arrow")
        for number, values in enumerate(weights):
            runs = [Run(end + 1, 0, "answer", weight) for end, weight in enumerate(values)]
            ids = [10 * number + place for place in range(len(values))]
            writer.write(Example(f"id{number}", 0, "s", "f", 1, ids, runs, [len(ids)]))
        writer.close()
        return Examples([tmp_path / "a.arrow"])

    return made


def rows(folder) -> list[dict]:
    return [row for path in sorted(folder.glob("part-*.parquet")) for row in pq.read_table(path).to_pylist()]


def test_documents_lie_end_to_end_and_none_learns_its_first_token(examples, tmp_path):
    write_packed(tmp_path, examples([1, 1, 0], [0, 1]), plan_of([[1, 0]]))
    assert rows(tmp_path) == [
        {
            "input_ids": [10, 11, 0, 1, 2],
            "labels": [-100, 11, -100, 1, -100],
            "seq_lengths": [2, 3],
            "row_ids": ["id1", "id0"],
        }
    ]


def test_weights_are_written_where_labels_do_not_say_them(examples, tmp_path):
    weighted = examples([0.5, 0.5, 0, 2])
    assert is_weighted(weighted)
    write_packed(tmp_path, weighted, plan_of([[0]]))
    (row,) = rows(tmp_path)
    assert row["labels"] == [-100, 1, -100, 3]
    assert row["loss_weights"] == [0, 0.5, 0, 2]


def test_weights_of_0_and_1_are_the_labels(examples):
    assert not is_weighted(examples([0, 1, 1], [1]))


@pytest.mark.parametrize("count", [0, 1, 4, 5, 9])
def test_packs_are_cut_into_files_in_order(examples, tmp_path, monkeypatch, count):
    monkeypatch.setattr(stored, "PACKS_PER_FILE", 4)
    monkeypatch.setattr(stored, "BATCH_PACKS", 3)
    write_packed(tmp_path, examples(*[[0, 1]] * max(1, count)), plan_of([[number] for number in range(count)]))
    assert [row["row_ids"] for row in rows(tmp_path)] == [[f"id{number}"] for number in range(count)]
    assert len(list(tmp_path.glob("part-*.parquet"))) == max(1, -(-count // 4))


@pytest.mark.parametrize("packs", [[], [[0]], [[2, 0], [1], [3, 4, 5]]])
def test_a_plan_comes_back(tmp_path, packs):
    write_plan(tmp_path / "plan.arrow", plan_of(packs))
    assert map_plan(tmp_path / "plan.arrow").lists() == packs
