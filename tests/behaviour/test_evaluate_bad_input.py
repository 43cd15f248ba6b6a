"""`turnmill evaluate` where something is wrong: what, where, and nothing published."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tiny_chat_models import save_chat_model
from turnmill.cli.app import run

ROW = {"messages": [{"role": "user", "content": "Capital of Peru?"}, {"role": "assistant", "content": "Lima."}]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("bad")
    save_chat_model(folder / "model")
    (folder / "rows.jsonl").write_text(json.dumps(ROW) + "\n")
    data = ["prepare", str(folder / "rows.jsonl"), "--model", str(folder / "model"), "--workers", "1"]
    assert run([*data, "--output", str(folder / "out")]) == 0
    return folder


def changed(folder: Path, tmp_path: Path, name: str, old: str, new: str) -> Path:
    """The model with a changed file."""
    for path in (folder / "model").iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    text = (tmp_path / name).read_text("utf-8")
    assert old in text
    (tmp_path / name).write_text(text.replace(old, new, 1), "utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "old", "new", "says"),
    [
        ("tokenizer.json", '"<|endoftext|>"', '"<|otherend|>"', "with the tokenizer of"),
        ("chat_template.jinja", "assistant", "helper", "with another template"),
    ],
)
def test_data_of_another_tokenizer_or_template_are_stale(turnmill, folder, tmp_path, name, old, new, says):
    model = changed(folder, tmp_path, name, old, new)
    for data in (["--data", f"{folder / 'out'}#train"], ["--data", folder / "rows.jsonl", "--like", folder / "out"]):
        done = turnmill("evaluate", model, *data)
        assert done.code == 4
        assert says in done.err


def test_a_folder_without_held_out_rows_says_how_to_get_some(turnmill, folder):
    done = turnmill("evaluate", folder / "model", "--data", folder / "out")
    assert done.code == 2
    assert "holds no rows of 'eval'" in done.err
    assert "--split.fraction" in done.next_step


def test_a_changed_folder_is_stale(turnmill, folder, tmp_path):
    import shutil

    shutil.copytree(folder / "out", tmp_path / "out")
    path = next((tmp_path / "out" / "train" / "examples").iterdir())
    path.write_bytes(path.read_bytes()[:-8])
    assert turnmill("evaluate", folder / "model", "--data", f"{tmp_path / 'out'}#train").code == 4


def test_a_model_without_weights_is_refused(turnmill, folder, tmp_path):
    model = changed(folder, tmp_path, "config.json", "llama", "llama")
    (model / "model.safetensors").unlink()
    done = turnmill("evaluate", model, "--data", f"{folder / 'out'}#train")
    assert done.code == 2
    assert "holds no weights" in done.err


def test_a_loss_that_is_no_number_is_not_published(turnmill, folder, tmp_path):
    import transformers

    model = changed(folder, tmp_path, "config.json", "llama", "llama")
    broken = transformers.AutoModelForCausalLM.from_pretrained(model)
    broken.model.norm.weight.data.fill_(float("nan"))
    broken.save_pretrained(model)
    done = turnmill("evaluate", model, "--data", f"{folder / 'out'}#train", "-o", tmp_path / "result")
    assert done.code == 3
    assert "the loss is not a finite number in: rows (first in row " in done.err
    assert not (tmp_path / "result").exists()


def test_nothing_that_trains_is_told(turnmill, folder, tmp_path):
    row = {**ROW, "messages": [ROW["messages"][0], {**ROW["messages"][1], "weight": 0}]}
    (tmp_path / "none.jsonl").write_text(json.dumps(row) + "\n")
    done = turnmill("evaluate", folder / "model", "--data", tmp_path / "none.jsonl")
    assert done.code == 3
    assert "no-trainable-tokens" in done.err


def test_a_place_with_prepared_data_is_not_replaced(turnmill, folder):
    done = turnmill("evaluate", folder / "model", "--data", f"{folder / 'out'}#train", "-o", folder / "out")
    assert done.code == 2
    assert "holds 'prepared', which an evaluation would replace" in done.err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["MODEL"], "there is nothing to evaluate on"),
        (["MODEL", "MODEL"], "takes one MODEL"),
        (["nowhere", "--battery"], "nowhere is no model directory"),
        (["--battery"], "no model given"),
        (["MODEL", "--data", "OUT#train", "--data", "OUT#train"], "two evaluation sets are called 'rows'"),
        (["MODEL", "--data", "OUT#test"], "no side 'test'"),
        (["MODEL", "--battery", "--base", "MODEL"], "holds no adapters"),
        (["MODEL", "--battery", "--baseline", "OUT"], "holds 'prepared', not an evaluation"),
        (["MODEL", "--battery", "--baseline", "nothing"], "nothing is no evaluation"),
        (["MODEL", "--battery", "--evaluate.samples", "0"], "expected at least 1"),
    ],
)
def test_a_wrong_command_says_what_is_wrong(turnmill, folder, arguments, says):
    typed = [one.replace("MODEL", str(folder / "model")).replace("OUT", str(folder / "out")) for one in arguments]
    done = turnmill("evaluate", *typed)
    assert done.code == 2
    assert says in done.err


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ({"weight": -1}, "got the weight -1.0, expected at least 0"),
        ({"samples": 0}, "got 0 samples, expected at least 1"),
        ({"mode": "text", "dialect": "openai"}, "got mode text beside the dialect 'openai', expected text or auto"),
        ({"name": ""}, "expected a name, and data"),
        ({"loss": {"turn": "last"}}, "evaluation source 'held-out': loss.turn: unknown loss field"),
        ({"data": ["OUT", "ROWS"]}, "expected a prepared folder alone"),
        ({"weigth": 1}, "Did you mean 'weight'?"),
    ],
)
def test_a_wrong_set_says_what_is_wrong(turnmill, folder, tmp_path, source, says):
    named = {"name": "held-out", "data": ["ROWS"], **source}
    text = json.dumps({"evaluate": {"eval_sources": [named]}})
    text = text.replace("ROWS", str(folder / "rows.jsonl")).replace("OUT", str(folder / "out"))
    (tmp_path / "run.yaml").write_text(text)
    done = turnmill("evaluate", tmp_path / "run.yaml", folder / "model")
    assert done.code == 2
    assert says in done.err


def test_training_data_made_in_two_ways_have_no_recipe_for_other_rows(turnmill, folder, tmp_path):
    (tmp_path / "run.yaml").write_text(
        json.dumps(
            {
                "model": {"name_or_path": str(folder / "model")},
                "workers": 1,
                "sources": [
                    {"name": "a", "data": str(folder / "rows.jsonl")},
                    {"name": "b", "data": str(folder / "rows.jsonl"), "loss": {"turns": "last"}},
                ],
            }
        )
    )
    assert turnmill("prepare", tmp_path / "run.yaml", "--output", tmp_path / "two").code == 0
    like = ("--like", tmp_path / "two")
    done = turnmill("evaluate", folder / "model", "--data", folder / "rows.jsonl", *like)
    assert (done.code, "made in several ways" in done.err) == (2, True)
    assert turnmill("evaluate", folder / "model", "--data", f"a={folder / 'rows.jsonl'}", *like).code == 0
