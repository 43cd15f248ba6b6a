"""An evaluation as a page: losses by set and kind, beside a baseline's, and what is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from turnmill.report.page import page, section, table

SETS_NOTE = (
    "Nats a token, every token counted by its weight in training: sums over all tokens, not means of batches. The "
    "entropy is that of the distribution each token was predicted with."
)
KINDS_NOTE = (
    "Of the sets that count in the composite. The final answer is the answer of a row's last turn; observations are "
    "what tools said, and never part of the loss unless they train."
)
BASELINE_NOTE = (
    "Row by row: the second loss minus the baseline's, over rows that both scored. A difference within two standard "
    "errors may be chance."
)


def evaluation_page(summary: Mapping[str, Any], about: Mapping[str, Any]) -> str:
    """The report of an evaluation.

    Args:
        summary: as `summary.json` has it.
        about: what the manifest says.
    """
    return page(f"Evaluation of {about['model']['name']}", _body(summary, about))


def _body(summary: Mapping[str, Any], about: Mapping[str, Any]) -> Iterator[str]:
    yield f"<p>Loss <strong>{number(summary['loss'])}</strong>, perplexity {number(summary['perplexity'])}.</p>"
    yield from (f'<p class="alarm">{escape(line)}</p>' for line in summary["alarms"])
    yield from (
        f'<p class="alarm">{escape(f"{name} is missing: {why}")}</p>' for name, why in summary["missing"].items()
    )
    yield section("Sets", table(SET_HEADINGS, [_set(name, one) for name, one in summary["sets"].items()]), SETS_NOTE)
    kinds = [[name, *losses(one)] for name, one in summary["kinds"].items()]
    yield section("Kinds of tokens", table(["kind", "loss", "perplexity", "tokens"], kinds), KINDS_NOTE)
    by_set = [
        [name, kind, *losses(loss)] for name, one in summary["sets"].items() for kind, loss in one["kinds"].items()
    ]
    yield section("Kinds of each set", table(["set", "kind", "loss", "perplexity", "tokens"], by_set))
    if summary["baseline"] is not None:
        yield section("Against the baseline", differences(summary["baseline"]), BASELINE_NOTE)
    yield section("Model", table(["", ""], [[key, str(value)] for key, value in about["model"].items()]))


SET_HEADINGS = ["set", "loss", "perplexity", "tokens", "examples", "entropy", "weight", "floor", "not read"]


def _set(name: str, one: Mapping[str, Any]) -> list[str]:
    left = "; ".join(f"{count:,} x {why}" for why, count in one["unscored"].items())
    weights = [number(one["importance"]), number(one["regression_floor"])]
    return [name, *losses(one), f"{one['examples']:,}", number(one["entropy"]), *weights, left]


def losses(one: Mapping[str, Any]) -> list[str]:
    """Loss, perplexity and tokens as cells."""
    return [number(one["loss"]), number(one["perplexity"]), f"{one['tokens']:,}"]


def differences(compared: Mapping[str, Any]) -> str:
    """Tables of differences by set and by kind, and how many rows were not compared."""
    parts = []
    for heading, found in (("set", compared["sets"]), ("kind", compared["kinds"])):
        parts.append(table([heading, *DIFFERENCE_HEADINGS], [[name, *_difference(one)] for name, one in found.items()]))
    left = f"Only in the first: {compared['only_a']:,} rows; only in the second: {compared['only_b']:,}"
    parts.append(f"<p>{left}; of other tokens: {compared['other_tokens']:,}.</p>")
    return "".join(parts)


DIFFERENCE_HEADINGS = ["rows", "first", "second", "difference", "standard error", "better", "worse"]


def _difference(one: Mapping[str, Any]) -> list[str]:
    values = [number(one[name]) for name in ("first", "second", "difference", "standard_error")]
    return [f"{one['rows']:,}", *values, f"{one['better']:,}", f"{one['worse']:,}"]


def number(value: float | None) -> str:
    """A number to four places; nothing where there is none."""
    return "" if value is None else f"{value:.4f}"
