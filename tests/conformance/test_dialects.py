"""What every dialect promises, over the whole registry: a record is converted or rejected, never more."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnmill.codes import CODES
from turnmill.contract import check
from turnmill.conversation import Conversation
from turnmill.dialects import Reading, convert, dialects, writer_of, writers
from turnmill.dialects.neutral import neutral_turns
from turnmill.errors import Rejected

WORDS = st.sampled_from(
    ["", " ", "q", "0", "f", "c1", "null", "[]", "{}", '{"name": "f", "arguments": {}}', "<think>", "<think>r</think>a",
     "user", "assistant", "Human", "tool_use", "tool_result", "thinking", "redacted_thinking", "developer_content",
     "analysis", "final", "commentary", "functions.f", "browser.f", "<|start|>user<|message|>q<|end|>",
     "<|start|>assistant<|channel|>final<|message|>a<|return|>", "<|start|>", "<|message|>", "<|call|>",
     "gpt", "system", "tool", "function_call", "observation", "text", "image", "\ud800"]
)  # fmt: skip
EVENT_WORDS = st.sampled_from(
    ["message", "reasoning", "function_call", "function_call_output", "custom_tool_call", "local_shell_call", "agent",
     "environment", "run", "finish", "error", "MessageEvent", "ActionEvent", "ObservationEvent", "AgentErrorEvent"]
)  # fmt: skip
KEYS = st.sampled_from(
    ["messages", "conversations", "instruction", "input", "output", "history", "system", "tools", "functions", "id",
     "chat_template_kwargs", "train_turns", "role", "from", "content", "value", "name", "weight", "loss", "reasoning",
     "tool_calls", "function_call", "tool_call_id", "function", "arguments", "type", "text", "parameters", "images",
     "prompt", "response", "question", "answer", "context", "conversation", "channel", "recipient", "author",
     "thinking", "tool_use_id", "input_schema", "instructions", "events", "lines", "shared", "message", "payload",
     "action", "observation", "args", "source", "kind", "llm_message", "tool_call", "call_id", "output", "trajectory"]
)  # fmt: skip
SCALARS = st.none() | st.booleans() | st.integers(-2, 2) | st.floats() | WORDS
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=5), max_leaves=25
)
BLOCKS = st.fixed_dictionaries(
    {"type": WORDS},
    optional=dict.fromkeys(["text", "thinking", "name", "id", "tool_use_id", "content", "input"], WORDS | VALUES),
)
EVENTS = st.lists(
    st.fixed_dictionaries(
        {"type": WORDS | EVENT_WORDS},
        optional=dict.fromkeys(["role", "name", "kind", "source", "action", "observation"], WORDS | EVENT_WORDS)
        | dict.fromkeys(["message", "args", "tool_call", "llm_message", "content", "summary", "output"], VALUES)
        | dict.fromkeys(["call_id", "tool_call_id"], WORDS),
    ),
    max_size=5,
)
MESSAGES = st.lists(
    st.fixed_dictionaries(
        {"role": WORDS, "content": WORDS | VALUES | st.lists(BLOCKS, max_size=3)},
        optional=dict.fromkeys(["name", "weight", "tool_calls", "function_call", "reasoning", "author"], VALUES)
        | dict.fromkeys(["tool_call_id", "channel", "recipient"], WORDS),
    ),
    max_size=5,
)
WIRES = st.lists(WORDS | st.sampled_from(["<|end|>", "<|channel|>", "<|constrain|>", " to=functions.f "])).map("".join)
RECORDS = st.dictionaries(KEYS, VALUES, max_size=6) | st.fixed_dictionaries(
    {},
    optional=dict.fromkeys(["messages", "conversations", "prompt", "completion"], MESSAGES)
    | dict.fromkeys(["events", "history"], EVENTS)
    | dict.fromkeys(["tools", "train_turns", "shared"], VALUES)
    | {"text": WIRES, "system": VALUES},
)

NAMES = dialects.names()


def attempt(conversion: Callable[[], Conversation]) -> Conversation | Rejected:
    try:
        return conversion()
    except Rejected as rejected:
        return rejected


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=150, deadline=None)
@given(record=RECORDS)
def test_any_record_is_converted_or_rejected(name, record):
    before = repr(record)
    outcome = attempt(lambda: convert(record, dialects.get(name), Reading()))
    assert isinstance(outcome, Conversation) or outcome.code in CODES
    assert repr(record) == before


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=150, deadline=None)
@given(record=RECORDS)
def test_what_check_admits_has_an_id_and_a_neutral_form(name, record):
    outcome = attempt(lambda: check(convert(record, dialects.get(name), Reading())))
    if isinstance(outcome, Rejected):
        assert outcome.code in CODES
        assert len(outcome.message) < 400
    else:
        assert len(outcome.id) == 32
        assert len(neutral_turns(outcome)) == len(outcome.messages)


@pytest.mark.parametrize("name", NAMES)
def test_an_empty_record_has_no_messages(name):
    with pytest.raises(Rejected) as caught:
        convert({}, dialects.get(name), Reading())
    assert caught.value.code == "no-messages"


@pytest.mark.parametrize("name", NAMES)
def test_says_what_it_is_in_one_line(name):
    assert 20 < len(dialects.summary(name)) <= 120


def test_what_can_be_written_can_be_read():
    writer_of("openai")
    assert set(writers) <= set(NAMES)
    assert all(writer.__doc__ for writer in writers.values())


@pytest.mark.parametrize("name", NAMES)
def test_the_page_of_dialects_has_it(name):
    writer_of("openai")
    page = (Path(__file__).parents[2] / "docs" / "reference" / "dialects.md").read_text("utf-8")
    (line,) = [line for line in page.splitlines() if line.startswith(f"| `{name}` |")]
    assert line.split(" | ")[-1].startswith("yes") == (name in writers)
