"""estimate: what an epoch will hold, from some of the rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import xxhash
from numpy.typing import NDArray

from turnmill.conversation import Checked, Json
from turnmill.files.prepared import PreparedData
from turnmill.files.read import picked, records, undecoded
from turnmill.files.record import Record
from turnmill.mix import Share, Size, shares
from turnmill.options import Pack, Read
from turnmill.sampling import Estimate, estimate, needed, spread
from turnmill.tokens.pack import plan
from turnmill.verbs.check import RecordCheck
from turnmill.verbs.filter import settled, verdict
from turnmill.verbs.tokenize import BATCH, line_of

if TYPE_CHECKING:
    from turnmill.config import Config
    from turnmill.verbs.prepare import Plan
    from turnmill.verbs.read import OpenSource

FIRST_ROWS = 400
"""Rows of each source that are looked at first."""
ROUNDS = 8
MOST = 0.25
"""Share of the rows that is looked at at most, unless every one is."""
PACKED_EXAMPLES = 16_384
"""Lengths that are packed to tell how full packs become."""
MEASURES = ("examples", "tokens", "trained_tokens")


class Population(NamedTuple):
    """One source's records that are not the same bytes as an earlier one's."""

    opened: OpenSource
    rows: int
    """All of them."""
    numbers: NDArray[np.int64]
    """(distinct,) places among the source's rows, from the shortest record to the longest."""


class Looked(NamedTuple):
    """What some rows of a source gave."""

    places: list[int]
    """Of the rows, in the order of sizes of their population."""
    values: list[tuple[int, int, int]]
    """Of each `MEASURES`."""
    lengths: list[list[int]]
    """Tokens of each row's examples."""


class Forecast(NamedTuple):
    """What one source will give."""

    source: str
    rows: int
    duplicates: int
    """Rows whose bytes are those of an earlier one."""
    looked_at: int
    measures: dict[str, Estimate]
    """By `MEASURES`, of training rows."""


def of_folder(folder: Path, steps_of: int) -> dict[str, Json]:
    """The same answer for a prepared folder, exactly."""
    prepared = PreparedData(folder, whole=False)
    found = prepared.report
    packs = len(prepared.plan())
    sizes = {name: found[name] for name in ("examples", "tokens", "trained_tokens")}
    totals = {name: value if isinstance(value, int) else value["total"] for name, value in sizes.items()}
    return {
        **{name: {"total": total, "error": 0.0} for name, total in totals.items()},
        "packs": packs,
        "fill": totals["tokens"] / (packs * prepared.manifest["max_tokens"]) if packs else 0.0,
        "steps": packs // steps_of,
        "error": 0.0,
        "exact": True,
        "looked_at": found["rows"]["read"],
        "rows": found["rows"]["read"],
        "sources": {},
    }


def of_data(run: Plan, steps_of: int, advance: Callable[[int], None] | None = None) -> dict[str, Json]:
    """What an epoch of a run will hold.

    Rows are read, checked, filtered and tokenized as the run would do it, so many of them as the precision asks for.
    Near-duplicates, and duplicates of other bytes, are not seen; a selection by scores is taken for an even one.

    Args:
        run: the plan of the run.
        steps_of: packs of one step, of all ranks.
        advance: told how many rows were looked at.
    """
    config = run.config
    tell = advance or (lambda _: None)
    seen: set[bytes] = set()
    populations = [_population(opened, config, seen) for opened in run.sources]
    looked = [_look(run, one, range(_first(one, config)), tell) for one in populations]
    for _ in range(ROUNDS):
        more = _more(populations, looked, config)
        if not any(more):
            break
        for place, (one, count) in enumerate(zip(populations, more, strict=True)):
            first = len(looked[place].places)
            looked[place] = _joined(looked[place], _look(run, one, range(first, first + count), tell))
    forecasts = [_forecast(one, found, config) for one, found in zip(populations, looked, strict=True)]
    return _answer(forecasts, looked, run, steps_of)


def _first(one: Population, config: Config) -> int:
    return len(one.numbers) if config.estimate.exact else min(len(one.numbers), FIRST_ROWS)


