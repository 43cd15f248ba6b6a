from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnmill.mix import Share, Size
from turnmill.stream.row_order import UNIT_ROWS, Cut, OfSource, RowOrder, in_blocks

BLOCKS = st.lists(st.sampled_from([1, 2, 5, 40, UNIT_ROWS, UNIT_ROWS + 3]), min_size=1, max_size=6).map(tuple)
CUTS = st.tuples(st.integers(1, 9), st.integers(1, 5), st.booleans(), st.integers(1, 100))


def sizes_of(block_rows):
    lengths = [np.random.default_rng(block).integers(1, 1000, rows) for block, rows in enumerate(block_rows)]
    return lengths.__getitem__


def steps_of(block_rows, cut: Cut, epoch: int = 0) -> list[list[tuple[int, int]]]:
    order = RowOrder(block_rows, cut)
    windows = -(-order.steps.total // order.window_steps)
    found = [step for number in range(windows) for step in order.window(epoch, number, sizes_of(block_rows))]
    return [[(block, place) for block, place in step.tolist()] for step in found]


def of_ranks(block_rows, batch_size, ranks, is_kept, window, epoch: int = 0):
    cuts = [Cut(batch_size, rank, ranks, 7, is_kept, window) for rank in range(ranks)]
    return [steps_of(block_rows, cut, epoch) for cut in cuts]


def all_rows(block_rows) -> list[tuple[int, int]]:
    return [(block, place) for block, rows in enumerate(block_rows) for place in range(rows)]


@given(BLOCKS, CUTS)
def test_every_row_comes_once_in_as_many_steps_on_every_rank(block_rows, cut):
    ranks = of_ranks(block_rows, *cut)
    assert sorted(row for steps in ranks for step in steps for row in step) == all_rows(block_rows)
    assert {len(steps) for steps in ranks} == {-(-sum(block_rows) // (cut[0] * cut[1]))}
    assert max(len(step) for steps in ranks for step in steps) <= cut[0]


@given(BLOCKS, st.integers(1, 9), st.integers(1, 5), st.integers(1, 100))
def test_a_kept_order_is_that_of_the_rows(block_rows, batch_size, ranks, window):
    steps = of_ranks(block_rows, batch_size, ranks, True, window)
    assert [row for turn in zip(*steps, strict=True) for step in turn for row in step] == all_rows(block_rows)


def test_an_epoch_has_another_order_than_the_last_and_mixes_blocks():
    block_rows = (UNIT_ROWS,) * 8
    first, again, second = (of_ranks(block_rows, 8, 1, False, 1024, epoch)[0] for epoch in (0, 0, 1))
    assert first == again
    assert first != second
    window = {block for step in first[:128] for block, _ in step}
    assert len(window) == 4
    assert len({block for step in first[:8] for block, _ in step}) > 1


def test_steps_are_of_one_length_and_those_of_all_ranks_at_once():
    block_rows = (4 * UNIT_ROWS,) * 4
    sizes = sizes_of(block_rows)
    ranks = of_ranks(block_rows, 8, 2, False, 2048)
    lengths = [[[int(sizes(block)[place]) for block, place in step] for step in steps] for steps in ranks]
    assert max(np.ptp(step) for steps in lengths for step in steps) < 60
    apart = [abs(max(one) - max(other)) for one, other in zip(*lengths, strict=True)]
    assert np.mean(apart) < 40
    longest = [max(step) for step in lengths[0]]
    assert longest != sorted(longest)


def test_rows_of_a_block_are_read_together():
    steps = [np.array([[1, 5], [0, 2]]), np.array([[1, 3]])]
    assert in_blocks(steps) == {0: [2], 1: [3, 5]}


@pytest.mark.parametrize(("window", "batch_size", "steps"), [(2048, 8, 256), (10, 4, 2), (1, 4, 1)])
def test_a_window_has_whole_steps(window, batch_size, steps):
    assert RowOrder((100,), Cut(batch_size, window_rows=window)).window_steps == steps


SOURCES = st.lists(st.tuples(BLOCKS, st.integers(0, 900)), min_size=1, max_size=3)


def mixed_of(sources) -> tuple[tuple[int, ...], tuple[OfSource, ...]]:
    """The blocks of all sources, and what each source gives to an epoch."""
    blocks, mixed = [], []
    for place, (own, drawn) in enumerate(sources):
        share = Share(str(place), Size(sum(own), 0, 0), 0.5, drawn)
        mixed.append(OfSource(share, range(len(blocks), len(blocks) + len(own))))
        blocks += own
    return tuple(blocks), tuple(mixed)


def mixed_epoch(sources, cut, epoch: int) -> list[tuple[int, int]]:
    """The rows of an epoch, over all ranks."""
    blocks, mixed = mixed_of(sources)
    batch_size, ranks, is_kept, window = cut
    orders = [RowOrder(blocks, Cut(batch_size, rank, ranks, 7, is_kept, window), mixed) for rank in range(ranks)]
    windows = range(-(-orders[0].steps.total // orders[0].window_steps))
    steps = [step for order in orders for n in windows for step in order.window(epoch, n, sizes_of(blocks))]
    return [(block, place) for step in steps for block, place in step.tolist()]


@given(SOURCES, CUTS)
def test_a_mixed_epoch_has_each_sources_share_and_no_row_again_before_all_others(sources, cut):
    seen = Counter()
    for epoch in range(3):
        seen.update(mixed_epoch(sources, cut, epoch))
        for share, blocks in mixed_of(sources)[1]:
            own = [seen[block, place] for block in blocks for place in range(mixed_of(sources)[0][block])]
            assert sum(own) == (epoch + 1) * share.drawn
            assert max(own) - min(own) <= 1


def test_a_source_goes_on_where_its_last_epoch_stopped():
    sources = [((UNIT_ROWS,) * 4, 2 * UNIT_ROWS), ((40,), 100)]
    first, second = (mixed_epoch(sources, (8, 2, False, 512), epoch) for epoch in (0, 1))
    rows = [{row for row in epoch if row[0] < 4} for epoch in (first, second)]
    assert not rows[0] & rows[1]
    assert len(rows[0] | rows[1]) == 4 * UNIT_ROWS


def test_a_row_that_comes_twice_in_a_window_is_read_once():
    assert in_blocks([np.array([[0, 3], [0, 1]]), np.array([[0, 3]])]) == {0: [1, 3]}
