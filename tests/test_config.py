from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from turnmill.config import Config, as_yaml, effective_fingerprint, field_help, json_schema, load
from turnmill.errors import UsageError
from turnmill.yaml_values import dump_yaml, load_yaml

Write = Callable[[str, str], Path]

RUN = """\
seed: 3
sources:
  - name: chat.a
    data: chat.jsonl
    loss: {turns: last}
render:
  date: 2025-02-03
pack:
"""


@pytest.fixture
def run_yaml(write: Write) -> Path:
    return write("run.yaml", RUN)


def test_a_file_sets_only_what_it_names(run_yaml: Path) -> None:
    config, _ = load(run_yaml)
    assert config.seed == 3
    assert config.sources[0].data == ("chat.jsonl",)
    assert config.render.date == "2025-02-03"
    assert config.pack == Config().pack


def test_every_value_has_an_origin(run_yaml: Path) -> None:
    _, origins = load(run_yaml, [("loss.reasoning", "false"), ("sources.chat.a.dialect", "sharegpt")])
    assert origins["seed"] == f"{run_yaml}:1"
    assert origins["sources.chat.a.loss"] == f"{run_yaml}:5"
    assert origins["sources.chat.a.dialect"] == "flag"
    assert origins["loss.reasoning"] == "flag"
    assert origins["loss.turns"] == "default"


@pytest.mark.parametrize(
    ("dotted", "text", "expected"),
    [
        ("seed", "7", 7),
        ("limit", "null", None),
        ("split.fraction", "1e-3", 0.001),
        ("pack.on", "false", False),
        ("model.name_or_path", "7", "7"),
        ("model.template", "null", None),
        ("render.date", "2025-02-03", "2025-02-03"),
        ("filter.use", "[]", ()),
        ("filter.use", "stalled-tool-call", ("stalled-tool-call",)),
        ("render.template_kwargs.depth", "2", {"depth": 2}),
        ("model.special_tokens.bos_token", "2", {"bos_token": "2"}),
    ],
)
def test_a_flag_is_read_as_its_field_wants(dotted: str, text: str, expected: Any) -> None:
    config, _ = load(None, [(dotted, text)])
    value: Any = config
    for key in dotted.split(".")[:2]:
        value = getattr(value, key)
    assert value == expected


@pytest.mark.parametrize("key", ["chat.a", "0"])
def test_a_source_is_named_by_name_or_number(run_yaml: Path, key: str) -> None:
    config, _ = load(run_yaml, [(f"sources.{key}.loss.turns", "all"), (f"sources.{key}.roles.bing", "assistant")])
    assert config.sources[0].loss == {"turns": "all"}
    assert config.sources[0].roles == {"bing": "assistant"}


def test_the_last_flag_of_a_field_wins() -> None:
    assert load(None, [("seed", "1"), ("seed", "2")])[0].seed == 2


@pytest.mark.parametrize(
    ("dotted", "text", "message"),
    [
        ("render.dat", "x", "--render.dat: unknown render field 'dat'. Did you mean 'date'? Known: add_stop"),
        ("rendr.date", "x", "--rendr.date: unknown section 'rendr'. Did you mean 'render'? Known: accelerate"),
        ("seed.x", "1", "--seed.x: seed is one value and has no fields"),
        ("seed", "x", "--seed: got 'x', expected a valid integer"),
        ("seed", "true", "--seed: got True, expected a valid integer"),
        ("pack.on", "yes", "--pack.on: got 'yes', expected a valid boolean"),
        ("loss.turns", "al", "--loss.turns: got 'al', expected 'all' or 'last'"),
        ("dedup.by", "[nearly]", "--dedup.by.0: got 'nearly', expected 'exact'"),
        ("dedup.near.threshold", "0.1", "--dedup.near.threshold: got 0.1, expected 0.3 to 1"),
        ("dedup.near.ngram", "0", "--dedup.near.ngram: got 0, expected 1 to 100"),
        ("decontaminate.ngram", "0", "--decontaminate.ngram: got 0, expected 1 to 100"),
        ("fit.max_tokens", "0", "--fit.max_tokens: got 0, expected at least 1"),
        ("split.fraction", "1.5", "--split.fraction: got 1.5, expected 0 to 1"),
        ("pack", "3", "--pack: got 3, expected an object"),
        ("sources.chat.dialect", "x", "--sources.chat.dialect: unknown source 'chat'. Known: none"),
        (
            "read.keep_columns",
            "[a, source]",
            "--read.keep_columns: got 'source', expected names that differ and are none",
        ),
        ("read.keep_columns", "[a, a]", "--read.keep_columns: got 'a', expected names that differ"),
        ("limit", "[", "--limit: not valid YAML: line 1, column 2: "),
        ("read.think_tags.5", "x", "--read.think_tags.5: got {'5': 'x'}, expected a valid array"),
    ],
)
def test_a_wrong_flag_is_one_line(dotted: str, text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        load(None, [(dotted, text)])
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("render:\n  dat: 1\n", ":2: render.dat: unknown render field 'dat'. Did you mean 'date'?"),
        ("rendr: {}\n", ":1: rendr: unknown section 'rendr'. Did you mean 'render'?"),
        ("sources:\n- name: a\n", ":2: sources.0.data: got nothing, expected a value"),
        ("sources:\n- {name: a, data: x, dialct: y}\n", ":2: sources.0.dialct: unknown source field 'dialct'."),
        ("sources:\n- {name: a, data: x}\n- {name: a, data: y}\n", ":3: sources.1.name: got 'a', expected a name that"),
        (
            "sources:\n- name: a\n  data: x\n  loss: {turn: all}\n",
            ":2: sources.0.loss.turn: unknown loss field 'turn'.",
        ),
        (
            "sources:\n- {name: a, data: x, health: {min_rows: no}}\n",
            ":2: sources.0.health.min_rows: got 'no', expected",
        ),
        ("sources:\n- name: a\n  data: x\n  health: {max_rejected: 2}\n",
         ":2: sources.0.health.max_rejected: got 2.0, expected 0 to 1"),
        ("sources: {a: x}\n", ":1: sources: got {'a': 'x'}, expected a valid array"),
        ("- a\n", ": got ['a'], expected a mapping of sections"),
        ("seed: 1\nseed: 2\n", ": not valid YAML: line 2, column 1: duplicate key 'seed'"),
        (
            "seed: !!binary aGk=\n",
            ": not valid YAML: line 1, column 7: tag 'tag:yaml.org,2002:binary' is not supported",
        ),
        ("seed: 1\n---\nseed: 2\n", ": not valid YAML: line 2, column 1: but found another document"),
        ("model:\n  special_tokens: {bos_token: 1}\n", ":2: model.special_tokens.bos_token: got 1, expected a valid"),
    ],
)  # fmt: skip
def test_a_wrong_file_is_one_line_with_its_place(write: Write, text: str, message: str) -> None:
    path = write("run.yaml", text)
    with pytest.raises(UsageError) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}{message}")
    assert "\n" not in str(caught.value)


