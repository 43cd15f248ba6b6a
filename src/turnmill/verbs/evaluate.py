"""evaluate: what held-out rows cost a model, token-weighted, beside a baseline; published whole."""

from __future__ import annotations

import dataclasses
import platform
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import xxhash

from turnmill.causal_lm import Placement
from turnmill.conversation import Json, canonical_json
from turnmill.errors import HealthError, StaleError, UsageError, shell_word
from turnmill.evaluation.evaluate import evaluate as evaluate_sets
from turnmill.evaluation.paired import Compared, compared
from turnmill.evaluation.results import Evaluation
from turnmill.files.evaluations import ITEMS, KIND, REPORT, SUMMARY, StoredEvaluation, to_table
from turnmill.files.inventory import is_published, json_file, read_manifest
from turnmill.files.prepared import PreparedData
from turnmill.files.publish import publish, refuse_foreign
from turnmill.isolation import probe
from turnmill.models import LoadedModel
from turnmill.report.evaluation_page import evaluation_page
from turnmill.verbs import evaluated_model
from turnmill.verbs.eval_sets import Asked, EvalSets, Typed, eval_sets, named_sets, side_of

if TYPE_CHECKING:
    from turnmill.config import Config, Origins
    from turnmill.options import Evaluate

VERSION = 1
TRAINED = "trained"
"""Kind of the folders that `train` publishes."""
Progress = Callable[[int], AbstractContextManager[Callable[[int], None] | None]]


class Request(NamedTuple):
    """What is evaluated, beside the config."""

    model: str | None = None
    """A model directory, adapters, or `smollm2`; None: `model.name_or_path`."""
    typed: Typed = Typed()
    """Data in place of those that the config names."""
    like: str | None = None
    """A prepared folder whose recipe raw rows follow; None: the first that is among the data, else what it was trained
    on."""
    base: str | None = None
    """The model that adapters change."""
    baseline: str | None = None
    """An earlier evaluation."""


class Evaluated(NamedTuple):
    """A model's evaluation."""

    evaluation: Evaluation
    about: dict[str, Json]
    """What the manifest says: all that a number hangs on."""
    warnings: list[str]
    baseline: Compared | None
    """The baseline's losses beside these."""
    rises: list[str]
    """Sets whose loss rose above the baseline's."""

    @property
    def alarms(self) -> list[str]:
        """What is wrong, a line each."""
        sets = self.evaluation.sets
        found = [
            f"{name}: its loss {sets[name].total.loss:.4f} lies above its floor {sets[name].regression_floor:g}"
            for name in self.evaluation.alarms
        ]
        for name in self.rises:
            assert self.baseline is not None
            one = self.baseline.sets[name]
            error = "" if one.standard_error is None else f" (standard error {one.standard_error:.4f})"
            found.append(f"{name}: its loss rose by {one.difference:.4f} above the baseline's {one.first:.4f}{error}")
        return found

    def as_json(self) -> dict[str, Json]:
        """The answer of `evaluate --json`."""
        return {
            "model": self.about["model"],
            **self.evaluation.as_json(),
            "metrics": {key: _sayable(value) for key, value in self.evaluation.metrics().items()},
            "baseline": None if self.baseline is None else self.baseline.as_json(),
            "rises": list(self.rises),
        }


def _sayable(value: float) -> float | None:
    return value if abs(value) < float("inf") else None


def evaluate(config: Config, origins: Origins, request: Request, progress: Progress | None = None) -> Evaluated:
    """Load a model and score the sets.

    Args:
        config: its `evaluate` section says what; `model`, `render`, `loss` and `fit` how raw rows become examples.
        origins: what of it was typed goes over a prepared folder's recipe.
        request: the rest.
        progress: is given the number of examples, and gives what is told of each that is scored.

    Raises:
        UsageError: the model, the data or an option cannot be used.
        HealthError: a set gives too few examples, or a loss is not a finite number.
        StaleError: data were prepared with another tokenizer or template, or a folder was changed.
    """
    placement = evaluated_model.settled(config.evaluate)
    name = request.model or config.model.name_or_path
    if name is None:
        raise UsageError("no model given: expected MODEL", next_step="turnmill evaluate MODEL --data OUT")
    baseline = None if request.baseline is None else StoredEvaluation(Path(request.baseline))
    weights = evaluated_model.weights_of(name, request.base)
    identity = evaluated_model.identity(weights)
    model_options, loaded = evaluated_model.opened(name, weights, config.model)
    like = _like(config.evaluate, request, weights.adapter or weights.directory)
    sets = eval_sets(Asked(config, origins, model_options, loaded, like), request.typed)
    model = evaluated_model.loaded(weights, placement)
    verdict = probe(model) if _wants_probe(config.evaluate, placement) else None
    with (progress or _untold)(sum(len(one.items) for one in sets.sets)) as advance:
        found = evaluate_sets(
            model, sets.sets, options=config.evaluate, probe_verdict=verdict, keep_items=True, progress=advance
        )
    found = msgspec.structs.replace(found, missing={**sets.missing, **found.missing})
    _check_finite(found)
    about = _about(config, {"name": name, **identity}, loaded, placement, sets)
    beside = None if baseline is None else compared(baseline.items(), found.items)
    rises = [] if beside is None else _rises(beside, config.evaluate)
    return Evaluated(found, about, sets.warnings, beside, rises)


