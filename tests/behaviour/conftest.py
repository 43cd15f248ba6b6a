from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

from published import Published
from turnmill.cli.app import run

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="session")
def examples() -> Path:
    return EXAMPLES


@pytest.fixture
def rows(write: Callable[[str, str], Path]) -> Callable[..., Path]:
    """Writes records as JSON lines and gives the file's path."""

    def call(*records: Any, name: str = "rows.jsonl") -> Path:
        return write(name, "".join(json.dumps(record) + "\n" for record in records))

    return call


@pytest.fixture(scope="session")
def prepared(examples: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """OUT of four good rows, one of them twice, and the faulty ones; read only."""
    folder = tmp_path_factory.mktemp("left")
    good = (examples / "assistant.jsonl").read_text("utf-8").splitlines()[4:8]
    (folder / "good.jsonl").write_text("\n".join([*good, good[0]]) + "\n", "utf-8")
    data = [str(folder / "good.jsonl"), str(examples / "faulty.jsonl")]
    assert run(["prepare", *data, "--model", "smollm2", "--output", str(folder / "out"), "--workers", "1"]) == 0
    return folder / "out"


@pytest.fixture(scope="session")
def tokenizer(smollm2_directory) -> Tokenizer:
    return Tokenizer.from_file(str(smollm2_directory / "tokenizer.json"))


@pytest.fixture(scope="session")
def examples_config(tmp_path_factory) -> Path:
    """The repository's example config, with paths that hold wherever the tests are started."""
    text = (EXAMPLES / "run.yaml").read_text().replace("examples/", f"{EXAMPLES}/")
    path = tmp_path_factory.mktemp("config") / "run.yaml"
    path.write_text(text)
    return path


@pytest.fixture(scope="session")
def prepared_examples(examples_config, tmp_path_factory) -> Published:
    """OUT of the example config; read only."""
    output = tmp_path_factory.mktemp("prepared") / "out"
    assert run(["prepare", str(examples_config), "--output", str(output)]) == 0
    return Published(output)


@pytest.fixture
def prepare(turnmill, tmp_path) -> Callable[..., Published]:
    """Prepares with SmolLM2 and gives what was published."""

    def call(*arguments: str | Path, output: str = "out", model: str | Path = "smollm2") -> Published:
        answer = turnmill("prepare", *arguments, "--model", model, "--output", tmp_path / output)
        assert answer.code == 0, answer.err
        return Published(tmp_path / output)

    return call


@pytest.fixture
def model_with(smollm2_directory, tmp_path) -> Callable[[str], Path]:
    """Makes a model directory with SmolLM2's tokenizer and the given template."""

    def call(template: str, name: str = "model") -> Path:
        directory = tmp_path / name
        directory.mkdir()
        for file in ("tokenizer.json", "tokenizer_config.json", "config.json", "generation_config.json"):
            (directory / file).write_bytes((smollm2_directory / file).read_bytes())
        (directory / "chat_template.jinja").write_text(template)
        return directory

    return call
