"""train: a model learns from a prepared folder, exactly what was prepared, and is published with what it was told."""

from __future__ import annotations

import dataclasses
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from turnmill.conversation import Json
from turnmill.errors import Interrupted, UsageError, shell_word
from turnmill.files.disk import beside
from turnmill.files.inventory import is_published, read_manifest
from turnmill.files.prepared import PreparedData
from turnmill.files.publish import claim, refuse_foreign
from turnmill.isolation import Layout, probe
from turnmill.options import Evaluate, Train
from turnmill.scorers.weights import weights_digest
from turnmill.trainers import TrainingRun, trainers
from turnmill.training.checkpoints import Checkpoints
from turnmill.training.journal import METRICS, Journal
from turnmill.training.model import (
    Ranks,
    leave_ranks,
    load_model,
    load_tokenizer,
    placement_of,
    ranks_of_this,
    require_packages,
    require_readable,
    with_adapters,
)
from turnmill.training.schedule import Schedule, schedule_of
from turnmill.verbs import train_data

if TYPE_CHECKING:
    from turnmill.causal_lm import Placement
    from turnmill.config import Config, Origins
    from turnmill.isolation import Verdict
    from turnmill.stream.epoch_stream import EpochStream
    from turnmill.training.step_loader import StepLoader
    from turnmill.training.watch import Evaluate as Measure
    from turnmill.training.watch import Watch

KIND = "trained"
"""Of what is published."""
OF_THE_RUN = (
    "trainer", "method", "lora", "packing", "streaming", "batch_size", "gradient_accumulation_steps", "epochs",
    "max_steps", "exact_steps", "learning_rate", "min_learning_rate", "schedule", "warmup_ratio", "optimizer",
    "weight_decay", "max_grad_norm", "dtype", "attention",
)  # fmt: skip
"""Options that can change a loss: a checkpoint of others is of another run."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a run reads and writes."""

    data: Path
    """OUT."""
    output: Path
    replace: bool = False
    """Whether an earlier trained model may be replaced."""
    resume: bool = False
    """Go on from the last checkpoint."""
    resume_from: Path | None = None
    """Go on from this checkpoint."""

    @property
    def work(self) -> Path:
        """Where checkpoints and metrics lie until the run is published."""
        return beside(Path(os.path.realpath(self.output)), "train")


@dataclass(frozen=True, slots=True)
class TrainPlan:
    """What a run will do: no model is loaded yet."""

    config: Config
    origins: Origins
    options: Train
    """Settled: `dtype` and `device` are names of torch's."""
    place: Place
    data: PreparedData
    directory: Path
    """Of the model."""
    placement: Placement
    ranks: Ranks
    recipe: dict[str, Json]
    """All that can change a loss."""
    resume_from: Path | None
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Telling:
    """Who is told of what a run does."""

    notice: Callable[[str], None] = lambda _: None
    begin: Callable[[int, int], None] = lambda _, __: None
    """Told of the steps that were done before, and of the horizon."""
    progress: Callable[[int, float], None] = lambda _, __: None


@dataclass(slots=True)
class Trained:
    """What became of a run, on the rank that publishes it."""

    plan: TrainPlan
    layout: Layout
    reason: str
    """Why examples share rows, or do not."""
    schedule: Schedule
    watch: Watch
    parameters: tuple[int, int]
    """That train, and all."""
    seconds: float


def plan_of(config: Config, origins: Origins, place: Place, again: str) -> TrainPlan:
    """Check all that can be checked before a model is loaded.

    Args:
        config: of the run.
        origins: of its values.
        place: where it reads and writes.
        again: the command that makes the data.

    Raises:
        UsageError: an option, a package, the model or a place cannot be used.
        StaleError: the data are not prepared, or not what the config makes now; or a checkpoint of another run.
    """
    ranks = ranks_of_this()
    options = config.train
    trainers.get(options.trainer)
    require_packages(options)
    data = train_data.open_data(place.data, again)
    notes = train_data.require_config(data, config, again) if config.sources else []
    train_data.require_trained(data)
    directory = train_data.model_directory(config, data)
    notes += train_data.require_tokenizer(directory, data, again)
    placement = placement_of(options, ranks)
    options = dataclasses.replace(
        options,
        dtype="bfloat16" if placement.dtype == "bfloat16" else "float32",
        device="cuda" if placement.is_on_gpu else "cpu",
        run_name=options.run_name or place.output.name,
    )
    recipe = recipe_of(options, data, directory, config, ranks)
    resume_from = _resumed(place, Checkpoints(place.work, recipe))
    if ranks.rank == 0:
        _require_output(place, data)
    return TrainPlan(config, origins, options, place, data, directory, placement, ranks, recipe, resume_from, notes)


def recipe_of(options: Train, data: PreparedData, directory: Path, config: Config, ranks: Ranks) -> dict[str, Json]:
    """All that can change a loss, of training or of an evaluation: the best one is chosen by these."""
    given = dataclasses.asdict(options)
    return {
        "data": data.manifest["fingerprint"],
        "model": weights_digest(directory),
        "seed": config.seed,
        "ranks": ranks.total,
        "evaluate": msgspec.json.decode(msgspec.json.encode(config.evaluate)),
        "train": {name: _plain(given[name]) for name in OF_THE_RUN},
    }


