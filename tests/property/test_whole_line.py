"""What holds for any rows, from the record to the published folder."""

from __future__ import annotations

import json
import random
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chats import chat
from published import IGNORE, Published, labels_of
from turnmill.cli.app import run
from turnmill.contract import check
from turnmill.dialects import Reading, convert, dialects
from turnmill.files.canonical import readmit, to_table

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30).filter(str.strip)
turns = st.lists(st.tuples(texts, texts), min_size=1, max_size=4)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)
BAD = ["{", "[]", '{"messages": []}', '{"messages": [{"role": "user", "content": "q"}]}', '{"a": 1, "a": 2}', "\\"]
lines = st.lists(turns.map(lambda pairs: [text for pair in pairs for text in pair]) | st.sampled_from(BAD), max_size=25)
SLOW = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def checked(record: dict) -> Any:
    return check(convert(record, dialects.get("openai"), Reading()))


def prepared(folder: str, rows: list[list[str] | str], *flags: str) -> Published:
    path = Path(folder, "rows.jsonl")
    path.write_text("".join((row if isinstance(row, str) else json.dumps(chat(*row))) + "\n" for row in rows))
    arguments = [str(path), "--dialect", "openai", "--model", "smollm2", "--output", f"{folder}/out", "--workers", "1"]
    assert run(["prepare", *arguments, "--health.max_rejected", "1", *flags]) == 0
    return Published(Path(folder, "out"))


@given(turns)
def test_text_is_the_same_in_record_and_canonical_table(pairs):
    said = [text for pair in pairs for text in pair]
    (row,) = readmit(to_table([checked(chat(*said))]))
    assert [message.text for message in row.messages] == said


@SLOW
@given(st.lists(turns, min_size=1, max_size=20))
def test_text_is_the_same_in_record_and_published_folder(rows):
    said = [[text for pair in pairs for text in pair] for pairs in rows]
    with tempfile.TemporaryDirectory() as folder:
        published = prepared(folder, said, "--dedup.by", "[]", "--max-tokens", "4096")
        stored = {row["row"]: row["messages"] for row in published.conversations()}
        for number, texts_of_row in enumerate(said):
            assert [message["content"][0]["text"] for message in stored[number]] == texts_of_row


@SLOW
@given(lines, st.sampled_from([[], ["--split.fraction", "0.4"], ["--max-tokens", "30"]]))
def test_every_row_is_counted_once_and_stored_once(rows, flags):
    rows = [["stays", "trains"], *rows]
    with tempfile.TemporaryDirectory() as folder:
        published = prepared(folder, rows, *flags)  # the first row's group is never held out
        counts = published.report["rows"]
        assert counts["read"] == len(rows) == sum(n for name, n in counts.items() if name != "read")
        places = [published.conversations(side) for side in ("train", "eval")]
        places += [published.table("quarantine"), published.table("duplicates")]
        assert sorted(row["row"] for place in places for row in place) == list(range(len(rows)))


@SLOW
@given(lines)
def test_labels_are_ids_and_packs_hold_every_example_once(rows):
    with tempfile.TemporaryDirectory() as folder:
        published = prepared(folder, [["stays", "trains"], *rows], "--max-tokens", "200")
        examples = published.examples()
        assert sorted(number for pack in published.plan() for number in pack) == list(range(len(examples)))
        for example in examples:
            marked = labels_of(example)
            assert len(marked) == len(example["input_ids"]) <= 200
            assert set(marked) <= {IGNORE, *example["input_ids"]}
            assert any(label != IGNORE for label in marked)
            assert example["turn_ends"][-1] == len(marked)


def shuffled(value: Any, draw: random.Random) -> Any:
    """The same JSON value with its keys in another order."""
    if isinstance(value, list):
        return [shuffled(item, draw) for item in value]
    if not isinstance(value, dict):
        return value
    keys = draw.sample(list(value), len(value))
    return {key: shuffled(value[key], draw) for key in keys}


@given(st.dictionaries(st.text(max_size=6), values, max_size=5), st.randoms(use_true_random=False))
def test_ids_do_not_hang_on_the_order_of_keys(arguments, draw):
    function = {"name": "look", "arguments": arguments}
    called = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c", "type": "function", "function": function}],
    }
    messages = [{"role": "user", "content": "q"}, called, {"role": "tool", "tool_call_id": "c", "content": "r"}]
    messages.append({"role": "assistant", "content": "a"})
    parameters = {"type": "object", "properties": {key: {"default": value} for key, value in arguments.items()}}
    tool = {"type": "function", "function": {"name": "look", "parameters": parameters}}
    record = {"messages": messages, "tools": [tool]}
    assert checked(record).id == checked(shuffled(record, draw)).id


@pytest.mark.parametrize("field", ["content", "role"])
def test_ids_hang_on_what_is_said_and_by_whom(field):
    record = chat("a", "b", "c", "d")
    other = chat("a", "b", "c", "d")
    other["messages"][0][field] = {"content": "A", "role": "system"}[field]
    if field == "role":
        other["messages"].insert(1, {"role": "user", "content": "a"})
    assert checked(record).id != checked(other).id
