"""score: what the trained tokens of every example cost a model, in nats."""

from __future__ import annotations

import dataclasses
import time
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np
import xxhash
from numpy.typing import NDArray

from turnmill import smollm2
from turnmill.conversation import Json
from turnmill.errors import HealthError, UsageError
from turnmill.executors import executors
from turnmill.executors.inline import inline
from turnmill.files.examples import Examples
from turnmill.files.inventory import rows_of
from turnmill.files.scores import Entry, ExampleScore, ScoreCache, schema, to_table
from turnmill.files.tables import TableWriter
from turnmill.models import LoadedModel, open_model
from turnmill.options import Model, Score
from turnmill.scorers import Nll, Scorer, ToScore, Unscored, scorers
from turnmill.selection import needs_scores
from turnmill.steps.shards import ShardResult
from turnmill.steps.step import Step
from turnmill.tokens.labels import loss_weights
from turnmill.verbs.built import Builder, Built
from turnmill.verbs.split import Side
from turnmill.verbs.tokenize import SIDES

if TYPE_CHECKING:
    from turnmill.config import Config

VERSION = 1
CACHE = "scores"
"""Folder of the score caches, beside the steps."""
WINDOW = 2_000
"""Examples that are sorted by length together."""
STORED_EVERY_S = 30.0
"""What was scored is put into the cache so often: no more than that is scored again after a crash."""


class ScoreTask(NamedTuple):
    """The examples of one tokenized shard, of both sides."""

    examples: dict[Side, str]
    score: Score
    model: Model
    cache: str
    """Folder of the caches of all scorers."""


def scores_file(side: Side) -> str:
    """Name of a side's table in a shard's folder."""
    return f"{side}.scores.parquet"


def scorer_of(options: Score, model: Model) -> Scorer:
    """The scorer that the options name, for the tokens of a model; opened once a process.

    Raises:
        UsageError: no such scorer, no weights, or a scoring model with another tokenizer.
    """
    return _scorer(msgspec.json.encode((options, model)))


@lru_cache(maxsize=2)
def _scorer(key: bytes) -> Scorer:
    options, model = msgspec.json.decode(key, type=tuple[Score, Model])
    scorer_opener = scorers.get(options.scorer)
    data_model = open_model(model)
    directory = None if options.scorer == "http" else _directory(options, model, data_model)
    return scorer_opener(options, directory, data_model.tokenizer().get_vocab_size())


def _directory(options: Score, model: Model, data_model: LoadedModel) -> Path | None:
    """Of the scoring model; one with the tokenizer that made the tokens."""
    name = options.model or model.name_or_path
    if name is None:
        return None
    if options.model is not None:
        own = open_model(Model(name_or_path=options.model, template="chatml"))
        if own.tokenizer_sha256 != data_model.tokenizer_sha256:
            raise UsageError(
                f"score.model {options.model!r} has another tokenizer than {model.name_or_path!r}, "
                "whose tokens are scored; expected the same tokenizer.json",
                next_step="--score.model DIR",
            )
    if name == smollm2.NAME:
        return smollm2.weights_directory() if options.scorer in ("hf", "vllm") else None
    return Path(name).expanduser()


def step_of(tokenize: Step, options: Score, scorer: Scorer) -> Step:
    """The recipe of a source's scores: the examples, and the identity of what scores them."""
    return Step("score", VERSION, {"scorer": scorer.identity, "full": options.full}, (tokenize.fingerprint,))


def build_source(builder: Builder, config: Config, name: str, tokenized: Built) -> Built:
    """The scores of a source's examples, of both sides; one process loads the model, or on Ray one a GPU.

    Raises:
        HealthError: not one example has a finite score.
    """
    options = options_of(config)
    step = step_of(tokenized.step, options, scorer_of(options, config.model))
    cache = str(builder.cache / CACHE)
    tasks = [
        ScoreTask({side: str(folder / f"{side}.arrow") for side in SIDES}, options, config.model, cache)
        for folder in tokenized.file("")
    ]

    def finish(_: Path, results: Sequence[ShardResult]) -> dict[str, Json]:
        check_scored(name, results)
        return {}

    executor = executors.get("ray-actors") if config.executor == "ray" else inline
    rows = [rows_of(Path(task.examples["train"])) or 0 for task in tasks]
    return builder.build(step, tasks, run_shard, finish, rows=rows, executor=executor)


def run_shard(task: ScoreTask, folder: Path) -> ShardResult:
    """Write the scores of every example, in order."""
    scorer = scorer_of(task.score, task.model)
    identity = {**scorer.identity, "full": task.score.full}
    known = ScoreCache(Path(task.cache), identity)
    counts: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    for side, path in task.examples.items():
        examples = Examples([Path(path)])
        with TableWriter(folder / scores_file(side), schema(), to_table) as out:
            for start in range(0, len(examples), WINDOW):
                rows = [examples.row(number) for number in range(start, min(start + WINDOW, len(examples)))]
                for row, entry in zip(rows, _scored(rows, scorer, known, full=task.score.full), strict=True):
                    score = score_of(row, entry)
                    out.write(score)
                    _count(counts, reasons, side, score)
    return ShardResult(dict(counts), {"reasons": dict(reasons.most_common(5))})


def _count(counts: Counter[str], reasons: Counter[str], side: Side, score: ExampleScore) -> None:
    counts["score/examples"] += 1
    if np.isfinite(score.sum_nll) and score.predicted:
        counts[f"score/tokens/{side}"] += score.predicted
        return
    counts["score/not-scored"] += 1
    reasons[score.reason or "its score is not a finite number"] += 1


