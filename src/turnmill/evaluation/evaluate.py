"""A model over named sets: token-weighted losses, each example scored once by one of the ranks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from turnmill.errors import HealthError, UsageError
from turnmill.evaluation.ranks import added_over_ranks, gathered, place
from turnmill.evaluation.results import (
    GROUPS,
    MEASURES,
    Evaluation,
    Group,
    ItemLoss,
    Loss,
    SetLoss,
    added,
    composite,
    counting,
)
from turnmill.evaluation.sets import EvalSet, Item
from turnmill.isolation import Layout, Verdict
from turnmill.options import Evaluate
from turnmill.rendered import KINDS
from turnmill.scorers import ToScore, Unscored
from turnmill.token_costs import Costs, TokenCosts

WINDOW = 512
"""Examples that are read and batched together."""
KIND_OF: dict[Group, int] = {
    "answer": KINDS.index("answer"), "reasoning": KINDS.index("reasoning"), "call": KINDS.index("call"),
    "stop": KINDS.index("stop"), "observation": KINDS.index("result"),
}  # fmt: skip


class _Sums(NamedTuple):
    """Of every example of every set, a row each; a rank fills its own."""

    losses: NDArray[np.float64]
    """(examples, 1 + groups, measures): all trained tokens, then `GROUPS`."""
    entropy: NDArray[np.float64]
    """(examples,)."""
    unscored: dict[int, str]
    """Number of an example → why the model could not read it."""


def evaluate(
    model: Any,
    sets: Sequence[EvalSet],
    *,
    options: Evaluate | None = None,
    probe_verdict: Verdict | None = None,
    autocast: Any = None,
    keep_items: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Evaluation:
    """The losses of a causal language model, the same on all ranks; the model is left as it was, training or not.

    Under `torch.distributed` every rank calls it with the same sets, and each example is scored by one of them. A model
    whose weights are sharded over ranks (FSDP, ZeRO-3) cannot be run so.

    Args:
        model: of transformers, also inside DDP, a compiled module, or peft.
        sets: what is scored; names differ.
        options: what is told apart, and how batches are made.
        probe_verdict: what `isolation.probe` found of the model; without it, or where packed examples leak, rows are
            padded.
        autocast: a torch dtype to compute in, as the training does; None: that of the weights.
        keep_items: also give the losses of each example.
        progress: is told of each example that this rank has scored.

    Raises:
        UsageError: no sets, two of one name, or packing was demanded of a model that leaks.
        HealthError: no set has a token to score, or another rank failed.
    """
    options = options or Evaluate()
    _check_names([one.name for one in sets])
    bare = bare_model(model)
    layout = layout_of(options.packing, probe_verdict, bare.device)
    with _at_rest(model, bare), _without_gradients(bare, autocast):
        costs = TokenCosts(bare, layout, options.max_batch_tokens, entropy=options.entropy)
        sums = _over_ranks(sets, costs, options, progress)
    return _evaluation(sets, sums, options, layout, keep_items=keep_items)


def _check_names(names: Sequence[str]) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if not names or twice:
        what = f"two evaluation sets are called {twice[0]!r}" if twice else "there is nothing to evaluate on"
        raise UsageError(what, next_step="turnmill evaluate --help")


def bare_model(model: Any) -> Any:
    """The model of transformers inside what training puts around it; adapters that lie in its layers stay there.

    Raises:
        UsageError: adapters that put tokens before the prompt: positions would be other ones.
    """
    while True:
        if hasattr(model, "_orig_mod"):  # compiled
            model = model._orig_mod
        elif not hasattr(model, "config") and hasattr(model, "module"):  # DistributedDataParallel, DataParallel
            model = model.module
        elif hasattr(model, "get_base_model"):
            if model.active_peft_config.is_prompt_learning:
                what = f"adapters of {model.active_peft_config.peft_type} put tokens of their own before each row"
                raise UsageError(f"{what}; expected such as change layers (LoRA)", next_step="turnmill evaluate --help")
            model = model.get_base_model()
        else:
            return model


def layout_of(packing: str, verdict: Verdict | None, device: Any) -> Layout:
    """How examples share a batch.

    Args:
        packing: `auto`: packed on a GPU; on a CPU masked rows are slower than padded ones.
        verdict: what was found of the model; None: nobody asked.
        device: of the model.

    Raises:
        UsageError: packing was demanded of a model that was not seen to keep examples apart.
    """
    if packing == "on" and (verdict is None or not verdict.isolates):
        reason = "nobody has tried whether the model keeps packed examples apart" if verdict is None else verdict.reason
        raise UsageError(reason, next_step="--evaluate.packing off")
    if verdict is None or packing == "off" or (packing == "auto" and device.type == "cpu"):
        return "padded"
    return verdict.layout


@contextmanager
def _at_rest(model: Any, bare: Any) -> Iterator[None]:
    """The model in evaluation mode with its own forward; each of its modules afterwards as it was.

    A trainer's forward rounds (accelerate's for mixed precision) or gives no logits (a fused loss); where hooks move
    weights between devices, it stays.
    """
    modes = {module: module.training for module in model.modules()}
    patched = None if hasattr(bare, "_hf_hook") else bare.__dict__.pop("forward", None)
    model.eval()
    try:
        yield
    finally:
        for module, mode in modes.items():
            module.training = mode
        if patched is not None:
            bare.forward = patched


@contextmanager
def _without_gradients(bare: Any, autocast: Any) -> Iterator[None]:
    """No gradients, and no inference tensors either: what a model caches meanwhile is used when it trains on."""
    import torch

    rounded: AbstractContextManager[Any] = nullcontext()
    if autocast is not None:
        rounded = torch.autocast(bare.device.type, dtype=autocast)
    with torch.no_grad(), rounded:
        yield


def _over_ranks(
    sets: Sequence[EvalSet], costs: TokenCosts, options: Evaluate, progress: Callable[[int], None] | None
) -> _Sums:
    """The sums of all examples: each rank's own, added up.

    Raises:
        HealthError: another rank failed; the failure of this one is raised as it is.
    """
    rank, ranks = place()
    failure: Exception | None = None
    sums = _empty(sum(len(one.items) for one in sets))
    try:
        for _ in _scored(sets, costs, options, sums, (rank, ranks)):
            if progress is not None:
                progress(1)
    except Exception as problem:  # told to all: the others would wait for this rank for ever
        if ranks == 1:
            raise
        failure = problem
    failed = gathered(None if failure is None else f"{type(failure).__name__}: {failure}")
    if failure is not None:
        raise failure
    if any(failed):
        number, what = next((number, what) for number, what in enumerate(failed) if what)
        raise HealthError(f"rank {number} could not evaluate: {what}", next_step="turnmill evaluate --help")
    unscored = {number: why for of_rank in gathered(sums.unscored) for number, why in of_rank.items()}
    losses, entropy = (added_over_ranks(values, costs.device) for values in (sums.losses, sums.entropy))
    return _Sums(losses, entropy, unscored)


def _empty(examples: int) -> _Sums:
    return _Sums(np.zeros((examples, 1 + len(GROUPS), len(MEASURES))), np.zeros(examples), {})


def _scored(
    sets: Sequence[EvalSet], costs: TokenCosts, options: Evaluate, sums: _Sums, of_ranks: tuple[int, int]
) -> Iterator[int]:
    """Fill in this rank's share, and give the number of each example that is done.

    The share is every n-th example by length: all ranks have about as much to do.
    """
    lengths = np.concatenate([one.items.lengths() for one in sets]).astype(np.int64)
    starts = np.cumsum([0, *(len(one.items) for one in sets)])
    rank, ranks = of_ranks
    share = np.argsort(-lengths, kind="stable")[rank::ranks]
    for first in range(0, len(share), WINDOW):
        numbers = share[first : first + WINDOW]
        places = np.searchsorted(starts, numbers, side="right") - 1
        items = [sets[int(at)].items[int(number - starts[at])] for number, at in zip(numbers, places, strict=True)]
        wanted = [_wanted(item, observations=options.observations) for item in items]
        asked = [ToScore(item.input_ids, want) for item, want in zip(items, wanted, strict=True)]
        for number, found in costs.of(asked):
            row = int(numbers[number])
            if isinstance(found, Unscored):
                sums.unscored[row] = found.reason
            else:
                _add(sums, row, items[number], wanted[number], found)
            yield row


def _wanted(item: Item, *, observations: bool) -> NDArray[np.bool_]:
    """(tokens,) what is scored: what trains, and on request what tools said; never the first token."""
    wanted = item.weights > 0
    if observations:
        wanted |= item.kinds == KIND_OF["observation"]
    wanted[:1] = False
    return wanted


def _add(sums: _Sums, row: int, item: Item, wanted: NDArray[np.bool_], found: Costs) -> None:
    """Put one example's sums into its row."""
    nll = found.nll.astype(np.float64)
    weights = item.weights[wanted].astype(np.float64)
    kinds, trained = item.kinds[wanted], weights > 0
    sums.losses[row, 0] = _measured(nll, weights, trained)
    for number, group in enumerate(GROUPS, start=1):
        if group == "final-answer":
            inside = trained & (kinds == KIND_OF["answer"]) & (np.flatnonzero(wanted) >= item.final_from)
            sums.losses[row, number] = _measured(nll, weights, inside)
        elif group == "observation":
            counted = np.where(trained, weights, 1.0)
            sums.losses[row, number] = _measured(nll, counted, kinds == KIND_OF[group])
        else:
            sums.losses[row, number] = _measured(nll, weights, trained & (kinds == KIND_OF[group]))
    if len(found.entropy):
        sums.entropy[row] = found.entropy.astype(np.float64)[trained].sum()


