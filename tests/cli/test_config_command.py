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