def _plain(value: Any) -> Json:
    """As JSON has it: a recipe is compared with one that was read back."""
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    return list(value) if isinstance(value, tuple) else value


def _resumed(place: Place, checkpoints: Checkpoints) -> Path | None:
    """The checkpoint that the run goes on from.

    Raises:
        UsageError: there are some and nobody said to go on, or there are none.
        StaleError: it is of another run.
    """
    found = checkpoints.all()
    if place.resume_from is None and not place.resume:
        if found:
            what = f"{place.work} holds {len(found)} checkpoint{'s' * (len(found) > 1)} of a run that did not end"
            raise UsageError(f"{what}; go on from the last, or remove them", next_step="--resume")
        return None
    if place.resume_from is None and not found:
        what = f"there is nothing to go on from: {place.work} holds no checkpoint"
        raise UsageError(what, next_step=f"ls -a {shell_word(place.work.parent)}")
    chosen = place.resume_from or found[-1]
    checkpoints.state_of(chosen)
    return chosen


def _require_output(place: Place, data: PreparedData) -> None:
    """Refuse an output that is there, unless it may be replaced.

    Raises:
        UsageError: it is, or is not ours, or is what is trained on.
    """
    output = place.output
    refuse_foreign(output)
    if output.resolve() == data.folder.resolve():
        raise UsageError(f"{output} is what is trained on; expected another folder", next_step="--output DIR")
    if is_published(output) and read_manifest(output).get("kind") != KIND:
        what = f"{output} holds something else that turnmill published; expected a trained model, or nothing"
        raise UsageError(what, next_step=f"ls {shell_word(output)}")
    if is_published(output) and not place.replace:
        raise UsageError(f"{output} is there already, and is not written over unasked", next_step="--replace")


def run(plan: TrainPlan, telling: Telling) -> Trained:
    """Train; the weights lie in the checkpoints then.

    Raises:
        UsageError: the model cannot be loaded, or does not go with the data.
        HealthError: the loss is no number.
        Interrupted: somebody asked it to stop; it is saved.
    """
    from turnmill.training.watch import Rhythm, Watch

    started = time.monotonic()
    options, is_first = plan.options, plan.ranks.rank == 0
    model = load_model(plan.directory, plan.placement, options.method)
    require_readable(model, *train_data.bounds_of(plan.data.examples()), plan.directory)
    verdict = None if options.packing == "off" else probe(model)
    layout, reason = layout_of(plan, verdict)
    if options.method == "lora":
        model = with_adapters(model, options.lora, plan.config.seed, is_checkpointing=options.gradient_checkpointing)
    tokenizer = load_tokenizer(plan.directory, plan.data.manifest["template"]["text"])
    loader, horizon = _steps(plan, layout, tokenizer.pad_token_id or 0)
    measure = _measure(plan, verdict)
    checkpoints = Checkpoints(plan.place.work, plan.recipe)
    rhythm = Rhythm(
        options.save_every, options.keep_checkpoints, options.eval_every, options.patience, options.max_steps
    )
    watch = Watch(loader, checkpoints, rhythm, None, measure, telling.progress, telling.notice)
    if plan.resume_from is not None:
        watch.load_state_dict(checkpoints.state_of(plan.resume_from))
    _tell(plan, telling, reason, horizon, has_evaluation=measure is not None)
    schedule = schedule_of(options, horizon)
    parameters = _parameters(model)
    with claim(plan.place.output) if is_first else nullcontext(), _asked_to_stop(watch, telling):
        if is_first:
            _resumed(plan.place, checkpoints)  # once more: another run may have had the place until now
            _require_output(plan.place, plan.data)
            checkpoints.begin()
            watch.journal = Journal(plan.place.work / METRICS, watch.step)
        telling.begin(watch.step, horizon)
        if plan.resume_from is None or not watch.is_over:
            _train(
                TrainingRun(
                    model, tokenizer, loader, schedule, options, plan.config.seed, options.device, plan.place.work,
                    watch, plan.ranks.rank, plan.resume_from,
                )
            )  # fmt: skip
    leave_ranks(plan.ranks)
    if watch.ended == "interrupted":
        what = f"stopped at step {watch.step:,}, and saved {checkpoints.of_step(watch.step)}"
        raise Interrupted(what, next_step="--resume")
    return Trained(plan, layout, reason, schedule, watch, parameters, time.monotonic() - started)


def _train(made: TrainingRun) -> None:
    """Move the weights.

    Raises:
        UsageError: the memory of the device does not hold it.
    """
    import torch

    try:
        trainers.get(made.options.trainer)(made)
    except torch.OutOfMemoryError as problem:
        what = f"the memory of the device does not hold a micro-batch: {(str(problem).splitlines() or [''])[0]}"
        raise UsageError(what, next_step="--train.gradient_checkpointing true") from problem


