"""Whether a model keeps the examples of a packed row apart, found on the model itself.

Masks that tell packed examples by `position_ids` hold for some architectures and leak in silence in others (measured on
transformers 5.24: gpt-oss builds its mask without them, state-space and convolution layers carry their state over). So
nobody is asked but the model: whatever the examples before it, the last one of a row must get the same logits, and
those that it gets alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from turnmill.stream.collate import collate_flat, collate_packed, collate_padded

if TYPE_CHECKING:
    import torch

    from turnmill.stream.items import Item

Layout = Literal["flat", "packed", "padded"]
"""How examples reach a model: one row with their borders, rows with `position_ids`, a row each with a mask."""
COLLATORS = {"flat": collate_flat, "packed": collate_packed, "padded": collate_padded}
OF_THE_LOSS = ("labels", "loss_weights", "trained_tokens")
"""What of a collated batch no forward takes."""
LENGTHS = (23, 17, 9)
"""Tokens of the probe's examples: unequal, none a multiple of a kernel's block; the last one is compared."""
OTHERS = 3
"""How often the examples before the last one are drawn anew."""
NOISE_FACTOR = 8.0
"""How many times as much as in padded rows, which keep examples apart by their making, a packed row may differ."""
LEAST_CHANGE = 1e-6
"""Share of the largest logit that the order of sums may change: experts work on groups that other examples fill up."""
LEAST_DIFFERENCE = {"float32": 1e-5, "bfloat16": 2e-2, "float16": 4e-3}
"""Share of the largest logit that a row of another length may change by rounding."""


class Found(NamedTuple):
    """What one layout does to the last example of a row."""

    layout: Layout
    leak: float
    """Greatest change of a logit when the examples before it change; 0 where it sees itself alone."""
    difference: float
    """Greatest distance of a logit from that of the example alone."""
    fault: str | None
    """Why the layout does not serve; None where it is exact within the noise."""


class Verdict(NamedTuple):
    """Which layouts a model keeps examples apart in."""

    model_type: str
    attention: str
    device: str
    dtype: str
    found: tuple[Found, ...]

    @property
    def layout(self) -> Layout:
        """The one to feed: flat, else packed, else padded."""
        return next((one.layout for one in self.found if one.fault is None), "padded")

    @property
    def isolates(self) -> bool:
        """Whether packed rows are as good as their examples alone."""
        return self.layout != "padded"

    @property
    def reason(self) -> str:
        """One line that says what was found."""
        model = f"{self.model_type} ({self.attention}, {self.dtype}, {self.device})"
        if self.isolates:
            return f"{model} keeps packed examples apart"
        faults = dict.fromkeys(f"{one.layout}: {one.fault}" for one in self.found if one.layout != "padded")
        return f"{model} does not keep packed examples apart ({'; '.join(faults)})"


def probe(model: Any) -> Verdict:
    """Try every layout on a loaded model, on its device, with its attention; it stays as it was.

    Raises:
        ValueError: the model does not even run one example alone.
    """
    import torch

    training = model.training
    model.eval()
    try:
        with torch.inference_mode():
            found = _found(model)
    finally:
        model.train(training)
    attention = getattr(model.config, "_attn_implementation", None) or "no attention"
    return Verdict(model.config.model_type, str(attention), str(model.device), _dtype(model), tuple(found))


def _found(model: Any) -> list[Found]:
    rows = [_examples(_vocabulary(model), seed) for seed in range(OTHERS + 1)]
    for row in rows:
        row[-1] = rows[0][-1]
    alone = _last_logits(model, rows[0][-1:], "padded")
    scale = float(alone.abs().max())
    padded = _measured(model, "padded", rows, alone)
    least = LEAST_DIFFERENCE.get(_dtype(model), max(LEAST_DIFFERENCE.values()))
    bounds = _Bounds(
        max(LEAST_CHANGE * scale, NOISE_FACTOR * padded.leak), max(least * scale, NOISE_FACTOR * padded.difference)
    )
    packed = [_measured(model, layout, rows, alone, bounds) for layout in get_args(Layout) if layout != "padded"]
    return [*packed, padded]


class _Bounds(NamedTuple):
    """Beyond what a layout is at fault."""

    leak: float
    difference: float


UNBOUNDED = _Bounds(float("inf"), float("inf"))


def _measured(
    model: Any,
    layout: Layout,
    rows: Sequence[Sequence[NDArray[np.int32]]],
    alone: torch.Tensor,
    bounds: _Bounds = UNBOUNDED,
) -> Found:
    """What one layout does to the example that all rows end with; a model that refuses it has a fault, too."""
    try:
        first, *others = (_last_logits(model, row, layout) for row in rows)
    except (ValueError, RuntimeError, TypeError, ImportError, AssertionError, IndexError) as problem:
        return Found(layout, float("nan"), float("nan"), f"refused with {_first_line(problem)}")
    leak = max(float((first - other).abs().max()) for other in others)
    difference = float((first - alone).abs().max())
    return Found(layout, leak, difference, _fault(leak, difference, bounds))


def _fault(leak: float, difference: float, bounds: _Bounds) -> str | None:
    if not np.isfinite(leak + difference):
        return "its logits are not finite numbers"
    if leak > bounds.leak:
        return f"an example's logits change by {leak:.2g} with the examples before it"
    if difference > bounds.difference:
        return f"an example's logits lie {difference:.2g} from those of the example alone"
    return None


def _last_logits(model: Any, examples: Sequence[NDArray[np.int32]], layout: Layout) -> torch.Tensor:
    """(tokens of the last example, vocabulary) float32."""
    logits = model(**forward_inputs(examples, layout, model.device), use_cache=False).logits.float()
    end = len(examples[-1]) if layout == "padded" else sum(map(len, examples))
    last: torch.Tensor = logits[-1, end - len(examples[-1]) : end]
    return last


def forward_inputs(examples: Sequence[NDArray[np.int32]], layout: Layout, device: Any) -> dict[str, Any]:
    """The arguments of a forward over examples: a row of all of them, or under `padded` a row each.

    Args:
        examples: (tokens,) of each.
        layout: how they are laid out.
        device: where the tensors go.
    """
    items = [_item(ids) for ids in examples]
    batch = COLLATORS[layout](items if layout == "padded" else [_joined(items)])
    return {
        name: value.to(device) if hasattr(value, "to") else value
        for name, value in batch.items()
        if name not in OF_THE_LOSS
    }


def _examples(vocabulary: int, seed: int) -> list[NDArray[np.int32]]:
    random = np.random.default_rng(seed)
    return [random.integers(0, vocabulary, length).astype(np.int32) for length in LENGTHS]


def _item(ids: NDArray[np.int32]) -> Item:
    weights = np.ones(len(ids), dtype=np.float32)
    return {"input_ids": ids, "labels": ids, "loss_weights": weights, "seq_lengths": np.array([len(ids)])}


def _joined(items: Sequence[Item]) -> Item:
    return {name: np.concatenate([item[name] for item in items]) for name in items[0]}


def _vocabulary(model: Any) -> int:
    return int(model.get_input_embeddings().weight.shape[0])


def _dtype(model: Any) -> str:
    return str(model.dtype).removeprefix("torch.")


def _first_line(problem: BaseException) -> str:
    return f"{type(problem).__name__}: {(str(problem).splitlines() or [''])[0][:120]}"
