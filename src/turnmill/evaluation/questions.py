"""The questions of prepared data: what stands before each trained turn, and the answer that was recorded."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from turnmill.conversation import Checked, Json, Message
from turnmill.dialects import writer_of
from turnmill.dialects.writing import said_together
from turnmill.evaluation.sets import sampled
from turnmill.files.canonical import readmit
from turnmill.files.prepared import PreparedData, Side
from turnmill.files.tables import batches
from turnmill.rendered import KINDS, TRAINED_KINDS, Example
from turnmill.scorers import Nll, ToScore, Unscored

OWN = tuple(kind for kind in KINDS if kind in TRAINED_KINDS and kind != "stop")
NOT_SENT = ("weight", "reasoning_content", "name")
"""Keys of a message that an endpoint is not sent: it may refuse them, and inference has no reasoning of the past."""


class Turn(NamedTuple):
    """One trained turn of an example."""

    start: int
    """Token with which it begins to be the model's own: the prompt ends there."""
    end: int
    """Behind its stop."""
    stop: int
    """Where its stop begins; `end` where it has none."""
    message: int
    """Number in the recorded list."""


@dataclass(frozen=True)
class Question:
    """What a model is asked, and what it was trained to answer."""

    row_id: str
    part: int
    turn: int
    """Number of the turn among the trained ones of its example."""
    message: int
    """Number in the recorded list."""
    source: str
    source_file: str
    source_line: int
    prompt_ids: NDArray[np.int32]
    """(tokens,) before the turn in its example, the generation prompt included."""
    answer_ids: NDArray[np.int32]
    """(tokens,) of the turn, its stop included."""
    trained: NDArray[np.bool_]
    """(answer tokens,) those that train."""
    stop_tokens: int
    """Of the answer's last tokens, those that end the turn."""
    chat: dict[str, Json]
    """The conversation before the turn, as `messages` and `tools` of OpenAI's form."""
    asked: str
    """The text of the message before the turn."""
    said: str
    """The answer as a server gives it: text, then each call as a line of JSON; without its reasoning."""

    @property
    def key(self) -> str:
        """What it is known by in a folder of answers."""
        return f"{self.row_id}/{self.part}/{self.turn}"


def turns_of(example: Example) -> list[Turn]:
    """The trained turns of an example, in order."""
    turns: list[Turn] = []
    before = 0
    for end in example.turn_ends:
        turn = _turn(example, before, end)
        if turn is not None:
            turns.append(turn)
        before = end
    return turns


def _turn(example: Example, before: int, end: int) -> Turn | None:
    """The last stretch of the model's own text in [before, end), and the stop behind it; None where nothing trains."""
    spans = [
        (max(start, before), min(run.end, end), run)
        for start, run in zip([0, *(run.end for run in example.runs)], example.runs, strict=False)
        if run.end > before and start < end
    ]
    trained = [number for number, (_, _, run) in enumerate(spans) if run.kind in OWN and run.weight > 0]
    if not trained:
        return None
    message = spans[trained[-1]][2].message
    own = [number for number, (_, _, run) in enumerate(spans) if run.kind in OWN and run.message == message]
    stops = [start for start, _, run in spans[own[-1] + 1 :] if run.kind == "stop"]
    return Turn(spans[own[0]][0], end, min(stops, default=end), message)


def questions_of(
    data: PreparedData, side: Side = "train", *, samples: int | None = None, seed: int = 0
) -> Iterator[Question]:
    """The questions of a side's rows, in the order of its examples; raw texts have none.

    Args:
        data: OUT.
        side: whose rows.
        samples: so many rows, by seed and id; None: all.
        seed: of the draw.
    """
    examples = data.examples(side)
    row_ids = [row_id for batch in examples.batches() for row_id in batch.column("row_id").to_pylist()]
    numbers = sampled(row_ids, samples, seed).tolist()
    rows = _rows(data, side, {row_ids[number] for number in numbers})
    for number in numbers:
        example = examples[number]
        row = rows.get(example.row_id)
        if row is not None and not row.is_raw_text:
            yield from _questions(example, row)


