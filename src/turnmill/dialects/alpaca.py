"""Alpaca instructions: instruction, input and output, with an optional system text and history."""

from __future__ import annotations

from turnmill.conversation import Conversation, Json, Role
from turnmill.dialects import Reading, dialect
from turnmill.dialects.content import read_text
from turnmill.dialects.fields import Fields, require_known
from turnmill.dialects.reasoning import place_reasoning
from turnmill.dialects.recorded import Utterance
from turnmill.dialects.row import SHARED_COLUMNS, read_row
from turnmill.errors import Rejected, quote

COLUMNS = ("instruction", "input", "output", "history", *SHARED_COLUMNS)


@dialect("alpaca")
def alpaca(record: dict[str, Json], reading: Reading) -> Conversation:
    """Alpaca instructions: instruction and input (joined by a blank line), output, system, history.

    A message's recorded number counts the history's texts, then the instruction, then the output.
    """
    require_known("column", reading.mapping.columns, COLUMNS)
    fields = Fields(record, reading.mapping.columns)
    utterances: list[Utterance] = []
    for question, answer in _history(fields.take("history")):
        _say(utterances, "user", question)
        _answer(utterances, answer, reading)
    prompts = [read_text(fields.take_one(name), name) for name in ("instruction", "input")]
    prompt = "\n\n".join(text for text in prompts if text.strip())
    if prompt or any(prompts):
        _say(utterances, "user", prompt or prompts[0])
    output = fields.take_one("output")
    if output is not None:
        _answer(utterances, read_text(output, "output"), reading)
    if not utterances:
        raise Rejected("no-messages", "the row has neither instruction, input, output nor history")
    return read_row(fields, utterances, reading)


def _history(value: Json) -> list[tuple[str, str]]:
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(pair, (list, tuple)) and len(pair) == 2 for pair in value):
        raise Rejected("history-malformed", f"history is {quote(value)}; expected a list of [question, answer]")
    return [(read_text(question, "history"), read_text(answer, "history")) for question, answer in value]


def _say(utterances: list[Utterance], role: Role, text: str) -> None:
    utterances.append(Utterance(len(utterances), role, text))


def _answer(utterances: list[Utterance], text: str, reading: Reading) -> None:
    _say(utterances, "assistant", text)
    place_reasoning(utterances[-1], "", reading.think_tags, reading.counts)
