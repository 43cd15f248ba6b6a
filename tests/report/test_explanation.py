from __future__ import annotations

import numpy as np
import pytest

from turnmill.conversation import NOT_RECORDED, Conversation, Message
from turnmill.errors import Rejected
from turnmill.rendered import KINDS, Example, Loss, Rendered, Run, Span
from turnmill.report.colours import COLOURS, MEANINGS, showable
from turnmill.report.explained_tokens import Tokenized
from turnmill.report.explanation import explain_accepted, explain_left
from turnmill.report.html import pieces
from turnmill.tokens.fit import Part, Stretch
from turnmill.tokens.loss import Policy

TEXT = "S|hi|yo.|"
CONVERSATION = Conversation(
    (
        Message("system", "S"),
        Message("user", "hi", recorded=0),
        Message("assistant", "yo", "final", recorded=1),
    )
)
SPANS = (Span(0, 2, NOT_RECORDED, "system"), Span(2, 5, 0, "user"), Span(5, 7, 1, "answer"), Span(7, 8, 1, "stop"))
RENDERED = Rendered(TEXT, (*SPANS, Span(8, 9, 1, "frame")), (5,), ((3, 6),))


def parts(*ends: int, weights: tuple[float, ...]) -> list[Part]:
    runs = [Run(end, 1, "answer", weight) for end, weight in zip(ends, weights, strict=True)]
    made = Example("", 0, "", "", 1, list(range(10, 10 + ends[-1])), runs, [ends[-1]])
    return [Part(made, (Stretch(0, ends[-1]),))]


def explained(told: tuple[list[Part], np.ndarray] | None = None):
    tokenized = None
    if told is not None:
        count = len(told[1])
        control = np.arange(count) == count - 1
        tokenized = Tokenized(told[0], np.arange(10, 10 + count), told[1], control, lambda number: bytes([number]))
    return explain_accepted(3, "a: b:1", CONVERSATION, RENDERED, Policy(CONVERSATION, Loss()), tokenized)


def test_messages_outside_the_list_have_no_number_and_no_turn() -> None:
    found = explained()
    assert [span.message for span in found.spans] == [None, 0, 1, 1, 1]
    assert [(turn.message, turn.why) for turn in found.turns] == [(0, "role"), (1, "trained")]


def test_the_example_ends_with_its_last_token() -> None:
    offsets = np.array([[0, 5], [5, 7], [7, 8], [8, 9]])
    (shown,) = explained((parts(1, 3, weights=(0, 1)), offsets)).examples
    assert (shown.text, shown.spans[-1].end) == ("S|hi|yo.", 8)
    assert (shown.labels, shown.weights) == ((-100, 11, 12), (0.0, 1.0, 1.0))
    assert [token.text for token in shown.tokens] == ["S|hi|", "yo", "."]


def test_a_span_in_which_no_token_trains_does_not_train() -> None:
    offsets = np.array([[0, 6], [6, 7], [7, 8]])  # the first token lies across the header and the answer
    found = explained((parts(1, 2, 3, weights=(0, 0, 1)), offsets))
    assert [span.trained for span in found.spans] == [False, False, False, True, False]


def test_bytes_of_one_character_show_it_once() -> None:
    offsets = np.array([[0, 5], [5, 6], [5, 6], [6, 8]])
    (shown,) = explained((parts(1, 4, weights=(0, 1)), offsets)).examples
    assert [token.text for token in shown.tokens] == ["S|hi|", "y", "", "o."]


def test_every_token_says_whose_it_is_and_why_it_trains_or_not() -> None:
    offsets = np.array([[0, 2], [2, 5], [5, 7], [7, 8], [8, 9]])
    found = explained((parts(2, 4, weights=(0, 1)), offsets))
    (shown,) = found.examples
    assert [(run.end, run.why) for run in shown.runs] == [(2, "role"), (4, "trained")]
    assert shown.offsets == ((0, 2), (2, 5), (5, 7), (7, 8))
    assert shown.kept == ((0, 8),)


def test_what_no_example_has_is_told_with_its_tokens() -> None:
    offsets = np.array([[0, 2], [2, 5], [5, 7], [7, 8], [8, 9]])
    (cut,) = explained((parts(2, 4, weights=(0, 1)), offsets)).cut
    assert (cut.start, cut.end, cut.input_ids, cut.offsets, cut.control) == (8, 9, (14,), ((0, 1),), (0,))
    assert [(run.end, run.message, run.kind, run.why) for run in cut.runs] == [(1, 1, "frame", "cut")]


def test_a_token_across_a_border_says_so() -> None:
    offsets = np.array([[0, 6], [6, 7], [7, 8]])
    (shown,) = explained((parts(1, 3, weights=(0, 1)), offsets)).examples
    assert [(run.end, run.why) for run in shown.runs] == [(1, "straddles"), (3, "trained")]


def test_bytes_of_a_shared_character_are_told() -> None:
    offsets = np.array([[0, 5], [5, 6], [5, 6], [6, 8]])
    (shown,) = explained((parts(1, 4, weights=(0, 1)), offsets)).examples
    assert shown.bytes == ((1, "0b"), (2, "0c"))


@pytest.mark.parametrize("has_id", [True, False])
def test_a_row_that_leaves_trains_nothing(has_id: bool) -> None:
    fault = Rejected("blank-text", "it is blank", at=1)
    found = explain_left(3, "a: b:1", fault, CONVERSATION, has_id=has_id, rendered=RENDERED)
    assert (found.id is not None) == has_id
    assert not any(span.trained for span in found.spans)
    assert {turn.why for turn in found.turns} == {"rejected:blank-text"}
    assert found.as_json()["code"] == "blank-text"


def test_pieces_are_the_text_cut_at_control_tokens() -> None:
    found = list(pieces(explained()))
    assert "".join(piece.text for piece in found) == TEXT
    assert [piece.text for piece in found if piece.is_control] == ["i|", "y"]


def test_every_kind_has_its_colours_and_meaning() -> None:
    assert tuple(COLOURS) == tuple(MEANINGS) == KINDS
    assert len({(colour.light, colour.dark) for colour in COLOURS.values()}) == len(KINDS)


@pytest.mark.parametrize(("text", "shown"), [("a\nb\t", "a\nb\t"), ("\x1b[0m", "⟨1B⟩[0m"), ("\u202e\r", "⟨202E⟩⟨0D⟩")])
def test_characters_that_steer_are_written_out(text: str, shown: str) -> None:
    assert showable(text) == shown
