"""`turnmill explain OUT ROW` on what `prepare` published."""

from __future__ import annotations

from pathlib import Path


def test_every_row_is_there_those_that_left_too(turnmill, prepared: Path) -> None:
    found = turnmill("explain", prepared, "all", "--json").rows
    assert [row["row"] for row in found] == list(range(21))
    assert sum("code" in row for row in found) == 16


def test_what_is_explained_is_what_was_written(turnmill, prepared: Path) -> None:
    import pyarrow.ipc

    row = turnmill("explain", prepared, "0", "--json").json
    (path,) = sorted((prepared / "train" / "examples").glob("*.arrow"))[:1]
    stored = pyarrow.ipc.open_file(path).read_all().to_pylist()
    assert row["id"] == stored[0]["row_id"]
    assert row["input_ids"] == stored[0]["input_ids"]


def test_a_prepared_row_is_explained_as_its_raw_row(turnmill, prepared: Path) -> None:
    raw = turnmill("explain", prepared.parent / "good.jsonl", "2", "--model", "smollm2", "--json").json
    assert turnmill("explain", prepared, "2", "--json").json == raw
    assert turnmill("explain", prepared, raw["id"], "--json").json == raw


def test_a_duplicate_is_shown_with_its_text_and_what_it_repeats(turnmill, prepared: Path) -> None:
    row = turnmill("explain", prepared, "4", "--json").json
    assert (row["code"], row["examples"]) == ("duplicate", [])
    assert "row 0" in row["message"]
    assert row["text"].startswith("<|im_start|>")
    assert {turn["why"] for turn in row["turns"]} == {"rejected:duplicate"}


def test_options_that_are_typed_go_over_the_recipe(turnmill, prepared: Path) -> None:
    def trained(*flags: str) -> int:
        return sum(turn["trained"] for turn in turnmill("explain", prepared, "0", *flags, "--json").json["turns"])

    assert (trained(), trained("--loss.turns", "last")) == (2, 1)


def test_a_typed_template_goes_over_the_recipe(turnmill, prepared: Path, trl_templates: Path) -> None:
    flags = ("--template", trl_templates / "qwen3.jinja", "--json")
    row = turnmill("explain", prepared, "2", *flags).json  # Qwen3 leaves reasoning out of earlier turns
    assert row["text"].count("<think>") == 1
    assert turnmill("explain", prepared, "2", "--json").json["text"].count("<think>") == 2
    assert row["input_ids"]


def test_the_next_command_is_about_the_folder(turnmill, prepared: Path) -> None:
    assert turnmill("explain", prepared, "0").next_step == f"turnmill quarantine show {prepared}"


def test_a_folder_that_somebody_changed_is_refused(turnmill, prepared: Path, tmp_path: Path) -> None:
    import shutil

    changed = shutil.copytree(prepared, tmp_path / "changed")
    next((changed / "quarantine").glob("*.parquet")).write_bytes(b"PAR1")
    assert turnmill("explain", changed, "0").code == 4
    assert turnmill("quarantine", "show", changed).code == 4
    (changed / "manifest.json").write_text("{}")
    assert turnmill("explain", changed, "0").code == 4


def test_the_folder_of_a_step_is_not_a_prepared_one(turnmill, prepared: Path) -> None:
    step = next((prepared.parent / ".out.steps").glob("check-*"))
    answer = turnmill("explain", step, "0")
    assert (answer.code, "holds a step of a run" in answer.err) == (2, True)