def _wants_probe(options: Evaluate, placement: Placement) -> bool:
    return options.packing == "on" or (options.packing == "auto" and placement.is_on_gpu)


@contextmanager
def _untold(_: int) -> Iterator[Callable[[int], None] | None]:
    """No progress."""
    yield None


def _like(options: Evaluate, request: Request, model: Path) -> PreparedData | None:
    """The prepared folder whose recipe raw rows follow.

    The one that was named, else the first among the data, else the one that the model was trained on.
    """
    if request.like is not None:
        return PreparedData(request.like, whole=False)
    sides = (side_of(one.source.data[0]) for one in named_sets(options, request.typed))
    named = next((PreparedData(side.folder, whole=False) for side in sides if side is not None), None)
    return trained_on(model) if named is None else named


def trained_on(model: Path) -> PreparedData | None:
    """The prepared folder that a model of `train` says it was trained on, where it is still there and the same."""
    if not is_published(model) or read_manifest(model).get("kind") != TRAINED:
        return None
    try:
        said = msgspec.json.decode((model / SUMMARY).read_bytes())["data"]
        prepared = PreparedData(said["folder"], whole=False)
    except (OSError, msgspec.DecodeError, KeyError, TypeError, UsageError, StaleError):
        return None
    return prepared if prepared.manifest.get("fingerprint") == said.get("fingerprint") else None


def _check_finite(found: Evaluation) -> None:
    """Refuse to publish losses that are no numbers.

    Raises:
        HealthError: naming the sets and the first such row of each.
    """
    if not found.not_finite:
        return
    firsts = {item.set: item.row_id for item in reversed(found.items) if not abs(item.total.nll) < float("inf")}
    told = ", ".join(f"{name} (first in row {firsts.get(name)})" for name in found.not_finite)
    raise HealthError(f"the loss is not a finite number in: {told}", next_step="--evaluate.dtype float32")


def _rises(beside: Compared, options: Evaluate) -> list[str]:
    """Sets whose loss rose above the baseline's.

    Raises:
        UsageError: the two have no row in common.
    """
    if beside.total is None:
        what = "the baseline and this evaluation have no row of the same tokens in common"
        raise UsageError(what, next_step="turnmill evaluate BASE_MODEL, on the same data, for --baseline")
    return [name for name, one in beside.sets.items() if one.is_rise(options.regression_rise)]


def _about(
    config: Config, identity: dict[str, Json], loaded: LoadedModel, placement: Placement, sets: EvalSets
) -> dict[str, Json]:
    """What the manifest says."""
    options = config.evaluate
    model: dict[str, Json] = {
        **identity, "tokenizer_sha256": loaded.tokenizer_sha256, "dtype": placement.dtype,
        "attention": placement.attention,
    }  # fmt: skip
    recipe: dict[str, Json] = {
        "version": VERSION,
        "model": {key: value for key, value in model.items() if key != "name"},
        "template": loaded.template,
        "options": {"observations": options.observations, "entropy": options.entropy},
        "seed": config.seed,
        "sets": dict(sets.about),
    }
    return {
        "kind": KIND,
        "fingerprint": xxhash.xxh3_128_hexdigest(canonical_json(recipe)),
        **recipe,
        "model": model,
        "template": {"origin": loaded.template_origin, "text": loaded.template},
    }


def refuse_other(output: Path) -> None:
    """Refuse to replace what is no evaluation, before hours of work.

    Raises:
        UsageError: foreign files, or a folder that another verb published.
    """
    refuse_foreign(output)
    kind = read_manifest(output).get("kind") if is_published(output) else KIND
    if kind != KIND:
        what = f"{output} holds {str(kind)!r}, which an evaluation would replace; expected nothing, or an evaluation"
        raise UsageError(what, next_step="--output OTHER")


def publish_evaluated(made: Evaluated, output: Path, config: Config, started: float) -> None:
    """Make `output` hold the evaluation, in place of what it held.

    Args:
        made: what was found.
        output: the folder.
        config: of the run, for `run.json`.
        started: `time.time()` when the run began.

    Raises:
        UsageError: the place is not ours, or cannot be written.
    """
    import pyarrow.parquet as pq

    summary = {**made.as_json(), "alarms": made.alarms}
    run = {
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started)),
        "seconds": round(max(0.0, time.time() - started), 3),
        "host": platform.node(),
        "evaluate": msgspec.to_builtins(dataclasses.asdict(config.evaluate)),
        "warnings": list(made.warnings),
    }
    with tempfile.TemporaryDirectory() as scratch:
        items = Path(scratch) / ITEMS
        pq.write_table(to_table(made.evaluation.items), items, compression="zstd")
        contents: dict[str, Path | bytes] = {
            ITEMS: items,
            SUMMARY: json_file(summary),
            REPORT: evaluation_page(summary, made.about).encode("utf-8"),
        }
        publish(contents, output, about=made.about, unlisted={"run.json": json_file(run)})


def alarm(made: Evaluated, output: Path | None) -> None:
    """End with exit 3 where a set is worse than it may be; what was published stays.

    Raises:
        HealthError: with a line for each.
    """
    if made.alarms:
        listing = "".join(f"\n  {line}" for line in made.alarms)
        shown = (
            "turnmill evaluate MODEL --data OUT --output RESULT"
            if output is None
            else f"cat {shell_word(output / SUMMARY)}"
        )
        raise HealthError(f"{len(made.alarms)} regression(s):{listing}", next_step=shown)
