"""Ask a model the questions of the data it was trained on, and score its answers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from turnmill.cli.output import next_step, notice, write, write_json, write_table

if TYPE_CHECKING:
    from turnmill.verbs.audit import Audit
    from turnmill.verbs.audit_models import Asked

DTYPES = ("auto", "float32", "bfloat16", "float16")
PATH = click.Path(path_type=Path)


@click.command()
@click.argument("model", metavar="MODEL|URL")
@click.argument("data", metavar="OUT", type=PATH)
@click.option("--output", "-o", required=True, type=PATH, help="The folder of the results; replaced whole.")
@click.option("--baseline", metavar="MODEL|URL", help="The untrained model, which is asked the same.")
@click.option("--base", metavar="DIR", help="The model that the adapters in MODEL change.")
@click.option("--name", help="Of the model at URL; its only one by itself.")
@click.option("--baseline-name", metavar="NAME", help="Likewise of the baseline.")
@click.option("--side", type=click.Choice(["train", "eval"]), default="train", show_default=True, help="Whose rows.")
@click.option("--samples", type=click.IntRange(1), default=200, show_default=True, help="So many rows, by seed and id.")
@click.option("--all", "everything", is_flag=True, help="All rows.")
@click.option("--seed", default=0, show_default=True, help="Of the rows that are drawn, and of sampled answers.")
@click.option("--temperature", type=click.FloatRange(0, 5), default=0.0, show_default=True, help="0: the likeliest.")
@click.option("--top-p", type=click.FloatRange(0, 1, min_open=True), default=1.0, show_default=True, help="Nucleus.")
@click.option("--max-new-tokens", type=click.IntRange(1), help="Of an answer; default by the recorded one's length.")
@click.option("--device", default="auto", help="`cpu`, `cuda`, `cuda:1`; a GPU where there is one.")
@click.option("--dtype", type=click.Choice(DTYPES), default="auto", help="Of the weights.")
@click.option("--attention", default="auto", help="As transformers names it: `sdpa`, `eager`, `flash_attention_2`.")
@click.option("--batch-tokens", type=click.IntRange(1), help="Prompts and answers of a batch; default by device.")
@click.option("--concurrency", type=click.IntRange(1, 256), default=8, show_default=True, help="Requests at once.")
@click.option("--timeout", type=click.FloatRange(1), default=120.0, show_default=True, help="Seconds of a request.")
@click.option("--json", "as_json", is_flag=True, help="Answer in JSON: the summary.")
def command(model: str, data: Path, output: Path, as_json: bool, **options: Any) -> None:
    """Asks MODEL what stands before each trained turn of the prepared folder OUT, and sets its answers beside OUT's.

    Measures: exact and normalised match, F1 of words, and nats a token of the recorded answer; with --baseline the
    paired differences, with standard errors. A run that was stopped goes on where it was.
    """
    from turnmill.report.audit import measure_rows
    from turnmill.verbs import audit

    asked = _audit(model, data, output, options)
    summary = audit.audit(asked, _Told())
    if as_json:
        write_json(summary)
    else:
        write(f"{summary['turns']:,} turns of {summary['rows']:,} rows of {asked.side} were asked")
        write_table(["", "model", "baseline", "difference"], measure_rows(summary["measures"]))
    for side in ("model", "baseline"):
        found = summary.get(f"of_{side}", {})
        for why, count in found.get("unanswered", {}).items():
            notice(f"{side}: {count:,} turns have no answer: {why}")
        for why, count in found.get("nll_unknown", {}).items():
            notice(f"{side}: what {count:,} recorded answers cost is not known: {why}")
    next_step(audit.next_command(output))


def _audit(model: str, data: Path, output: Path, options: dict[str, Any]) -> Audit:
    from turnmill.evaluation.respondents import Sampling
    from turnmill.verbs.audit import Audit

    baseline = options["baseline"]
    return Audit(
        data,
        output,
        _asked(model, options["base"], options["name"], options),
        _asked(baseline, None, options["baseline_name"], options) if baseline else None,
        options["side"],
        None if options["everything"] else options["samples"],
        Sampling(options["temperature"], options["top_p"], options["seed"], options["max_new_tokens"]),
    )


def _asked(model: str, base: str | None, name: str | None, options: dict[str, Any]) -> Asked:
    from turnmill.causal_lm import Placement
    from turnmill.verbs.audit_models import Asked

    placement = Placement(options["device"], options["dtype"], options["attention"])
    reached = (options["batch_tokens"], options["concurrency"], options["timeout"])
    return Asked(model, base, name, placement, *reached)


class _Told:
    """Progress as lines on stderr: each tenth, and the end."""

    def __init__(self) -> None:
        self._said: dict[str, int] = {}

    def __call__(self, what: str, done: int, total: int) -> None:
        tenth = 10 * done // max(total, 1)
        if self._said.get(what) != tenth:
            self._said[what] = tenth
            notice(f"{what}: {done:,} of {total:,}")
