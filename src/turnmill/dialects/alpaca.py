"""Alpaca instructions: instruction, input and output, with an optional system text and history."""

from __future__ import annotations

from turnmill.conversation import Conversation, Json
from turnmill.dialects import Reading, dialect, writer
from turnmill.dialects.content import read_text
from turnmill.dialects.exchange import Exchange, read_history
from turnmill.dialects.fields import Fields, require_known
from turnmill.dialects.row import SHARED_COLUMNS, read_row
from turnmill.dialects.writing import Said, enveloped_tools, said_together, shared_columns, with_think_block
from turnmill.errors import Rejected

COLUMNS = ("instruction", "input", "output", "history", *SHARED_COLUMNS)


@dialect("alpaca")
def alpaca(record: dict[str, Json], reading: Reading) -> Conversation:
    """Alpaca instructions: instruction and input (joined by a blank line), output, system, history.

    Dolly's names are read, too: `context` for the input, `response` for the output. A message's recorded number
    counts the history's texts, then the instruction, then the output.
    """
    require_known("column", reading.mapping.columns, COLUMNS)
    fields = Fields(record, reading.mapping.columns)
    said = Exchange(reading)
    for question, answer in read_history(fields.take("history")):
        said.ask(question)
        said.answer(answer)
    instruction, given = fields.take_one("instruction"), fields.take_one("input", "context")
    prompts = [read_text(instruction, "instruction"), read_text(given, "input")]
    prompt = "\n\n".join(text for text in prompts if text.strip())
    if prompt or any(prompts):
        said.ask(prompt or prompts[0])
    output = fields.take_one("output", "response")
    if output is not None:
        said.answer(read_text(output, "output"))
    if not said.utterances:
        raise Rejected("no-messages", "the row has neither instruction, input, output nor history")
    system = read_text(fields.take_one("system", "system_prompt"), "system")
    return read_row(fields, said.utterances, reading, system=system)


@writer("alpaca")
def write_alpaca(conversation: Conversation) -> dict[str, Json]:
    """One exchange as instruction and output, those before it as history; reasoning in a think block.

    Raises:
        Rejected: `dialect-cannot-say`: calls, or speakers that do not take turns.
    """
    said = said_together(conversation)
    systems = [one.text or "" for one in said if one.role == "system"]
    asked = said[len(systems) :]
    if [one.role for one in asked] != ["user", "assistant"] * (len(asked) // 2) or len(systems) > 1:
        roles = ", ".join(one.role for one in said)
        raise Rejected("dialect-cannot-say", f"alpaca says user and assistant in turn; the row has {roles}")
    texts = [_alpaca_text(one) for one in asked]
    pairs = [[question, answer] for question, answer in zip(texts[::2], texts[1::2], strict=True)]
    record: dict[str, Json] = {"instruction": pairs[-1][0], "input": "", "output": pairs[-1][1]}
    if systems:
        record["system"] = systems[0]
    if pairs[:-1]:
        record["history"] = pairs[:-1]
    return record | enveloped_tools(conversation) | shared_columns(conversation)


def _alpaca_text(said: Said) -> str:
    if said.calls:
        raise Rejected("dialect-cannot-say", "alpaca has no form for calls", at=said.recorded)
    return with_think_block(said.text or "", said.reasoning)
