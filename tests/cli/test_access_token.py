from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


def test_a_token_is_shown_once_and_kept_as_a_hash(turnmill: Run, tmp_path: Path) -> None:
    database = tmp_path / "turnmill.db"
    made = turnmill("access-token", "new", "ci", "--scope", "write", "--expires", "30d", "--database", database)
    token = made.out.strip()
    assert (made.code, token[:3], len(token) > 40) == (0, "tm_", True)
    (listed,) = turnmill("access-token", "list", "--json", "--database", database).json
    assert (listed["name"], listed["scope"], listed["revoked_at"], listed["last_used_at"]) == (
        "ci",
        "write",
        None,
        None,
    )
    assert token.encode() not in b"".join(file.read_bytes() for file in tmp_path.iterdir())


def test_a_revoked_token_stays_in_the_list(turnmill: Run, tmp_path: Path) -> None:
    database = tmp_path / "turnmill.db"
    turnmill("access-token", "new", "ci", "--database", database)
    assert turnmill("access-token", "revoke", "ci", "--database", database).out == "ci is revoked\n"
    (listed,) = turnmill("access-token", "list", "--json", "--database", database).json
    assert listed["revoked_at"] is not None
    assert "ci" in turnmill("access-token", "list", "--database", database).out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["new", "ci", "--scope", "root"], "unknown scope 'root'"),
        (["new", "ci", "--expires", "soon"], "expected a number and m, h, d or w"),
        (["new", "ci", "--expires", "0d"], "expected a number and m, h, d or w"),
        (["new", " "], "expected 1 to 128 characters"),
        (["new", "taken"], "names are never used again"),
        (["revoke", "none"], "unknown access token 'none'"),
    ],
)
def test_what_cannot_be_is_refused(turnmill: Run, tmp_path: Path, arguments: list[str], said: str) -> None:
    database = tmp_path / "turnmill.db"
    turnmill("access-token", "new", "taken", "--database", database)
    refused = turnmill("access-token", *arguments, "--database", database)
    assert (refused.code, refused.out) == (2, "")
    assert said in refused.err
