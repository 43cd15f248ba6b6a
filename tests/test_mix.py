"""Mixing: exact shares, no accidental repeats, a new order every epoch."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnmill.errors import UsageError
from turnmill.mix import Share, Size, epoch_parts, require_filled, shares, stored, times
from turnmill.options import Mix, Pack
from turnmill.tokens.epochs import Epochs


def sizes(**examples: int) -> dict[str, Size]:
    return {name: Size(count, 100 * count, 10 * count) for name, count in examples.items()}


def epoch_numbers(found: list[Share], seed: int, epoch: int, part_examples: int = 1000) -> np.ndarray:
    return np.concatenate([np.empty(0, int), *epoch_parts(found, seed, epoch, part_examples)])


def drawn(found: list[Share]) -> dict[str, int]:
    return {share.source: share.drawn for share in found}


def mixed(counts: dict[str, int], weights: dict[str, float | None] | None = None, **options) -> list[Share]:
    return shares(sizes(**counts), weights or dict.fromkeys(counts), Mix(**options))


def test_without_weights_every_source_is_gone_through_once():
    found = mixed({"a": 150, "b": 600})
    assert [(share.drawn, share.passes, share.says) for share in found] == [
        (150, 1.0, "one pass"),
        (600, 1.0, "one pass"),
    ]


def test_a_small_source_of_half_the_weight_is_repeated_and_a_large_one_cut():
    found = mixed({"small": 200, "large": 2000}, {"small": 0.5, "large": 0.5})
    assert drawn(found) == {"small": 1100, "large": 1100}
    assert [(share.passes, share.says) for share in found] == [(5.5, "upsampled"), (0.55, "subsampled")]


def test_a_source_without_a_weight_has_its_share_of_the_rows_as_one():
    found = mixed({"a": 100, "b": 300}, {"a": 0.75, "b": None})
    assert drawn(found) == {"a": 200, "b": 200}


def test_an_epoch_may_end_where_the_first_source_is_exhausted():
    found = mixed({"small": 200, "large": 2000}, {"small": 1, "large": 3}, epoch="first-exhausted")
    assert drawn(found) == {"small": 200, "large": 600}


def test_passes_are_bounded():
    found = mixed({"small": 10, "large": 990}, {"small": 1, "large": 1}, max_passes=2)
    assert drawn(found) == {"small": 20, "large": 500}


def test_weights_may_be_shares_of_tokens():
    given_sizes = {"short": Size(1000, 100_000, 50_000), "long": Size(100, 100_000, 10_000)}
    by_tokens = shares(given_sizes, {"short": 1, "long": 1}, Mix(unit="tokens"))
    by_trained = shares(given_sizes, {"short": 1, "long": 1}, Mix(unit="trained-tokens"))
    assert drawn(by_tokens) == {"short": 1000, "long": 100}
    assert drawn(by_trained) == {"short": 600, "long": 300}


def test_an_empty_source_gives_nothing_and_is_told():
    found = mixed({"none": 0, "b": 10}, {"none": 5, "b": 1})
    assert [(share.drawn, share.says) for share in found] == [(0, "empty"), (10, "one pass")]


@pytest.mark.parametrize("weight", [5, 0.1])
def test_a_weight_of_an_empty_source_is_refused_where_others_have_rows(weight):
    weights = {"none": weight, "b": None}
    with pytest.raises(UsageError, match=r"'none' has weight .* no example") as refused:
        require_filled(mixed({"none": 0, "b": 10}, weights), weights)
    assert refused.value.next_step == "--sources.none.weight 0"
    require_filled(mixed({"none": 0, "b": 0}, weights), weights)
    for unweighted in ({"none": 0, "b": 1}, {"none": None, "b": 1}):
        require_filled(mixed({"none": 0, "b": 10}, unweighted), unweighted)


@pytest.mark.parametrize(
    "weights", [{"a": 0, "b": 0}, {"a": -1, "b": 1}, {"a": float("nan"), "b": 1}, {"a": float("inf"), "b": 1}]
)
def test_weights_that_give_no_mix_are_refused(weights):
    with pytest.raises(UsageError, match=r"sum to 0|expected a finite number"):
        mixed({"a": 5, "b": 5}, weights)


def test_nothing_at_all_is_no_error():
    assert drawn(mixed({"a": 0})) == {"a": 0}


@given(
    st.lists(st.tuples(st.integers(1, 50), st.floats(0.01, 10)), min_size=1, max_size=5),
    st.integers(0, 5),
)
def test_an_epoch_is_as_large_as_all_sources_and_repeats_nothing_by_accident(given_sources, epoch):
    counts = {f"s{number}": count for number, (count, _) in enumerate(given_sources)}
    weights = {f"s{number}": weight for number, (_, weight) in enumerate(given_sources)}
    found = mixed(counts, weights)
    assert sum(share.drawn for share in found) == sum(counts.values())
    counted = Counter(epoch_numbers(found, 3, epoch).tolist())
    numbers = np.arange(sum(counts.values()))
    assert times(found, 3, epoch, numbers).tolist() == [counted[number] for number in numbers]
    first = 0
    for share in found:
        each = [counted[number] for number in range(first, first + share.size.examples)]
        assert sum(each) == share.drawn
        assert max(each) - min(each) <= 2  # an epoch touches at most the ends of two passes
        first += share.size.examples


def test_epochs_go_on_where_the_last_one_stopped():
    found = mixed({"a": 10, "b": 30}, {"a": 3, "b": 1})
    assert drawn(found) == {"a": 30, "b": 10}
    three = np.concatenate([epoch_numbers(found, 0, epoch) for epoch in range(3)])
    assert set(Counter(three[three >= 10].tolist()).values()) == {1}


def test_an_epoch_is_the_same_again_and_the_next_is_another():
    found = mixed({"a": 100, "b": 100}, {"a": 1, "b": 2})
    first, again, following, other_seed = (
        epoch_numbers(found, seed, epoch).tolist() for seed, epoch in ((1, 0), (1, 0), (1, 1), (2, 0))
    )
    assert first == again
    assert first != following
    assert first != other_seed


def test_a_share_comes_back_from_a_manifest():
    found = mixed({"a": 10, "b": 30}, {"a": 3, "b": 1})
    assert [stored(share.as_json) for share in found] == found


def test_packs_of_a_mix_hold_its_examples_whole():
    found = mixed({"a": 10, "b": 30}, {"a": 3, "b": 1})
    epochs = Epochs(np.arange(1, 41), 50, Pack(), 0, found)
    packs = epochs.plan(2).lists()
    assert Counter(n for pack in packs for n in pack) == Counter(epoch_numbers(found, 0, 2).tolist())
    assert all(sum(n + 1 for n in pack) <= 50 for pack in packs)


def test_a_curriculum_is_kept_by_every_epoch_of_a_mix():
    found = mixed({"a": 10, "b": 30}, {"a": 3, "b": 1})
    ranks = np.random.default_rng(0).permutation(40)
    learned = [
        ranks[number]
        for pack in Epochs(np.ones(40, int), 3, Pack(), 0, found, ranks).plan(1).lists()
        for number in pack
    ]
    assert learned == sorted(learned)
    assert len(learned) == 40
