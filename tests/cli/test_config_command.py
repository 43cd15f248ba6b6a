from __future__ import annotations

import json

import yaml


def test_show_prints_yaml(turnmill) -> None:
    answer = turnmill("config", "show", "--model", "smollm2", "--max-tokens", "512", "--limit", "3")
    shown = yaml.safe_load(answer.out)
    assert shown["model"]["name_or_path"] == "smollm2"
    assert shown["fit"]["max_tokens"] == 512
    assert shown["limit"] == 3


def test_show_origins(turnmill, write) -> None:
    path = write("run.yaml", "seed: 5\n")
    lines = turnmill("config", "show", path, "--loss.turns", "last", "--origins").out.splitlines()
    assert f"seed: 5  # {path}:1" in lines
    assert "  turns: last  # flag" in lines
    assert "  reasoning: true  # default" in lines


def test_show_json(turnmill) -> None:
    answer = turnmill("config", "show", "rows.jsonl", "--json", "--origins").json
    assert answer["config"]["sources"][0]["data"] == ["rows.jsonl"]
    assert answer["origins"]["sources.rows.name"] == "argument"


def test_schema_is_json_schema(turnmill) -> None:
    schema = json.loads(turnmill("config", "schema").out)
    assert schema["properties"]["seed"]["type"] == "integer"
    assert schema["additionalProperties"] is False


def test_import_prints_yaml_that_loads(turnmill, write) -> None:
    path = write("data/dataset_info.json", '{"mine": {"file_name": "a.jsonl"}, "hub": {"hf_hub_url": "org/set"}}')
    answer = turnmill("config", "import", path)
    assert "# hub: not read: hf_hub_url" in answer.out
    config = write("run.yaml", answer.out)
    (source,) = turnmill("config", "show", config, "--json").json["config"]["sources"]
    assert (source["name"], source["data"], source["dialect"]) == ("mine", [str(path.parent / "a.jsonl")], "alpaca")
    assert answer.err.endswith("> run.yaml; turnmill check run.yaml\n")


def test_import_json(turnmill, write) -> None:
    path = write("old.yaml", "data: {dataset: a.jsonl, max_seq_length: 2048, mix_epoch: total}\n")
    answer = turnmill("config", "import", path, "--json").json
    assert answer["config"]["fit"] == {"max_tokens": 2048}
    assert answer["notes"] == ["data.mix_epoch: 'total' is not yet read"]


def test_import_says_what_is_no_config(turnmill, write) -> None:
    cases = {"x.json": "[]", "y.json": "{", "z.yaml": "- 1", "w.yaml": "seed: 1"}
    answers = [turnmill("config", "import", write(name, text)) for name, text in cases.items()]
    answers.append(turnmill("config", "import", "absent.json"))
    answers.append(turnmill("config", "import", write("v.yaml", "data: {}"), "name"))
    assert [answer.code for answer in answers] == [2] * 6