def _population(opened: OpenSource, config: Config, seen: set[bytes]) -> Population:
    """The source's records by size; `seen` holds the hashes of those before them."""
    read = config.of(opened.source).read
    is_deduplicated = "exact" in config.dedup.by
    sizes: list[int] = []
    kept: list[int] = []
    for number, raw in enumerate(_raw(opened, read)):
        key = xxhash.xxh3_128_digest(raw)
        if is_deduplicated and key in seen:
            continue
        seen.add(key)
        sizes.append(len(raw))
        kept.append(number)
    order = np.argsort(np.array(sizes, dtype=np.int64), kind="stable")
    rows = sum(shard.rows for shard in opened.plan.shards)
    return Population(opened, rows, np.array(kept, dtype=np.int64)[order])


def _raw(opened: OpenSource, read: Read) -> Iterator[bytes]:
    for shard in opened.plan.shards:
        if shard.layout == "parquet":
            yield from (record.raw for record in records(shard, read))
        else:
            yield from (piece.raw for piece in undecoded(shard, read))


def _picked(opened: OpenSource, read: Read, wanted: set[int]) -> Iterator[Record]:
    """The records of those rows, numbered from the source's first."""
    first = opened.plan.shards[0].first_row if opened.plan.shards else 0
    for shard in opened.plan.shards:
        begin = shard.first_row - first
        own = sorted(number - begin for number in wanted if begin <= number < begin + shard.rows)
        if own:
            yield from picked(shard, read, own)


def _look(run: Plan, one: Population, turns: range, tell: Callable[[int], None]) -> Looked:
    """What the rows at those turns of the spread order give."""
    config = run.config
    own, source = config.of(one.opened.source), one.opened.source
    order = spread(len(one.numbers), np.random.default_rng(config.seed).random())[turns.start : turns.stop]
    place_of = {int(one.numbers[place]): int(place) for place in order}
    first = one.opened.plan.shards[0].first_row if one.opened.plan.shards else 0
    checks = {
        name: RecordCheck(source, dialect, own.read, own.check, own.loss.fractional, Counter())
        for name, dialect in one.opened.dialects.items()
    }
    filters = settled(own.filter)
    rows: list[tuple[int, Checked | None]] = []
    for record in _picked(one.opened, own.read, set(place_of)):
        checked = checks[record.source_file].outcome(record).checked
        stays = checked is not None and verdict(checked, filters) is None
        rows.append((place_of[record.row - first], checked if stays else None))
        tell(1)
    return _measured(run, source.name, rows)


def _measured(run: Plan, source: str, rows: Sequence[tuple[int, Checked | None]]) -> Looked:
    recipe = run.recipes[source]
    line = line_of(recipe, accelerate=run.config.accelerate)
    staying = [row for _, row in rows if row is not None]
    parts = [
        [part.example for part in made.parts]
        for start in range(0, len(staying), BATCH)
        for made in line.run(staying[start : start + BATCH], recipe)
    ]
    line.clear()
    found = iter(parts)
    examples = [[] if row is None else next(found) for _, row in rows]
    values = [
        (
            len(own),
            sum(len(example.input_ids) for example in own),
            sum(_trained(example) for example in own),
        )
        for own in examples
    ]
    return Looked(
        [place for place, _ in rows], values, [[len(example.input_ids) for example in own] for own in examples]
    )


def _trained(example: Any) -> int:
    start = total = 0
    for run in example.runs:
        total += run.end - start if run.weight > 0 else 0
        start = run.end
    return total


def _joined(first: Looked, second: Looked) -> Looked:
    return Looked(first.places + second.places, first.values + second.values, first.lengths + second.lengths)


def _of_measure(one: Population, found: Looked, measure: str) -> Estimate:
    order = np.argsort(np.array(found.places, dtype=np.int64))
    values = np.array(found.values, dtype=np.float64).reshape(-1, len(MEASURES))[order, MEASURES.index(measure)]
    return estimate(values, len(one.numbers))


