import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_each_shell_asks_turnmill(turnmill, shell):
    answer = turnmill("completion", shell)
    assert answer.code == 0
    assert "_TURNMILL_COMPLETE" in answer.out
    assert f"turnmill completion {shell}" in answer.next_step


def test_another_shell_is_named(turnmill):
    answer = turnmill("completion", "bahs")
    assert answer.code == 2
    assert "Did you mean 'bash'?" in answer.err


@pytest.mark.parametrize(
    ("words", "position", "offered"), [("turnmill ex", 1, "explain"), ("turnmill prepare --dry", 2, "--dry-run")]
)
def test_a_shell_is_offered_verbs_and_options(words, position, offered):
    environment = {
        **os.environ, "_TURNMILL_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(position),
    }  # fmt: skip
    program = Path(sys.executable).with_name("turnmill")
    done = subprocess.run([program], env=environment, capture_output=True, text=True)
    assert offered in done.stdout