def test_a_missing_file_suggests_its_neighbour(run_yaml: Path) -> None:
    with pytest.raises(UsageError, match=r"no such config file: .*rum\.yaml'\. Did you mean '.*run\.yaml'\?"):
        load(run_yaml.with_name("rum.yaml"))


def test_an_empty_file_is_the_defaults(write: Write) -> None:
    assert load(write("run.yaml", ""))[0] == Config()


@pytest.mark.parametrize(
    ("argument", "name", "data"),
    [
        ("a/b.jsonl.gz", "b", "a/b.jsonl.gz"),
        ("chat=a/b.jsonl", "chat", "a/b.jsonl"),
        ("rows/", "rows", "rows/"),
        ("rows/*.jsonl", "rows", "rows/*.jsonl"),
        ("*.jsonl", "data", "*.jsonl"),
        ("-", "stdin", "-"),
        ("https://host/rows.jsonl?sig=a/cret", "rows", "https://host/rows.jsonl?sig=a/cret"),
    ],
)
def test_data_become_named_sources(argument: str, name: str, data: str) -> None:
    config, origins = load(None, data=[argument], dialect="alpaca")
    assert [(source.name, source.data, source.dialect) for source in config.sources] == [(name, (data,), "alpaca")]
    assert origins[f"sources.{name}.data"] == "argument"


def test_data_take_the_place_of_the_files_sources(run_yaml: Path) -> None:
    config, origins = load(run_yaml, data=["x/b.jsonl", "y/b.jsonl"])
    assert [source.name for source in config.sources] == ["b", "b-2"]
    assert origins["sources.b.loss"] == "default"


def test_a_dialect_needs_data_on_the_command_line(run_yaml: Path) -> None:
    with pytest.raises(UsageError, match="--dialect is that of the data on the command line"):
        load(run_yaml, dialect="alpaca")


def test_shown_config_loads_as_itself(run_yaml: Path, write: Write) -> None:
    config, origins = load(run_yaml, [("render.template_kwargs", "{a: [1, 'on'], b: '#'}")])
    assert load(write("again.yaml", as_yaml(config)))[0] == config
    assert load(write("again.yaml", as_yaml(config, origins)))[0] == config


def test_the_fingerprint_follows_the_values() -> None:
    assert effective_fingerprint(load(None)[0]) == effective_fingerprint(load(None, [("seed", "0")])[0])
    assert effective_fingerprint(load(None)[0]) != effective_fingerprint(load(None, [("seed", "1")])[0])


def test_the_schema_describes_every_field() -> None:
    definitions = json_schema()["$defs"]
    assert definitions["Render"]["properties"]["date"]["description"] == "The day the template's clock shows."
    assert all(definition["additionalProperties"] is False for definition in definitions.values())


def test_help_lists_defaults_and_docstrings() -> None:
    rows = {row.path: row for row in field_help(["seed", "loss", "sources"])}
    assert rows["seed"].default == "0"
    assert rows["loss.turns"].text == "Train every assistant turn, or only the last."
    assert "sources.NAME.dialect" in rows


def test_overrides_of_a_source_go_over_the_section(run_yaml: Path) -> None:
    config, _ = load(run_yaml, [("loss.reasoning", "false")])
    loss = config.of(config.sources[0]).loss
    assert (loss.turns, loss.reasoning) == ("last", False)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(VALUES)
def test_dumped_yaml_loads_as_itself(value: Any) -> None:
    assert load_yaml(dump_yaml(value), "value")[0] == value


def test_our_yaml_leaves_the_librarys_alone() -> None:
    assert yaml.safe_load("on") is True
    assert load_yaml("[on, 2025-01-01, 12:30, 010]", "value")[0] == ["on", "2025-01-01", "12:30", "010"]
