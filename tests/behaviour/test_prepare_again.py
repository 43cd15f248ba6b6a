"""Preparing again: the same bytes, only what changed is made anew, and nothing that was tampered with is used."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from chats import numbered
from published import hashes

TEMPLATE = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
VERBS = {"check", "filter", "dedup", "split", "tokenize", "pack"}


def steps(tmp_path: Path) -> set[str]:
    return {path.name for path in (tmp_path / ".out.steps").iterdir() if not path.name.startswith(".")}


def verbs(folders: set[str]) -> set[str]:
    return {name.partition("-")[0] for name in folders}


@pytest.fixture
def rows(chats) -> Path:
    return chats("rows.jsonl", *numbered(60))


def test_a_second_run_makes_nothing_new(prepare, rows, tmp_path):
    first = prepare(rows).sha256
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / ".out.steps").rglob("*")}
    assert prepare(rows).sha256 == first
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / ".out.steps").rglob("*")} == before


@pytest.mark.parametrize("flags", [("--workers", "2"), ("--workers", "1"), ("--cache", "elsewhere")])
def test_out_is_the_same_however_it_is_made(prepare, rows, flags, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert prepare(rows, *flags, output="other").sha256 == prepare(rows).sha256


def test_out_is_the_same_wherever_data_and_output_lie(prepare, rows, tmp_path):
    first = prepare(f"rows={rows}")
    (tmp_path / "in").mkdir()
    moved = Path(shutil.copy(rows, tmp_path / "in" / "rows.jsonl"))
    assert prepare(f"rows={moved}", output="deep/er/out").sha256 == first.sha256


CHANGES = [
    (["--seed", "1"], {"pack"}),
    (["--pack.order", "kept"], {"pack"}),
    (["--pack.materialise", "false"], {"pack"}),
    (["--max-tokens", "50"], {"tokenize", "pack"}),
    (["--loss.turns", "last"], {"tokenize", "pack"}),
    (["--render.control_tokens", "keep"], {"tokenize", "pack"}),
    (["--split.fraction", "0.3"], {"split", "tokenize", "pack"}),
    (["--filter.use", "[]"], {"filter", "dedup", "split", "tokenize", "pack"}),
    (["--dedup.by", "[]"], {"dedup", "split", "tokenize", "pack"}),
    (["--check.max_turn_characters", "5000"], VERBS),
    (["--render.on_unsayable", "drop"], set()),
    (["--render.date", "2025-02-02"], set()),
    (["--health.max_rejected", "0.5"], set()),
    (["--workers", "3"], set()),
    (["--read.keep_prefix", "true"], set()),
]


@pytest.mark.parametrize(("flags", "made"), CHANGES, ids=[flags[0] for flags, _ in CHANGES])
def test_only_what_a_change_concerns_is_made_anew(prepare, rows, tmp_path, flags, made):
    prepare(rows)
    before = steps(tmp_path)
    prepare(rows, *flags)
    assert verbs(steps(tmp_path) - before) == made


def test_another_template_renders_anew_and_reads_nothing_again(prepare, model_with, rows, tmp_path):
    prepare(rows)
    before = steps(tmp_path)
    prepare(rows, model=model_with(TEMPLATE))
    assert verbs(steps(tmp_path) - before) == {"tokenize", "pack"}


def test_the_same_model_elsewhere_makes_nothing_new(prepare, model_with, rows, tmp_path):
    prepare(rows, model=model_with(TEMPLATE, "here"))
    before = steps(tmp_path)
    prepare(rows, model=model_with(TEMPLATE, "there"))
    assert steps(tmp_path) == before


def test_rows_that_are_added_leave_other_sources_alone(prepare, chats, tmp_path):
    one, two = chats("one.jsonl", *numbered(30)), chats("two.jsonl", *numbered(30, 30))
    prepare(one, two)
    before = steps(tmp_path)
    prepare(one, chats("two.jsonl", *numbered(40, 30)))
    new = sorted(steps(tmp_path) - before)
    assert [name.partition("-")[0] for name in new].count("check") == 1


def test_an_output_that_is_a_link_is_followed(prepare, rows, tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "disk" / "real")
    first = prepare(rows).sha256
    assert prepare(rows).sha256 == first
    assert (tmp_path / "out").is_symlink()
    assert {path.name for path in (tmp_path / "disk").iterdir()} == {"real", ".real.lock", ".real.steps"}


@pytest.mark.parametrize("cache", ["out", "out/steps", "out/../out/x"])
def test_a_cache_inside_the_output_is_refused(turnmill, rows, tmp_path, cache):
    flags = ["--model", "smollm2", "--output", tmp_path / "out", "--cache", tmp_path / cache]
    answer = turnmill("prepare", rows, *flags)
    assert answer.code == 2
    assert "lies inside the output" in answer.err
    assert answer.next_step.endswith(f"--cache {tmp_path / '.out.steps'}")
    assert not (tmp_path / "out").exists()


FLIPS = ["train/packed/part-00000.parquet", "train/examples/part-00000.arrow", "report.json"]


@pytest.mark.parametrize("name", FLIPS)
def test_a_run_puts_a_damaged_output_right(prepare, rows, tmp_path, name):
    first = prepare(rows).sha256
    path = tmp_path / "out" / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.unlink()
    path.write_bytes(content)
    assert prepare(rows).sha256 == first


def test_a_step_folder_with_a_missing_file_is_refused(turnmill, prepare, rows, tmp_path):
    prepare(rows)
    victim = next((tmp_path / ".out.steps").glob("check-*/shards/00000/conversations.parquet"))
    victim.unlink()
    answer = turnmill("prepare", rows, "--model", "smollm2", "--output", tmp_path / "out", "--seed", "5")
    assert answer.code == 4
    assert "shards/00000/conversations.parquet (missing)" in answer.err
    assert answer.next_step == f"rm -r {victim.parents[2]}"


def test_a_step_folder_with_a_flipped_byte_is_not_published(turnmill, prepare, rows, tmp_path):
    published = prepare(rows)
    before = published.sha256
    victim = next((tmp_path / ".out.steps").glob("tokenize-*/shards/00000/train.arrow"))
    content = bytearray(victim.read_bytes())
    content[len(content) // 2] ^= 1
    victim.unlink()  # OUT holds hard links to the old bytes
    victim.write_bytes(content)
    answer = turnmill("prepare", rows, "--model", "smollm2", "--output", tmp_path / "out")
    assert answer.code == 4
    assert "train.arrow" in answer.err
    assert hashes(tmp_path / "out").items() >= before.items()


def test_an_output_is_no_place_for_another_output_and_no_part_of_a_folder_of_data(prepare, turnmill, chats, tmp_path):
    data = chats("rows.jsonl", *numbered(3))
    output = prepare(data).folder
    inside = turnmill("prepare", data, "--model", "smollm2", "--output", output / "more")
    assert inside.code == 2
    assert "lies inside" in inside.err
    assert not (output / "more").exists()
    assert "rows: 3 read" in turnmill("prepare", tmp_path, "--model", "smollm2", "--output", output).out


def test_the_next_command_can_be_typed_whatever_the_path(turnmill, chats, tmp_path):
    answer = turnmill(
        "prepare", chats("rows.jsonl", *numbered(3)), "--model", "smollm2", "--output", tmp_path / "my out"
    )
    assert answer.next_step == f"turnmill explain '{tmp_path}/my out' 0"
