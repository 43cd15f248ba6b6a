"""Recorded loss weights: on a message in any spelling, or as the row's list of turns to train."""

from __future__ import annotations

import math
from collections import Counter

from turnmill.conversation import Json
from turnmill.dialects.fields import Fields
from turnmill.dialects.recorded import Utterance
from turnmill.errors import Rejected, quote

WEIGHT_KEYS = ("weight", "loss", "loss_mask", "train", "trainable", "loss_weight", "loss_scale")


def read_weight(fields: Fields, utterance: Utterance, *, fractional: bool, counts: Counter[str]) -> float | None:
    """The loss weight of a message, None where none is recorded; a system's or user's is ignored and counted.

    Raises:
        Rejected: `weights-disagree`, `weight-not-a-number`, `weight-negative`, `weight-not-finite` or
            `weight-not-0-or-1`.
    """
    recorded = {key: value for key in WEIGHT_KEYS if (value := fields.take(key)) is not None}
    if not recorded:
        return None
    if utterance.role not in ("assistant", "tool"):
        counts["read/weight-ignored"] += 1
        return None
    at = utterance.index
    weights = {key: _number(value, key, at) for key, value in recorded.items()}
    if len(set(weights.values())) > 1:
        raise Rejected("weights-disagree", f"spellings of the weight disagree: {quote(recorded)}", at=at)
    weight = next(iter(weights.values()))
    if weight not in (0.0, 1.0) and not fractional:
        message = f"the weight is {weight}; expected 0 or 1 (loss.fractional admits others)"
        raise Rejected("weight-not-0-or-1", message, at=at)
    return weight


def _number(value: Json, key: str, at: int) -> float:
    if value in ("0", "1"):
        return float(value)
    if not isinstance(value, (bool, int, float)):
        raise Rejected("weight-not-a-number", f"{key} is {quote(value)}; expected a number", at=at)
    try:
        weight = float(value)
    except OverflowError:
        weight = math.inf
    if not math.isfinite(weight):
        raise Rejected("weight-not-finite", f"{key} is {quote(value)}; expected a finite number", at=at)
    if weight < 0:
        raise Rejected("weight-negative", f"{key} is {quote(value)}; expected 0 or more", at=at)
    return weight


def apply_train_turns(turns: Json, utterances: list[Utterance]) -> None:
    """Give weight 0 to every assistant's utterance that the row does not list.

    Args:
        turns: 0-based numbers that count recorded assistant messages only, or a truth value a recorded message.
        utterances: all of the row; a recorded weight of 0 stays 0.

    Raises:
        Rejected: `train-turns-invalid` or `train-turns-out-of-range`.
    """
    chosen = _chosen(turns, utterances)
    for utterance in utterances:
        if utterance.role == "assistant" and utterance.index not in chosen:
            utterance.weight = 0.0


def _chosen(turns: Json, utterances: list[Utterance]) -> set[int]:
    """Places of the recorded messages that train."""
    recorded = list(dict.fromkeys(said.index for said in utterances))
    if isinstance(turns, list) and len(turns) == len(recorded) and all(isinstance(turn, bool) for turn in turns):
        return {index for index, trains in zip(recorded, turns, strict=True) if trains}
    if not isinstance(turns, list) or not all(type(turn) is int for turn in turns):
        what = f"train_turns is {quote(turns)}; expected a list of whole numbers, or a truth value a message"
        raise Rejected("train-turns-invalid", what)
    assistants = list(dict.fromkeys(said.index for said in utterances if said.role == "assistant"))
    for turn in turns:
        if not 0 <= turn < len(assistants):
            message = f"train_turns names {turn}; the row has assistant turns 0 to {len(assistants) - 1}"
            raise Rejected("train-turns-out-of-range", message)
    return {assistants[turn] for turn in turns}
