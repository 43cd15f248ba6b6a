"""`turnmill evaluate`: held-out losses of a small random model, with real files."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from evaluation_rows import alone
from tiny_chat_models import save_chat_model
from turnmill import StaleError, open_prepared
from turnmill.cli.app import run
from turnmill.files.evaluations import StoredEvaluation

FACTS = ["Peru Lima", "Chad N'Djamena", "Oman Muscat", "Mali Bamako", "Togo Lome", "Iran Tehran", "Cuba Havana"]


def chat(country: str, city: str, **more) -> dict:
    asked, told = f"Capital of {country}?", f"{city}, as everyone in {country} knows."
    turns = [("user", asked), ("assistant", f"{city}."), ("user", "Sure?"), ("assistant", told)]
    return {"messages": [{"role": role, "content": text} for role, text in turns], **more}


def write_rows(path: Path, records: list) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A model, rows of two sources, OUT with some held out, and an evaluation on these; read only."""
    folder = tmp_path_factory.mktemp("evaluate")
    save_chat_model(folder / "model")
    capitals = [chat(*fact.split(maxsplit=1)) for fact in FACTS]
    write_rows(folder / "capitals.jsonl", capitals)
    write_rows(folder / "texts.jsonl", [{"text": f"{fact} is a pair of words."} for fact in FACTS])
    write_rows(folder / "more.jsonl", [chat(f"{n}land", f"{n} City") for n in "ABCDE"])
    rows = ["capitals.jsonl", "more.jsonl"]
    options = ["--split.rows", "3", "--split.per_source", "true", "--workers", "1"]
    prepare = ["prepare", *(str(folder / name) for name in rows), *options]
    assert run([*prepare, "--model", str(folder / "model"), "--output", str(folder / "out")]) == 0
    assert run(["evaluate", str(folder / "model"), "--data", str(folder / "out"), "-o", str(folder / "first")]) == 0
    return folder


@pytest.fixture
def evaluate(turnmill, folder):
    """Evaluates the model of the folder; gives the answer as JSON."""

    def call(*arguments: str | Path):
        answer = turnmill("evaluate", folder / "model", *arguments, "--json")
        assert answer.code == 0, answer.err
        return answer.json

    return call


def losses_alone(model: Path, out: Path, side: str = "eval") -> dict[str, float]:
    """Source → loss of its documents, each run alone by transformers."""
    import transformers

    network = transformers.AutoModelForCausalLM.from_pretrained(model)
    examples = open_prepared(out).examples(side)
    sums: dict[str, list] = {}
    for example in (examples[number] for number in range(len(examples))):
        nll, _, weights, _ = alone(network, example)
        sums.setdefault(example.source, []).append((nll @ weights, weights.sum()))
    return {source: sum(nll for nll, _ in found) / sum(weight for _, weight in found) for source, found in sums.items()}


def test_held_out_losses_are_those_of_the_documents_alone(folder, evaluate):
    found = evaluate("--data", folder / "out")
    expected = losses_alone(folder / "model", folder / "out")
    assert found["sets"].keys() == expected.keys() == {"capitals", "more"}
    for name, loss in expected.items():
        assert found["sets"][name]["loss"] == pytest.approx(loss, abs=1e-5)
    metrics = found["metrics"]
    assert metrics["eval/ppl"] == pytest.approx(math.exp(metrics["eval/loss"]))
    assert metrics["eval/more/loss"] == found["sets"]["more"]["loss"]


def test_a_side_is_named_behind_the_folder(folder, evaluate):
    expected = losses_alone(folder / "model", folder / "out", "train")
    assert evaluate("--data", f"{folder / 'out'}#train")["sets"]["more"]["loss"] == pytest.approx(
        expected["more"], abs=1e-5
    )


def test_raw_rows_follow_the_recipe_of_the_training_data(folder, evaluate, turnmill, tmp_path):
    options = ["--model", folder / "model", "--loss.turns", "last", "--fit.max_tokens", "90", "--workers", "1"]
    assert turnmill("prepare", folder / "capitals.jsonl", *options, "--output", tmp_path / "last").code == 0
    found = evaluate("--data", f"raw={folder / 'capitals.jsonl'}", "--like", tmp_path / "last")
    stored = evaluate("--data", f"{tmp_path / 'last'}#train")
    assert found["sets"]["raw"]["tokens"] == stored["sets"]["capitals"]["tokens"]
    assert found["loss"] == pytest.approx(stored["loss"], abs=1e-6)
    plain = evaluate("--data", f"raw={folder / 'capitals.jsonl'}")
    assert plain["tokens"] > found["tokens"]


