from __future__ import annotations

from collections.abc import Callable
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
    shelf_options.require_packages()
