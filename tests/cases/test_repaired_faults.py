"""Known faults that a repair mends, under the real templates that they break."""

from __future__ import annotations

import pytest

from chats import chat
from tests_support import TRANSFORMERS_TOKENS, stops_of_template
from turnmill.contract import check
from turnmill.conversation import Checked
from turnmill.dialects import Reading, convert, dialects
from turnmill.errors import Rejected
from turnmill.options import Render
from turnmill.rendered import TRAINED_KINDS
from turnmill.rendering.renderer import Renderer
from turnmill.repairs import Mending
from turnmill.repairs.mender import Mender


@pytest.fixture(scope="session")
def render(trl_templates):
    def call(name: str, row: Checked):
        source = (trl_templates / f"{name}.jinja").read_text()
        return Renderer(source, TRANSFORMERS_TOKENS, stops_of_template(source), None, Render(), name).render(row)

    return call


def mended(record: dict, *names: str) -> Checked:
    touched: list[str] = []
    row = Mender(names, Mending()).conversation(convert(record, dialects.get("openai"), Reading()), touched)
    assert tuple(touched) == names
    return check(row)


def trained(rendered) -> list[str]:
    return [rendered.text[span.start : span.end] for span in rendered.spans if span.kind in TRAINED_KINDS]


def test_a_restored_opener_is_written_once(render):
    row = mended(chat("What is 3 times 3?", "Count by threes.\n</think>\n\nNine."), "reopen-think")
    text = render("qwen3", row).text
    assert "<think>\nCount by threes.\n</think>\n\nNine." in text
    assert (text.count("<think>"), text.count("</think>")) == (1, 1)


def test_a_template_without_reasoning_says_the_restored_text(render):
    row = mended(chat("What is 3 times 3?", "Count by threes.\n</think>\n\nNine."), "reopen-think")
    assert "<think>\nCount by threes.\n</think>\n\nNine." in render("qwen2_5", row).text


TOOL = {"type": "function", "function": {"name": "tide", "parameters": {"type": "object", "properties": {}}}}


def ports(*names: str) -> dict:
    calls = [{"id": name, "function": {"name": "tide", "arguments": {"port": name}}} for name in names]
    replies = [{"role": "tool", "tool_call_id": name, "content": f"{n} m"} for n, name in enumerate(names, 2)]
    said = {"role": "assistant", "content": None, "tool_calls": calls}
    messages = [{"role": "user", "content": "Tides?"}, said, *replies, {"role": "assistant", "content": "There."}]
    return {"messages": messages, "tools": [TOOL]}


def test_a_template_of_single_calls_refuses_two_at_once(render):
    with pytest.raises(Rejected):
        render("llama3_1", check(convert(ports("Brest", "Dover"), dialects.get("openai"), Reading())))


def test_split_calls_are_said_one_after_another(render):
    rendered = render("llama3_1", mended(ports("Brest", "Dover"), "split-parallel-calls"))
    places = [rendered.text.index(text) for text in ('"Brest"', "2 m", '"Dover"', "3 m", "There.")]
    assert places == sorted(places)
    calls = [text for text in trained(rendered) if "tide" in text]
    assert ["Brest" in calls[0], "Dover" in calls[1]] == [True, True]
