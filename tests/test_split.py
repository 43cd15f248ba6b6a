from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnmill.conversation import Conversation, Message
from turnmill.errors import UsageError
from turnmill.options import Split
from turnmill.split import Pool, group_key, hold_out, joined_groups, pooled, split_rows

KEYS = st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=60)


def asking(text: str, **fields) -> Conversation:
    return Conversation((Message("system", "s"), Message("user", text), Message("assistant", text, "final")), **fields)


def spread(count: int) -> list[int]:
    return [(number * 0x9E3779B97F4A7C15) % 2**64 for number in range(count)]


@pytest.mark.parametrize(
    ("one", "other", "together"),
    [
        ("What is 2+2?", "what is  2+2? ", True),
        ("Caf\u00e9", "cafe\u0301", True),
        ("STRASSE\n\tx", "stra\u00dfe x", True),
        ("What is 2+2?", "What is 2+3?", False),
    ],
)
def test_prompts_that_read_the_same_are_one_group(one, other, together):
    assert (group_key(asking(one)) == group_key(asking(other))) is together


def test_a_kept_column_names_the_group():
    a, b, c = asking("x", meta={"doc": 1}), asking("y", meta={"doc": 1}), asking("x", meta={"doc": 2})
    assert group_key(a, "doc") == group_key(b, "doc") != group_key(c, "doc")
    assert group_key(asking("x"), "doc") != group_key(asking("y"), "doc")


def test_a_row_without_a_prompt_is_its_own_group():
    rows = [Conversation((Message("assistant", text, "final"),)) for text in "ab"]
    assert group_key(rows[0]) != group_key(rows[1])


@given(KEYS, KEYS, st.floats(0, 0.99))
def test_a_fraction_never_moves_a_group(keys, added, fraction):
    unique = sorted(set(keys))
    options = Split(fraction=fraction)
    before = split_rows(unique, [0] * len(unique), options).held_out
    more = unique + sorted(set(added) - set(unique))
    after = split_rows(more, [0] * len(more), options).held_out[: len(unique)]
    assert before.tolist() == after.tolist()


@given(
    st.lists(st.tuples(st.sampled_from(spread(30)), st.integers(0, 2)), min_size=1), st.floats(0, 0.9), st.booleans()
)
def test_no_group_stands_on_both_sides(rows, fraction, per_source):
    keys, sources = zip(*rows, strict=True)
    held = split_rows(keys, sources, Split(fraction=fraction, per_source=per_source)).held_out
    assert not {key for key, out in zip(keys, held, strict=True) if out} & {
        key for key, out in zip(keys, held, strict=True) if not out
    }


def test_a_fraction_is_about_that_share():
    held = split_rows(spread(5000), [0] * 5000, Split(fraction=0.1)).held_out
    assert 400 < held.sum() < 600


def test_rows_takes_groups_in_key_order():
    held = split_rows(np.array([5, 3, 9, 1], dtype=np.uint64), [0] * 4, Split(rows=2)).held_out
    assert held.tolist() == [False, True, False, True]


def test_each_source_holds_out_its_own():
    sides = split_rows([1, 2, 3, 4], [0, 0, 1, 1], Split(rows=1, per_source=True))
    assert sides.held_out.tolist() == [True, False, True, False]


def test_a_group_over_one_percent_of_the_rows_trains_and_is_named():
    keys = [0] * 4 + [1] * 3 + spread(300)[1:294]
    sides = split_rows(keys, [0] * len(keys), Split(fraction=0.5))
    assert sides.oversized == {0: 4}
    assert sides.held_out[:7].tolist() == [False] * 4 + [True] * 3


def test_nothing_is_held_out_unless_asked():
    sides = split_rows([0, 0, 0], [0, 0, 0], Split())
    assert not sides.held_out.any()
    assert not sides.oversized