def config_of(tmp_path: Path, sources: list[dict], **more) -> Path:
    path = tmp_path / "run.yaml"
    path.write_text(json.dumps({"evaluate": {"eval_sources": sources, **more}}))
    return path


def test_sources_of_the_config_make_a_weighted_composite(folder, turnmill, tmp_path):
    sources = [
        {"name": "chats", "data": str(folder / "capitals.jsonl"), "weight": 3, "loss": {"turns": "last"}},
        {"name": "raw", "data": str(folder / "texts.jsonl"), "mode": "text"},
        {"name": "gone", "data": str(folder / "gone.jsonl"), "weight": 9, "optional": True},
    ]
    done = turnmill("evaluate", config_of(tmp_path, sources), folder / "model", "--json")
    assert done.code == 0, done.err
    sets = done.json["sets"]
    assert done.json["loss"] == pytest.approx((3 * sets["chats"]["loss"] + sets["raw"]["loss"]) / 4)
    assert "gone is missing: no such file or directory" in done.err
    assert list(done.json["missing"]) == ["gone"]


def test_a_text_counts_with_every_token_and_no_template(folder, turnmill, tmp_path):
    sources = [{"name": "raw", "data": str(folder / "texts.jsonl"), "mode": "text"}]
    found = turnmill("evaluate", config_of(tmp_path, sources), folder / "model", "--json").json["sets"]["raw"]
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "model" / "tokenizer.json"))
    texts = [f"{fact} is a pair of words." for fact in FACTS]
    assert found["tokens"] == sum(len(tokenizer.encode(text).ids) for text in texts)  # the end, less the first
    assert "final-answer" not in found["kinds"]


def test_a_source_that_is_named_and_fails_is_an_error(folder, turnmill, tmp_path):
    sources = [
        {"name": "chats", "data": str(folder / "capitals.jsonl")}, {"name": "gone", "data": str(folder / "gone.jsonl")},
    ]  # fmt: skip
    done = turnmill("evaluate", config_of(tmp_path, sources), folder / "model")
    assert done.code == 2
    assert "gone.jsonl" in done.err


def test_samples_are_drawn_by_seed(folder, evaluate):
    def rows(*arguments) -> set[str]:
        evaluate("--data", folder / "capitals.jsonl", "--samples", "3", "-o", folder / "drawn", *arguments)
        return {item.row_id for item in StoredEvaluation(folder / "drawn").items()}

    first = rows()
    assert len(first) == 3
    assert rows() == first != rows("--seed", "5")


def test_what_is_published_holds_every_example(folder, evaluate):
    stored = StoredEvaluation(folder / "first")
    summary = json.loads((folder / "first" / "summary.json").read_text())
    items = stored.items()
    assert sum(item.total.weighted_nll for item in items) / sum(item.total.weight for item in items) == pytest.approx(
        summary["loss"]
    )
    assert {item.set for item in items} == {"capitals", "more"}
    assert stored.manifest["model"]["weights"]
    assert "Evaluation of" in (folder / "first" / "report.html").read_text()


def test_the_same_model_and_data_have_one_fingerprint(folder, evaluate, tmp_path):
    evaluate("--data", folder / "out", "-o", tmp_path / "again")
    manifests = [StoredEvaluation(path).manifest for path in (folder / "first", tmp_path / "again")]
    assert manifests[0] == manifests[1]


def test_a_loss_above_its_floor_is_an_alarm_and_published(folder, turnmill, tmp_path):
    done = turnmill(
        "evaluate", folder / "model", "--data", folder / "out", "--evaluate.regression_floor", "1", "-o", tmp_path / "e"
    )
    assert done.code == 3
    assert "2 regression(s)" in done.err
    assert "lies above its floor 1" in done.err
    assert StoredEvaluation(tmp_path / "e").items()


def worse_model(directory: Path) -> Path:
    """The model, sure of the wrong tokens."""
    import transformers

    network = transformers.AutoModelForCausalLM.from_pretrained(save_chat_model(directory))
    network.lm_head.weight.data.mul_(-40)
    network.save_pretrained(directory)
    return directory


