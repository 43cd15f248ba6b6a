"""The Python side of the verbs."""

import shutil
import subprocess
import sys

import pytest

import turnmill
from turnmill import Conversation, Message, Rejected, UsageError

ROWS = (
    '{"messages": [{"role": "user", "content": "What is a lathe?"}, {"role": "assistant", "content": "It turns."}]}\n'
    '{"messages": [{"role": "user", "content": "And a mill?"}, {"role": "assistant", "content": "It cuts."}]}\n'
    '{"messages": [{"role": "user", "content": "Hello?"}]}\n'
)


@pytest.fixture
def data(write):
    return write("chat.jsonl", ROWS)


@pytest.fixture
def prepared(data, tmp_path):
    return turnmill.prepare(data, output=tmp_path / "out", model="smollm2", options={"workers": 1})


def test_every_public_name_is_there_and_typed():
    assert all(getattr(turnmill, name) is not None for name in turnmill.__all__)
    assert sorted(turnmill.__all__) == dir(turnmill)
    with pytest.raises(AttributeError, match="no attribute 'rander'"):
        _ = turnmill.rander


def test_read_gives_every_row_with_its_fate(data):
    rows = list(turnmill.read(data))
    assert [row.fault.code if row.fault else None for row in rows] == [None, None, "no-assistant-turn"]
    assert rows[0].checked.messages[1].text == "It turns."


def test_read_needs_something_to_read():
    with pytest.raises(UsageError, match="no data given"):
        next(turnmill.read())


def test_check_takes_conversations_made_in_python():
    good = Conversation((Message("user", "hi"), Message("assistant", "yo", "final")))
    assert turnmill.check(good).id == good.id
    with pytest.raises(Rejected, match="no-messages"):
        turnmill.check(Conversation(()))


def test_check_takes_its_options():
    call = Message("assistant", "{}", "commentary", recipient="functions.f")
    tool = {"name": "f", "parameters": {}}
    row = Conversation((Message("user", "hi"), call), (tool,))
    turnmill.check(row)
    with pytest.raises(Rejected):
        turnmill.check(row, {"unanswered_calls": "reject"})


def test_render_gives_text_and_spans(data):
    row = next(turnmill.read(data)).checked
    rendered = turnmill.render(row, template="chatml")
    trained = [rendered.text[span.start : span.end] for span in rendered.spans if span.kind in ("answer", "stop")]
    assert trained == ["It turns.", "<|im_end|>"]


def test_explain_says_why_each_turn_trains(data):
    explanation = turnmill.explain(data, 1, model="smollm2", options={"loss.turns": "last"})
    answer = explanation.as_json()
    assert [turn["why"] for turn in answer["turns"]] == ["role", "trained"]
    assert len(answer["input_ids"]) == len(answer["labels"])


def test_prepare_opens_what_it_published(prepared):
    assert [row.messages[0].text for row in prepared.conversations()] == ["What is a lathe?", "And a mill?"]
    assert prepared.report["rows"]["accepted"] == 2
    assert [left.code for left in prepared.left()] == ["no-assistant-turn"]


def test_packs_hold_the_examples_they_name(prepared):
    examples = prepared.examples()
    (pack,) = prepared.packs()
    assert sorted(pack.numbers) == [0, 1]
    assert pack.input_ids == [n for number in pack.numbers for n in examples[number].input_ids]
    assert pack.row_ids == [examples[number].row_id for number in pack.numbers]
    assert prepared.plan() == [list(pack.numbers)]


def test_iterating_gives_the_examples_in_order(prepared):
    assert [example.row_id for example in prepared] == [row.id for row in prepared.conversations()]


def test_a_side_without_rows_is_empty(prepared):
    assert len(prepared.examples("eval")) == 0
    assert list(prepared.packs("eval")) == prepared.plan("eval") == []


def test_a_file_that_the_manifest_does_not_list_is_not_read(prepared):
    before = list(prepared.left())
    listed = next((prepared.folder / "quarantine").glob("*.parquet"))
    shutil.copy(listed, listed.with_name("part-99999.parquet"))
    assert list(turnmill.open_prepared(prepared.folder).left()) == before != []


def test_a_changed_folder_is_not_opened(prepared):
    from turnmill import StaleError

    path = prepared.folder / "report.json"
    path.write_bytes(path.read_bytes().replace(b"2", b"3", 1))
    with pytest.raises(StaleError, match=r"report\.json"):
        turnmill.open_prepared(prepared.folder)


def test_datasets_is_named_where_it_is_missing(prepared, monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(UsageError, match="not installed"):
        prepared.to_datasets()


def test_importing_the_package_loads_nothing_heavy():
    heavy = ["numpy", "pyarrow", "pydantic", "jinja2", "tokenizers"]
    code = f"import sys, turnmill; dir(turnmill); print([name for name in {heavy} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
