from __future__ import annotations

import pytest

from turnmill.source_tracker import SourceTracker


def tracked(*losses: float, **options) -> float:
    tracker = SourceTracker({"a": 1.0, "b": 3.0}, **options)
    for loss in losses:
        tracker.update({"a": loss})
    return tracker.weights["a"]


@pytest.mark.parametrize(
    ("losses", "weight"),
    [
        ((2.0,), 1.0),  # the baseline
        ((2.0, 2.01, 1.99), 1.0),  # within a percent
        ((2.0, 2.2), 0.7),
        ((2.0, 2.2, 2.2), 0.49),
        ((2.0, 2.2, 1.9), 0.7 * 1.15),
        ((2.0, 1.5, 1.6), 0.7),  # against the best, not the last
        ((2.0, 1.5, 1.2), 1.0),  # never above what it began with
        ((2.0, *[9.0] * 20), 0.1),  # never below the floor
    ],
)
def test_a_weight_follows_its_loss(losses, weight):
    assert tracked(*losses) == pytest.approx(weight)


def test_other_sources_keep_their_weights_and_shares_sum_to_one():
    tracker = SourceTracker({"a": 1.0, "b": 3.0})
    tracker.update({"a": 1.0, "b": 1.0})
    assert tracker.update({"a": 2.0}) == {"a": pytest.approx(0.7), "b": 3.0}
    assert sum(tracker.shares.values()) == pytest.approx(1)
