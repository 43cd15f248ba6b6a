"""A source pinned on a hub, or at a web address: fetched at its commit, checksummed, resumed after a cut."""

from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from chats import chat, numbered
from hub_stand_in import REPOSITORY
from pinned_sources import BuiltSource, fixture_rows, said
from turnmill.errors import StaleError, UsageError
from turnmill.files.download import wanted_files
from turnmill.steps.graph import check_outcomes, run
from turnmill.verbs.source_steps import downloaded, nodes_of

SOURCE = """
from turnmill.sources import Pin, PinnedSource

def mine():
    return PinnedSource(Pin({url!r}, {files!r}, {sha256!r}), tokens=1e6, licence="cc0-1.0")
"""
MEBIBYTE = 1 << 20


def parquet(rows: list[dict]) -> bytes:
    stored = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), stored, compression="none", use_dictionary=False)
    return stored.getvalue()


LARGE = parquet([chat(f"{n}?", f"{n} " * 60_000, id=str(n)) for n in range(60)])
SMALL = "".join(json.dumps(chat(*turns)) + "\n" for turns in numbered(5, start=50)).encode()
FILES = {"data/large-0.parquet": LARGE, "data/small.jsonl": SMALL, "README.md": b"x"}


@pytest.fixture
def commit(hub):
    hub.ranges.clear()
    yield hub.commit(FILES)
    hub.sends = None


@pytest.fixture
def source(tmp_path):
    def call(url: str, *files: str, sha256: str | None = None) -> str:
        path = tmp_path / "mine.py"
        path.write_text(SOURCE.format(url=url, files=files, sha256={files[0]: sha256} if sha256 else {}))
        return f"{path}:mine"

    return call


def test_a_source_on_a_hub_becomes_chats_and_texts(commit, source, tmp_path) -> None:
    url = f"hf://datasets/{REPOSITORY}@{commit}"
    built = BuiltSource(source(url, "data/*.parquet", "data/*.jsonl"), tmp_path / "cache")
    files = downloaded(built.folder("download"))
    assert [name for _, name in files] == ["data/large-0.parquet", "data/small.jsonl"]
    assert [Path(path).read_bytes() for path, _ in files] == [LARGE, SMALL]
    assert len(built.table("normalized")) == 65
    assert built.counters("download") == {"download/bytes": len(LARGE) + len(SMALL), "download/files": 2}
    assert not list((tmp_path / "cache" / ".downloads").iterdir())


def test_the_hash_that_the_hub_keeps_is_demanded(commit) -> None:
    found = wanted_files(f"hf://datasets/{REPOSITORY}@{commit}", ("data/*",), {})
    assert [one.sha256 for one in found] == [hashlib.sha256(LARGE).hexdigest(), None]


def test_a_download_that_the_hub_cuts_off_goes_on_in_the_next_run(hub, commit, source, tmp_path) -> None:
    nodes = nodes_of(source(f"hf://datasets/{REPOSITORY}@{commit}", "data/large-0.parquet"))
    hub.sends = 6 * MEBIBYTE
    with pytest.raises(UsageError, match="cannot open"):
        check_outcomes(run([nodes.download], tmp_path / "cache"))
    (partial,) = (tmp_path / "cache" / ".downloads").iterdir()
    came = partial.stat().st_size
    assert 0 < came < len(LARGE)
    hub.sends = None
    hub.ranges.clear()
    check_outcomes(run([nodes.download], tmp_path / "cache"))
    assert hub.ranges[0].startswith(f"bytes={came}-")
    ((path, _),) = downloaded(nodes.download.folder(tmp_path / "cache"))
    assert Path(path).read_bytes() == LARGE


def test_a_second_run_asks_the_hub_for_no_file(hub, commit, source, tmp_path) -> None:
    key = source(f"hf://datasets/{REPOSITORY}@{commit}", "data/small.jsonl")
    BuiltSource(key, tmp_path / "cache")
    hub.ranges.clear()
    assert {outcome.state for outcome in BuiltSource(key, tmp_path / "cache").outcomes} == {"built"}
    assert hub.ranges == []


@pytest.mark.parametrize(
    ("revision", "files", "what"),
    [("f" * 40, ("data/*",), "revision not found"), (None, ("none/*.parquet",), "none")],
)
def test_what_is_gone_is_named_and_nothing_is_published(commit, source, tmp_path, revision, files, what) -> None:
    nodes = nodes_of(source(f"hf://datasets/{REPOSITORY}@{revision or commit}", *files))
    with pytest.raises(UsageError, match=what) as caught:
        check_outcomes(run([nodes.normalized], tmp_path / "cache"))
    assert caught.value.next_step
    assert not nodes.download.folder(tmp_path / "cache").exists()


def test_a_web_address_is_fetched_with_its_hash(hub, commit, source, tmp_path) -> None:
    url = f"{hub.url}/datasets/{REPOSITORY}/resolve/{commit}/data"
    key = source(url, "small.jsonl", sha256=hashlib.sha256(SMALL).hexdigest())
    built = BuiltSource(key, tmp_path / "cache")
    assert said(built.table("conversations")[0])[0] == ("user", "What is 50 plus 50?")


def test_a_web_address_with_other_bytes_is_refused(hub, commit, source, tmp_path) -> None:
    url = f"{hub.url}/datasets/{REPOSITORY}/resolve/{commit}/data"
    nodes = nodes_of(source(url, "small.jsonl", sha256="0" * 64))
    with pytest.raises(StaleError, match="it was thrown away"):
        check_outcomes(run([nodes.download], tmp_path / "cache"))


def test_a_source_of_ours_is_fetched_at_the_commit_it_pins(hub, tmp_path) -> None:
    """The coderforge source, its repository and commit replaced by those of the stand-in, its patterns as they are."""
    rows = fixture_rows("coderforge")
    names = [f"trajectories/{part}-00000-of-00001.parquet" for part in ("SWE_Rebench", "SWE_Smith", "R2E_Gym")]
    other = "trajectories/filtered_reward1-00000-of-00001.parquet"
    commit = hub.commit({**dict.fromkeys(names, parquet(rows)), other: b"not asked for"})
    path = tmp_path / "override.py"
    path.write_text(
        "import dataclasses\nfrom turnmill.sources import Pin, sources\n\n\ndef mine():\n"
        "    source = sources.get('coderforge')()\n"
        f"    pin = Pin('hf://datasets/{REPOSITORY}@{commit}', source.pin.files)\n"
        "    return dataclasses.replace(source, pin=pin)\n"
    )
    built = BuiltSource(f"{path}:mine", tmp_path / "cache")
    assert sorted(built.chats) == ["t1", "t2"]
    assert [name for _, name in downloaded(built.folder("download"))] == names
