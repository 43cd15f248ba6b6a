from __future__ import annotations

import click
import pytest

from turnmill.cli.arguments import Invocation, configured, split_overrides
from turnmill.errors import UsageError


@configured("sources", "render", trailing=["ROW"])
@click.option("--html", help="Write a page.")
def explain(call: Invocation, html: str | None) -> tuple[Invocation, str | None]:
    """Say why."""
    return call, html


@configured("model")
def configured_template(call: Invocation) -> tuple[Invocation, None]:
    """Show the template."""
    return call, None


def invoke(*arguments: str) -> tuple[Invocation, str | None]:
    return explain.main(list(arguments), prog_name="explain", standalone_mode=False)


def test_data_flags_and_trailing_arguments_in_any_order() -> None:
    call, html = invoke(
        "--render.date=2024-01-01", "a.jsonl", "--html", "x.html", "b.jsonl", "--seed", "4", "17", "--json"
    )
    assert call.arguments == ("a.jsonl", "b.jsonl")
    assert call.trailing == ("17",)
    assert call.json
    assert html == "x.html"
    assert (call.config.render.date, call.config.seed) == ("2024-01-01", 4)
    assert [source.name for source in call.config.sources] == ["a", "b"]


def test_the_dialect_is_that_of_the_data() -> None:
    call, _ = invoke("a.jsonl", "3", "--dialect", "alpaca")
    assert call.config.sources[0].dialect == "alpaca"


def test_a_yaml_file_is_the_config(write) -> None:
    path = write("run.yaml", "seed: 9\nsources: [{name: a, data: x}]\n")
    call, _ = invoke(str(path), "0")
    assert call.config.seed == 9
    assert call.origins["seed"] == f"{path}:1"


def test_a_missing_trailing_argument_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="explain needs ROW after the data"):
        invoke()


def test_sources_are_needed_where_they_are_read() -> None:
    with click.Context(explain), pytest.raises(UsageError, match="no data given"):
        _ = invoke("1")[0].sources


def test_special_tokens_are_json() -> None:
    call, _ = configured_template.main(
        ["--special-tokens", '{"bos_token": "<s>"}'], prog_name="template", standalone_mode=False
    )
    assert call.config.model.special_tokens == {"bos_token": "<s>"}


def test_a_short_option_belongs_to_its_section() -> None:
    with pytest.raises(click.NoSuchOption):
        invoke("a.jsonl", "1", "--max-tokens", "5")


def test_help_names_fields_of_the_sections_alone() -> None:
    text = explain.get_help(click.Context(explain))
    assert "[CONFIG.yaml | DATA...] ROW" in text
    assert "--render.date" in text
    assert "--sources.NAME.dialect" in text
    assert "--pack.on" not in text


@pytest.mark.parametrize(
    ("arguments", "rest", "overrides"),
    [
        (["a", "--x.y", "1", "b"], ["a", "b"], [("x.y", "1")]),
        (["--x.y=--odd"], [], [("x.y", "--odd")]),
        (["--x.y", "-1"], [], [("x.y", "-1")]),
        (["--out=a.b", "c"], ["--out=a.b", "c"], []),
        (["--", "--x.y", "1"], ["--", "--x.y", "1"], []),
    ],
)
def test_dotted_flags_are_taken_out(arguments, rest, overrides) -> None:
    assert split_overrides(arguments) == (rest, overrides)


@pytest.mark.parametrize("arguments", [["--x.y"], ["--x.y", "--z"]])
def test_a_dotted_flag_needs_a_value(arguments) -> None:
    with pytest.raises(UsageError, match=r"--x\.y needs a value"):
        split_overrides(arguments)
