from __future__ import annotations

import os
import subprocess
import sys

import pytest

from turnmill import __version__
from turnmill.cli.app import whole_command

ENTRY = "from turnmill.cli.app import main; main()"


def test_help_lists_every_verb_with_its_first_line(turnmill) -> None:
    answer = turnmill("--help")
    assert answer.code == 0
    assert "config  " in answer.out
    assert "Show the effective config, its schema, or import another tool's." in " ".join(answer.out.split())


def test_version(turnmill) -> None:
    assert turnmill("--version").out == f"turnmill {__version__}\n"


def test_no_command_shows_help_and_is_a_usage_error(turnmill) -> None:
    answer = turnmill()
    assert (answer.code, answer.out) == (2, "")
    assert "Commands:" in answer.err


@pytest.mark.parametrize(
    ("arguments", "message", "next_step"),
    [
        (["cofnig"], "turnmill: unknown command 'cofnig'. Did you mean 'config'? Known: ", "turnmill --help"),
        (["config", "shwo"], "turnmill: No such command 'shwo'.", "turnmill config --help"),
        (["config", "show", "--orgins"], "turnmill: No such option '--orgins'.", "turnmill config show --help"),
        (["config", "show", "--loss.turns"], "turnmill: --loss.turns needs a value", "turnmill config schema"),
        (["config", "show", "--loss.trns=all"], "turnmill: --loss.trns: unknown loss field", "turnmill config schema"),
        (["config", "show", "nowhere.yaml"], "turnmill: no such config file: 'nowhere.yaml'.", "turnmill config show"),
        (["list", "filter"], "turnmill: unknown family 'filter'. Did you mean 'filters'?", "turnmill list dialects"),
    ],
)
def test_a_usage_error_ends_with_the_next_command(turnmill, arguments, message, next_step) -> None:
    answer = turnmill(*arguments)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith(message)
    assert answer.next_step == next_step


@pytest.mark.parametrize(
    ("next_step", "command"),
    [
        ("--model smollm2", "turnmill explain 'my rows.jsonl' 3 --model smollm2"),
        ("turnmill list dialects", "turnmill list dialects"),
        (None, None),
    ],
)
def test_a_flag_as_next_step_completes_the_command_line(next_step, command) -> None:
    assert whole_command(next_step, ["explain", "my rows.jsonl", "3"]) == command


@pytest.mark.parametrize("typed", [["--model", "nosuch"], ["--model=nosuch"]])
def test_a_flag_as_next_step_takes_the_place_of_the_faulty_one(typed) -> None:
    assert (
        whole_command("--model smollm2", ["prepare", "a", *typed, "--json"])
        == "turnmill prepare a --json --model smollm2"
    )


def test_a_closed_pipe_is_quiet() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([sys.executable, "-c", ENTRY, "config", "schema"], stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert done.stderr == b""
    assert done.returncode == 1


def test_a_bug_keeps_its_traceback(turnmill, monkeypatch) -> None:
    from turnmill import config

    monkeypatch.setattr(config, "json_schema", lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        turnmill("config", "schema")
