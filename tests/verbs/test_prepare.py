from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from turnmill.config import load
from turnmill.errors import HealthError, UsageError
from turnmill.models import open_model
from turnmill.options import Fit, Loss, Model, Render
from turnmill.verbs.prepare import cache_of, check_sayable, plan_of, recipe_params
from turnmill.verbs.tokenize import Recipe

RECIPE = Recipe(Model("smollm2"), Render(), Loss(), Fit(), 1024)


@pytest.fixture(scope="module")
def model(smollm2_directory):
    return open_model(Model("smollm2"))


@pytest.mark.parametrize(
    "change",
    [
        {"loss": Loss(turns="last")},
        {"fit": Fit(overflow="drop")},
        {"max_tokens": 1000},
        {"template_kwargs": {"a": 1}},
        {"control_tokens": "keep"},
        {"render": Render(add_stop=False)},
        {"render": Render(control_tokens="keep")},
    ],
    ids=str,
)
def test_what_changes_a_byte_is_in_the_params(model, change):
    assert recipe_params(model, dataclasses.replace(RECIPE, **change)) != recipe_params(model, RECIPE)


@pytest.mark.parametrize(
    "change", [{"render": Render(on_unsayable="drop")}, {"render": Render(date="2030-01-01")}], ids=str
)
def test_what_changes_no_byte_is_not(model, change):
    assert recipe_params(model, dataclasses.replace(RECIPE, **change)) == recipe_params(model, RECIPE)


@pytest.mark.parametrize("field", ["template", "eos", "special_tokens"])
def test_the_model_is_in_the_params(model, field):
    changed = {"template": model.template + " ", "eos": frozenset({"x"}), "special_tokens": {"bos_token": "x"}}
    other = dataclasses.replace(model, **{field: changed[field]})
    assert recipe_params(other, RECIPE) != recipe_params(model, RECIPE)


def test_a_template_that_asks_the_clock_has_the_day_in_the_params(model):
    dated = dataclasses.replace(model, template=model.template + "{{ strftime_now('%Y') }}")
    later = dataclasses.replace(RECIPE, render=Render(date="2030-01-01"))
    assert recipe_params(dated, later) != recipe_params(dated, RECIPE)


COUNTS = [(1, 19, False), (1, 20, False), (2, 20, True), (5, 14, False), (5, 100, False), (6, 100, True)]


@pytest.mark.parametrize(("lost", "rows", "stops"), COUNTS)
def test_over_a_twentieth_of_at_least_twenty_rows_unsaid_stops(lost, rows, stops):
    counts = {"rows/rejected-at-render": lost, "rows/rejected": lost, "rows/accepted": rows - lost, "codes/c": lost}
    check_sayable("s", counts, Render(on_unsayable="drop"), "mine")
    if stops:
        with pytest.raises(HealthError, match=f"cannot say {lost} of {rows} rows"):
            check_sayable("s", counts, Render(), "mine")
    else:
        check_sayable("s", counts, Render(), "mine")


def test_the_cache_lies_beside_the_output_unless_it_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cache_of(Path("out"), None).folder == tmp_path / ".out.steps"
    assert cache_of(Path("out"), Path("there")) == (Path("there"), None)


@pytest.mark.parametrize(
    ("flags", "what"),
    [
        ([("split.fraction", "0.1"), ("split.rows", "3")], "both given"),
        ([("split.fraction", "1")], "less than 1"),
        ([("split.rows", "3"), ("split.group_field", "topic")], "'topic'; expected a column that read.keep_columns"),
    ],
)
def test_a_split_that_cannot_be_made_is_refused_before_any_row_is_read(flags, what):
    config, _ = load(None, [("model.name_or_path", "nowhere"), *flags], ["nowhere.jsonl"])
    with pytest.raises(UsageError, match=what):
        plan_of(config)


@pytest.mark.parametrize(("flags", "next_step"), [([], "turnmill prepare --help")])
def test_a_plan_needs_data(flags, next_step):
    config, _ = load(None, flags)
    with pytest.raises(UsageError, match="no data given") as refused:
        plan_of(config)
    assert refused.value.next_step == next_step
