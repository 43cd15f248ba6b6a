"""Prompts and responses: one exchange in two columns under any of their usual names, each a text or a list of messages.

A column is taken by name where just one of its names is there; two of them (a question beside a problem) reject the
row until `columns` says which one counts. An answer inside a prompt's list of messages is context and gets weight 0,
as trainers of this layout have it.
"""

from __future__ import annotations

from turnmill.conversation import Conversation, Json
from turnmill.dialects import Reading, dialect
from turnmill.dialects.calls import read_calls
from turnmill.dialects.content import read_text
from turnmill.dialects.exchange import Exchange, read_history
from turnmill.dialects.fields import Fields, is_empty, require_known
from turnmill.dialects.recorded import Utterance
from turnmill.dialects.row import SHARED_COLUMNS, read_row
from turnmill.dialects.sharegpt import MANNER
from turnmill.dialects.turns import MESSAGE_KEYS, read_message
from turnmill.errors import Rejected, quote

PROMPTS = ("prompt", "question", "instruction", "query", "input", "inputs", "problem")
RESPONSES = ("response", "answer", "completion", "output", "target", "targets", "solution")
COLUMNS = ("prompt", "response", "context", "history", "reasoning", "calls", *SHARED_COLUMNS)
"""Of these `context`, `reasoning` and `calls` are read only where the source declares them."""


@dialect("prompt-response")
def prompt_response(record: dict[str, Json], reading: Reading) -> Conversation:
    """Prompts and responses under their usual names, with system and history; texts or lists of messages."""
    require_known("column", reading.mapping.columns, COLUMNS)
    require_known("tag", reading.mapping.tags, MESSAGE_KEYS)
    fields = Fields(record, reading.mapping.columns)
    said = Exchange(reading)
    for question, answer in read_history(fields.take("history")):
        said.ask(question)
        said.answer(answer)
    prompt, response = _one_of(fields, "prompt", PROMPTS), _one_of(fields, "response", RESPONSES)
    _add_prompt(said, prompt, _context(fields))
    _add_response(said, response, fields)
    if not said.utterances:
        raise Rejected("no-messages", "the row has neither prompt nor response")
    system = read_text(fields.take_one("system", "system_prompt"), "system")
    return read_row(fields, said.utterances, reading, system=system)


def _one_of(fields: Fields, name: str, spellings: tuple[str, ...]) -> Json:
    """The column of that name, under the one spelling that holds something.

    Raises:
        Rejected: `ambiguous-columns`.
    """
    if name in fields.names:
        return fields.take_one(name)
    there = [key for key in spellings if fields.rest.get(key) is not None]
    found = [key for key in there if not is_empty(fields.rest[key])] or there[:1]
    if len(found) > 1:
        message = f"{' and '.join(found)} may each be the {name}; say which: `columns: {{{name}: {found[0]}}}`"
        raise Rejected("ambiguous-columns", message)
    return fields.rest.pop(found[0]) if found else None


def _context(fields: Fields) -> str:
    """A declared context.

    Raises:
        Rejected: `ambiguous-columns` where there is one that nobody declared: without it the prompt is another.
    """
    if "context" in fields.names:
        return read_text(fields.take_one("context"), "context")
    if not is_empty(fields.rest.get("context")):
        message = "the row has a context; `columns: {context: context}` joins it to the prompt by a blank line"
        raise Rejected("ambiguous-columns", message)
    return ""


def _add_prompt(said: Exchange, prompt: Json, context: str) -> None:
    if isinstance(prompt, list) and prompt:
        if context.strip():
            raise Rejected("ambiguous-columns", "a context stands beside a list of messages; expected a text prompt")
        for utterance in _listed(said, prompt):
            if utterance.role in ("assistant", "tool"):
                utterance.weight = 0.0
                said.reading.counts["read/prompt-untrained"] += 1
        return
    texts = [text for text in (read_text(prompt, "prompt"), context) if text.strip()]
    if texts or prompt:
        said.ask("\n\n".join(texts) or prompt)


def _add_response(said: Exchange, response: Json, fields: Fields) -> None:
    if isinstance(response, list) and response and isinstance(response[0], dict):
        _listed(said, response)
        return
    reasoning = ""
    if "reasoning" in fields.names:
        reasoning = read_text(fields.take_one("reasoning"), "reasoning")
    calls = fields.take("calls") if "calls" in fields.names else None
    if response is not None or calls is not None or reasoning:
        said.answer(read_text(response, "response"), reasoning)
    if calls is not None:
        said.utterances[-1].calls = read_calls(calls, len(said.utterances) - 1, said.reading.counts)


def _listed(said: Exchange, messages: list[Json]) -> list[Utterance]:
    """The messages of a prompt or response, numbered on from those before."""
    first = len(said.utterances)
    if not all(isinstance(message, dict) for message in messages):
        raise Rejected("non-string-content", f"a prompt or response is {quote(messages)}; expected text or messages")
    said.utterances += [read_message(one, first + n, MANNER, said.reading) for n, one in enumerate(messages)]
    return said.utterances[first:]
