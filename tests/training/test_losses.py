"""What a trainer learns from a step is what its documents cost alone, whatever trains, packs and accumulates."""

from __future__ import annotations

import pytest

from training_runs import examples_of_step, loss_alone, losses, train, weights_of
from turnmill.trainers import trainers

TRAINERS = trainers.names()


@pytest.fixture(scope="module")
def truth(tiny, out) -> float:
    """Of the first step: three packs."""
    import transformers

    return loss_alone(transformers.AutoModelForCausalLM.from_pretrained(tiny), examples_of_step(out, 0, 3))


@pytest.mark.parametrize("trainer", TRAINERS)
@pytest.mark.parametrize("packing", ["on", "off"])
@pytest.mark.parametrize(("batch_size", "accumulation"), [(1, 3), (3, 1)])
def test_a_step_costs_what_its_documents_cost_alone(
    truth, tiny, out, tmp_path, trainer, packing, batch_size, accumulation
):
    options = {"batch_size": batch_size, "gradient_accumulation_steps": accumulation, "max_steps": 1}
    train(out, tmp_path / "model", tiny, trainer=trainer, packing=packing, **options)
    assert losses(tmp_path / "model") == pytest.approx([truth], abs=2e-6)


@pytest.fixture(scope="module")
def reference(tiny, out, tmp_path_factory):
    """Losses and weights of six steps with one trainer, packed, a pack at a time."""
    folder = tmp_path_factory.mktemp("reference") / "model"
    train(out, folder, tiny, trainer="transformers", packing="on", epochs=2, max_steps=6)
    return losses(folder), weights_of(folder)


@pytest.mark.parametrize("trainer", TRAINERS)
@pytest.mark.parametrize("packing", ["auto", "off"])
def test_every_way_of_feeding_learns_the_same(reference, tiny, out, tmp_path, trainer, packing):
    train(out, tmp_path / "model", tiny, trainer=trainer, packing=packing, epochs=2, max_steps=6)
    found, weights = losses(tmp_path / "model"), weights_of(tmp_path / "model")
    assert found == pytest.approx(reference[0], abs=2e-5)
    assert found[0] - found[-1] > 0.5
    assert all(weights[name] == pytest.approx(values, abs=2e-4) for name, values in reference[1].items())


def test_weights_that_are_not_counted_would_show(truth, tiny, out):
    import transformers

    examples = examples_of_step(out, 0, 3)
    model = transformers.AutoModelForCausalLM.from_pretrained(tiny)
    assert abs(loss_alone(model, examples, weighted=False) - truth) > 2e-4  # a hundred times what is allowed above
