"""Labels and loss weights against a slow reference: a weight for every character, then the least of each token's."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from tests_support import TRANSFORMERS_TOKENS, listed
from tokenizers_of_tests import MARKERS, TAGS, byte_level
from turnmill.conversation import Conversation
from turnmill.errors import Rejected
from turnmill.options import Fit, Loss
from turnmill.rendered import Example, Rendered
from turnmill.rendering.renderer import Renderer
from turnmill.rendering.samples import conversation
from turnmill.tokens.encode import Encoder
from turnmill.tokens.fit import Part, fit
from turnmill.tokens.labels import IGNORE, labels, loss_weights
from turnmill.tokens.tokenize import Row, Tokenizing

ADDED = [(marker, True) for marker in MARKERS] + [(tag, False) for tag in TAGS]
SLOW = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])

texts = st.text(alphabet="ab.\n éか👩", min_size=1, max_size=8).filter(str.strip) | st.sampled_from(
    ["<|im_end|>", "see <|im_start|>user", "# a\n\nb", "שלום", "ประเทศ"]
)
answers = st.tuples(st.just("answer"), texts).map(lambda line: (line,))
reasoned = st.tuples(texts, texts).map(lambda pair: (("reasoning", pair[0]), ("answer", pair[1])))
called = st.tuples(texts, texts, texts).map(
    lambda three: (("call", three[0]), ("result", three[1]), ("answer", three[2]))
)
exchanges = st.tuples(st.tuples(st.just("user"), texts), answers | reasoned | called)
WEIGHTS = st.sampled_from([None, None, 0.0, 1.0, 0.5, 2.0])
losses = st.builds(
    Loss,
    turns=st.sampled_from(["all", "all", "last"]),
    reasoning=st.booleans(),
    observations=st.booleans(),
    scaling=st.sampled_from(["uniform", "progressive", "last-heavy"]),
    fractional=st.just(True),
)


@st.composite
def rows(draw: Any) -> Conversation:
    lines = [line for asked, said in draw(st.lists(exchanges, min_size=1, max_size=4)) for line in (asked, *said)]
    if draw(st.booleans()):
        lines.insert(0, ("system", draw(texts)))
    row = conversation(tuple(lines))
    weights = [draw(WEIGHTS) for _ in row.messages]
    by_recorded = {message.recorded: weight for message, weight in zip(row.messages, weights, strict=True)}
    messages = [msgspec.structs.replace(message, weight=by_recorded[message.recorded]) for message in row.messages]
    return msgspec.structs.replace(row, messages=tuple(messages))


class Line:
    """A template and a byte-level tokenizer, and what they make of a row."""

    def __init__(self, template: str) -> None:
        self.tokenizer: Tokenizer = byte_level()
        self.renderer = Renderer(template, TRANSFORMERS_TOKENS, ("<|im_end|>",), ADDED)
        self.tokenizing = Tokenizing(Encoder(self.tokenizer, self.renderer.probe.markers.control))

    def example(self, row: Conversation, rendered: Rendered, loss: Loss) -> Example | Rejected:
        return listed(self.tokenizing.examples([Row(row.id, row, rendered, loss)])[0])


@pytest.fixture(scope="module", params=["qwen2_5.jinja", "qwen3.jinja"])
def line(request, trl_templates):
    return Line((trl_templates / request.param).read_text())


def turn_of_message(row: Conversation) -> dict[int, int]:
    """Recorded index of each assistant message → its turn."""
    turns, turn, was_assistant = {}, -1, False
    for message in row.messages:
        if message.role == "assistant":
            turn += not was_assistant
            turns[message.recorded] = turn
        was_assistant = message.role == "assistant"
    return turns


def character_weights(row: Conversation, rendered: Rendered, loss: Loss) -> tuple[list[float], list[int]]:
    """Of every character: what it weighs before turns are scaled, and its turn, -1 for none."""
    turns = turn_of_message(row)
    recorded = {message.recorded: 1.0 if message.weight is None else message.weight for message in row.messages}
    weights, turn_of = [], []
    for span in rendered.spans:
        turn = turns.get(span.message, -1)
        trains = turn >= 0 and span.kind in ("answer", "call", "stop", "reasoning")
        trains &= loss.reasoning or span.kind != "reasoning"
        trains &= loss.turns == "all" or turn == max(turns.values())
        trains |= span.kind == "result" and loss.observations
        weights += [recorded[span.message] if trains else 0.0] * (span.end - span.start)
        turn_of += [turn] * (span.end - span.start)
    return weights, turn_of


def places(text: str, ids: list[int], tokenizer: Tokenizer) -> list[list[int]]:
    """The characters each token holds a byte of; a byte-level token has a character for each of its bytes."""
    added = {token.content for token in tokenizer.get_added_tokens_decoder().values()}
    character_of_byte = [number for number, letter in enumerate(text) for _ in letter.encode()]
    found, done = [], 0
    for token in map(tokenizer.id_to_token, ids):
        length = len(token.encode()) if token in added else len(token)
        found.append(character_of_byte[done : done + length])
        done += length
    assert done == len(character_of_byte)
    return found


def reference(row: Conversation, rendered: Rendered, loss: Loss, held: list[list[int]]) -> list[float]:
    """The weight of every token."""
    weights, turn_of = character_weights(row, rendered, loss)
    plain = [min(weights[character] for character in characters) for characters in held]
    turns = [turn_of[characters[-1]] for characters in held]
    trained = sorted({turn for turn, weight in zip(turns, plain, strict=True) if weight and turn >= 0})
    if loss.scaling == "uniform" or len(trained) < 2:
        return plain
    raw = {-1: 1.0}
    for rank, turn in enumerate(trained):
        heavy = 2.0 if turn == trained[-1] else 1.0
        raw[turn] = heavy if loss.scaling == "last-heavy" else ((rank + 1) / len(trained)) ** 0.5
    mean = np.mean([raw[turn] for turn, weight in zip(turns, plain, strict=True) if weight])
    return [weight * raw[turn] / mean if weight else 0.0 for turn, weight in zip(turns, plain, strict=True)]


def weights_of(example: Example) -> list[float]:
    return loss_weights([run.end for run in example.runs], [run.weight for run in example.runs]).tolist()


def made(line: Line, row: Conversation, loss: Loss) -> tuple[Example, list[float]] | None:
    """The example and the reference's weights; None where the template cannot say the row or nothing trains."""
    try:
        rendered = line.renderer.render(row)
    except Rejected:
        return None
    example = line.example(row, rendered, loss)
    if isinstance(example, Rejected):
        assert example.code == "no-trainable-tokens"
        assert not any(character_weights(row, rendered, loss)[0])
        return None
    return example, reference(row, rendered, loss, places(rendered.text, example.input_ids, line.tokenizer))