def _measured(nll: NDArray[np.float64], weights: NDArray[np.float64], inside: NDArray[np.bool_]) -> tuple[float, ...]:
    """The measures of some tokens, as `MEASURES` names them."""
    own = nll[inside]
    return float(inside.sum()), float(own.sum()), float(weights[inside].sum()), float(own @ weights[inside])


def _evaluation(
    sets: Sequence[EvalSet], sums: _Sums, options: Evaluate, layout: Layout, *, keep_items: bool
) -> Evaluation:
    found: dict[str, SetLoss] = {}
    missing: dict[str, str] = {}
    start = 0
    for one in sets:
        rows = slice(start, start + len(one.items))
        start = rows.stop
        made = _set_loss(one, sums, rows, options)
        if made.total.tokens:
            found[one.name] = made
        else:
            missing[one.name] = _why_missing(one, made)
    if not found:
        told = "; ".join(f"{name}: {why}" for name, why in missing.items())
        raise HealthError(f"there is nothing to evaluate: {told}", next_step="turnmill census DATA")
    counted = counting(found)
    groups = [group for group in GROUPS if any(group in one.groups for one in counted)]
    total = added([one.total for one in counted])
    entropies = [one.entropy * one.total.tokens for one in counted if one.entropy is not None]
    return Evaluation(
        loss=composite(found),
        total=total,
        sets=found,
        groups={group: added([one.groups.get(group, Loss()) for one in counted]) for group in groups},
        entropy=sum(entropies) / total.tokens if options.entropy else None,
        missing=missing,
        layout=layout,
        items=tuple(_items(sets, sums, options)) if keep_items else (),
    )


