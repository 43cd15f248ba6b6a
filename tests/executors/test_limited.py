"""A template in a process of its own: the same probe, or an error that says what it took too much of."""

import subprocess
import sys

import pytest

from tests_support import TRANSFORMERS_TOKENS, stops_of_template
from turnmill.errors import UsageError
from turnmill.executors import limited
from turnmill.executors.limited import Limits, probe_in_subprocess
from turnmill.rendering.probe import probe
from turnmill.rendering.template import Template

SLOW = (
    "{% set t = 'é' * 9999999 %}{% set u = t ~ '' %}{% for a in range(99999) %}{% if t == u %}{% endif %}{% endfor %}"
)
"""What no bound in the process counts: comparing."""


@pytest.mark.parametrize("name", ["qwen3", "gptoss", "gemma3", "deepseekv3"])
def test_the_probe_is_the_same_as_in_this_process(trl_templates, name):
    source = (trl_templates / f"{name}.jinja").read_text()
    stops = stops_of_template(source)
    own = probe(Template(source, TRANSFORMERS_TOKENS), stops)
    assert probe_in_subprocess(source, TRANSFORMERS_TOKENS, stops) == own


def test_a_template_that_cannot_be_used_is_refused_as_in_this_process():
    with pytest.raises(UsageError, match="hostile: line 1 is not Jinja"):
        probe_in_subprocess("{% for %}", {}, ["x"], name="hostile")


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        (Limits(cpu_s=1), "took over 1 s of one core"),
        (Limits(wall_s=1.0), "took over 1 s"),
    ],
)
def test_one_that_takes_too_long_is_ended(limits, said):
    with pytest.raises(UsageError, match=said):
        probe_in_subprocess(SLOW, {}, ["x"], limits=limits)


def test_one_that_takes_too_much_memory_is_ended():
    source = "{% set t = 'é' * 250000000 %}{% set u = t ~ '' %}{{ u }}"
    with pytest.raises(UsageError, match=r"memory|MemoryError"):
        probe_in_subprocess(source, {}, ["x"], limits=Limits(memory_mib=500))


REACHING_OUT = """
from turnmill.executors import limited
import subprocess
limited.hold(limited.Limits())
for attempt in (lambda: open(PATH, "w"), lambda: open("/etc/passwd"), lambda: subprocess.run(["true"])):
    try:
        print("done", attempt())
    except OSError:
        print("refused")
"""


def test_its_process_opens_no_file_and_starts_none(tmp_path):
    script = REACHING_OUT.replace("PATH", repr(str(tmp_path / "made.txt")))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["refused"] * 3
    assert list(tmp_path.iterdir()) == []


def test_its_process_is_told_no_secret(monkeypatch):
    monkeypatch.setenv("ACCESS_TOKEN", "secret")
    seen = {}
    monkeypatch.setattr(limited.subprocess, "run", lambda *_, **named: seen.update(named) or pytest.fail("not called"))
    with pytest.raises(pytest.fail.Exception):
        probe_in_subprocess("x", {}, ["x"])
    assert "ACCESS_TOKEN" not in seen["env"]
