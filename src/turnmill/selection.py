"""Selection: which scored rows a model learns from, and in what order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from turnmill.errors import UnknownName, UsageError, quote
from turnmill.options import Select
from turnmill.strategies import FAMILIAR, FAMILIARITY, SCORELESS, TYPICAL, UNFAMILIAR, Pool, Rows, strategies
from turnmill.strategies.random import random

CONTROL = 1
"""Of the seeds: the control is drawn by its own."""

CODES = ("", "score-not-finite", "perplexity-too-low", "perplexity-too-high", "too-few-tokens", "too-many-tokens",
         "not-selected")  # fmt: skip
"""Why a row leaves, by number; 0: it stays."""
ALL = ""
"""Name of the pool as a whole, where there are no quotas."""
ORDERED = "curriculum"
"""The strategy whose order is learned as it is."""
NOT_SELECTED = CODES.index("not-selected")


class Scored(NamedTuple):
    """A pool of rows with their scores, a value each; the order is that of reading."""

    trained_tokens: NDArray[np.int64]
    tokens: NDArray[np.int64]
    sum_nll: NDArray[np.float64]
    """Nats of the trained tokens; NaN everywhere where nothing was scored."""
    full_nll: NDArray[np.float64]
    """Nats of all tokens but the first, the same number as `full_tokens`; NaN where only trained ones were scored."""
    full_tokens: NDArray[np.int64]
    predicted: NDArray[np.int64]
    """Trained tokens that something stands before: what `sum_nll` sums."""

    @property
    def rows(self) -> int:
        """How many there are."""
        return len(self.tokens)

    @property
    def mean_nll(self) -> NDArray[np.float64]:
        """(rows,) nats a trained token; infinite where it is not finite, or nothing is predicted."""
        return _mean(self.sum_nll, self.predicted)


class Groups(NamedTuple):
    """Which group each row of a pool is in."""

    names: list[str]
    of: NDArray[np.int32]
    """(rows,) index in `names`."""


class Selected(NamedTuple):
    """What was decided of each row of a pool."""

    order: Rows
    """The rows that stay, in the order they are to be learned."""
    control: Rows
    """A random choice of the same size; empty where none was asked for."""
    codes: NDArray[np.int8]
    """(rows,) index in `CODES`."""
    familiarity: NDArray[np.int8]
    """(rows,) index in `FAMILIARITY`."""
    flow_weight: NDArray[np.float64]
    """(rows,) exp(-mean NLL / median mean NLL)."""
    short: dict[str, int]
    """Group → what its quota lacks, in the budget's unit; `ALL` without quotas."""


def needs_scores(options: Select) -> bool:
    """Whether the strategy looks at scores."""
    strategies.get(options.strategy)
    return options.strategy not in SCORELESS


def require_usable(options: Select) -> None:
    """Refuse a selection that cannot be made.

    Raises:
        UsageError: an unknown strategy, two budgets, or quotas that give nothing.
    """
    strategies.get(options.strategy)
    if options.rows is not None and options.tokens is not None:
        raise UsageError("select.rows and select.tokens are both given; expected one budget", next_step="--select.rows")
    if options.quotas and options.rows is None and options.tokens is None:
        raise UsageError("select.quotas share out a budget, and none is given", next_step="--select.rows 1000")
    shares = options.quotas.values()
    if options.quotas and (min(shares) < 0 or not 0 < sum(shares) < float("inf")):
        raise UsageError(
            f"select.quotas are {quote(options.quotas)}; expected shares of which none is negative and one is positive",
            next_step="turnmill config schema",
        )


def perplexity(mean_nll: NDArray[np.float64]) -> NDArray[np.float64]:
    """Exp of nats a token, of at most 700 nats: a perplexity is finite where its NLL is."""
    return np.where(np.isfinite(mean_nll), np.exp(np.minimum(mean_nll, 700.0)), np.inf)


