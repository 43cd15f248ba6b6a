"""Whether packed examples see each other, told by models themselves."""

from __future__ import annotations

import pytest

from tiny_models import tiny_model
from turnmill.isolation import forward_inputs, probe

APART = ["llama", "qwen3", "qwen3_moe", "gemma3_text", "gpt_neox"]
TOGETHER = ["gpt_oss", "mamba2", "lfm2", "qwen3_next", "opt"]
"""Masks without positions, states that run on, convolutions, linear attention, positions counted from a mask."""


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("model_type", APART)
def test_a_model_that_keeps_examples_apart_is_packed(model_type, dtype):
    import torch

    verdict = probe(tiny_model(model_type).to(getattr(torch, dtype)))
    assert (verdict.isolates, verdict.layout, verdict.dtype) == (True, "flat", dtype)
    assert verdict.reason.endswith("keeps packed examples apart")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("model_type", TOGETHER)
def test_a_model_that_lets_examples_leak_is_not(model_type, dtype):
    import torch

    verdict = probe(tiny_model(model_type).to(getattr(torch, dtype)))
    found = {one.layout: one for one in verdict.found}
    assert (verdict.isolates, verdict.layout) == (False, "padded")
    assert "with the examples before it" in str(found["packed"].fault)
    assert found["padded"].fault is None


def test_a_model_whose_borders_need_a_kernel_says_so():
    flat, packed, _ = probe(tiny_model("qwen3_next")).found
    assert flat.fault is not None
    assert flat.fault.startswith("refused with ValueError: ")
    assert packed.leak > 0.001


def test_a_model_that_gives_no_numbers_is_not_packed():
    import torch

    model = tiny_model("llama")
    with torch.no_grad():
        model.lm_head.weight[3] = float("nan")
    assert {one.fault for one in probe(model).found} == {"its logits are not finite numbers"}


def test_positions_that_do_not_begin_anew_are_found():
    """Attention kept apart is not enough: where positions are learned, an example must begin at the first."""
    import torch

    class Continued(torch.nn.Module):
        """A model that counts its positions through the row, and masks as it should."""

        def __init__(self) -> None:
            super().__init__()
            self.inner = tiny_model("llama")
            self.config, self.device, self.dtype = self.inner.config, self.inner.device, self.inner.dtype
            self.places = torch.randn(128, 96)

        def get_input_embeddings(self):
            return self.inner.get_input_embeddings()

        def forward(self, input_ids, **arguments):
            found = self.inner(input_ids=input_ids, **arguments)
            found.logits = found.logits + self.places[: input_ids.shape[1]]
            return found

    flat, _, padded = probe(Continued()).found
    assert (flat.leak, padded.fault) == (0.0, None)
    assert "from those of the example alone" in str(flat.fault)


def test_the_probe_leaves_training_on():
    model = tiny_model("llama").train()
    probe(model)
    assert model.training


def test_inputs_of_a_forward_hold_no_labels():
    import numpy as np

    ids = [np.arange(3, dtype=np.int32), np.arange(5, dtype=np.int32)]
    flat = forward_inputs(ids, "flat", "cpu")
    assert flat["position_ids"].tolist() == [[0, 1, 2, 0, 1, 2, 3, 4]]
    assert {"labels", "loss_weights", "trained_tokens"} & flat.keys() == set()
