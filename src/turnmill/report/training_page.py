"""A training as a page: what was trained on what, its losses, its evaluations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from turnmill.report.page import page, section, table
from turnmill.report.plot import Line, line_plot

LOSS_NOTE = (
    "Of an optimizer step: the mean NLL of the tokens that train, each counted by its weight, over all micro-batches "
    "and processes of the step."
)
EVAL_NOTE = "Sums over tokens of all processes, never means of batches. Kinds are kinds of tokens over all sets."
WHOLE = "eval/loss"
"""Of all sets together."""
MOST_EVALUATIONS = 50
"""Rows of the table; of more the last are shown, and the best."""


def training_page(summary: Mapping[str, Any], metrics: Sequence[Mapping[str, Any]]) -> str:
    """The page.

    Args:
        summary: as `summary.json` holds it.
        metrics: as `metrics.jsonl` holds them.
    """
    steps = [line for line in metrics if "loss" in line]
    evaluations = [line for line in metrics if "eval/loss" in line]
    body = [
        _headline(summary),
        section("What was trained", table(["", ""], _facts(summary))),
        section("Loss", _loss_plot(steps, evaluations), LOSS_NOTE),
        *_evaluation_sections(evaluations),
        section("Learning rate", _plot_of(steps, ["learning_rate"])),
        section("Gradient norm", _plot_of(steps, ["grad_norm"])),
        *_epochs(metrics),
    ]
    return page("Training", body)


def _headline(summary: Mapping[str, Any]) -> str:
    best = summary["best"]
    told = f"Optimizer steps: {summary['steps']:,}"
    if best is not None:
        told += f"; the weights are those of step {best['step']:,}, whose evaluation was the best ({best['loss']:.4f})"
    elif not summary["evaluated"]:
        told += "; nothing was evaluated, so the last weights stand for the best"
    return f"<p><strong>{escape(told)}.</strong></p>"


def _facts(summary: Mapping[str, Any]) -> Iterator[list[str]]:
    data, model = summary["data"], summary["model"]
    yield [
        "data",
        f"{data['folder']}, fingerprint {data['fingerprint'][:16]}, {data['trained_tokens']:,} trained tokens",
    ]
    yield ["template", data["template"]]
    yield ["model", model["directory"]]
    trains, total = model["trained_parameters"], model["parameters"]
    yield ["parameters", f"{trains:,} of {total:,} train ({summary['method']})"]
    yield [
        "trainer",
        f"{summary['trainer']}, {summary['dtype']} on {summary['device']}, {summary['ranks']} process(es)",
    ]
    yield ["packing", summary["packing"]["reason"]]
    yield ["ended by", summary["ended"]]


def _loss_plot(steps: Sequence[Mapping[str, Any]], evaluations: Sequence[Mapping[str, Any]]) -> str:
    lines = [Line("training", _points(steps, "loss")), Line("evaluation", _points(evaluations, "eval/loss"))]
    return line_plot(lines, "step", "loss")


def _plot_of(lines: Sequence[Mapping[str, Any]], names: Sequence[str]) -> str:
    return line_plot([Line(name.replace("_", " "), _points(lines, name)) for name in names], "step", names[0])


def _evaluation_sections(evaluations: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if not evaluations:
        return
    names = [name for name in evaluations[-1] if name.startswith("eval/") and name.endswith("/loss") and name != WHOLE]
    kinds = [name for name in names if name.startswith("eval/kind/")]
    sets = [name for name in names if name not in kinds]
    several = [WHOLE] if len(sets) > 1 else []
    for title, chosen in (("Evaluation by set", several + sets), ("Evaluation by kind of token", kinds)):
        lines = [Line(_short(name), _points(evaluations, name)) for name in chosen]
        yield section(title, line_plot(lines, "step", "loss"), "" if chosen is kinds else EVAL_NOTE)
    shown = evaluations[-MOST_EVALUATIONS:]
    shown = [*(line for line in evaluations[:-MOST_EVALUATIONS] if line.get("best")), *shown]
    rows = [
        [f"{line['step']:,}", *(_number(line.get(name)) for name in (WHOLE, "eval/ppl", *names)), _best(line)]
        for line in shown
    ]
    yield section("Evaluations", table(["step", "loss", "perplexity", *map(_short, names), ""], rows))


def _epochs(metrics: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    rows = [
        [f"{line['epoch']}", f"{line['step']:,}", f"{line['micro_batches']:,}"]
        for line in metrics
        if "micro_batches" in line
    ]
    if rows:
        yield section("Epochs", table(["epoch", "ended at step", "micro-batches"], rows), "Of one process.")


def _points(lines: Sequence[Mapping[str, Any]], name: str) -> list[tuple[float, float]]:
    return [(line["step"], line[name]) for line in lines if line.get(name) is not None]


def _short(name: str) -> str:
    return "all" if name == WHOLE else name.removeprefix("eval/").removeprefix("kind/").removesuffix("/loss")


def _best(line: Mapping[str, Any]) -> str:
    return "best so far" if line.get("best") else ""


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"