@pytest.mark.parametrize("options", [Split(fraction=0.1, rows=1), Split(fraction=1.0), Split(rows=-1)])
def test_refuses_amounts_that_make_no_sense(options):
    with pytest.raises(UsageError, match="split"):
        split_rows([1], [0], options)


@pytest.mark.parametrize(
    ("keys", "options", "message"),
    [
        (spread(10), Split(rows=11), "split.rows is 11, but 10 rows are left to split; expected fewer"),
        (spread(10), Split(rows=10), "split.rows is 10, but 10 rows are left to split; expected fewer"),
        ([1], Split(rows=1, per_source=True), "split.rows is 1, but 1 rows of source 'a' are left to split"),
        ([1] * 9 + [2], Split(rows=2), "but 10 rows are left to split, 9 of them in groups of over 1%, which train"),
        (spread(10), Split(rows=6, per_source=True), "split.rows is 6, but 5 rows of source 'a' are left to split"),
    ],
)
def test_refuses_more_rows_than_there_are(keys, options, message):
    sources = [number % 2 for number in range(len(keys))]
    with pytest.raises(UsageError, match=message) as refused:
        split_rows(keys, sources, options, names=("a", "b"))
    assert refused.value.next_step == "--split.fraction 0.05"


@pytest.mark.parametrize("rows", [1, 5, 9])
def test_holds_out_as_many_rows_as_are_asked_for(rows):
    assert split_rows(spread(10), [0] * 10, Split(rows=rows)).held_out.sum() == rows


def test_linked_groups_take_the_smallest_key_of_all():
    found = joined_groups([(5, 9), (7, 9), (2, 7), (11, 12), (30, 30)])
    assert found == {2: 2, 5: 2, 7: 2, 9: 2, 11: 11, 12: 11, 30: 30}


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20))), st.randoms())
def test_the_order_of_links_changes_nothing(links, draw):
    swapped = [pair[::-1] for pair in draw.sample(links, len(links))]
    assert joined_groups(swapped) == joined_groups(links)


@pytest.mark.parametrize("options", [{"options": Split(rows=1, per_source=True)}, {"own": {1: Split(rows=1)}}])
def test_refuses_to_hold_out_of_a_source_that_nothing_is_left_of(options):
    with pytest.raises(UsageError, match=r"split\.rows is 1, but 0 rows of source 'b' are left to split"):
        split_rows(spread(9), [0] * 9, **{"options": Split(), "names": ("a", "b"), **options})


@given(
    st.lists(st.tuples(st.sampled_from(spread(40)), st.integers(0, 2)), min_size=1, max_size=200),
    st.sampled_from([Split(fraction=0.3), Split(fraction=0.3, per_source=True), Split(rows=2), Split(rows=20)]),
    st.sampled_from([{}, {1: Split(fraction=0.6)}, {1: Split(rows=3)}]),
    st.sampled_from([2, 3, 64]),
)
def test_ranges_of_keys_hold_out_what_all_keys_do(rows, options, own, parts):
    keys, sources = np.array([key for key, _ in rows], dtype=np.uint64), np.array([source for _, source in rows])
    drawn_from = pooled(sources, options, own)
    there = {source: int((drawn_from == source).sum()) for source in set(drawn_from.tolist())}
    before, held_out, oversized = dict.fromkeys(there, 0), np.zeros(len(keys), dtype=bool), {}
    for part in range(parts):
        inside = (keys >= np.uint64(2**64 * part // parts)) & (keys <= np.uint64(2**64 * (part + 1) // parts - 1))
        pools = {source: Pool(count, before[source]) for source, count in there.items()}
        found = hold_out(keys[inside], drawn_from[inside], options, own, pools)
        held_out[inside] = found.held_out
        oversized |= found.oversized
        for source, amount in found.amounts.items():
            before[source] += amount.in_groups
    try:
        whole = split_rows(keys, sources, options, own)
    except UsageError:
        return
    assert held_out.tolist() == whole.held_out.tolist()
    assert oversized == whole.oversized