def _rows(data: PreparedData, side: Side, wanted: set[str]) -> dict[str, Checked]:
    """The conversations behind some examples."""
    found: dict[str, Checked] = {}
    for path in data.conversation_files(side):
        for batch in batches(path):
            ids = batch.column("id").to_pylist()
            places = [place for place, row_id in enumerate(ids) if row_id in wanted]
            if places:
                rows = readmit(batch.take(places))
                found |= {ids[place]: row for place, row in zip(places, rows, strict=True)}
    return found


def _questions(example: Example, row: Checked) -> Iterator[Question]:
    ids = np.asarray(example.input_ids, dtype=np.int32)
    weights = np.repeat(
        np.array([run.weight > 0 for run in example.runs]),
        np.diff([0, *(run.end for run in example.runs)]),
    )
    weights[:1] = False  # nothing stands before it: it cannot be predicted
    for number, turn in enumerate(turns_of(example)):
        first = next((n for n, one in enumerate(row.messages) if _is_of(one, turn.message)), None)
        if first is None or not turn.start:
            continue
        yield Question(
            example.row_id, example.part, number, turn.message, example.source, example.source_file,
            example.source_line, ids[: turn.start], ids[turn.start : turn.end], weights[turn.start : turn.end],
            turn.end - turn.stop, _chat(row, first), row.messages[first - 1].text if first else "",
            _said(row, turn.message),
        )  # fmt: skip


def _is_of(message: Message, recorded: int) -> bool:
    return message.role == "assistant" and message.recorded == recorded


def _chat(row: Checked, messages: int) -> dict[str, Json]:
    """The first messages as a request holds them."""
    written = writer_of("openai")(row.beginning(messages))
    kept = [{key: value for key, value in one.items() if key not in NOT_SENT} for one in written["messages"]]
    return {"messages": kept, **({"tools": written["tools"]} if "tools" in written else {})}


def _said(row: Checked, recorded: int) -> str:
    said = [one for one in said_together(row) if one.role == "assistant" and one.recorded == recorded]
    texts = [one.text or "" for one in said]
    calls = [
        call_line((call.recipient or "").removeprefix("functions."), call.text) for one in said for call in one.calls
    ]
    return "\n".join(text for text in [*texts, *calls] if text)


def call_line(name: str, arguments: str) -> str:
    """A call as a line of JSON: its arguments sorted, where they are an object."""
    try:
        return json.dumps({"name": name, "arguments": json.loads(arguments)}, ensure_ascii=False, sort_keys=True)
    except ValueError:
        return json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)


@dataclass(frozen=True)
class Reading:
    """The questions of one example, read in one go: the last one's prompt holds the others."""

    numbers: list[int]
    """In the list that was given."""
    questions: list[Question]

    @property
    def sequence(self) -> ToScore:
        """The example up to the end of its last turn, and the trained tokens of all."""
        last = self.questions[-1]
        ids = np.concatenate([last.prompt_ids, last.answer_ids])
        wanted = np.zeros(len(ids), np.bool_)
        for question in self.questions:
            start = len(question.prompt_ids)
            wanted[start : start + len(question.trained)] = question.trained
        return ToScore(ids, wanted)

    def apart(self, found: Nll | Unscored) -> Iterator[tuple[int, float | Unscored]]:
        """Number of each question, and the sum over its own tokens."""
        if isinstance(found, Unscored):
            yield from ((number, found) for number in self.numbers)
            return
        ends = np.cumsum([int(question.trained.sum()) for question in self.questions])[:-1]
        parts = np.split(found.astype(np.float64), ends)
        yield from ((number, float(part.sum())) for number, part in zip(self.numbers, parts, strict=True))


def by_example(questions: Sequence[Question]) -> list[Reading]:
    """The questions of each example together."""
    found: dict[tuple[str, int], Reading] = {}
    for number, question in enumerate(questions):
        reading = found.setdefault((question.row_id, question.part), Reading([], []))
        reading.numbers.append(number)
        reading.questions.append(question)
    return list(found.values())
