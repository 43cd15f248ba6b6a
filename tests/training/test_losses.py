"""What a trainer learns from a step is what its documents cost alone, whatever trains, packs and accumulates."""

from __future__ import annotations

import pytest

from chats import chat
from training_runs import examples_of_step, loss_alone, losses, prepared, train, weights_of
from turnmill.files.prepared import PreparedData
from turnmill.trainers import trainers
from turnmill.verbs.export import export

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


@pytest.mark.filterwarnings("ignore:.*deprecated:FutureWarning")
def test_an_export_costs_trl_by_itself_what_its_documents_cost_alone(tiny, tmp_path):
    """The settings of the exported `train.py`, in TRL's own trainer."""
    import transformers
    from datasets import load_dataset
    from trl import SFTConfig, SFTTrainer

    whole = prepared(tmp_path, tiny, [chat(f"q{number}", "Yes" + " go" * (number % 7)) for number in range(20)])
    export(PreparedData(whole), "trl", tmp_path / "exported")
    said = (tmp_path / "exported" / "train.py").read_text()
    settings = {"padding_free": True, "max_length": None, "dataset_kwargs": {"skip_prepare_dataset": True}}
    assert all(f"{name}={value}" in said.replace('"', "'") for name, value in settings.items())
    rows = load_dataset("parquet", data_files=str(tmp_path / "exported" / "train.parquet"), split="train")
    count = len(PreparedData(whole).plan())
    config = SFTConfig(
        str(tmp_path / "trl"), max_steps=1, per_device_train_batch_size=count, logging_steps=1, report_to=[],
        save_strategy="no", use_cpu=True, bf16=False, **settings,
    )  # fmt: skip
    trainer = SFTTrainer(str(tiny), args=config, train_dataset=rows)
    trainer.train()
    model = transformers.AutoModelForCausalLM.from_pretrained(tiny)
    expected = loss_alone(model, examples_of_step(whole, 0, count))
    assert trainer.state.log_history[0]["loss"] == pytest.approx(expected, abs=2e-6)
