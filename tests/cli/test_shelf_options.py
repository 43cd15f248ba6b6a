from __future__ import annotations

import re
from collections.abc import Callable
from importlib.metadata import requires
from typing import Any

import pytest

from turnmill.cli import shelf_options


@pytest.mark.parametrize(
    "arguments",
    [
        ["serve"], ["worker"], ["job", "list"], ["job", "start", "facts"], ["access-token", "new", "ci"],
        ["access-token", "list"], ["access-token", "revoke", "ci"],
    ],
)  # fmt: skip
def test_a_missing_package_is_told_with_what_brings_it(
    turnmill: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.setattr(shelf_options, "PACKAGES", ("no_such_package",))
    refused = turnmill(*arguments)
    assert (refused.code, refused.next_step) == (2, "pip install 'turnmill[serve]'")


def test_everything_that_a_service_needs_is_in_its_extra() -> None:
    told = [line for line in requires("turnmill") or [] if 'extra == "serve"' in line or "extra == 'serve'" in line]
    brought = {re.split(r"[^A-Za-z0-9-]", line)[0].lower() for line in told}
    assert {name.replace("_", "-") for name in shelf_options.PACKAGES} <= brought
