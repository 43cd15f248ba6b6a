"""What `turnmill prepare` says to bad input: what, where, expected, the next command; nothing published."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from chats import chat, numbered
from published import Published
from turnmill.files.publish import claim

LINES = "".join(json.dumps(chat(*row)) + "\n" for row in numbered(30))
PLAIN = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"


@pytest.fixture
def refused(turnmill, tmp_path):
    """Runs prepare, and gives the answer where nothing was published."""

    def call(*arguments, code: int = 2, model="smollm2"):
        answer = turnmill("prepare", *arguments, "--model", model, "--output", tmp_path / "out")
        assert answer.code == code, answer.err
        assert answer.out == ""
        assert answer.err.startswith(("turnmill: ", "template: ")) or "\nturnmill: " in answer.err
        assert not (tmp_path / "out").exists()
        assert not list(tmp_path.glob(".out.draft"))
        return answer

    return call


def said(answer) -> str:
    return answer.err.partition("turnmill: ")[2]


CONTENTS = [
    ("empty.jsonl", b"", "empty.jsonl is empty"),
    ("blank.jsonl", b"\n \n\n", "blank.jsonl is empty"),
    ("utf16.jsonl", LINES.encode("utf-16"), "UTF-16 text; expected UTF-8"),
    ("other.jsonl", b'{"left": "a", "right": "b"}\n' * 3, "dialect"),
    ("empty.json", b"[]", "empty.json is empty"),
]


@pytest.mark.parametrize(("name", "content", "message"), CONTENTS, ids=[name for name, *_ in CONTENTS])
def test_a_file_that_cannot_be_used_is_named(refused, write, name, content, message):
    answer = refused(write(name, content))
    assert message in said(answer)
    assert len(answer.next_step.split()) >= 2


def test_a_file_that_is_not_there_is_named(refused, tmp_path):
    answer = refused(tmp_path / "rows.jsonl")
    assert "no such file or directory" in said(answer)
    assert answer.next_step == f"ls {tmp_path}"


def test_no_data_and_no_model_are_asked_for(turnmill, write, tmp_path):
    assert "no data given" in turnmill("prepare", "--model", "smollm2", "-o", tmp_path / "out").err
    answer = turnmill("prepare", write("rows.jsonl", LINES), "-o", tmp_path / "out")
    assert answer.code == 2
    assert answer.next_step.endswith("--model smollm2")
    answer = turnmill("prepare", write("rows.jsonl", LINES), "--model", "smollm2")
    assert answer.code == 2
    assert answer.next_step.endswith("--output out")


FLAGS = [
    (["--dialect", "sharegtp"], "Did you mean 'sharegpt'?"),
    (["--loss.turn", "last"], "Did you mean"),
    (["--los.turns", "last"], "Did you mean"),
    (["--loss.turns", "first"], "'all'"),
    (["--max-tokens", "0"], "fit.max_tokens"),
    (["--split.fraction", "2"], "split.fraction"),
    (["--filter.use", "[stalled-call]"], "Did you mean 'stalled-tool-call'?"),
    (["--template", "chatlm"], "chatml"),
]


@pytest.mark.parametrize(("flags", "message"), FLAGS, ids=[" ".join(flags) for flags, _ in FLAGS])
def test_a_typo_is_told(refused, write, flags, message):
    answer = refused(write("rows.jsonl", LINES), *flags)
    assert message in said(answer)
    assert "turnmill" in answer.next_step


def test_a_typo_in_the_config_is_told_with_its_line(turnmill, write, tmp_path):
    path = write("run.yaml", "model:\n  name_or_path: smollm2\nsources:\n- name: a\n  dta: rows.jsonl\n")
    answer = turnmill("prepare", path, "--output", tmp_path / "out")
    assert answer.code == 2
    assert f"{path}:5" in answer.err
    assert "'data'" in answer.err


@pytest.mark.parametrize("what", ["missing", "empty", "a file", "no template"])
def test_a_model_that_cannot_be_used_is_named(refused, write, tmp_path, model_with, what):
    model = tmp_path / "model"
    if what == "empty":
        model.mkdir()
    elif what == "a file":
        model.write_text("x")
    elif what == "no template":
        (model_with(PLAIN) / "chat_template.jinja").unlink()
    answer = refused(write("rows.jsonl", LINES), model=model)
    assert str(model) in said(answer)
    assert len(answer.next_step.split()) >= 2


TEMPLATES = {
    "raises": "{{ raise_exception('never') }}",
    "loops": "{% for i in range(10**12) %}{{ messages[0].content }}{% endfor %}",
    "grows": "{{ 'x' * 10**11 }}" + PLAIN,
    "is no Jinja": "{% for m in messages %}",
    "says nothing": "hello",
    "reaches out": "{{ messages.__class__.__mro__[1].__subclasses__() }}" + PLAIN,
}


@pytest.mark.parametrize("what", TEMPLATES)
def test_a_template_that_cannot_be_used_is_refused_in_time(refused, write, model_with, what):
    started = time.monotonic()
    answer = refused(write("rows.jsonl", LINES), model=model_with(TEMPLATES[what]))
    assert "template" in said(answer)
    assert time.monotonic() - started < 60


def test_a_template_that_fails_on_some_rows_loses_just_those(turnmill, write, model_with, tmp_path):
    template = "{% for m in messages %}{% if 'boom' in m.content %}{{ raise_exception('no booms') }}{% endif %}"
    template += PLAIN.removeprefix("{% for m in messages %}")
    path = write("rows.jsonl", json.dumps(chat("boom", "x")) + "\n" + LINES)
    answer = turnmill("prepare", path, "--model", model_with(template), "-o", tmp_path / "out", "--json")
    assert answer.code == 0, answer.err
    assert answer.json["rows"]["rejected"] == sum(answer.json["codes"].values()) == 1


def cut_gzip(rows: int) -> bytes:
    whole = "".join(json.dumps(chat(f"{n} {os.urandom(200).hex()}", "x")) + "\n" for n in range(rows))
    packed = gzip.compress(whole.encode())
    return packed[: len(packed) // 2]


BROKEN = [
    ("rows.json", ("[" + ",\n".join(LINES.splitlines()[:25]) + ", {bro").encode()),
    ("rows.jsonl.gz", cut_gzip(60)),
]


@pytest.mark.parametrize(("name", "content"), BROKEN, ids=[name for name, _ in BROKEN])
def test_a_file_that_breaks_off_publishes_nothing_unless_asked(turnmill, refused, write, tmp_path, name, content):
    path = write(name, content)
    answer = refused(path, code=3)
    assert name in said(answer)
    assert "--read.keep_prefix true" in answer.next_step
    kept = turnmill(
        "prepare", path, "--model", "smollm2", "-o", tmp_path / "out", "--read.keep_prefix", "true", "--json"
    )
    assert kept.code == 0, kept.err
    assert kept.json["rows"]["accepted"] > 20
    assert kept.json["rows"]["rejected"] == 1


def test_a_folder_of_others_files_is_not_touched(turnmill, write, tmp_path):
    mine = write("out/thesis.txt", "years of work")
    answer = turnmill("prepare", write("rows.jsonl", LINES), "--model", "smollm2", "-o", tmp_path / "out")
    assert answer.code == 2
    assert "holds files that turnmill did not write" in answer.err
    assert answer.next_step == f"ls {tmp_path / 'out'}"
    assert mine.read_text() == "years of work"
    assert not list(tmp_path.glob(".out.*"))


def test_an_output_that_is_a_file_is_not_touched(turnmill, write, tmp_path):
    path = write("out", "mine")
    answer = turnmill("prepare", write("rows.jsonl", LINES), "--model", "smollm2", "-o", path)
    assert answer.code == 2
    assert path.read_text() == "mine"


@pytest.mark.parametrize("output", ["/sys/out", "/dev/null/out"])
def test_a_place_that_cannot_be_written_is_named(turnmill, write, output):
    answer = turnmill("prepare", write("rows.jsonl", LINES), "--model", "smollm2", "--output", output)
    assert answer.code == 2
    assert "cannot write" in answer.err
    assert answer.next_step.startswith("df -h /")


@pytest.fixture
def small_disk(tmp_path):
    """A disk of two megabytes."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", disk], capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip("only root may mount a disk")
    yield disk
    subprocess.run(["umount", disk], check=True)


