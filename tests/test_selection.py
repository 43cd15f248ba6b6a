"""Selection of scored rows: buckets, outliers, exact shares, budgets, quotas, the control."""

from __future__ import annotations

import numpy as np
import pytest

from turnmill.errors import UnknownName, UsageError
from turnmill.options import Select
from turnmill.pool import FAMILIARITY
from turnmill.selection import CODES, Groups, Room, Scored, needs_scores, outliers, require_usable, select
from turnmill.strategies import strategies
from turnmill.strategies.optimal import amounts

EVERYTHING = {"min_perplexity": 0.0, "max_perplexity": 0.0}
FAMILIAR, UNFAMILIAR = 0, 2


def pool(perplexities, *, trained=None, tokens=None) -> Scored:
    """Rows of those perplexities, 10 trained tokens of 100 each."""
    values = np.asarray(perplexities, dtype=np.float64)
    count = len(values)
    predicted = np.full(count, 10) if trained is None else np.asarray(trained)
    with np.errstate(divide="ignore", invalid="ignore"):
        nll = np.log(values) * predicted
    lengths = np.full(count, 100) if tokens is None else np.asarray(tokens)
    return Scored(predicted, lengths, nll, np.full(count, np.nan), lengths - 1, predicted)


def drawn(count: int = 1000, seed: int = 7) -> Scored:
    return pool(np.random.default_rng(seed).lognormal(2, 1, count) + 1)


def kept(scored: Scored, groups: Groups | None = None, seed: int = 0, **options):
    return select(scored, Select(**{**EVERYTHING, **options}), seed, groups)


def learned(chosen) -> list[int]:
    """The rows that stay: in the order of a curriculum, else in that of the pool."""
    staying = np.flatnonzero(chosen.codes == 0)
    return staying[np.argsort(chosen.rank[staying], kind="stable")].tolist()


def control(chosen) -> list[int]:
    return np.flatnonzero(chosen.in_control).tolist()


def unscored(count: int) -> Scored:
    return pool(np.full(count, np.nan))


@pytest.mark.parametrize("name", strategies.names())
@pytest.mark.parametrize("budget", [1, 2, 3, 100, 101, 999])
def test_every_strategy_fills_its_budget_with_distinct_rows(name, budget):
    assert len(learned(kept(drawn(), strategy=name, rows=budget))) == budget


@pytest.mark.parametrize("name", strategies.names())
def test_the_same_seed_draws_the_same_and_another_does_not_draw_in_file_order(name):
    first, again, other = (learned(kept(drawn(), strategy=name, rows=200, seed=seed)) for seed in (1, 1, 2))
    assert first == again
    assert (first == other) == (name in ("flow", "hard-focus", "medium-focus"))


@pytest.mark.parametrize("name", ["random", "optimal", "balanced", "curriculum"])
def test_rows_of_two_sources_in_file_order_are_both_drawn(name):
    order = np.array(learned(kept(drawn(), strategy=name, rows=300)))
    assert 0.3 < np.mean(order < 500) < 0.7


@pytest.mark.parametrize("name", strategies.names())
@pytest.mark.parametrize("budget", [1000, 5000, None])
def test_a_budget_of_all_rows_or_more_takes_them_all(name, budget):
    chosen = kept(drawn(), strategy=name, rows=budget)
    assert sorted(learned(chosen)) == list(range(1000))
    assert chosen.short == ({"": 4000} if budget == 5000 else {})


@pytest.mark.parametrize(
    ("budget", "expected"),
    [
        (100, (35, 50, 15, 0)), (101, (35, 50, 15, 1)), (1999, (699, 999, 299, 2)), (2000, (500, 1000, 400, 100)),
        (9999, (2499, 4999, 1999, 502)), (10_000, (2000, 5000, 2500, 500)),
    ],
)  # fmt: skip
def test_shares_are_exact_and_rounded_down(budget, expected):
    assert amounts(budget, budget) == expected


def test_optimal_takes_the_shares_and_the_most_unfamiliar():
    scored = drawn(40_000)
    chosen = kept(scored, strategy="optimal", rows=10_000)
    assert np.bincount(chosen.familiarity[learned(chosen)]).tolist() == [2000, 5000, 3000]
    hardest = np.argsort(-scored.mean_nll)[:500]
    assert set(hardest.tolist()) <= set(learned(chosen))