def _more(populations: Sequence[Population], looked: Sequence[Looked], config: Config) -> list[int]:
    """How many further rows of each source are looked at: those whose error weighs most."""
    found = [_of_measure(one, seen, "tokens") for one, seen in zip(populations, looked, strict=True)]
    total = sum(one.total for one in found)
    error = sum(one.error**2 for one in found) ** 0.5
    count = sum(len(seen.places) for seen in looked)
    limit = max(2 * count, int(MOST * sum(len(one.numbers) for one in populations)))
    if not total or error <= config.estimate.precision * total or count >= limit:
        return [0] * len(populations)
    wanted = min(needed(count, error / total, config.estimate.precision), limit) - count
    errors = sum(one.error for one in found)
    return [
        min(len(one.numbers) - len(seen.places), 1 + round(wanted * part.error / errors))
        for one, seen, part in zip(populations, looked, found, strict=True)
    ]


def _forecast(one: Population, found: Looked, config: Config) -> Forecast:
    """A source's training rows: what is held out is taken off."""
    kept = 1.0 - config.of(one.opened.source).split.fraction
    measures = {name: _of_measure(one, found, name) for name in MEASURES}
    taken = {name: Estimate(value.total * kept, value.error * kept) for name, value in measures.items()}
    return Forecast(one.opened.source.name, one.rows, one.rows - len(one.numbers), len(found.places), taken)


def _answer(forecasts: Sequence[Forecast], looked: Sequence[Looked], run: Plan, steps_of: int) -> dict[str, Json]:
    config = run.config
    mixed = _mixed(forecasts, config)
    factors = {share.source: share.passes for share in mixed}
    measures = {
        name: Estimate(
            sum(one.measures[name].total * factors[one.source] for one in forecasts),
            sum((one.measures[name].error * factors[one.source]) ** 2 for one in forecasts) ** 0.5,
        )
        for name in MEASURES
    }
    measures = _selected(measures, config)
    fill = _fill(looked, [factors[one.source] for one in forecasts], run)
    tokens = measures["tokens"]
    packs = (
        round(tokens.total / (run.max_tokens * fill)) if config.pack.on and fill else round(measures["examples"].total)
    )
    relative = tokens.error / tokens.total if tokens.total else 0.0
    return {
        **{name: {"total": round(value.total), "error": value.error} for name, value in measures.items()},
        "packs": packs,
        "fill": fill,
        "steps": packs // steps_of,
        "error": relative,
        "exact": relative == 0.0,
        "looked_at": sum(one.looked_at for one in forecasts),
        "rows": sum(one.rows for one in forecasts),
        "sources": {one.source: _of_source(one, share) for one, share in zip(forecasts, mixed, strict=True)},
    }


def _of_source(one: Forecast, share: Share) -> dict[str, Json]:
    return {
        "rows": one.rows,
        "duplicates": one.duplicates,
        "looked_at": one.looked_at,
        **{name: {"total": round(value.total), "error": value.error} for name, value in one.measures.items()},
        "passes": share.passes,
    }


def _mixed(forecasts: Sequence[Forecast], config: Config) -> list[Share]:
    sizes = {one.source: Size(*(round(one.measures[name].total) for name in MEASURES)) for one in forecasts}
    return shares(sizes, {source.name: source.weight for source in config.sources}, config.mix)


def _selected(measures: dict[str, Estimate], config: Config) -> dict[str, Estimate]:
    """What a budget leaves, as if it were spent evenly."""
    unit, budget = (
        ("trained_tokens", config.select.tokens) if config.select.tokens else ("examples", config.select.rows)
    )
    if budget is None or not measures[unit].total or budget >= measures[unit].total:
        return measures
    part = budget / measures[unit].total
    return {name: Estimate(value.total * part, value.error * part) for name, value in measures.items()}


def _fill(looked: Sequence[Looked], passes: Sequence[float], run: Plan) -> float:
    """How full packs become, from the real packer over lengths that are drawn as they were found."""
    lengths = [np.array([n for own in found.lengths for n in own], dtype=np.int64) for found in looked]
    weights = [np.full(len(own), times) for own, times in zip(lengths, passes, strict=True)]
    joined, chances = np.concatenate(lengths), np.concatenate(weights)
    if not len(joined) or not chances.sum():
        return 0.0
    random = np.random.default_rng(run.config.seed)
    drawn = random.choice(joined, PACKED_EXAMPLES, p=chances / chances.sum())
    packs = plan(drawn.tolist(), run.max_tokens, Pack(run.config.pack.on, run.config.pack.order), 0)
    return float(drawn.sum() / (len(packs) * run.max_tokens))