def layout_of(plan: TrainPlan, verdict: Verdict | None) -> tuple[Layout, str]:
    """How examples reach the model, and why.

    Raises:
        UsageError: packing was demanded of a model that mixes packed examples.
    """
    wanted, is_packed = plan.options.packing, bool(plan.data.epochs_recipe["pack"]["on"])
    if verdict is None:
        return "padded", "examples are padded: train.packing is off"
    if verdict.isolates:
        if wanted == "auto" and not is_packed:
            return "padded", "examples are padded: they were prepared one a row (pack.on: false)"
        return verdict.layout, f"examples are packed: {verdict.reason}"
    if wanted == "on":
        raise UsageError(verdict.reason, next_step="--train.packing auto")
    return "padded", f"examples are padded: {verdict.reason}"


def _steps(plan: TrainPlan, layout: Layout, pad_id: int) -> tuple[StepLoader, int]:
    """The run's steps for this rank, and how many optimizer steps it is taken to have."""
    from turnmill.training.step_loader import MicroBatches, StepLoader, steps_of

    options = plan.options
    stream = _stream(plan)
    if options.max_steps is not None:
        horizon = options.max_steps
    else:
        horizon = steps_of(stream, options.epochs, exact=options.exact_steps)
    cut = MicroBatches(layout, options.batch_size, options.batch_size * plan.data.manifest["max_tokens"], pad_id)
    epochs = None if options.max_steps is not None else options.epochs
    return StepLoader(stream, cut, epochs, options.loader_workers), horizon


def _stream(plan: TrainPlan) -> EpochStream:
    """A batch an optimizer step: the same packs whether their examples share rows or not."""
    from turnmill.stream.prepared_stream import PreparedStream

    options, ranks = plan.options, plan.ranks
    packs = options.batch_size * options.gradient_accumulation_steps
    if not options.streaming:
        return PreparedStream(plan.data, packs, packed=True, rank=ranks.rank, ranks=ranks.total)
    from turnmill.config import load
    from turnmill.stream.row_order import Cut
    from turnmill.verbs.live_rows import open_rows

    config, origins = load(None, [], [str(plan.data.folder)])
    per_pack = len(plan.data.examples()) / max(1, len(plan.data.plan()))
    return open_rows(config, origins, Cut(max(1, round(packs * per_pack)), ranks.rank, ranks.total))


def _measure(plan: TrainPlan, verdict: Verdict | None) -> Measure | None:
    """What evaluates the model while it trains; None without held-out rows."""
    from turnmill.evaluation.evaluate import evaluate
    from turnmill.verbs.train_sets import sets_of

    if not plan.options.eval_every:
        return None
    found = sets_of(plan.config, plan.origins, plan.data, plan.directory)
    if found is None:
        return None
    plan.notes.extend([*found.warnings, *(f"{name} is not evaluated: {why}" for name, why in found.missing.items())])
    settings: Evaluate = plan.config.evaluate
    autocast = None
    if plan.options.dtype == "bfloat16":
        import torch

        autocast = torch.bfloat16

    def measured(model: Any) -> dict[str, float]:
        made = evaluate(model, found.sets, options=settings, probe_verdict=verdict, autocast=autocast)
        return made.metrics()

    return measured


def _tell(plan: TrainPlan, telling: Telling, reason: str, horizon: int, *, has_evaluation: bool) -> None:
    """What is trained on what, and how."""
    manifest = plan.data.manifest
    tokens = manifest["counts"]["trained_tokens"]
    telling.notice(f"data: {plan.data.folder}, fingerprint {manifest['fingerprint'][:16]}, {tokens:,} trained tokens")
    telling.notice(f"model: {plan.directory} ({plan.options.method}, {plan.options.dtype}, {plan.options.device})")
    telling.notice(reason)
    for note in plan.notes:
        telling.notice(note)
    estimate = "" if plan.options.max_steps or plan.options.exact_steps else "about "
    telling.notice(f"optimizer steps: {estimate}{horizon:,}")
    if plan.resume_from is not None:
        telling.notice(f"going on from {plan.resume_from}")
    if not has_evaluation:
        why = (
            "train.eval_every is 0" if not plan.options.eval_every else "there are no held-out rows (--split.fraction)"
        )
        telling.notice(f"warning: nothing is evaluated, and the last checkpoint stands for the best: {why}")


def _parameters(model: Any) -> tuple[int, int]:
    every = [(one.numel(), one.requires_grad) for one in model.parameters()]
    return sum(count for count, trains in every if trains), sum(count for count, _ in every)


@contextmanager
def _asked_to_stop(watch: Watch, telling: Telling) -> Iterator[None]:
    """Ctrl-C, or the end of a job's time, stops a run behind its step; a second time, at once."""

    def stop(number: int, _: Any) -> None:
        watch.stops = True
        telling.notice("stopping behind this step; once more to stop at once")
        signal.signal(number, before[number])

    before: dict[int, Any] = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
