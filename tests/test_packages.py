from __future__ import annotations

from pathlib import Path

import pytest

from turnmill.errors import UsageError
from turnmill.packages import CACHE_VARIABLE, cached, download


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


def fill(directory: Path) -> None:
    (directory / "x").write_text("1")


def test_a_directory_is_built_once(cache: Path) -> None:
    built: list[Path] = []

    def build(directory: Path) -> None:
        built.append(directory)
        fill(directory)

    assert cached("thing", build) == cached("thing", build) == cache / "thing"
    assert len(built) == 1
    assert (cache / "thing" / "x").read_text() == "1"


def test_a_failed_build_leaves_nothing(cache: Path) -> None:
    def fail(directory: Path) -> None:
        fill(directory)
        raise UsageError("no")

    with pytest.raises(UsageError, match="no"):
        cached("thing", fail)
    assert [path.name for path in cache.iterdir() if path.is_dir()] == []


def test_a_cache_that_is_no_directory_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "file"))
    with pytest.raises(UsageError, match="cannot write to the cache") as caught:
        cached("thing", fill)
    assert caught.value.next_step == f"export {CACHE_VARIABLE}=DIR"


def test_a_failed_download_says_what_to_try(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="could not download turnmill==0: ") as caught:
        download("turnmill==0", tmp_path, "--no-index")
    assert caught.value.next_step == "pip download --no-deps turnmill==0"
