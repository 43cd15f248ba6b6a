"""Pinned files are fetched whole or not at all: resumed where a run broke off, kept only with the hash promised."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from typing import ClassVar

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from turnmill.errors import StaleError, UsageError
from turnmill.files.download import CHUNK_BYTES, Wanted, fetch, partial_name, wanted_files

CONTENT = bytes(range(256)) * (3 * CHUNK_BYTES // 256) + b"end"
SHA256 = hashlib.sha256(CONTENT).hexdigest()
FILES = {"data/a.jsonl": CONTENT, "data/b/c.jsonl": b"{}\n", "README.md": b"x"}


class Cut(MemoryFileSystem):
    """A store that says how long a file is and ends it before, until it is mended."""

    protocol = "cut"
    store: ClassVar[dict] = {}
    at: ClassVar[int | None] = None
    asked: ClassVar[list[int]] = []

    def _open(self, path: str, *arguments: object, **options: object) -> io.BytesIO:
        return CutFile(super()._open(path, *arguments, **options).getvalue())


class CutFile(io.BytesIO):
    def read(self, count: int | None = -1) -> bytes:
        Cut.asked.append(self.tell())
        data = super().read(count)
        return data if Cut.at is None else data[: max(0, Cut.at - (self.tell() - len(data)))]


@pytest.fixture
def store(monkeypatch) -> str:
    fsspec.register_implementation("cut", Cut, clobber=True)
    Cut().pipe({f"cut://rows/{name}": content for name, content in FILES.items()})
    monkeypatch.setattr(Cut, "at", None)
    monkeypatch.setattr(Cut, "asked", [])
    return "cut://rows"


@pytest.fixture
def get(tmp_path: Path):
    """Fetches a file of the store; gives its path here and that of what came so far."""

    def call(path: str, sha256: str | None = SHA256) -> tuple[Path, Path]:
        wanted = Wanted(path, "a.jsonl", sha256)
        target, partial = tmp_path / "shard" / "a.jsonl", tmp_path / ".downloads" / partial_name(wanted)
        try:
            fetch(wanted, target, partial)
        finally:
            call.left = partial
        return target, partial

    return call


@pytest.mark.parametrize("place", ["store", "folder"])
def test_a_file_is_fetched_whole_and_nothing_is_left_behind(store, get, tmp_path, place) -> None:
    (tmp_path / "a.jsonl").write_bytes(CONTENT)
    target, partial = get(f"{store}/data/a.jsonl" if place == "store" else str(tmp_path / "a.jsonl"))
    assert (target.read_bytes() == CONTENT, partial.exists()) == (True, False)


def test_a_download_that_is_cut_off_goes_on_where_it_stopped(store, get) -> None:
    Cut.at = CHUNK_BYTES + 7
    with pytest.raises(UsageError, match=r"ended after 1,048,583 bytes; expected 3,145,731; what came is kept"):
        get(f"{store}/data/a.jsonl")
    assert get.left.stat().st_size == Cut.at
    Cut.at, Cut.asked[:] = None, []
    target, partial = get(f"{store}/data/a.jsonl")
    assert (target.read_bytes() == CONTENT, partial.exists()) == (True, False)
    assert min(Cut.asked) == CHUNK_BYTES + 7


def test_a_part_that_is_longer_than_the_file_is_thrown_away(store, get) -> None:
    path = f"{store}/data/a.jsonl"
    Cut.at = 5
    with pytest.raises(UsageError):
        get(path)
    Cut.at = None
    get.left.write_bytes(CONTENT + b"more")
    assert get(path)[0].read_bytes() == CONTENT


def test_a_file_with_another_hash_is_thrown_away(store, get) -> None:
    with pytest.raises(StaleError, match=rf"has sha256 {SHA256}; expected {'0' * 64}; it was thrown away"):
        get(f"{store}/data/a.jsonl", "0" * 64)
    assert not get.left.exists()


def test_a_part_that_another_file_left_does_not_pass_for_this_one(store, get) -> None:
    Cut.at = 100
    with pytest.raises(UsageError):
        get(f"{store}/data/a.jsonl")
    get.left.write_bytes(b"y" * 100)
    Cut.at = None
    with pytest.raises(StaleError, match="it was thrown away"):
        get(f"{store}/data/a.jsonl")
    assert get(f"{store}/data/a.jsonl")[0].read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("files", "names"),
    [
        (("data/*.jsonl",), ["data/a.jsonl"]),
        (("data/**/*.jsonl",), ["data/a.jsonl", "data/b/c.jsonl"]),
        (("data/b/c.jsonl", "data/a.jsonl"), ["data/b/c.jsonl", "data/a.jsonl"]),
    ],
)
@pytest.mark.parametrize("place", ["store", "folder"])
def test_a_pin_names_files_below_its_root(store, tmp_path, place, files, names) -> None:
    for name, content in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content[:10])
    found = wanted_files(store if place == "store" else str(tmp_path), files, dict.fromkeys(names, SHA256))
    assert [(wanted.name, wanted.sha256) for wanted in found] == [(name, SHA256) for name in names]


def test_every_file_of_a_store_without_commits_has_a_hash(store, tmp_path) -> None:
    with pytest.raises(UsageError, match=r"cut://rows/data/b/c\.jsonl has no pinned hash"):
        wanted_files(store, ("data/**/*.jsonl",), {"data/a.jsonl": SHA256})


@pytest.mark.parametrize(
    ("files", "hashes", "what"),
    [
        (("none/*.jsonl",), {}, "none"),
        (("data/none.jsonl",), {}, "none.jsonl"),
        (
            ("data/a.jsonl",),
            {"data/a.jsonl": SHA256, "data/z.jsonl": SHA256},
            "has no data/z.jsonl, whose hash is pinned; it has data/a.jsonl",
        ),
    ],
)
@pytest.mark.parametrize("place", ["store", "folder"])
def test_what_is_not_there_is_named(store, tmp_path, place, files, hashes, what) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.jsonl").write_bytes(b"{}\n")
    with pytest.raises(UsageError, match=what):
        wanted_files(store if place == "store" else str(tmp_path), files, hashes)
