"""How much is done for a row, counted, not timed: a change that renders, compiles or encodes twice as often fails."""

import sys
from collections import Counter
from typing import ClassVar

import pytest
import tokenizers

from hostile_content import Contents
from turnmill.conversation import Checked
from turnmill.models import LoadedModel
from turnmill.options import Fit, Loss, Model, Render
from turnmill.rendering.environment import ChatEnvironment
from turnmill.rendering.samples import sample
from turnmill.rendering.template import Template
from turnmill.verbs.tokenize import Line, Recipe

SHAPES = ("one turn", "two turns", "system message", "reasoning", "tool call", "calls in several steps")
ROWS = 20
"""Of each shape."""


class CountingTokenizer:
    """A tokenizer that counts what it is asked.

    Args:
        tokenizer: what answers.
    """

    texts: ClassVar[Counter[str]] = Counter()

    def __init__(self, tokenizer):
        self._tokenizer = tokenizer

    @staticmethod
    def from_str(stored):
        return CountingTokenizer(tokenizers.Tokenizer.from_str(stored))

    def __getattr__(self, name):
        return getattr(self._tokenizer, name)

    def _encode(self, name, texts, *arguments, **named):
        CountingTokenizer.texts["encoded texts"] += len(texts) if isinstance(texts, list) else 1
        return getattr(self._tokenizer, name)(texts, *arguments, **named)

    def encode(self, *arguments, **named):
        return self._encode("encode", *arguments, **named)

    def encode_batch(self, *arguments, **named):
        return self._encode("encode_batch", *arguments, **named)

    def encode_batch_fast(self, *arguments, **named):
        return self._encode("encode_batch_fast", *arguments, **named)


@pytest.fixture
def counts(monkeypatch):
    """What was done since the test began."""
    found = CountingTokenizer.texts
    found.clear()
    monkeypatch.setitem(sys.modules, "fastokens", None)
    tokenizer = LoadedModel.tokenizer
    monkeypatch.setattr(LoadedModel, "tokenizer", lambda model: CountingTokenizer(tokenizer(model)))
    counted = {
        "tracked renders": (Template, "tracked"),
        "plain renders": (Template, "plain_pieces"),
        "recorded renders": (Template, "recorded"),
        "recorded passages": (Template, "passages"),
        "compilations": (ChatEnvironment, "_generate"),
    }
    for what, (owner, name) in counted.items():
        monkeypatch.setattr(owner, name, counting(getattr(owner, name), found, what))
    return found


def counting(function, found, what):
    def counted(*arguments, **named):
        found[what] += 1
        return function(*arguments, **named)

    return counted


def rows():
    """The same few rows in any run: one shape after the other, each as often."""
    contents = Contents(1)
    return [Checked(contents.into(sample(name))) for _ in range(ROWS) for name in SHAPES]


LOADED = {"compilations": 2, "tracked renders": 75, "plain renders": 238, "encoded texts": 3}
"""With the model: two environments compile its template; the probe renders its samples, and its witnesses theirs."""
WORK = {
    ("chatml", False): {"tracked renders": 126, "plain renders": 230, "encoded texts": 222},
    ("chatml", True): {
        "tracked renders": 42, "plain renders": 146, "recorded renders": 18, "recorded passages": 13, "compilations": 2,
        "encoded texts": 437,
    },
    ("qwen3", False): {"tracked renders": 126, "plain renders": 192, "encoded texts": 180},
    ("qwen3", True): {
        "tracked renders": 54, "plain renders": 120, "recorded renders": 27, "recorded passages": 12, "compilations": 2,
        "encoded texts": 397,
    },
}  # fmt: skip
"""Template and whether accelerated → what the 120 rows take; accelerated, a text that is encoded is mostly a word."""


def assert_at_most(done, bounds):
    """Not more than the bound of anything; a bound that is twice what is done guards nothing, and is to be lowered."""
    assert set(done) == set(bounds)
    over = {what: (count, bounds[what]) for what, count in done.items() if not bounds[what] / 2 < count <= bounds[what]}
    assert over == {}


@pytest.mark.parametrize(("template", "accelerate"), WORK)
def test_the_work_for_a_row_does_not_grow(counts, template, accelerate, trl_templates):
    path = template if template == "chatml" else str(trl_templates / f"{template}.jinja")
    recipe = Recipe(Model(name_or_path="smollm2", template=path), Render(), Loss(), Fit(), 4096)
    line = Line(recipe, accelerate=accelerate)
    assert_at_most(counts, LOADED)
    counts.clear()
    list(line.run(rows(), recipe))
    assert_at_most(counts, WORK[template, accelerate])