def test_a_full_disk_is_named_and_nothing_is_lost(turnmill, write, small_disk, tmp_path):
    rows = "".join(json.dumps(chat(os.urandom(1500).hex(), "x")) + "\n" for _ in range(200))
    path, output = write("rows.jsonl", rows), small_disk / "out"
    answer = turnmill("prepare", path, "--model", "smollm2", "--output", output)
    assert answer.code == 2
    assert "No space left on device" in answer.err
    assert answer.next_step.startswith(f"df -h {small_disk}")
    assert not output.exists()
    elsewhere = turnmill("prepare", path, "--model", "smollm2", "--output", tmp_path / "out", "--json")
    assert elsewhere.json["rows"]["accepted"] == 200


def test_an_earlier_output_outlives_a_run_that_fails(turnmill, prepare, write, tmp_path):
    before = prepare(write("rows.jsonl", LINES)).sha256
    bad = write("bad.jsonl", "{}\n" * 30)
    answer = turnmill("prepare", bad, "--dialect", "openai", "--model", "smollm2", "-o", tmp_path / "out")
    assert answer.code == 3
    assert prepare(write("rows.jsonl", LINES)).sha256 == before


def command(path: Path, output: Path) -> list[str]:
    arguments = ["prepare", str(path), "--model", "smollm2", "--output", str(output), "--workers", "1"]
    return [sys.executable, "-c", "from turnmill.cli.app import main; main()", *arguments]


def test_a_second_run_on_one_output_waits_and_names_the_first(tmp_path, write):
    with claim(tmp_path / "out"):
        second = subprocess.run(
            command(write("rows.jsonl", LINES), tmp_path / "out"), capture_output=True, text=True, check=False
        )
    assert second.returncode == 2
    assert f"is being written by process {os.getpid()}; waited 10 s" in second.stderr
    assert second.stderr.splitlines()[-1] == f"ps -p {os.getpid()}"
    assert not (tmp_path / "out").exists()


def test_two_runs_on_one_output_succeed_in_turn(tmp_path, write, prepare):
    path = write("rows.jsonl", LINES)
    runs = [subprocess.Popen(command(path, tmp_path / "both"), stderr=subprocess.PIPE) for _ in range(2)]
    endings = [(run.communicate()[1], run.returncode) for run in runs]
    assert [code for _, code in endings] == [0, 0], endings
    assert Published(tmp_path / "both").sha256 == prepare(path).sha256