def test_a_rise_above_the_baseline_is_an_alarm(folder, turnmill, tmp_path):
    arguments = ("--data", folder / "out", "--baseline", folder / "first")
    same = turnmill("evaluate", folder / "model", *arguments)
    assert (same.code, "+0.0000 ± 0.0000" in same.out) == (0, True)
    rose = turnmill("evaluate", worse_model(tmp_path / "worse"), *arguments, "-o", tmp_path / "result")
    assert rose.code == 3
    assert "more: its loss rose by" in rose.err
    assert json.loads((tmp_path / "result" / "summary.json").read_text())["rises"] == ["capitals", "more"]


@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning")  # peft asks transformers so
def test_adapters_are_put_on_their_base(folder, evaluate, turnmill, tmp_path):
    import peft
    import transformers

    network = transformers.AutoModelForCausalLM.from_pretrained(folder / "model")
    adapted = peft.get_peft_model(network, peft.LoraConfig(r=4, target_modules=["q_proj"], init_lora_weights=False))
    adapted.save_pretrained(tmp_path / "adapter")
    adapted.merge_and_unload().save_pretrained(save_chat_model(tmp_path / "merged"))
    arguments = ("--data", folder / "out", "--json")
    merged = turnmill("evaluate", tmp_path / "merged", *arguments).json
    found = turnmill("evaluate", tmp_path / "adapter", *arguments).json
    assert found["loss"] == pytest.approx(merged["loss"], abs=1e-5)
    assert found["loss"] != pytest.approx(evaluate("--data", folder / "out")["loss"], abs=1e-5)
    assert found["model"]["adapter"]


def test_a_set_that_the_template_cannot_say_is_missing_from_the_battery(folder, turnmill, tmp_path):
    (tmp_path / "plain.jinja").write_text(
        "{%- for message in messages %}{{ '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}"
        "{%- endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
    )
    done = turnmill("evaluate", folder / "model", "--template", tmp_path / "plain.jinja", "--battery", "--json")
    assert done.code == 0, done.err
    assert list(done.json["missing"]) == ["battery/tool-use"]
    assert "battery/tool-use is missing: source 'battery/tool-use'" in done.err


def test_the_battery_is_scored_and_counts_nothing_beside_other_sets(folder, evaluate):
    alone = evaluate("--battery", "--samples", "2")
    beside = evaluate("--battery", "--samples", "2", "--data", folder / "out")
    assert len(alone["sets"]) == 6
    assert alone["loss"] == pytest.approx(np.mean([one["loss"] for one in alone["sets"].values()]))
    assert beside["loss"] == pytest.approx(evaluate("--data", folder / "out", "--samples", "2")["loss"])
    assert beside["metrics"]["eval/battery/code/loss"] == alone["metrics"]["eval/battery/code/loss"]


def test_observations_are_told_apart(folder, evaluate):
    tools = Path(__file__).parents[2] / "src" / "turnmill" / "data" / "battery" / "tool-use.jsonl"
    found = evaluate("--data", tools, "--samples", "3", "--evaluate.observations", "true")
    assert {"call", "observation"} <= found["kinds"].keys()


def test_python_gives_what_the_command_line_gives(folder, evaluate, tmp_path):
    import turnmill

    said = evaluate("--data", folder / "out")
    made = turnmill.evaluate(folder / "model", folder / "out", output=tmp_path / "result", baseline=folder / "first")
    assert made.evaluation.loss == said["loss"]
    assert made.alarms == []
    assert made.baseline.total.rows == sum(one["examples"] for one in said["sets"].values())
    assert (tmp_path / "result" / "items.parquet").is_file()


