from __future__ import annotations

import numpy as np
import pytest

from turnmill.ordering import threshold_filtered_order


def clusters(count: int, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    centres = random.normal(size=(20, 16))
    return (centres[random.integers(0, 20, count)] + random.normal(size=(count, 16)) * 0.6).astype(np.float32)


def cosines(vectors: np.ndarray, order: np.ndarray) -> np.ndarray:
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return (units[order][:-1] * units[order][1:]).sum(1)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 50, 1000])
def test_every_example_comes_once(count):
    assert sorted(threshold_filtered_order(clusters(count)).tolist()) == list(range(count))


def test_neighbours_are_related_but_not_the_same():
    vectors = clusters(2000)
    near = cosines(vectors, threshold_filtered_order(vectors))
    drawn = cosines(vectors, np.random.default_rng(1).permutation(2000))
    assert np.mean((near >= 0.2) & (near <= 0.85)) > 0.9
    assert near.mean() > drawn.mean() + 0.4


def test_copies_are_kept_apart():
    vectors = np.repeat(clusters(100), 2, axis=0)
    order = threshold_filtered_order(vectors)
    assert np.mean(order[:-1] // 2 == order[1:] // 2) < 0.1


def test_it_is_nearly_the_greedy_path():
    vectors = clusters(400)
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    order = threshold_filtered_order(vectors)
    left, current, path = set(range(400)) - {int(order[0])}, int(order[0]), []
    while left:
        rows = np.array(sorted(left))
        found = units[rows] @ units[current]
        wanted = (found >= 0.2) & (found <= 0.85)
        best = int(np.argmax(np.where(wanted, found + 2, found)))
        path.append(found[best])
        current = int(rows[best])
        left.remove(current)
    assert cosines(vectors, order).mean() > np.mean(path) - 0.05


def test_a_seed_draws_the_same_path_again():
    vectors = clusters(300)
    first, again, other = (threshold_filtered_order(vectors, seed).tolist() for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_a_vector_of_zeros_is_no_fault():
    vectors = clusters(10)
    vectors[3] = 0
    assert sorted(threshold_filtered_order(vectors).tolist()) == list(range(10))
