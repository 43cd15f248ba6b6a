"""A prepared folder as data: its conversations come back as they were published."""

from __future__ import annotations

import json
import shutil

import pytest

from chats import numbered
from published import Published, hashes

PLACE = ("source", "source_file", "source_line", "row", "repairs")
CALLING = {
    "id": "s1",
    "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "n": 1e5}}}],
    "messages": [
        {"role": "user", "content": "q"},
        {
            "role": "assistant",
            "content": "<think>\nr\n</think>\n\nlook",
            "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"z": 1, "a": 2}'}}],
        },
        {"role": "tool", "tool_call_id": "c", "content": "5"},
        {"role": "assistant", "content": "five", "weight": 0},
        {"role": "user", "content": "again"},
        {"role": "assistant", "content": "five"},
    ],
}


@pytest.fixture
def first(prepare, chats) -> Published:
    return prepare(chats("rows.jsonl", CALLING, *numbered(40)), "--split.rows", "5")


def without_place(rows: list[dict]) -> list[dict]:
    kept = [{key: value for key, value in row.items() if key not in PLACE} for row in rows]
    return sorted(kept, key=lambda row: row["id"])


def test_preparing_a_prepared_folder_keeps_every_row(prepare, first):
    again = prepare(first.folder, output="again")
    assert len(first.conversations("eval")) >= 5
    rows = first.conversations("eval") + first.conversations()
    assert without_place(again.conversations()) == without_place(rows)
    assert again.manifest["sources"]["out"]["dialects"] == {
        "conversations/eval/part-00000.parquet": "turnmill",
        "conversations/train/part-00000.parquet": "turnmill",
    }
    examples = {row["row_id"]: row for row in first.examples() + first.examples("eval")}
    assert {row["row_id"]: row["run_weights"] for row in again.examples()} == {
        name: row["run_weights"] for name, row in examples.items()
    }


def test_check_and_convert_read_it(turnmill, first, tmp_path):
    answer = turnmill("check", first.folder, "--json")
    ids = [json.loads(line)["id"] for line in answer.out.splitlines()]
    assert (answer.code, ids) == (0, [row["id"] for row in first.conversations("eval") + first.conversations()])
    assert turnmill("convert", first.folder, "--to", "openai", "--output", tmp_path / "openai.jsonl").code == 0
    assert "s1" in (tmp_path / "openai.jsonl").read_text()


@pytest.mark.parametrize("side", ["train", "eval"])
def test_every_row_of_a_side_is_written_as_json_lines(turnmill, first, tmp_path, side):
    output = tmp_path / f"{side}.jsonl"
    folder = first.folder / "conversations" / side
    assert turnmill("convert", folder, "--to", "openai", "--output", output).code == 0
    answer = turnmill("check", output, "--json")
    rows = [json.loads(line) for line in answer.out.splitlines()]
    assert [row["id"] for row in rows] == [row["id"] for row in first.conversations(side)]
    assert len(rows) == len({example["row_id"] for example in first.examples(side)})
    weights = {row["id"]: row["weights"] for row in first.conversations(side) if row["weights"]}
    assert bool(weights) == (side == "train")


@pytest.mark.parametrize("data", ["conversations", "conversations/train", "conversations/train/part-00000.parquet"])
def test_its_conversations_alone_are_canonical_parquet(turnmill, first, data):
    answer = turnmill("check", first.folder / data, "--json")
    assert (answer.code, "turnmill" in answer.err) == (0, True)


def test_the_dialect_may_be_named(turnmill, first, tmp_path):
    copy = shutil.copy(first.folder / "conversations/train/part-00000.parquet", tmp_path / "copy.parquet")
    assert turnmill("check", copy, "--dialect", "turnmill").code == 0


def test_a_folder_that_is_not_what_it_lists_is_refused(turnmill, first):
    path = first.folder / "conversations" / "train" / "part-00000.parquet"
    path.write_bytes(path.read_bytes() + b" ")
    answer = turnmill("check", first.folder)
    assert (answer.code, "conversations/train/part-00000.parquet" in answer.err) == (4, True)


def test_a_damaged_manifest_is_refused(turnmill, first):
    (first.folder / "manifest.json").write_text("{")
    assert turnmill("check", first.folder).code == 4


@pytest.mark.parametrize("inside", ["", "other"])
@pytest.mark.parametrize("data", ["", "conversations/train"])
def test_the_folder_that_is_read_is_not_replaced(turnmill, first, data, inside):
    before = hashes(first.folder)
    answer = turnmill("prepare", first.folder / data, "--model", "smollm2", "--output", first.folder / inside)
    assert (answer.code, "inside" in answer.err, hashes(first.folder)) == (2, True, before)


def test_a_folder_of_steps_is_no_data(turnmill, first):
    steps = first.folder.parent / ".out.steps"
    answer = turnmill("check", next(path for path in steps.iterdir() if path.name.startswith("check-")))
    assert (answer.code, "not chat data" in answer.err) == (2, True)
