"""`turnmill train` as a person types it: from a config, and with everything that can be wrong."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml

from chats import chat
from training_runs import prepared, tiny_chat_model, uneven_chats

QUICK = ("--train.threads", "1", "--train.max_steps", "2", "--train.gradient_accumulation_steps", "1")


@pytest.fixture
def config(tiny, tmp_path) -> Path:
    """A config of everything: what is prepared, trained, and where."""
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in uneven_chats(20)))
    tree = {
        "workers": 1,
        "model": {"name_or_path": str(tiny), "template": "chatml"},
        "sources": [{"name": "chats", "data": [str(tmp_path / "rows.jsonl")]}],
        "loss": {"fractional": True},
        "fit": {"max_tokens": 128},
        "split": {"fraction": 0.2},
        "train": {
            "data": str(tmp_path / "out"), "output": str(tmp_path / "model"), "max_steps": 2, "threads": 1,
            "gradient_accumulation_steps": 1, "eval_every": 1,
        },
    }  # fmt: skip
    (tmp_path / "run.yaml").write_text(yaml.safe_dump(tree))
    return tmp_path / "run.yaml"


def test_a_config_is_prepared_and_trained(turnmill, config, tmp_path):
    refused = turnmill("train", config)
    assert refused.code == 4
    assert "train reads prepared data alone" in refused.err
    assert refused.next_step == f"turnmill prepare {config} --output {tmp_path / 'out'}"
    answer = turnmill("train", config, "--prepare", "--json")
    assert answer.code == 0, answer.err
    assert answer.json["steps"] == 2
    assert answer.json["best"]["step"] in (1, 2)
    assert {"summary.json", "metrics.jsonl", "report.html", "manifest.json", "chat_template.jinja"} <= {
        path.name for path in (tmp_path / "model").iterdir()
    }


def test_a_stale_folder_is_refused_and_prepared_anew(turnmill, config, tmp_path):
    assert turnmill("prepare", config, "--output", tmp_path / "out").code == 0
    assert turnmill("train", config, "--dry-run").code == 0
    changed = turnmill("train", config, "--dry-run", "--loss.turns", "last", "--dedup.by", "[]")
    assert changed.code == 4
    assert 'loss.turns: prepared with "all", now "last"' in changed.err
    assert 'dedup.by: prepared with ["exact"], now []' in changed.err
    with (tmp_path / "rows.jsonl").open("a") as rows:
        rows.write(json.dumps(chat("One more?", "Yes.")) + "\n")
    added = turnmill("train", config, "--dry-run")
    assert added.code == 4
    assert "sources.chats: its files are not those that were prepared" in added.err
    assert turnmill("train", config, "--prepare").code == 0
    (tmp_path / "rows.jsonl").unlink()
    moved = turnmill("train", config, "--dry-run", "--output", tmp_path / "again")
    assert moved.code == 0
    assert "the sources are not compared with what was prepared" in moved.err


def test_raw_data_are_never_trained_on(turnmill, tiny, tmp_path, chats):
    rows = chats("rows.jsonl", ["q", "a"])
    answer = turnmill("train", rows, "--train.model", tiny, "--output", tmp_path / "model")
    assert answer.code == 4
    assert "train reads prepared data alone" in answer.err
    assert answer.next_step == f"turnmill prepare {rows} --model MODEL --output out"
    nothing = turnmill("train", tmp_path / "out", "--output", tmp_path / "model")
    assert nothing.next_step == f"turnmill prepare DATA --model MODEL --output {tmp_path / 'out'}"


def test_a_folder_that_was_changed_is_refused(turnmill, out, tiny, tmp_path):
    copy = shutil.copytree(out, tmp_path / "out")
    path = next((copy / "train" / "examples").iterdir())
    content = bytearray(path.read_bytes())
    content[-200] ^= 1
    path.write_bytes(content)
    answer = turnmill("train", copy, "--train.model", tiny, "--output", tmp_path / "model")
    assert answer.code == 4
    assert "other content" in answer.err


def test_an_output_is_not_written_over_unasked(turnmill, out, tiny, tmp_path):
    typed = ("train", out, "--train.model", tiny, *QUICK, "--output", tmp_path / "model")
    assert turnmill(*typed).code == 0
    before = (tmp_path / "model" / "model.safetensors").read_bytes()
    answer = turnmill(*typed, "--train.learning_rate", "0.1")
    assert answer.code == 2
    assert answer.next_step.endswith("--replace")
    assert (tmp_path / "model" / "model.safetensors").read_bytes() == before
    assert turnmill(*typed, "--train.learning_rate", "0.1", "--replace").code == 0
    assert (tmp_path / "model" / "model.safetensors").read_bytes() != before
    other = shutil.copytree(out, tmp_path / "other")
    prepared_there = turnmill("train", out, "--train.model", tiny, "--output", other, "--replace")
    assert (prepared_there.code, "holds something else" in prepared_there.err) == (2, True)
    foreign = turnmill("train", out, "--train.model", tiny, "--output", tiny)
    assert foreign.code == 2
    assert "files that turnmill did not write" in foreign.err


def test_a_model_with_another_tokenizer_is_refused(turnmill, out, smollm2_directory, tmp_path):
    answer = turnmill("train", out, "--train.model", smollm2_directory, "--output", tmp_path / "model")
    assert answer.code == 4
    assert "has another tokenizer" in answer.err


def test_a_model_that_embeds_too_few_tokens_is_refused(turnmill, tmp_path):
    small = tiny_chat_model(tmp_path / "small", vocab_size=300)
    data = prepared(tmp_path, small)
    answer = turnmill("train", data, "--train.model", small, "--output", tmp_path / "model")
    assert answer.code == 2
    assert "embeds 300 (0 to 299)" in answer.err
    assert not (tmp_path / ".model.train").exists()


def test_a_model_that_sees_fewer_tokens_than_an_example_has_is_refused(turnmill, out, tmp_path):
    short = tiny_chat_model(tmp_path / "short", max_position_embeddings=16)
    answer = turnmill("train", out, "--train.model", short, "--output", tmp_path / "model")
    assert answer.code == 2
    assert "sees 16" in answer.err


def test_data_of_which_nothing_is_learned_are_refused(turnmill, tiny, tmp_path, write):
    """A raw text of one token: nothing stands before it to predict it from, and no stop is there."""
    rows = write("texts.jsonl", "".join(json.dumps({"text": text}) + "\n" for text in ("q", "a")))
    made = turnmill(
        "prepare", rows, "--model", tiny, "--template", "chatml", "--output", tmp_path / "out", "--max-tokens", "1",
        "--workers", "1",
    )  # fmt: skip
    assert made.code == 0, made.err
    answer = turnmill("train", tmp_path / "out", "--train.model", tiny, "--output", tmp_path / "model")
    assert answer.code == 2
    assert "every label of its" in answer.err


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--train.trainer", "trll"], "Did you mean 'trl'?"),
        (["--train.report_to", "[wandb]"], "pip install wandb"),
        (["--train.report_to", "[neptune]"], "expected some of mlflow, tensorboard, trackio, wandb"),
        (["--train.epochs", "0"], "--train.epochs: got 0, expected at least 1"),
        (["--train.device", "cuda"], "--train.device cpu"),
        (["--train.method", "lora", "--train.lora.targets", "[nose]"], "--train.lora.targets all-linear"),
        (["--train.attention", "telepathy"], "cannot load the model"),
        (["--train.model", "nowhere"], "nowhere holds no config.json"),
        (["--resume"], "there is nothing to go on from"),
        (["--resume-from", "nowhere"], "nowhere is no checkpoint of turnmill's"),
    ],
)
def test_what_cannot_be_is_said_before_anything_runs(turnmill, out, tiny, tmp_path, flags, said):
    model = [] if "--train.model" in flags else ["--train.model", tiny]
    answer = turnmill("train", out, *model, "--output", tmp_path / "model", *flags)
    assert answer.code == 2, answer.err
    assert said in answer.err
    assert not [path.name for path in tmp_path.iterdir() if path.name != ".model.lock"]


def test_a_missing_extra_gives_its_line(turnmill, out, tiny, tmp_path, monkeypatch):
    import importlib.util

    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "trl" else found(name, *rest))
    answer = turnmill("train", out, "--train.model", tiny, "--output", tmp_path / "model")
    assert (answer.code, answer.next_step) == (2, "pip install 'turnmill[train]'")
    assert "train needs trl" in answer.err


def test_a_run_says_what_it_trains_on_and_warns_of_what_is_missing(turnmill, tiny, tmp_path):
    data = prepared(tmp_path, tiny, **{"split.fraction": 0.0})
    answer = turnmill("train", data, "--train.model", tiny, *QUICK, "--output", tmp_path / "model")
    assert answer.code == 0, answer.err
    assert f"data: {data}, fingerprint " in answer.err
    assert "keeps packed examples apart" in answer.err
    assert "the model has no chat template: the trained one" in answer.err
    assert "warning: nothing is evaluated" in answer.err
    assert answer.next_step == f"turnmill evaluate {tmp_path / 'model'}"


def test_named_sets_are_evaluated_by_the_recipe_of_the_data(turnmill, out, tiny, tmp_path, chats):
    tree = {"evaluate": {"eval_sources": [{"name": "sums", "data": [str(chats("e.jsonl", ["1+1?", "2"]))]}]}}
    (tmp_path / "run.yaml").write_text(yaml.safe_dump({**tree, "train": {"data": str(out), "eval_every": 1}}))
    typed = ("train", tmp_path / "run.yaml", "--train.model", tiny, *QUICK, "--output", tmp_path / "model", "--json")
    answer = turnmill(*typed)
    assert answer.code == 0, answer.err
    assert "eval/sums/loss" in answer.json["evaluations"][0]
