"""Selection: which scored rows a model learns from, and in what order.

What hangs on the whole pool is found over sorted parts of it: a pool may be larger than memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from turnmill.errors import UnknownName, UsageError, quote
from turnmill.options import Select
from turnmill.pool import AVAILABLE, FAMILIAR, FAMILIARITY, OUTSIDE, TAKEN, TYPICAL, UNFAMILIAR, Pool, Values, drawn
from turnmill.sorted_parts import (
    PART_ROWS,
    Allocate,
    SortedParts,
    in_memory,
    kept_in,
    number_of_key,
    parts_of,
    sortable,
)
from turnmill.strategies import SCORELESS, strategies

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

    def part(self, rows: slice) -> Scored:
        """Some neighbouring rows."""
        columns: list[Any] = [column[rows] for column in self]
        return Scored(*columns)

    @property
    def mean_nll(self) -> NDArray[np.float64]:
        """(rows,) nats a trained token; infinite where it is not finite, or nothing is predicted."""
        return _mean(self.sum_nll, self.predicted)


class Groups(NamedTuple):
    """Which group each row of a pool is in."""

    names: list[str]
    of: NDArray[np.int32]
    """(rows,) index in `names`."""


class Room(NamedTuple):
    """What a selection may hold; nothing that is decided hangs on it."""

    allocate: Allocate = in_memory
    """Where columns of the pool are kept."""
    part_rows: int = PART_ROWS
    """Rows that are looked at together."""

    def parts(self, rows: int) -> list[slice]:
        """The rows in parts."""
        return list(parts_of(rows, self.part_rows))

    def kept(self, values: NDArray[Any]) -> NDArray[Any]:
        """The values where columns are kept."""
        return kept_in(self.allocate, values)

    def sorted_parts(self) -> SortedParts:
        """None as yet."""
        return SortedParts(self.allocate, self.part_rows)


class Selected(NamedTuple):
    """What was decided of each row of a pool."""

    codes: NDArray[np.int8]
    """(rows,) index in `CODES`; 0: it stays."""
    rank: NDArray[np.int64]
    """(rows,) place in the order of a curriculum; -1 where a row leaves, or the strategy has no order."""
    in_control: NDArray[np.bool_]
    """(rows,) whether a random choice of the same size has it; none where none was asked for."""
    familiarity: NDArray[np.int8]
    """(rows,) index in `FAMILIARITY`."""
    perplexity: NDArray[np.float64]
    """(rows,) of the trained tokens."""
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


def select(
    scored: Scored, options: Select, seed: int, groups: Groups | None = None, room: Room | None = None
) -> Selected:
    """Choose of a pool: buckets over all of it, then outliers, then the strategy.

    Args:
        scored: the pool; where nothing was scored its NLLs are NaN, and only a strategy without scores can choose.
        options: the `select` section.
        seed: of the draws.
        groups: of its rows, for quotas.
        room: what it may hold; None: memory.

    Raises:
        UsageError: quotas of groups that no row is in, or scores that are not there.
    """
    room = Room() if room is None else room
    is_scored = any(not np.isnan(scored.sum_nll[part]).all() for part in room.parts(scored.rows))
    if not is_scored and needs_scores(options) and scored.rows:
        raise UsageError(f"strategy {options.strategy!r} needs scores", next_step="--score.on true")
    values, flow_weight = _measured(scored, options, room)
    codes = room.allocate(scored.rows, np.int8)
    for part in room.parts(scored.rows) if is_scored else ():
        codes[part] = outliers(scored.part(part), options)
    choice = _Choice(values, codes, groups if options.quotas else None, room)
    shares, short = choice.shares(options)
    taken = choice.taken(shares, options.strategy, seed)
    in_control = room.allocate(scored.rows, np.bool_)
    if _has_control(shares, options):
        choice.mark(in_control, choice.taken(shares, "random", seed, CONTROL))
    choice.leave(taken)
    rank = choice.ranks(is_ordered=options.strategy == ORDERED)
    return Selected(codes, rank, in_control, values.familiarity, values.perplexity, flow_weight, short)


def _measured(scored: Scored, options: Select, room: Room) -> tuple[Values, NDArray[np.float64]]:
    """What strategies look at, and the flow weights.

    At or below the lower quartile of the finite perplexities a row is familiar, at or above the upper one unfamiliar;
    where both are the same number all are familiar. The perplexity rises with the mean NLL: one sorting gives all.
    """
    mean_nll, perplexities, flow_weight = (room.allocate(scored.rows, np.float64) for _ in range(3))
    finite = room.sorted_parts()
    for part in room.parts(scored.rows):
        mean_nll[part] = scored.part(part).mean_nll
        perplexities[part] = perplexity(mean_nll[part])
        rows = np.flatnonzero(np.isfinite(mean_nll[part]))
        finite.add(sortable(mean_nll[part][rows]), part.start + rows)
    buckets = room.allocate(scored.rows, np.int8)
    count = len(finite)
    low, median, high = (number_of_key(finite.nth(count * quarter // 4)) if count else np.inf for quarter in (1, 2, 3))
    lower, upper = perplexity(np.array([low, high]))
    for part in room.parts(scored.rows):
        buckets[part] = UNFAMILIAR
        buckets[part][perplexities[part] < upper] = TYPICAL
        buckets[part][(perplexities[part] <= lower) & np.isfinite(perplexities[part])] = FAMILIAR
        flow_weight[part] = flow_weights(mean_nll[part], median)
    cost = np.broadcast_to(np.int64(1), scored.rows) if options.tokens is None else scored.trained_tokens
    return Values(cost, perplexities, mean_nll, buckets), flow_weight


def flow_weights(mean_nll: NDArray[np.float64], median: float) -> NDArray[np.float64]:
    """(rows,) exp(-nll / median nll), with the upper median of the finite ones; 0 where a row has none."""
    finite = np.isfinite(mean_nll)
    least = np.finfo(np.float64).tiny
    return np.where(finite, np.exp(-np.where(finite, mean_nll, 0.0) / max(median, least)), 0.0)


class _Share(NamedTuple):
    """Some rows of a pool with a budget of their own; None: all of them."""

    group: int | None
    budget: int | None
    cost: int
    """Of all rows that may be taken."""

    @property
    def is_whole(self) -> bool:
        """Whether the budget pays for all rows."""
        return self.budget is None or self.budget >= self.cost


class _Choice:
    """The rows of a pool that are within the bounds, and what is taken of them."""

    def __init__(self, values: Values, codes: NDArray[np.int8], groups: Groups | None, room: Room) -> None:
        self._values, self._codes, self._groups, self._room = values, codes, groups, room
        self._parts = room.parts(len(codes))

    def shares(self, options: Select) -> tuple[list[_Share], dict[str, int]]:
        """The pool cut into shares with their budgets, and what budgets ask for beyond what there is."""
        budget = options.rows if options.tokens is None else options.tokens
        groups = self._groups
        if budget is None or groups is None:
            share = _Share(None, budget, self._cost(None))
            lacking = 0 if budget is None else budget - share.cost
            return [share], {ALL: lacking} if lacking > 0 else {}
        for name in options.quotas:
            if name not in groups.names:
                raise UnknownName("group of select.quotas", name, groups.names, next_step="turnmill census --help")
        numbers = {name: groups.names.index(name) for name in options.quotas}
        amounts = _shared(options.quotas, budget)
        shares = {name: _Share(number, amounts[name], self._cost(number)) for name, number in numbers.items()}
        lacking_by = {name: amounts[name] - share.cost for name, share in shares.items()}
        return list(shares.values()), {name: lacking for name, lacking in lacking_by.items() if lacking > 0}

    def taken(self, shares: Sequence[_Share], strategy: str, *seed: int) -> NDArray[np.int8]:
        """(rows,) `TAKEN` where the strategy takes a row of its share."""
        state = self._room.allocate(len(self._codes), np.int8)
        for share in shares:
            for part in self._parts:
                state[part][self._within(part, share.group)] = TAKEN if share.is_whole else AVAILABLE
            if share.is_whole:
                continue
            pool = Pool(self._values, state, self._room.allocate, self._room.part_rows)
            strategies.get(strategy)(pool, share.budget or 0, drawn(*seed))
            for part in self._parts:
                state[part][state[part] == AVAILABLE] = OUTSIDE
        return state

    def mark(self, marks: NDArray[np.bool_], taken: NDArray[np.int8]) -> None:
        """Mark what was taken."""
        for part in self._parts:
            marks[part] = taken[part] == TAKEN

    def leave(self, taken: NDArray[np.int8]) -> None:
        """Give the rows that were not taken their code."""
        for part in self._parts:
            self._codes[part][(self._codes[part] == 0) & (taken[part] != TAKEN)] = NOT_SELECTED

    def ranks(self, *, is_ordered: bool) -> NDArray[np.int64]:
        """(rows,) the places of the rows that stay by rising perplexity; -1 elsewhere, and without an order."""
        ranks = self._room.allocate(len(self._codes), np.int64)
        staying = self._room.sorted_parts()
        for part in self._parts:
            ranks[part] = -1
            if is_ordered:
                rows = part.start + np.flatnonzero(self._codes[part] == 0)
                staying.add(sortable(self._values.perplexity[rows]), rows)
        first = 0
        for rows in staying.in_order():
            ranks[rows] = np.arange(first, first + len(rows))
            first += len(rows)
        return ranks

    def _within(self, part: slice, group: int | None) -> NDArray[np.bool_]:
        """(rows of the part,) which of them are within the bounds, and in the group."""
        within: NDArray[np.bool_] = self._codes[part] == 0
        return within if group is None or self._groups is None else within & (self._groups.of[part] == group)

    def _cost(self, group: int | None) -> int:
        return sum(int(self._values.cost[part][self._within(part, group)].sum()) for part in self._parts)


def _shared(quotas: Mapping[str, float], budget: int) -> dict[str, int]:
    """The budget in whole units by the quotas' proportions; what rounding leaves goes to the largest remainders."""
    total = sum(quotas.values())
    exact = {name: budget * share / total for name, share in quotas.items()}
    amounts = {name: int(amount) for name, amount in exact.items()}
    by_remainder = sorted(exact, key=lambda name: (amounts[name] - exact[name], name))
    for name in by_remainder[: budget - sum(amounts.values())]:
        amounts[name] += 1
    return amounts


def _has_control(shares: Sequence[_Share], options: Select) -> bool:
    """Whether a random choice stands beside: not beside a random one, or where everything stays in its order."""
    if not options.control or options.strategy == "random":
        return False
    return options.strategy == ORDERED or not all(share.is_whole for share in shares)


def _mean(sums: NDArray[np.float64], counts: NDArray[np.int64]) -> NDArray[np.float64]:
    with np.errstate(divide="ignore", invalid="ignore"):
        means = sums / counts
    return np.where(np.isfinite(means), means, np.inf)


def _full(scored: Scored) -> NDArray[np.float64]:
    return _mean(scored.full_nll, scored.full_tokens)


__all__ = ["ALL", "CODES", "FAMILIARITY", "ORDERED", "Groups", "Room", "Scored", "Selected", "outliers", "perplexity",
           "select"]  # fmt: skip
