"""Runs, beside a judge that looks at one token at a time."""

from itertools import groupby, pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from turnmill.conversation import Conversation, Message
from turnmill.rendered import KINDS, Loss, Run, Span
from turnmill.tokens.encoded import Encoded
from turnmill.tokens.loss import Policy
from turnmill.tokens.runs import labelled

ROW = Conversation(
    tuple(Message("assistant" if number % 2 else "user", "x", recorded=number) for number in range(4)),
)
EDGES = st.sets(st.integers(1, 29), max_size=12).map(lambda places: [0, *sorted(places), 30])


@st.composite
def texts(draw):
    """Spans of a text of 30 characters, the weight of each, and its tokens."""
    whose = st.tuples(st.integers(-1, 3), st.sampled_from(KINDS))
    spans = [Span(start, end, *draw(whose)) for start, end in pairwise(draw(EDGES))]
    weights = [draw(st.sampled_from([0.0, 0.0, 1.0, 0.5])) for _ in spans]
    return spans, weights, list(pairwise(draw(EDGES)))


def judged(spans, weights, tokens):
    """Runs, and tokens that lie across what trains and what does not."""
    said, straddling = [], 0
    for number, (start, end) in enumerate(tokens, 1):
        inside = [index for index, span in enumerate(spans) if span.start < end and span.end > start]
        weight = min(weights[index] for index in inside)
        span = spans[inside[-1] if weight else inside[0]]
        straddling += weight == 0 and any(weights[index] for index in inside)
        said.append(((span.message, span.kind, weight), number))
    runs = [Run(list(group)[-1][1], *says) for says, group in groupby(said, key=lambda one: one[0])]
    return (runs if any(run.weight for run in runs) else []), straddling


@given(texts())
def test_every_token_weighs_as_the_least_of_its_spans(text):
    spans, weights, tokens = text
    edges = Encoded(np.zeros(len(tokens), np.int32), np.array(tokens)).edges([span.end for span in spans])
    found = labelled(spans, weights, Policy(ROW, Loss()), edges)
    assert (found.runs, found.straddling) == judged(spans, weights, tokens)


@given(texts(), st.sampled_from(["all", "last"]), st.booleans(), st.booleans())
def test_a_span_trains_where_that_is_the_reason(text, turns, reasoning, observations):
    policy = Policy(ROW, Loss(turns=turns, reasoning=reasoning, observations=observations))
    for span in text[0]:
        assert (policy.why_of(span) == "trained") == (policy.weight(span) > 0)


def test_why_a_span_does_not_train():
    first, last = (Span(0, 1, message, "answer") for message in (1, 3))
    thought = Span(0, 1, 3, "reasoning")
    assert Policy(ROW, Loss()).why_of(Span(0, 1, 1, "frame")) == "template"
    assert Policy(ROW, Loss()).why_of(Span(0, 1, 0, "user")) == "role"
    assert [Policy(ROW, Loss(turns="last")).why_of(span) for span in (first, last)] == ["not-last", "trained"]
    assert Policy(ROW, Loss(reasoning=False)).why_of(thought) == "reasoning-off"
    ignored = Conversation((*ROW.messages[:3], Message("assistant", "x", recorded=3, weight=0.0)))
    assert Policy(ignored, Loss()).why_of(last) == "weight-zero"
