"""estimate: what an epoch will hold, from some of the rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from turnmill.conversation import Checked, Json
from turnmill.files.prepared import PreparedData
from turnmill.mix import Share, Size, shares
from turnmill.options import Pack
from turnmill.sampling import Estimate, Stratum, allocated, borders, spread, strata, together
from turnmill.tokens.epochs import Epochs
from turnmill.verbs.check import RecordCheck
from turnmill.verbs.filter import settled, verdict
from turnmill.verbs.population import Population, population
from turnmill.verbs.tokenize import BATCH, line_of

if TYPE_CHECKING:
    from turnmill.config import Config
    from turnmill.verbs.prepare import Plan

FIRST_ROWS = 400
"""Rows of each source that are looked at first."""
STRATA = 16
"""Of each source, about."""
FIXED_COST_BYTES = 1000
"""How long a row would be that takes twice as long as an empty one."""
ROUNDS = 8
TAKEN = 0.8
"""Share of the rows that seem to be missing that a round looks at: by then it is known better how many are."""
MOST = 0.25
"""Share of the rows that is looked at at most, unless every one is."""
PACKED_EXAMPLES = 16_384
"""Lengths that are packed to tell how full packs become."""
MEASURES = ("examples", "tokens", "trained_tokens")
DEVIATIONS = 2.0
"""Standard deviations of a stated error: 19 of 20 estimates are within it."""


class Looked(NamedTuple):
    """What some rows of a stratum gave."""

    places: list[int]
    """Of the rows, in the order of their population."""
    values: list[tuple[int, int, int]]
    """Of each `MEASURES`."""
    lengths: list[list[int]]
    """Tokens of each row's examples."""


@dataclass
class Sample:
    """One source, and the rows of each of its strata that were looked at."""

    population: Population
    borders: list[int]
    """(strata + 1,) places where they begin, and the end."""
    looked: list[Looked]
    """(strata,)"""
    costs: list[float]
    """(strata,) of looking at a row: a fixed part, and what it is long."""

    @property
    def rows(self) -> list[int]:
        """(strata,) how many each has."""
        return [end - first for first, end in pairwise(self.borders)]

    @property
    def looked_at(self) -> int:
        """Rows of all strata that were looked at."""
        return sum(len(one.places) for one in self.looked)

    def strata(self, measure: str) -> list[Stratum]:
        """What is known of a measure."""
        return strata([_sorted_values(one, measure) for one in self.looked], self.rows, self.costs)

    def estimate(self, measure: str) -> Estimate:
        """The total of a measure."""
        return together(one.estimate for one in self.strata(measure))


def _sorted_values(looked: Looked, measure: str) -> NDArray[np.float64]:
    order = np.argsort(np.array(looked.places, dtype=np.int64))
    values = np.array(looked.values, dtype=np.float64).reshape(-1, len(MEASURES))
    found: NDArray[np.float64] = values[order, MEASURES.index(measure)]
    return found


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
    packs = prepared.packs_of("train", 0).packs
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
    samples = [_sample(population(opened, config, seen), config) for opened in run.sources]
    for one in samples:
        _look(run, one, _first(one, config), tell)
    for _ in range(ROUNDS):
        more = _more(samples, config)
        if not any(map(any, more)):
            break
        for one, counts in zip(samples, more, strict=True):
            _look(run, one, counts, tell)
    return _answer([_forecast(one, config) for one in samples], samples, run, steps_of)


def _sample(found: Population, config: Config) -> Sample:
    edges = borders(found.sizes, found.kinds, STRATA).tolist()
    costs = [FIXED_COST_BYTES + float(found.sizes[first:end].mean()) for first, end in pairwise(edges)]
    return Sample(found, edges, [Looked([], [], []) for _ in costs], costs)


