"""Runs from end to end: they go on where they were stopped, keep the best, and end when they should."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import transformers

import turnmill
from training_runs import (
    examples_of_step,
    interrupted_at,
    loss_alone,
    losses,
    metrics,
    prepared,
    tiny_chat_model,
    train,
    uneven_chats,
    weights_of,
)
from turnmill.errors import Interrupted, StaleError, UsageError
from turnmill.files.inventory import verify
from turnmill.trainers import trainers
from turnmill.training.checkpoints import STATE, Checkpoints

LORA = {"method": "lora", "lora.rank": 4, "lora.dropout": 0.3, "learning_rate": 0.02}
WAYS = {"full": {}, "adapters with dropout": LORA, "padded": {"packing": "off"}, "streamed": {"streaming": True}}


@pytest.mark.parametrize("trainer", trainers.names())
@pytest.mark.parametrize("way", WAYS)
def test_a_run_that_goes_on_repeats_the_undisturbed_losses(tiny, out, tmp_path, trainer, way):
    options = {"trainer": trainer, "epochs": 3, **WAYS[way]}
    train(out, tmp_path / "whole", tiny, **options)
    whole = losses(tmp_path / "whole")
    with pytest.raises(Interrupted, match=r"stopped at step 2, and saved .*checkpoint-2") as stopped:
        train(out, tmp_path / "parts", tiny, interrupted_at(1), **options)
    assert stopped.value.next_step == "--resume"
    assert not (tmp_path / "parts").exists()
    train(out, tmp_path / "parts", tiny, resume=True, **options)
    assert losses(tmp_path / "parts") == whole
    assert len(whole) == json.loads((tmp_path / "parts" / "summary.json").read_text())["steps"] > 4
    theirs, ours = weights_of(tmp_path / "whole"), weights_of(tmp_path / "parts")
    assert all((theirs[name] == ours[name]).all() for name in theirs)


@pytest.mark.parametrize("stopped", [2, 3, 4])
def test_a_run_that_goes_on_makes_the_evaluations_of_the_undisturbed(tiny, out, tmp_path, stopped):
    """Stopped before an evaluation, where it would have been, and behind it."""
    options = {"epochs": 1, "eval_every": 3}
    train(out, tmp_path / "whole", tiny, **options)
    with pytest.raises(Interrupted):
        train(out, tmp_path / "parts", tiny, interrupted_at(stopped - 1), **options)
    train(out, tmp_path / "parts", tiny, resume=True, **options)
    found = [[{**line, "seconds": 0} for line in metrics(tmp_path / name)] for name in ("whole", "parts")]
    assert found[1] == found[0]
    assert verify(tmp_path / "parts")["step"] == verify(tmp_path / "whole")["step"]


def test_a_run_that_was_stopped_is_not_begun_anew_unasked(tiny, out, tmp_path):
    with pytest.raises(Interrupted):
        train(out, tmp_path / "model", tiny, interrupted_at(1), epochs=2)
    with pytest.raises(UsageError, match="holds 1 checkpoint of a run that did not end") as refused:
        train(out, tmp_path / "model", tiny, epochs=2)
    assert refused.value.next_step == "--resume"


def test_a_checkpoint_of_other_data_or_options_is_refused(tiny, out, tmp_path):
    with pytest.raises(Interrupted):
        train(out, tmp_path / "model", tiny, interrupted_at(1), epochs=2)
    with pytest.raises(StaleError, match=r"train\.learning_rate: 0\.01 there, 0\.5 here"):
        train(out, tmp_path / "model", tiny, resume=True, epochs=2, learning_rate=0.5)
    with pytest.raises(StaleError, match=r"evaluate\.samples: None there, 2 here"):
        train(out, tmp_path / "model", tiny, resume=True, epochs=2, **{"evaluate.samples": 2})
    other = prepared(tmp_path, tiny, uneven_chats(9, seed=7))
    with pytest.raises(StaleError, match=r"is of another run:\n  data: [0-9a-f]+ there, [0-9a-f]+ here"):
        train(other, tmp_path / "model", tiny, resume=True, epochs=2)


def test_what_an_interrupted_save_left_is_no_checkpoint(tiny, out, tmp_path):
    with pytest.raises(Interrupted):
        train(out, tmp_path / "model", tiny, interrupted_at(1), epochs=2)
    work = tmp_path / ".model.train"
    (work / "draft" / "checkpoint-9").mkdir(parents=True)
    (work / "checkpoint-8").mkdir()
    (work / "checkpoint-8" / "model.safetensors").write_bytes(b"half")
    train(out, tmp_path / "model", tiny, resume=True, epochs=2)
    assert verify(tmp_path / "model")["kind"] == "trained"
    assert not work.exists()


@pytest.mark.parametrize("is_there", [True, False])
def test_a_checkpoint_whose_place_another_did_not_take_comes_back(tmp_path, is_there):
    for name in ["replaced-3", "checkpoint-3"][: 1 + is_there]:
        (tmp_path / name).mkdir()
        (tmp_path / name / STATE).write_text(name)
    checkpoints = Checkpoints(tmp_path, {})
    checkpoints.begin()
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint-3"]
    (found,) = checkpoints.all()
    assert (found / STATE).read_text() == ("checkpoint-3" if is_there else "replaced-3")


def test_the_best_checkpoint_is_published_and_patience_ends_the_run(tiny, out, tmp_path):
    options = {"epochs": 30, "eval_every": 1, "patience": 3, "learning_rate": 0.2}
    answer = train(out, tmp_path / "model", tiny, **options)
    found = {line["step"]: line["eval/loss"] for line in metrics(tmp_path / "model") if "eval/loss" in line}
    best = min(found, key=found.get)
    assert answer["ended"] == "patience"
    assert answer["best"] == {"step": best, "loss": found[best]}
    assert answer["steps"] == best + 3
    assert verify(tmp_path / "model")["step"] == best
    held_out = turnmill.open_prepared(out).examples("eval")
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "model")
    assert loss_alone(model, [held_out[n] for n in range(len(held_out))]) == pytest.approx(found[best], abs=1e-5)


def test_the_last_checkpoints_and_the_best_are_kept(tiny, out, tmp_path):
    options = {"epochs": 4, "save_every": 1, "keep_checkpoints": 2}
    with pytest.raises(Interrupted):
        train(out, tmp_path / "model", tiny, interrupted_at(6), **options)
    kept = sorted(path.name for path in (tmp_path / ".model.train").glob("checkpoint-*"))
    assert kept == ["checkpoint-6", "checkpoint-7"]


def test_the_rate_stays_at_its_floor_where_the_data_outlast_the_horizon(tiny, out, tmp_path, monkeypatch):
    import turnmill.training.step_loader as steps

    monkeypatch.setattr(steps, "steps_of", lambda *_, **__: 3)
    answer = train(out, tmp_path / "model", tiny, epochs=2, min_learning_rate=0.001)
    rates = [line["learning_rate"] for line in metrics(tmp_path / "model") if "loss" in line]
    assert answer["horizon"] == 3
    assert len(rates) == answer["steps"] > 4
    assert rates[0] == pytest.approx(0.01)
    assert rates[3:] == pytest.approx([0.001] * len(rates[3:]))


def test_each_epoch_says_how_many_micro_batches_it_had(tiny, out, tmp_path):
    train(out, tmp_path / "model", tiny, epochs=2, exact_steps=True)
    packs = [len(turnmill.open_prepared(out).plan("train", epoch)) for epoch in range(2)]
    counted = [line["micro_batches"] for line in metrics(tmp_path / "model") if "micro_batches" in line]
    assert counted == packs


def test_max_steps_end_a_run_and_are_its_horizon(tiny, out, tmp_path):
    answer = train(out, tmp_path / "model", tiny, max_steps=9, epochs=1)
    assert (answer["steps"], answer["horizon"], answer["ended"]) == (9, 9, "max_steps")
    assert answer["epochs"] > 1


def test_a_kept_order_reaches_the_model(tiny, tmp_path):
    out = prepared(tmp_path, tiny, **{"pack.order": "kept"})
    train(out, tmp_path / "model", tiny, max_steps=1, gradient_accumulation_steps=1)
    first = examples_of_step(out, 0, 1)
    data = turnmill.open_prepared(out).examples()
    assert [example.row_id for example in first] == [data[number].row_id for number in range(len(first))]
    truth = loss_alone(transformers.AutoModelForCausalLM.from_pretrained(tiny), first)
    assert losses(tmp_path / "model") == pytest.approx([truth], abs=2e-6)


def test_a_model_that_mixes_packed_examples_is_padded_or_refused(tmp_path):
    leaking = tiny_chat_model(tmp_path / "leaking", "gpt_oss")
    out = prepared(tmp_path, leaking)
    with pytest.raises(UsageError, match=r"gpt_oss .* does not keep packed examples apart"):
        train(out, tmp_path / "model", leaking, packing="on", max_steps=1)
    answer = train(out, tmp_path / "model", leaking, max_steps=1, trainer="transformers")
    assert answer["packing"]["layout"] == "padded"
    assert "does not keep packed examples apart" in answer["packing"]["reason"]
    model = transformers.AutoModelForCausalLM.from_pretrained(leaking)
    assert losses(tmp_path / "model") == pytest.approx([loss_alone(model, examples_of_step(out, 0, 3))], abs=1e-5)


def test_bfloat16_computes_about_the_same(tiny, out, tmp_path):
    for dtype in ("float32", "bfloat16"):
        train(out, tmp_path / dtype, tiny, max_steps=3, dtype=dtype, learning_rate=0.001)
    exact, rounded = losses(tmp_path / "float32"), losses(tmp_path / "bfloat16")
    assert exact != rounded
    assert rounded == pytest.approx(exact, abs=0.02)
    assert {values.dtype.name for values in weights_of(tmp_path / "bfloat16").values()} == {"float32"}


def test_the_loss_that_is_no_number_ends_the_run(tiny, out, tmp_path):
    from turnmill.errors import HealthError

    with pytest.raises(HealthError, match=r"the loss is nan at step \d+"):
        train(out, tmp_path / "model", tiny, epochs=9, learning_rate=1e30, max_grad_norm=0)


def test_what_is_published_loads_and_says_what_it_learned(tiny, out, tmp_path):
    train(out, tmp_path / "model", tiny, max_steps=2, eval_every=1, report_to=["tensorboard"])
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "model")
    template = turnmill.open_prepared(out).manifest["template"]["text"]
    assert tokenizer.chat_template == template == (tmp_path / "model" / "chat_template.jinja").read_text()
    assert (tmp_path / "model" / "tokenizer.json").read_bytes() == (tiny / "tokenizer.json").read_bytes()
    page = (tmp_path / "model" / "report.html").read_text()
    assert page.count("<svg") >= 4
    assert "http" not in page
    assert list((tmp_path / "model" / "runs").rglob("events.out.tfevents.*"))
    manifest = verify(tmp_path / "model")
    assert manifest["recipe"]["data"] == turnmill.open_prepared(out).manifest["fingerprint"]
    assert {path.name for path in tmp_path.iterdir()} <= {"model", ".model.lock"}


def test_adapters_are_published_beside_the_model_that_they_change(tiny, out, tmp_path):
    train(out, tmp_path / "model", tiny, max_steps=4, **LORA)
    files = {path.name for path in (tmp_path / "model").iterdir()}
    assert {"adapter_model.safetensors", "adapter_config.json", "tokenizer.json"} <= files
    assert "model.safetensors" not in files
    assert losses(tmp_path / "model")[-1] < losses(tmp_path / "model")[0]
    base = json.loads((tmp_path / "model" / "adapter_config.json").read_text())["base_model_name_or_path"]
    assert Path(base) == tiny
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "model")
    assert math.isfinite(loss_alone(model, examples_of_step(out, 0, 1)))
