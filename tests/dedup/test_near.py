from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planted import exact_pairs, planted
from turnmill.dedup import near
from turnmill.dedup.near import Comparing, bands_of, jaccard, near_pairs, said

WORDS = [f"w{number}" for number in range(200)]


def pairs_of(texts, threshold=0.8, n=3):
    return {(pair.first, pair.second): pair.similarity for pair in near_pairs(texts, threshold, n)}


@pytest.mark.parametrize(
    ("threshold", "n", "least_recall"), [(0.8, 3, 0.95), (0.7, 3, 0.95), (0.9, 3, 0.95), (0.8, 5, 0.95), (0.6, 2, 0.95)]
)
def test_planted_near_duplicates_are_found_and_nothing_else(threshold, n, least_recall):
    texts = planted(1000, edited=1000)
    expected, found = exact_pairs(texts, threshold, n), pairs_of(texts, threshold, n)
    assert len(expected) > 100
    assert {pair: round(value, 9) for pair, value in found.items()}.items() <= {
        pair: round(value, 9) for pair, value in expected.items()
    }.items()  # every pair is right: precision 1
    assert len(found) >= least_recall * len(expected)


@pytest.mark.parametrize("threshold", [0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 1.0])
def test_pairs_at_the_threshold_are_proposed(threshold):
    bands = bands_of(threshold)
    assert 1 - (1 - threshold**bands.rows) ** bands.number >= near.RECALL
    assert bands.number <= near.MAX_BANDS


@pytest.mark.parametrize(
    ("one", "other", "similarity"),
    [
        ("One two three four!", "one TWO, three four", None),  # the same sets: the lowest stands for both
        ("a b c a b c a b c", "a b c a b c", None),
        ("a b c d e f g h", "a b c d e f g i", 5 / 7),
        ("one two", "one two", None),
        ("one two", "one two three", 0.0),
        ("…", "…", 0.0),
        ("", "", 0.0),
    ],
)
def test_similarity_is_that_of_the_sets_of_ngrams(one, other, similarity):
    found = pairs_of([one, other], threshold=0.5)
    assert found == ({(0, 1): similarity} if similarity else {})


@pytest.mark.parametrize(
    ("one", "other", "is_near"),
    [
        ("我今天早上去了北京的一个很大的公园里散步", "我今天早上去了北京的一个很大的公园里跑步", True),
        ("我今天早上去了北京的一个很大的公园里散步", "他昨天晚上在上海看了一场非常好看的电影啊", False),
        ("ฉันไปเดินเล่นที่สวนสาธารณะเมื่อเช้านี้", "ฉันไปเดินเล่นที่สวนสาธารณะเมื่อเช้านั้น", True),
        ("昨日は東京で友達と一緒に映画を見ました。", "昨日は東京で友達と一緒に映画を見ましたよ", True),
    ],
)
def test_scripts_without_spaces_are_compared_by_character(one, other, is_near):
    assert bool(pairs_of([one, other], threshold=0.7)) is is_near


def test_system_prompts_and_roles_are_no_part_of_the_text():
    messages = [("system", "Be kind."), ("user", "Hi"), ("assistant", "Yo"), ("tool", "42"), ("developer", "x")]
    assert said(messages) == "Hi\nYo\n42"


@given(st.lists(st.lists(st.sampled_from(WORDS[:8]), max_size=8).map(" ".join), max_size=12))
def test_every_pair_is_near(texts):
    expected = exact_pairs(texts, 0.6, 2)
    for pair, similarity in pairs_of(texts, 0.6, 2).items():
        assert similarity == pytest.approx(expected[pair])


def buckets(members: int, keys: int = 1):
    """All of some texts in each of some buckets, every set another one."""
    numbers = np.tile(np.arange(members, dtype=np.int64), keys)
    return np.repeat(np.arange(keys, dtype=np.uint64), members), numbers, numbers.astype(np.uint64)


def test_a_bucket_of_strangers_is_bounded():
    sets = [np.arange(number * 10, number * 10 + 9, dtype=np.uint64) for number in range(2000)]
    comparing = Comparing(sets.__getitem__, 0.8)
    assert comparing.pairs(*buckets(2000)) == []
    assert comparing.compared <= 2000 * near.MAX_LEADERS


def test_a_bucket_of_near_ones_is_linear():
    sets = [np.array([*range(60), 1000 + number], dtype=np.uint64) for number in range(3000)]
    comparing = Comparing(sets.__getitem__, 0.8)
    found = comparing.pairs(*buckets(3000))
    assert comparing.compared <= 3000 * near.DEPTH
    assert {pair.second for pair in found} == set(range(1, 3000))


def test_no_pair_is_compared_twice():
    sets = [np.array([*range(60), 1000 + number], dtype=np.uint64) for number in range(2)]
    comparing = Comparing(sets.__getitem__, 0.8)
    assert len(comparing.pairs(*buckets(2, keys=20))) == 1
    assert comparing.compared == 1


def test_the_order_of_the_entries_changes_nothing():
    texts = planted(150, edited=150, seed=2)
    sketch = near.Sketcher(0.7, 3)(texts)
    numbers = np.repeat(np.arange(len(texts)), sketch.keys.shape[1])
    keys, digests = sketch.keys.ravel(), sketch.digests[numbers]
    order = np.array(random.Random(3).sample(range(len(keys)), len(keys)))
    expected = Comparing(sketch.set_of, 0.7).pairs(keys, numbers, digests)
    assert Comparing(sketch.set_of, 0.7).pairs(keys[order], numbers[order], digests[order]) == expected


def test_sketches_do_not_depend_on_the_batch():
    texts = [*planted(20, edited=10), "", "one", "…"]
    whole = near.Sketcher(0.8, 3)(texts)
    parts = [near.Sketcher(0.8, 3)([text]) for text in texts]
    assert whole.keys.tolist() == [part.keys[0].tolist() for part in parts]
    assert whole.digests.tolist() == [int(part.digests[0]) for part in parts]
    assert [whole.set_of(n).tolist() for n in range(len(texts))] == [part.sets.tolist() for part in parts]


@pytest.mark.parametrize(
    ("one", "other", "similarity"), [([], [], 0.0), ([1], [], 0.0), ([1, 2], [2, 3], 1 / 3), ([1, 2], [1, 2], 1.0)]
)
def test_jaccard_is_shared_over_all(one, other, similarity):
    assert jaccard(np.array(one, dtype=np.uint64), np.array(other, dtype=np.uint64)) == pytest.approx(similarity)