def _why_missing(one: EvalSet, made: SetLoss) -> str:
    if not len(one.items):
        return "no rows"
    return "; ".join(f"{count:,} x {why}" for why, count in made.unscored.items()) or "no trainable tokens"


def _set_loss(one: EvalSet, sums: _Sums, rows: slice, options: Evaluate) -> SetLoss:
    total, *groups = (_loss(measures) for measures in sums.losses[rows].sum(axis=0))
    unscored = Counter(why for number, why in sums.unscored.items() if rows.start <= number < rows.stop)
    return SetLoss(
        name=one.name,
        importance=one.importance,
        regression_floor=one.regression_floor,
        examples=len(one.items) - unscored.total(),
        total=total,
        groups={group: loss for group, loss in zip(GROUPS, groups, strict=True) if loss.tokens},
        entropy=float(sums.entropy[rows].sum()) / total.tokens if options.entropy and total.tokens else None,
        unscored=dict(unscored.most_common()),
    )


def _loss(measures: NDArray[np.float64]) -> Loss:
    tokens, nll, weight, weighted = measures.tolist()
    return Loss(int(tokens), nll, weight, weighted)


def _items(sets: Sequence[EvalSet], sums: _Sums, options: Evaluate) -> Iterator[ItemLoss]:
    number = 0
    for one in sets:
        for place_in_set in range(len(one.items)):
            item = one.items[place_in_set]
            total, *groups = (_loss(measures) for measures in sums.losses[number])
            yield ItemLoss(
                set=one.name,
                row_id=item.row_id,
                part=item.part,
                total=total,
                entropy=float(sums.entropy[number]) if options.entropy else float("nan"),
                groups={group: loss for group, loss in zip(GROUPS, groups, strict=True) if loss.tokens},
                unscored=sums.unscored.get(number),
            )
            number += 1
