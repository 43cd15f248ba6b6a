"""Every code that can be raised is documented, and every documented code can be raised."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import turnmill
from turnmill.codes import CODES

STAGES = {
    "read", "convert", "check", "filter", "dedup", "decontaminate", "render", "tokenize", "fit", "select", "template",
}  # fmt: skip
SOURCE = Path(turnmill.__file__).parent
OWN = (
    "dialects", "contract", "filters", "dedup", "decontaminate.py", "split.py", "selection.py", "sources", "errors.py",
)  # fmt: skip
RAISED_BY_CRAFT = ("convert", "check", "dedup", "decontaminate", "select")
KINDS = ("not-json", "duplicate-key", "non-finite")
"""Ends of `tool-arguments-…`, which one line composes."""


def source_text() -> str:
    files = [file for name in OWN for file in sorted((SOURCE / name).rglob("*.py")) or [SOURCE / name]]
    return "\n".join(file.read_text() for file in files)


def test_every_raised_code_is_documented():
    text = source_text()
    raised = set(re.findall(r'Rejected\(\s*"([a-z0-9-]+)"', text)) | set(
        re.findall(r'return "([a-z0-9-]+-[a-z0-9-]+)",', text)
    )
    raised |= {f"tool-arguments-{kind}" for kind in KINDS}
    assert len(raised) > 40
    assert raised <= set(CODES)


@pytest.mark.parametrize("code", sorted(code for code in CODES if CODES[code].stage in RAISED_BY_CRAFT))
def test_every_documented_code_is_raised(code):
    ending = next((kind for kind in KINDS if code == f"tool-arguments-{kind}"), code)
    assert f'"{ending}"' in source_text()


@pytest.mark.parametrize("code", sorted(CODES))
def test_a_code_says_what_it_means_and_what_to_do(code):
    entry = CODES[code]
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", code)
    assert entry.stage in STAGES
    assert entry.means.endswith(".")
    assert entry.example
    assert entry.remedy.endswith((".", "`"))
