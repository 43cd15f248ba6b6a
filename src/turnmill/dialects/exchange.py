"""Rows that name question and answer by column: what they say, text after text."""

from __future__ import annotations

from turnmill.conversation import Json
from turnmill.dialects import Reading
from turnmill.dialects.content import read_text
from turnmill.dialects.recorded import Utterance
from turnmill.dialects.turns import settle_answer
from turnmill.errors import Rejected, quote

PAIR_KEYS = ("input", "output")


class Exchange:
    """Utterances of user and assistant, numbered as they come.

    Attributes:
        utterances: what was said so far.
        reading: where things are counted, and how think blocks open.
    """

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.utterances: list[Utterance] = []

    def ask(self, text: str) -> None:
        """A user's text."""
        self.utterances.append(Utterance(len(self.utterances), "user", text))

    def answer(self, text: str, reasoning: str = "") -> None:
        """An assistant's text, with the reasoning that a column of its own holds."""
        self.utterances.append(Utterance(len(self.utterances), "assistant", text))
        settle_answer(self.utterances[-1], reasoning, self.reading)


def read_history(value: Json) -> list[tuple[str, str]]:
    """The earlier questions and answers: a list of pairs, or of objects with input and output.

    Raises:
        Rejected: `history-malformed`, or `non-string-content`.
    """
    if value is None:
        return []
    pairs = [_pair(entry) for entry in value] if isinstance(value, list) else [None]
    if None in pairs:
        raise Rejected("history-malformed", f"history is {quote(value)}; expected a list of [question, answer]")
    return [(read_text(pair[0], "history"), read_text(pair[1], "history")) for pair in pairs if pair is not None]


def _pair(entry: Json) -> tuple[Json, Json] | None:
    if isinstance(entry, dict) and set(entry) == set(PAIR_KEYS):
        return entry["input"], entry["output"]
    if isinstance(entry, (list, tuple)) and len(entry) == 2:
        return entry[0], entry[1]
    return None