def test_in_training_raw_rows_are_made_as_the_data_were(folder, turnmill, tmp_path):
    from turnmill.config import load
    from turnmill.options import Model
    from turnmill.verbs.eval_sets import asked_in_training, eval_sets

    template = tmp_path / "own.jinja"
    text = (folder / "model" / "chat_template.jinja").read_text("utf-8")
    template.write_text(text.replace("'<|im_start|>'", "'\\n<|im_start|>'"), "utf-8")
    options = ["--model", folder / "model", "--template", template, "--workers", "1", "--output", tmp_path / "out"]
    assert turnmill("prepare", folder / "capitals.jsonl", *options).code == 0
    config, origins = load(None, [("evaluate.eval_sources", f"[{{name: raw, data: {folder / 'capitals.jsonl'}}}]")])
    prepared = open_prepared(tmp_path / "out")
    (found,) = eval_sets(asked_in_training(config, origins, prepared, str(folder / "model"))).sets
    assert sorted(found.items.lengths()) == sorted(prepared.examples().lengths())
    asked = asked_in_training(config, origins, prepared, str(folder / "model"))
    (again,) = eval_sets(asked._replace(model=Model(str(folder / "model"), "chatml"))).sets
    assert sorted(again.items.lengths()) == sorted(found.items.lengths())
    template.unlink()
    with pytest.raises(StaleError, match=r"a template .* that is not found any more"):
        asked_in_training(config, origins, prepared, str(folder / "model"))


def test_a_text_may_stand_in_another_column(folder, turnmill, tmp_path):
    write_rows(tmp_path / "docs.jsonl", [{"body": f"{fact} is a pair of words."} for fact in FACTS])
    sources = [
        {"name": "body", "data": str(tmp_path / "docs.jsonl"), "mode": "text", "columns": {"text": "body"}},
        {"name": "text", "data": str(folder / "texts.jsonl"), "mode": "text"},
    ]
    sets = turnmill("evaluate", config_of(tmp_path, sources), folder / "model", "--json").json["sets"]
    assert sets["body"]["nll"] == pytest.approx(sets["text"]["nll"])


@pytest.mark.parametrize(("model_type", "layout"), [("qwen3", "flat"), ("gpt_oss", None)])
def test_packing_is_tried_before_it_is_done(folder, turnmill, tmp_path, model_type, layout):
    model = save_chat_model(tmp_path / model_type, model_type)
    packed = turnmill("evaluate", model, "--data", folder / "out", "--evaluate.packing", "on", "--json")
    padded = turnmill("evaluate", model, "--data", folder / "out", "--json").json
    if layout is None:
        assert (packed.code, "does not keep packed examples apart" in packed.err) == (2, True)
        assert packed.next_step.endswith("--evaluate.packing off")
    else:
        assert packed.json["layout"] == layout
        assert packed.json["loss"] == pytest.approx(padded["loss"], abs=1e-5)
    assert padded["layout"] == "padded"


def test_dialect_and_repairs_of_raw_data_are_typed(folder, evaluate, turnmill, tmp_path):
    turns = [("human", "Capital of Peru?"), ("human", "Tell me."), ("gpt", "Lima.")]
    row = {"conversations": [{"from": who, "value": text} for who, text in turns]}
    data = write_rows(tmp_path / "shared.jsonl", [row])
    found = evaluate("--data", data, "--dialect", "sharegpt", "--repairs", "merge-turns")
    assert found["sets"]["shared"]["examples"] == 1
    assert turnmill("evaluate", folder / "model", "--data", data, "--dialect", "alpaca").code == 3


def test_a_trained_model_is_scored_on_what_its_data_held_out(folder, evaluate, turnmill, tmp_path):
    from turnmill.files.publish import publish

    said = {"folder": str(folder / "out"), "fingerprint": open_prepared(folder / "out").manifest["fingerprint"]}
    files = {path.name: path for path in (folder / "model").iterdir()}
    for name, data in (("trained", said), ("other", {**said, "fingerprint": "0"})):
        summary = json.dumps({"data": data}).encode()
        publish({**files, "summary.json": summary}, tmp_path / name, about={"kind": "trained"})
    found = turnmill("evaluate", tmp_path / "trained", "--json").json
    assert found["loss"] == evaluate("--data", folder / "out")["loss"]
    assert "there is nothing to evaluate on" in turnmill("evaluate", tmp_path / "other").err


def test_the_battery_is_masked_alike_whatever_was_trained_on(folder, evaluate, turnmill, tmp_path):
    options = ["--model", folder / "model", "--loss.turns", "last", "--fit.max_tokens", "90", "--workers", "1"]
    assert turnmill("prepare", folder / "capitals.jsonl", *options, "--output", tmp_path / "last").code == 0
    alone = evaluate("--battery", "--samples", "4")
    beside = evaluate(
        "--battery", "--samples", "4", "--data", f"{tmp_path / 'last'}#train", "--loss.reasoning", "false"
    )
    for name, one in alone["sets"].items():
        assert beside["sets"][name]["tokens"] == one["tokens"]
