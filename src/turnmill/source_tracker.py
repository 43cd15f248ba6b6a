"""Weights of sources that fall where a source's validation loss rises."""

from __future__ import annotations

from collections.abc import Mapping

TOLERANCE = 0.01
"""Relative change of a loss that means something."""


class SourceTracker:
    """Adapts the weights of a mix to each source's validation loss.

    After mSFT (2026, arXiv:2603.21606): a source whose loss rises above its best is learned too much and decays; one
    that improves recovers, up to what it began with.

    Args:
        weights: by source, as the run begins.
        decay: factor on a rise of more than 1 %.
        recovery: factor on a fall of more than 1 %.
        floor: share of the first weight that a source keeps.

    Attributes:
        weights: by source, as they are now; they are not normalised.
    """

    def __init__(
        self, weights: Mapping[str, float], *, decay: float = 0.7, recovery: float = 1.15, floor: float = 0.1
    ) -> None:
        self.weights = dict(weights)
        self._first = dict(weights)
        self._best: dict[str, float] = {}
        self._decay, self._recovery, self._floor = decay, recovery, floor

    def update(self, losses: Mapping[str, float]) -> dict[str, float]:
        """The weights behind an evaluation; a source's first loss is its baseline.

        Args:
            losses: validation loss by source; sources that are not evaluated keep their weights.
        """
        for name, loss in losses.items():
            if name not in self._best:
                self._best[name] = loss
            elif loss < self._best[name] * (1 - TOLERANCE):
                self._best[name] = loss
                self.weights[name] = min(self.weights[name] * self._recovery, self._first[name])
            elif loss > self._best[name] * (1 + TOLERANCE):
                self.weights[name] = max(self.weights[name] * self._decay, self._first[name] * self._floor)
        return dict(self.weights)

    @property
    def shares(self) -> dict[str, float]:
        """The weights, of all together 1."""
        total = sum(self.weights.values())
        return {name: weight / total for name, weight in self.weights.items()}
