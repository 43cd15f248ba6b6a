"""What an evaluation found: sums over tokens, and the losses that they give."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from turnmill.conversation import Json

Group = Literal["answer", "reasoning", "call", "stop", "observation", "final-answer"]
GROUPS: tuple[Group, ...] = ("answer", "reasoning", "call", "stop", "observation", "final-answer")
"""Whose losses are told apart: kinds of tokens (`observation`: the results of tools), and among the answers those of
the last turn."""

MEASURES = ("tokens", "nll", "weight", "weighted_nll")
"""Fields of a `Loss`, in order."""


class Loss(msgspec.Struct, frozen=True):
    """Sums over some predicted tokens, in nats and double precision."""

    tokens: int = 0
    nll: float = 0.0
    """Of the tokens, whatever they weigh."""
    weight: float = 0.0
    """Sum of the loss weights; where all are 1, the tokens."""
    weighted_nll: float = 0.0

    @property
    def loss(self) -> float:
        """Nats a token, each counted by its weight; NaN without tokens."""
        return self.weighted_nll / self.weight if self.weight else math.nan

    @property
    def perplexity(self) -> float:
        """E to the loss; infinite where that is beyond a float."""
        return perplexity(self.loss)

    def __add__(self, other: Loss) -> Loss:
        return Loss(
            self.tokens + other.tokens,
            self.nll + other.nll,
            self.weight + other.weight,
            self.weighted_nll + other.weighted_nll,
        )


class ItemLoss(msgspec.Struct, frozen=True):
    """One example's."""

    set: str
    row_id: str
    part: int
    total: Loss
    entropy: float
    """Sum over the trained tokens; NaN where it was not asked for."""
    groups: dict[Group, Loss]
    """Those that the example has tokens of."""
    unscored: str | None = None
    """Why the model could not read it: its sums are 0."""


class SetLoss(msgspec.Struct, frozen=True):
    """One set's."""

    name: str
    importance: float | None
    """Share in the composite, beside the other sets'; None: the composite is that of all tokens."""
    regression_floor: float | None
    """A loss above it is an alarm."""
    examples: int
    """That were scored."""
    total: Loss
    groups: dict[Group, Loss]
    entropy: float | None
    """Mean over the trained tokens."""
    unscored: dict[str, int]
    """Why examples could not be read → how many."""

    @property
    def is_alarming(self) -> bool:
        """Whether its loss lies above its floor, or is no number."""
        return self.regression_floor is not None and not self.total.loss <= self.regression_floor


class Evaluation(msgspec.Struct, frozen=True):
    """A model over some sets, the same on all ranks."""

    loss: float
    """The composite: what best checkpoints are chosen by. NaN where a loss that counts is not finite."""
    total: Loss
    """Of all sets that count in the composite."""
    sets: dict[str, SetLoss]
    groups: dict[Group, Loss]
    """Of the same sets as `total`."""
    entropy: float | None
    missing: dict[str, str]
    """Sets that had nothing to score → why; the composite is that of the others."""
    layout: str
    """How examples shared a batch: `padded`, or packed rows."""
    items: tuple[ItemLoss, ...] = ()
    """Where they were asked for, by set, in order."""

    @property
    def perplexity(self) -> float:
        """E to the composite."""
        return perplexity(self.loss)

    @property
    def alarms(self) -> list[str]:
        """Sets whose loss lies above their floor."""
        return [name for name, one in self.sets.items() if one.is_alarming]

    @property
    def not_finite(self) -> list[str]:
        """Sets whose loss is not a finite number."""
        return [name for name, one in self.sets.items() if not math.isfinite(one.total.loss)]

    def metrics(self, train_loss: float | None = None) -> dict[str, float]:
        """The keys that training logs: `eval/loss`, `eval/ppl`, `eval/<name>/loss` and their like.

        Args:
            train_loss: of the same step, for `eval/gap`.
        """
        found = {"eval/loss": self.loss, "eval/ppl": self.perplexity}
        if train_loss is not None:
            found["eval/gap"] = self.loss - train_loss
        if self.entropy is not None:
            found["eval/entropy"] = self.entropy
        found |= {f"eval/kind/{name}/loss": one.loss for name, one in self.groups.items()}
        for name, one in self.sets.items():
            found |= {f"eval/{name}/loss": one.total.loss, f"eval/{name}/ppl": one.total.perplexity}
        if any(one.regression_floor is not None for one in self.sets.values()):
            found["eval/regressions"] = float(len(self.alarms))
        return found

    def as_json(self) -> dict[str, Json]:
        """For programs; what is not a finite number is null."""
        return {
            "loss": _number(self.loss),
            "perplexity": _number(self.perplexity),
            "entropy": _number(self.entropy),
            "tokens": self.total.tokens,
            "kinds": {name: loss_json(one) for name, one in self.groups.items()},
            "sets": {name: set_json(one) for name, one in self.sets.items()},
            "missing": dict(self.missing),
            "above_floor": list(self.alarms),
            "layout": self.layout,
        }


def loss_json(loss: Loss) -> dict[str, Json]:
    """Sums, and the loss that they give."""
    return {
        "loss": _number(loss.loss), "perplexity": _number(loss.perplexity), "tokens": loss.tokens,
        "nll": _number(loss.nll), "weight": loss.weight, "weighted_nll": _number(loss.weighted_nll),
    }  # fmt: skip


def set_json(one: SetLoss) -> dict[str, Json]:
    """A set's losses for programs."""
    return {
        **loss_json(one.total),
        "examples": one.examples,
        "entropy": _number(one.entropy),
        "importance": one.importance,
        "regression_floor": one.regression_floor,
        "kinds": {name: loss_json(found) for name, found in one.groups.items()},
        "unscored": dict(one.unscored),
    }


def composite(sets: Mapping[str, SetLoss]) -> float:
    """The loss that stands for all sets.

    Of sets with an importance it is their mean, weighted by that and over those that are there: a missing set does not
    lower it. Without any it is that of all tokens together.
    """
    counted = counting(sets)
    weights = [1.0 if one.importance is None else one.importance for one in counted]
    if all(one.importance is None for one in counted) or not any(weights):
        return added([one.total for one in counted]).loss
    losses = [one.total.loss for one in counted]
    return math.fsum(weight * loss for weight, loss in zip(weights, losses, strict=True)) / math.fsum(weights)


def counting(sets: Mapping[str, SetLoss]) -> list[SetLoss]:
    """The sets of the composite: those of importance 0 are only watched; where there are no others, all."""
    return [one for one in sets.values() if one.importance != 0] or list(sets.values())


def added(losses: Sequence[Loss]) -> Loss:
    """The sums together."""
    return sum(losses, Loss())


def perplexity(loss: float) -> float:
    """E to a loss; infinite where that is beyond a float."""
    try:
        return math.exp(loss)
    except OverflowError:
        return math.inf


def _number(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