def test_a_bucket_that_is_short_is_filled_from_typical_rows_first():
    chosen = kept(drawn(100), strategy="balanced", rows=90)
    assert np.bincount(chosen.familiarity).tolist() == [26, 49, 25]
    assert np.bincount(chosen.familiarity[learned(chosen)]).tolist() == [26, 39, 25]


def test_buckets_are_of_the_whole_pool_before_outliers_leave():
    scored = pool([1.1, 2, 3, 4, 5, 6, 7, 900])
    chosen = kept(scored, strategy="random", min_perplexity=1.5, max_perplexity=500.0)
    assert [FAMILIARITY[number] for number in chosen.familiarity] == (
        ["familiar"] * 3 + ["typical"] * 3 + ["unfamiliar"] * 2
    )
    assert [CODES[code] for code in chosen.codes[[0, 7]]] == ["perplexity-too-low", "perplexity-too-high"]
    assert learned(chosen) == [1, 2, 3, 4, 5, 6]


def test_a_constant_pool_is_all_familiar():
    assert kept(pool(np.full(8, 3.0))).familiarity.tolist() == [FAMILIAR] * 8


def test_what_cannot_be_scored_is_unfamiliar_and_leaves():
    chosen = kept(pool([2.0, np.inf, np.nan, 5.0]), strategy="hard-focus", rows=4)
    assert chosen.familiarity[[1, 2]].tolist() == [UNFAMILIAR] * 2
    assert [CODES[code] for code in chosen.codes] == ["", "score-not-finite", "score-not-finite", ""]
    assert learned(chosen) == [0, 3]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"min_perplexity": 3.0}, ["perplexity-too-low", "", ""]),
        ({"max_perplexity": 6.0}, ["", "", "perplexity-too-high"]),
        ({"max_perplexity": 0.0}, ["", "", ""]),
        ({"min_tokens": 20, "max_tokens": 60}, ["too-few-tokens", "", "too-many-tokens"]),
    ],
)
def test_each_bound_has_its_code(options, expected):
    scored = pool([2.0, 5.0, 9.0], tokens=[10, 50, 90])
    bounds = {**EVERYTHING, "min_tokens": 0, **options}
    assert [CODES[code] for code in outliers(scored, Select(**bounds))] == expected


def test_bounds_may_hold_for_the_perplexity_of_all_tokens():
    scored = pool([2.0, 2.0])._replace(full_nll=np.log([2.0, 600.0]) * 99)
    codes = outliers(scored, Select(perplexity_of="full"))
    assert [CODES[code] for code in codes] == ["", "perplexity-too-high"]


def test_curriculum_is_ordered_and_keeps_unfamiliar_rows():
    scored = drawn()
    chosen = kept(scored, strategy="curriculum", rows=200)
    assert (np.diff(scored.mean_nll[learned(chosen)]) >= 0).all()
    assert (chosen.familiarity[learned(chosen)] == UNFAMILIAR).sum() > 20


def test_the_focus_strategies_and_flow_take_the_extremes():
    scored = pool([5.0, 1.0, 9.0, 4.0, 7.0])
    orders = {name: learned(kept(scored, strategy=name, rows=2)) for name in ("hard-focus", "flow")}
    assert orders == {"hard-focus": [2, 4], "flow": [1, 3]}
    assert learned(kept(scored, strategy="medium-focus", rows=2)) == [0, 3]


def test_flow_weight_is_the_exponential_of_the_nll_in_medians():
    weights = kept(pool(np.exp([1.0, 2.0, 4.0])), strategy="random").flow_weight
    assert weights == pytest.approx(np.exp([-0.5, -1.0, -2.0]))


@pytest.mark.parametrize("name", strategies.names())
def test_a_budget_of_trained_tokens_is_not_exceeded_and_nearly_used(name):
    trained = np.random.default_rng(3).integers(10, 200, 1000)
    scored = pool(np.random.default_rng(4).lognormal(2, 1, 1000) + 1, trained=trained)
    order = learned(kept(scored, strategy=name, tokens=20_000))
    assert 19_000 < trained[order].sum() <= 20_000