@SLOW
@given(row=rows(), loss=losses)
def test_weights_and_labels_are_those_of_the_characters(line, row, loss):
    found = made(line, row, loss)
    if found is None:
        return
    example, want = found
    assert weights_of(example) == pytest.approx(want, rel=1e-6)
    marked = labels(example.input_ids, [run.end for run in example.runs], [run.weight for run in example.runs])
    pairs = zip(example.input_ids, want, strict=True)
    assert marked.tolist() == [number if weight else IGNORE for number, weight in pairs]
    assert all(want[end - 1] for end in example.turn_ends)


@SLOW
@given(row=rows(), loss=losses, share=st.floats(0.2, 1.1), overflow=st.sampled_from(["cut", "drop", "continue"]))
def test_parts_weigh_what_the_whole_weighs(line, row, loss, share, overflow):
    found = made(line, row, loss)
    if found is None:
        return
    example, want = found
    limit = max(1, int(share * len(want)))
    counts: Counter[str] = Counter()
    try:
        parts = fit(example, Fit(overflow=overflow), limit, only_last=loss.turns == "last", counts=counts)
    except Rejected as fault:
        if fault.code not in ("too-long", "first-turn-too-long"):
            raise
        return
    assert all(len(part.example.input_ids) <= limit for part in parts)
    covered = [number for part in parts for number in trained_again(part, example, want)]
    assert len(covered) == len(set(covered))
    lost = {number for number, weight in enumerate(want) if weight} - set(covered)
    assert not lost or (overflow != "drop" and max(i for i, weight in enumerate(want) if weight) >= limit)


def trained_again(part: Part, whole: Example, want: list[float]) -> list[int]:
    """The tokens of the whole that a part trains, once they weigh the same there; its context weighs nothing."""
    numbers = [
        (number, stretch.is_context) for stretch in part.stretches for number in range(stretch.start, stretch.end)
    ]
    assert part.example.input_ids == [whole.input_ids[number] for number, _ in numbers]
    expected = [0.0 if is_context else want[number] for number, is_context in numbers]
    assert weights_of(part.example) == pytest.approx(expected, rel=1e-6)
    return [number for (number, _), weight in zip(numbers, expected, strict=True) if weight]
