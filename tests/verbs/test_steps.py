"""The shards of filter, dedup and split, on several files and sources at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from chats import chat
from turnmill.contract import check
from turnmill.conversation import Checked
from turnmill.dialects import Reading, convert, dialects
from turnmill.files.quarantine import Left
from turnmill.files.tables import batches
from turnmill.options import Dedup, Filter, Split
from turnmill.verbs import dedup, filter, split
from turnmill.verbs.check import conversation_writer
from turnmill.verbs.held_out import SplitTask


def checked(source: str, row: int, question: str, weight: float | None = None) -> Checked:
    import msgspec

    record = chat(question, "answer")
    if weight is not None:
        record["messages"][1]["weight"] = weight
    made = convert(record, dialects.get("openai"), Reading())
    meta = {"source_file": f"{source}.jsonl", "source_line": row + 1, "row": row}
    return check(msgspec.structs.replace(made, source=source, meta=meta))


class Line:
    """Runs the steps after check on rows given source by source."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def filtered(self, sources: dict[str, list]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The files of checked rows and their indexes."""
        files, indexes, row = [], [], 0
        for name, questions in sources.items():
            place = self.folder / name
            place.mkdir()
            with conversation_writer(place / "rows.parquet", ()) as writer:
                for question in questions:
                    arguments = question if isinstance(question, tuple) else (question,)
                    writer.write(checked(name, row, *arguments))
                    row += 1
            filter.run_shard(filter.FilterTask(str(place / "rows.parquet"), Filter(), None, "f"), place)
            files.append(str(place / "rows.parquet"))
            indexes.append(str(place / filter.INDEX))
        return tuple(files), tuple(indexes)

    def deduplicated(self, sources: dict[str, list], options: Dedup | None = None) -> list[dict]:
        files, self.indexes = self.filtered(sources)
        task = dedup.DedupTask(self.indexes, files, tuple(sources), options or Dedup(), "f")
        self.result = dedup.run_shard(task, self.folder)
        return [row for batch in batches(self.folder / dedup.DUPLICATES) for row in batch.to_pylist()]

    def sides(self, sources: dict[str, list], options: Split) -> dict[int, str]:
        self.deduplicated(sources)
        task = SplitTask(self.indexes, str(self.folder / dedup.DUPLICATES), tuple(sources), options, {})
        self.result = split.run_shard(task, self.folder)
        return split.read_sides(self.folder / split.SIDES, 0, 10**6)


@pytest.fixture
def line(tmp_path) -> Line:
    return Line(tmp_path)


def test_the_first_source_wins_and_losers_name_the_winner(line):
    lost = line.deduplicated({"b": ["one", "two"], "a": ["two", "three", "one"]})
    assert [(row["source"], row["row"], row["winner_row"]) for row in lost] == [("a", 2, 1), ("a", 4, 0)]
    assert line.result.counters == {"rows/duplicate": 2, "codes/duplicate": 2}
    assert line.result.extra == {"by_source": {"a": line.result.counters}}


def test_a_loser_with_other_weights_has_its_own_code(line):
    lost = line.deduplicated({"a": ["one", ("one", 0.0), ("one", None)]})
    assert [row["code"] for row in lost] == ["duplicate-other-weights", "duplicate"]


def test_without_dedup_nothing_leaves(line):
    assert line.deduplicated({"a": ["one", "one"]}, Dedup(by=())) == []


def test_a_loser_keeps_its_row(line):
    (row,) = line.deduplicated({"a": ["one", "one"]})
    assert row["record_encoding"] == "text"
    assert '"one"' in row["record"]
    assert set(Left.__struct_fields__) - {"class_", "at"} <= set(row)


def test_every_row_that_stays_has_a_side(line):
    questions = [f"question {n}" for n in range(300)]
    sides = line.sides(
        {"a": questions, "b": [*questions[:50], *(f"other {n}" for n in range(50))]}, Split(fraction=0.3)
    )
    assert set(sides) == {*range(300), *range(350, 400)}
    held_out = sum(side == "eval" for side in sides.values())
    assert line.result.counters["split/held-out"] == held_out
    assert 60 < held_out < 150


def test_sides_are_read_for_a_range_of_rows_alone(line):
    line.sides({"a": ["one", "two", "three"]}, Split())
    assert split.read_sides(line.folder / split.SIDES, 1, 1) == {1: "train"}