def test_quotas_share_the_budget_exactly():
    groups = Groups(["code", "math", "chat"], np.arange(900, dtype=np.int32) % 3)
    chosen = kept(drawn(900), groups, strategy="optimal", rows=200, quotas={"code": 1, "math": 2})
    assert np.bincount(groups.of[learned(chosen)], minlength=3).tolist() == [67, 133, 0]


def test_a_group_that_is_smaller_than_its_quota_is_named():
    groups = Groups(["few", "many"], np.array([0] * 10 + [1] * 990, np.int32))
    chosen = kept(drawn(), groups, rows=100, quotas={"few": 1, "many": 1})
    assert (chosen.short, len(learned(chosen))) == ({"few": 40}, 60)


@pytest.mark.parametrize("name", [name for name in strategies.names() if name != "random"])
def test_a_random_control_of_equal_size_stands_beside(name):
    chosen = kept(drawn(), strategy=name, rows=200)
    assert len(control(chosen)) == 200
    assert control(chosen) != sorted(learned(chosen))


@pytest.mark.parametrize(("options", "size"), [
    ({"strategy": "random", "rows": 50}, 0), ({"strategy": "flow", "rows": 50, "control": False}, 0),
    ({"strategy": "flow"}, 0), ({"strategy": "curriculum"}, 1000),
])  # fmt: skip
def test_when_there_is_a_control(options, size):
    assert len(control(kept(drawn(), **options))) == size


def test_rows_without_scores_can_be_drawn_but_not_judged():
    assert len(learned(select(unscored(50), Select(rows=20), 0))) == 20
    with pytest.raises(UsageError, match="needs scores"):
        select(unscored(50), Select(strategy="flow", rows=20), 0)


def test_an_empty_pool_gives_nothing():
    for name in strategies.names():
        assert len(learned(kept(drawn(0), strategy=name, rows=5))) == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"rows": 5, "tokens": 5}, "expected one budget"),
        ({"quotas": {"a": 1.0}}, "none is given"),
        ({"rows": 5, "quotas": {"a": 0.0}}, "one is positive"),
        ({"rows": 5, "quotas": {"a": 1.0, "b": -1.0}}, "none is negative"),
        ({"rows": 5, "quotas": {"a": float("nan")}}, "one is positive"),
    ],
)
def test_an_impossible_selection_is_refused(options, said):
    with pytest.raises(UsageError, match=said):
        require_usable(Select(**options))


def test_an_unknown_strategy_lists_the_seven():
    with pytest.raises(UnknownName) as fault:
        needs_scores(Select(strategy="optimall"))
    assert all(name in str(fault.value) for name in strategies.names())
    assert len(strategies.names()) == 7
    assert "Did you mean 'optimal'" in str(fault.value)


def test_an_unknown_group_is_named():
    with pytest.raises(UnknownName, match="musik"):
        kept(drawn(3), Groups(["music"], np.zeros(3, np.int32)), rows=1, quotas={"musik": 1})


def tied(count: int = 1000) -> Scored:
    """A pool of few different perplexities, and costs of their own."""
    random = np.random.default_rng(5)
    return pool(random.integers(2, 9, count).astype(float), trained=random.integers(1, 40, count))


@pytest.mark.parametrize("name", strategies.names())
@pytest.mark.parametrize("budget", [{"rows": 137}, {"tokens": 3001}, {"rows": 60, "quotas": {"a": 1, "b": 2}}, {}])
@pytest.mark.parametrize("scored", [drawn(), tied()], ids=["drawn", "tied"])
def test_64_parts_decide_as_one(name, budget, scored):
    groups = Groups(["a", "b"], (np.arange(1000) % 7 == 0).astype(np.int32))
    options = Select(strategy=name, min_perplexity=0, max_perplexity=30, **budget)
    whole, parts = (select(scored, options, 3, groups, Room(part_rows=rows)) for rows in (1000, 16))
    for name, column in whole._asdict().items():
        np.testing.assert_array_equal(column, getattr(parts, name), err_msg=name)