def _first(one: Sample, config: Config) -> list[int]:
    """How many rows of each stratum are looked at first: all of few."""
    rows, each = one.rows, -(-FIRST_ROWS // max(1, len(one.rows)))
    if config.estimate.exact or sum(rows) <= FIRST_ROWS:
        return rows
    return [min(count, each) for count in rows]


def _look(run: Plan, one: Sample, counts: Sequence[int], tell: Callable[[int], None]) -> None:
    """Look at so many further rows of each stratum."""
    chosen = [place for stratum, count in enumerate(counts) for place in _next(one, stratum, count, run.config.seed)]
    found = _measured(run, one.population, chosen, tell)
    stratum_of = np.searchsorted(one.borders, found.places, side="right") - 1
    for number, place, values, lengths in zip(stratum_of, *found, strict=True):
        looked = one.looked[number]
        looked.places.append(place)
        looked.values.append(values)
        looked.lengths.append(lengths)


def _next(one: Sample, stratum: int, count: int, seed: int) -> list[int]:
    """The next places of a stratum, which with those before them are spread evenly over it."""
    first, end = one.borders[stratum : stratum + 2]
    known = len(one.looked[stratum].places)
    start = np.random.default_rng([seed, stratum]).random()
    return (first + spread(end - first, start)[known : known + count]).tolist()  # type: ignore[no-any-return]  # numpy gives lists of Any


def _measured(run: Plan, found: Population, places: Sequence[int], tell: Callable[[int], None]) -> Looked:
    """What the rows at some places give."""
    source, own = found.opened.source, run.config.of(found.opened.source)
    checks = {
        name: RecordCheck(source, dialect, own.read, own.check, own.loss.fractional, Counter())
        for name, dialect in found.opened.dialects.items()
    }
    filters = settled(own.filter)
    rows: list[tuple[int, Checked | None]] = []
    for place, record in found.records(places, own.read):
        checked = checks[record.source_file].outcome(record).checked
        stays = checked is not None and verdict(checked, filters) is None
        rows.append((place, checked if stays else None))
        tell(1)
    return _made(run, source.name, rows)


def _made(run: Plan, source: str, rows: Sequence[tuple[int, Checked | None]]) -> Looked:
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


def _more(samples: Sequence[Sample], config: Config) -> list[list[int]]:
    """How many further rows of each stratum are looked at, of all sources together."""
    by_source = [one.strata("tokens") for one in samples]
    known = [one for of_source in by_source for one in of_source]
    found = together(one.estimate for one in known)
    looked_at = sum(one.looked_at for one in known)
    limit = max(2 * looked_at, int(MOST * sum(one.rows for one in known)))
    target = config.estimate.precision * found.total
    none = [[0] * len(of_source) for of_source in by_source]
    if not found.total or found.error <= target or looked_at >= limit:
        return none
    wanted = [count - one.looked_at for count, one in zip(allocated(known, target), known, strict=True)]
    part = min(TAKEN, (limit - looked_at) / max(1, sum(wanted)))
    left = iter(-(-count * part // 1) for count in wanted)
    return [[int(next(left)) for _ in of_source] for of_source in by_source]


def _forecast(one: Sample, config: Config) -> Forecast:
    """A source's training rows: what is held out is taken off."""
    found = one.population
    kept = 1.0 - config.of(found.opened.source).split.fraction
    measures = {name: one.estimate(name) for name in MEASURES}
    taken = {name: Estimate(value.total * kept, value.error * kept) for name, value in measures.items()}
    return Forecast(found.opened.source.name, found.rows, found.rows - len(found.numbers), one.looked_at, taken)


def _answer(forecasts: Sequence[Forecast], samples: Sequence[Sample], run: Plan, steps_of: int) -> dict[str, Json]:
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
    fill = _fill(samples, [factors[one.source] for one in forecasts], run)
    tokens = measures["tokens"]
    packs = (
        round(tokens.total / (run.max_tokens * fill)) if config.pack.on and fill else round(measures["examples"].total)
    )
    relative = DEVIATIONS * tokens.error / tokens.total if tokens.total else 0.0
    return {
        **{name: _stated(value) for name, value in measures.items()},
        "packs": packs,
        "fill": fill,
        "steps": packs // steps_of,
        "error": relative,
        "exact": relative == 0.0,
        "looked_at": sum(one.looked_at for one in forecasts),
        "rows": sum(one.rows for one in forecasts),
        "sources": {one.source: _of_source(one, share) for one, share in zip(forecasts, mixed, strict=True)},
    }


def _stated(value: Estimate) -> dict[str, Json]:
    return {"total": round(value.total), "error": DEVIATIONS * value.error}


def _of_source(one: Forecast, share: Share) -> dict[str, Json]:
    return {
        "rows": one.rows,
        "duplicates": one.duplicates,
        "looked_at": one.looked_at,
        **{name: _stated(value) for name, value in one.measures.items()},
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


def _fill(samples: Sequence[Sample], passes: Sequence[float], run: Plan) -> float:
    """How full packs become, from the real packer over lengths drawn as often as their rows stand for others."""
    lengths, weights = [np.zeros(0, np.int64)], [np.zeros(0)]
    for one, times in zip(samples, passes, strict=True):
        for looked, rows in zip(one.looked, one.rows, strict=True):
            own = [length for of_row in looked.lengths for length in of_row]
            lengths.append(np.array(own, dtype=np.int64))
            weights.append(np.full(len(own), times * rows / max(1, len(looked.places))))
    joined, chances = np.concatenate(lengths), np.concatenate(weights)
    if not len(joined) or not chances.sum():
        return 0.0
    random = np.random.default_rng(run.config.seed)
    drawn = random.choice(joined, PACKED_EXAMPLES, p=chances / chances.sum())
    plan = Epochs(drawn, run.max_tokens, Pack(run.config.pack.on, run.config.pack.order), 0).plan(0)
    return float(drawn.sum() / (plan.packs * run.max_tokens))