def familiarity(values: NDArray[np.float64]) -> NDArray[np.int8]:
    """Index in `FAMILIARITY` of each row, by the quartiles of the finite perplexities.

    At or below the lower quartile a row is familiar, at or above the upper one unfamiliar; where both are the same
    number all are familiar.
    """
    finite = values[np.isfinite(values)]
    buckets = np.full(len(values), UNFAMILIAR, dtype=np.int8)
    if len(finite):
        places = [len(finite) // 4, len(finite) * 3 // 4]
        low, high = np.partition(finite, places)[places]
        buckets[values < high] = TYPICAL
        buckets[values <= low] = FAMILIAR
    return buckets


def outliers(scored: Scored, options: Select) -> NDArray[np.int8]:
    """(rows,) index in `CODES` of the first bound that a row breaks; 0 where it breaks none."""
    values = perplexity(scored.mean_nll if options.perplexity_of == "trained" else _full(scored))
    tests = {
        "score-not-finite": ~np.isfinite(scored.mean_nll),
        "perplexity-too-low": values < options.min_perplexity,
        "perplexity-too-high": (options.max_perplexity > 0) & (values > options.max_perplexity),
        "too-few-tokens": scored.tokens < options.min_tokens,
        "too-many-tokens": scored.tokens > options.max_tokens,
    }
    return np.select(list(tests.values()), [np.int8(CODES.index(code)) for code in tests], np.int8(0)).astype(np.int8)


def select(scored: Scored, options: Select, seed: int, groups: Groups | None = None) -> Selected:
    """Choose of a pool: buckets over all of it, then outliers, then the strategy.

    Args:
        scored: the pool; where nothing was scored its NLLs are NaN, and only a strategy without scores can choose.
        options: the `select` section.
        seed: of the draws.
        groups: of its rows, for quotas.

    Raises:
        UsageError: quotas of groups that no row is in, or scores that are not there.
    """
    mean_nll = scored.mean_nll
    is_scored = not np.isnan(scored.sum_nll).all()
    if not is_scored and needs_scores(options) and scored.rows:
        raise UsageError(f"strategy {options.strategy!r} needs scores", next_step="--score.on true")
    values = perplexity(mean_nll)
    buckets = familiarity(values)
    codes = outliers(scored, options) if is_scored else np.zeros(scored.rows, dtype=np.int8)
    staying = np.flatnonzero(codes == 0).astype(np.int64)
    pool = Pool(_cost(scored, options), values, mean_nll, buckets)
    pool = pool if len(staying) == pool.rows else pool.part(staying)
    own = Groups(groups.names, groups.of[staying]) if groups is not None and options.quotas else None
    parts, short = _budgets(pool, options, own)
    order = np.concatenate([_chosen(pool, part, options.strategy, seed) for part in parts])
    if options.strategy == ORDERED:
        order = order[np.argsort(pool.perplexity[order], kind="stable")]
    control = _control(pool, parts, options, seed)
    leaving = codes == 0
    leaving[staying[order]] = False
    codes[leaving] = NOT_SELECTED
    return Selected(staying[order], staying[control], codes, buckets, flow_weights(mean_nll), short)


def flow_weights(mean_nll: NDArray[np.float64]) -> NDArray[np.float64]:
    """(rows,) exp(-nll / median nll), with the upper median of the finite ones; 0 where a row has none."""
    finite = mean_nll[np.isfinite(mean_nll)]
    if not len(finite):
        return np.zeros(len(mean_nll))
    median = max(float(np.partition(finite, len(finite) // 2)[len(finite) // 2]), np.finfo(np.float64).tiny)
    return np.exp(-np.where(np.isfinite(mean_nll), mean_nll, np.inf) / median)


class _Part(NamedTuple):
    """Some rows of a pool with a budget of their own; None: all of them."""

    rows: Rows
    budget: int | None


def _cost(scored: Scored, options: Select) -> NDArray[np.int64]:
    return np.ones(scored.rows, dtype=np.int64) if options.tokens is None else scored.trained_tokens


def _budgets(pool: Pool, options: Select, groups: Groups | None) -> tuple[list[_Part], dict[str, int]]:
    """The pool cut into parts with their budgets, and what budgets ask for beyond what there is."""
    everything = np.arange(pool.rows, dtype=np.int64)
    budget = options.rows if options.tokens is None else options.tokens
    if budget is None:
        return [_Part(everything, None)], {}
    if groups is None:
        lacking = budget - int(pool.cost.sum())
        return [_Part(everything, budget)], {ALL: lacking} if lacking > 0 else {}
    for name in options.quotas:
        if name not in groups.names:
            raise UnknownName("group of select.quotas", name, groups.names, next_step="turnmill census --help")
    parts = {
        name: _Part(np.flatnonzero(groups.of == groups.names.index(name)).astype(np.int64), amount)
        for name, amount in _shared(options.quotas, budget).items()
    }
    lacking_by = {name: (part.budget or 0) - int(pool.cost[part.rows].sum()) for name, part in parts.items()}
    return list(parts.values()), {name: lacking for name, lacking in lacking_by.items() if lacking > 0}


def _shared(quotas: Mapping[str, float], budget: int) -> dict[str, int]:
    """The budget in whole units by the quotas' proportions; what rounding leaves goes to the largest remainders."""
    total = sum(quotas.values())
    exact = {name: budget * share / total for name, share in quotas.items()}
    amounts = {name: int(amount) for name, amount in exact.items()}
    by_remainder = sorted(exact, key=lambda name: (amounts[name] - exact[name], name))
    for name in by_remainder[: budget - sum(amounts.values())]:
        amounts[name] += 1
    return amounts


def _chosen(pool: Pool, part: _Part, name: str, seed: int) -> Rows:
    """Rows of the pool that the strategy takes of a part; all in their order where the budget pays for all."""
    if _takes_all(pool, part):
        return part.rows
    own = pool.part(part.rows)
    return part.rows[strategies.get(name)(own, part.budget or 0, np.random.default_rng(seed))]


def _takes_all(pool: Pool, part: _Part) -> bool:
    return part.budget is None or part.budget >= int(pool.cost[part.rows].sum())


def _control(pool: Pool, parts: Sequence[_Part], options: Select, seed: int) -> Rows:
    """A random choice of each part's size; none beside a random choice, or where everything stays."""
    if not options.control or options.strategy == "random":
        return np.empty(0, np.int64)
    if options.strategy != ORDERED and all(_takes_all(pool, part) for part in parts):
        return np.empty(0, np.int64)
    drawn = []
    for part in parts:
        own = pool.part(part.rows)
        budget = int(own.cost.sum()) if part.budget is None else part.budget
        drawn.append(part.rows[random(own, budget, np.random.default_rng([seed, CONTROL]))])
    return np.concatenate(drawn)


def _mean(sums: NDArray[np.float64], counts: NDArray[np.int64]) -> NDArray[np.float64]:
    with np.errstate(divide="ignore", invalid="ignore"):
        means = sums / counts
    return np.where(np.isfinite(means), means, np.inf)


def _full(scored: Scored) -> NDArray[np.float64]:
    return _mean(scored.full_nll, scored.full_tokens)


__all__ = [
    "ALL", "CODES", "FAMILIARITY", "ORDERED", "Groups", "Scored", "Selected", "familiarity", "outliers", "perplexity",
    "select",
]  # fmt: skip