def _scored(rows: Sequence[dict[str, Any]], scorer: Scorer, cache: ScoreCache, *, full: bool) -> list[Entry]:
    """One entry a row: out of the cache, else scored now and put there."""
    keys = [key_of(row) for row in rows]
    found = cache.find(keys)
    fresh = {key: number for number, key in enumerate(keys) if key not in found}
    numbers = list(fresh.values())
    added: list[tuple[bytes, Entry]] = []
    stored = time.monotonic()
    for place, nll in scorer.nll([_to_score(rows[number], full=full) for number in numbers]):
        key = keys[numbers[place]]
        found[key] = _entry(rows[numbers[place]], nll, full=full)
        added.append((key, found[key]))
        if time.monotonic() - stored > STORED_EVERY_S:
            cache.add(added)
            added, stored = [], time.monotonic()
    cache.add(added)
    return [found[key] for key in keys]


def key_of(row: dict[str, Any]) -> bytes:
    """16 bytes: xxh3-128 over an example's tokens and which of them train, run by run."""
    digest = xxhash.xxh3_128(np.ascontiguousarray(row["input_ids"], dtype=np.int32).tobytes())
    digest.update(np.ascontiguousarray(row["run_ends"], dtype=np.int32).tobytes())
    digest.update((np.asarray(row["run_weights"]) > 0).tobytes())
    return digest.digest()


def _trained(row: dict[str, Any]) -> NDArray[np.bool_]:
    """(tokens,) what trains and is predicted: never the first."""
    trained = loss_weights(row["run_ends"], row["run_weights"]) > 0
    trained[:1] = False
    return trained


def _to_score(row: dict[str, Any], *, full: bool) -> ToScore:
    wanted = _trained(row)
    if full:
        wanted = np.ones(len(wanted), dtype=bool)
        wanted[:1] = False
    return ToScore(np.asarray(row["input_ids"], dtype=np.int32), wanted)


def _entry(row: dict[str, Any], nll: Nll | Unscored, *, full: bool) -> Entry:
    """Sums of what a scorer gave, run by run."""
    if isinstance(nll, Unscored):
        return Entry([], float("nan"), nll.reason)
    values = np.zeros(len(row["input_ids"]))
    trained = _trained(row)
    if full:
        values[1:] = nll
        whole = float(values.sum())
        values[~trained] = 0.0
    else:
        values[trained] = nll
        whole = float("nan")
    sums = _run_sums(values, row)
    return Entry([float(total) for total in sums[np.asarray(row["run_weights"]) > 0]], whole, None)


def _run_sums(values: NDArray[np.float64], row: dict[str, Any]) -> NDArray[np.float64]:
    """(runs,) sums of one value a token."""
    ends = np.asarray(row["run_ends"], dtype=np.int64)
    starts = np.concatenate([[0], ends[:-1]])
    return np.add.reduceat(np.append(values, 0.0), starts) * (ends > starts) if len(ends) else np.zeros(0)


def score_of(row: dict[str, Any], entry: Entry) -> ExampleScore:
    """A stored example's score, summed by turn and kind."""
    ends = np.asarray(row["run_ends"], dtype=np.int64)
    is_trained = np.asarray(row["run_weights"]) > 0
    sizes = np.diff(np.concatenate([[0], ends]))
    predicted = _run_sums(_trained(row).astype(np.float64), row).astype(np.int64)[is_trained]
    missing = entry.reason is not None
    nll = np.full(len(predicted), np.nan) if missing else np.array(entry.run_nll, dtype=np.float64)
    turn = np.searchsorted(np.asarray(row["turn_ends"]), ends[is_trained], side="left")
    turns = len(row["turn_ends"])
    turn = np.minimum(turn, max(turns - 1, 0))
    kinds, kind = np.unique(np.asarray(row["run_kinds"])[is_trained], return_inverse=True)
    return ExampleScore(
        row_id=row["row_id"],
        part=row["part"],
        source=row["source"],
        tokens=len(row["input_ids"]),
        trained_tokens=int(sizes[is_trained].sum()),
        predicted=int(predicted.sum()),
        sum_nll=float(nll.sum()),
        full_tokens=max(0, len(row["input_ids"]) - 1),
        full_nll=entry.full_nll,
        turn_tokens=_sums(turn, predicted, turns).astype(int).tolist(),
        turn_nll=_sums(turn, nll, turns).tolist(),
        kinds=kinds.tolist(),
        kind_tokens=_sums(kind, predicted, len(kinds)).astype(int).tolist(),
        kind_nll=_sums(kind, nll, len(kinds)).tolist(),
        reason=entry.reason,
    )


def _sums(groups: NDArray[np.int64], values: NDArray[Any], count: int) -> NDArray[np.float64]:
    sums: NDArray[np.float64] = np.bincount(groups, weights=values, minlength=count).astype(np.float64)
    return sums


def check_scored(source: str, results: Sequence[ShardResult]) -> None:
    """Stop where a model scores nothing of a source.

    Raises:
        HealthError: not one example has a finite score.
    """
    examples = sum(result.counters.get("score/examples", 0) for result in results)
    lost = sum(result.counters.get("score/not-scored", 0) for result in results)
    if examples and lost == examples:
        reasons: Counter[str] = Counter()
        for result in results:
            reasons.update(result.extra["reasons"])
        why = "; ".join(f"{count:,} x {reason}" for reason, count in reasons.most_common(5))
        raise HealthError(
            f"source {source!r}: none of {examples:,} examples has a score ({why})", next_step="--score.dtype float32"
        )


def options_of(config: Config) -> Score:
    """The `score` section; all tokens are scored where a bound of `select` holds for them."""
    full = config.score.full or config.select.perplexity_of == "full"
    return dataclasses.replace(config.score, full=full)


def is_on(config: Config) -> bool:
    """Whether rows are scored: asked for, or needed by the strategy."""
    return config.score.on or needs_scores(config.select)
