"""Alpaca instructions: instruction, input and output, with an optional system text and history."""

from __future__ import annotations

from turnmill.conversation import Conversation, Json
from turnmill.dialects import Reading, dialect
from turnmill.dialects.content import read_text
from turnmill.dialects.exchange import Exchange, read_history
from turnmill.dialects.fields import Fields, require_known
from turnmill.dialects.row import SHARED_COLUMNS, read_row
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
