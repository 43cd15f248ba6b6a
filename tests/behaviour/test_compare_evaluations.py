"""`turnmill compare` of two evaluations: told apart by their manifests, paired row by row."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tiny_chat_models import save_chat_model
from turnmill.cli.app import run

ROWS = [
    {"messages": [{"role": "user", "content": f"Capital of {name}land?"}, {"role": "assistant", "content": f"{name}."}]}
    for name in ("Alpha", "Be", "Gamma Gamma", "D")
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Two models over the same rows, the second over one row less; read only."""
    folder = tmp_path_factory.mktemp("compare")
    for name, rows, seed in (("a", ROWS, 1), ("b", ROWS[1:], 2)):
        model = save_chat_model(folder / f"model-{name}", seed=seed)
        data = folder / name / "rows.jsonl"
        data.parent.mkdir()
        data.write_text("".join(json.dumps(row) + "\n" for row in rows))
        assert run(["evaluate", str(model), "--data", str(data), "-o", str(folder / f"result-{name}")]) == 0
    prepare = ["prepare", str(folder / "a" / "rows.jsonl"), "--model", str(folder / "model-a"), "--workers", "1"]
    assert run([*prepare, "--output", str(folder / "out")]) == 0
    return folder


def test_rows_of_both_are_paired_and_the_others_counted(turnmill, folder):
    found = turnmill("compare", folder / "result-a", folder / "result-b", "--json").json
    assert (found["kind"], found["only_a"], found["only_b"], found["other_tokens"]) == ("evaluation", 1, 0, 0)
    one = found["sets"]["rows"]
    assert (one["rows"], one["better"] + one["worse"]) == (3, 3)
    assert one["difference"] == pytest.approx(one["second"] - one["first"])
    assert one["standard_error"] > 0
    assert found["kinds"]["stop"]["tokens"] == 3


def test_a_table_shows_each_set_and_kind(turnmill, folder):
    done = turnmill("compare", folder / "result-a", folder / "result-b")
    assert done.code == 0
    for word in ("rows ", "answer ", "all ", "standard error", f"1 rows are only in {folder / 'result-a'}"):
        assert word in done.out


@pytest.mark.parametrize(
    ("first", "second", "says"),
    [
        ("result-a", "out", "out is a folder of the kind 'prepared'; expected two evaluations"),
        ("out", "result-a", "out is a folder of the kind 'prepared'; expected two evaluations"),
        ("result-a", "nowhere", "nowhere is no folder of turnmill's; expected two evaluations"),
        ("result-a", None, "is an evaluation, nothing beside it; expected two evaluations"),
    ],
)
def test_what_is_no_pair_of_evaluations_is_refused(turnmill, folder, first, second, says):
    done = turnmill("compare", *(folder / name for name in (first, second) if name))
    assert done.code == 2
    assert says in done.err


def test_evaluations_without_a_row_in_common_are_refused(turnmill, folder, tmp_path):
    done = turnmill("evaluate", folder / "model-a", "--battery", "--samples", "1", "-o", tmp_path / "battery")
    assert done.code == 0
    done = turnmill("compare", folder / "result-a", tmp_path / "battery")
    assert done.code == 2
    assert "have no row in common: 4 rows are only in the first, 6 only in the second" in done.err


def test_two_prepared_folders_are_compared_as_ever(turnmill, folder):
    assert turnmill("compare", folder / "out", folder / "out", "--json").json["shared_rows"] == 4
