"""What a URL names is read as the same local files are, and its credentials are never shown."""

from __future__ import annotations

import gzip
import io
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from fsspec.implementations.memory import MemoryFileSystem

from turnmill.errors import UsageError, redacted
from turnmill.files.plan import plan
from turnmill.files.read import records
from turnmill.options import Read

LINES = b"".join(b'{"n": %d}\n' % number for number in range(40))


def parquet() -> bytes:
    stored = io.BytesIO()
    pq.write_table(pa.table({"n": list(range(40))}), stored, row_group_size=7)
    return stored.getvalue()


FILES = {
    "rows/a.jsonl": LINES,
    "rows/a/z.json": b'[{"n": 1}, {"n": 2}]',
    "rows/b.jsonl.gz": gzip.compress(LINES, mtime=0) * 2,
    "rows/c.parquet": parquet(),
    "rows/d.ndjson.zst": zstandard.compress(LINES),
    "rows/e [1].jsonl": LINES,
    "rows/notes.md": b"x",
    "rows/.hidden.jsonl": LINES,
    "rows/.git/x.jsonl": LINES,
}


@pytest.fixture
def places(tmp_path: Path) -> Iterator[tuple[str, str]]:
    """Where the same files lie: a local folder, and a store."""
    for name, content in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    system = fsspec.filesystem("memory")
    system.pipe({f"/like-local/{name}": content for name, content in FILES.items()})
    yield str(tmp_path), "memory://like-local"
    system.rm("/like-local", recursive=True)


def read(data: list[str]) -> tuple[list, list]:
    planned = plan("mine", data, Read(), shard_bytes=64)
    found = [record for shard in planned.shards for record in records(shard, Read())]
    files = [(file.name, file.bytes, file.sha256, file.layout, file.compression) for file in planned.files]
    return files, [(record.source_file, record.source_line, record.row, record.value) for record in found]


@pytest.mark.parametrize(
    "data",
    [
        ["rows"],
        ["rows/"],
        ["rows/*.jsonl"],
        ["rows/**/*.json*"],
        ["rows/[bc]*"],
        ["rows/*"],
        ["rows/e [[]1].jsonl"],
        *([name] for name in FILES),
    ],
)
def test_files_hashes_and_rows_are_those_of_the_same_local_files(places, data) -> None:
    local, store = places
    found = read([f"{store}/{item}" for item in data])
    assert found == read([f"{local}/{item}" for item in data])


@pytest.mark.parametrize(
    ("url", "package", "line"),
    [
        ("s3://bucket/rows.jsonl", "s3fs", "pip install 'turnmill[s3]'"),
        ("gs://bucket/rows.jsonl", "gcsfs", "pip install gcsfs"),
        ("hf://datasets/org/name/rows.jsonl", "huggingface_hub", "pip install huggingface_hub"),
        ("simplecache::s3://bucket/rows.jsonl", "s3fs", "pip install 'turnmill[s3]'"),
    ],
)
def test_a_missing_package_is_named_with_the_line_that_installs_it(monkeypatch, url, package, line) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    for protocol in ("s3", "gs", "hf"):
        monkeypatch.delitem(sys.modules["fsspec.registry"]._registry, protocol, raising=False)
    with pytest.raises(UsageError) as caught:
        plan("mine", [url], Read())
    assert caught.value.next_step == line
    assert url in caught.value.message


class Refusing(MemoryFileSystem):
    """A store that says with which key it was asked, as some do."""

    protocol = "refusing"

    def _refuse(self, path: str, *_: object, **__: object) -> bool:
        raise RuntimeError(f"no access: refusing://AKIA:se/cret@bucket{path}")

    exists = isdir = size = _refuse  # type: ignore[assignment]  # whatever it is asked


@pytest.mark.parametrize("url", ["refusing://AKIA:se/cret@bucket/x.jsonl", "refusing://AKIA:se/cret@bucket/*.jsonl"])
def test_what_a_store_refuses_is_an_error_without_credentials(url: str) -> None:
    fsspec.register_implementation("refusing", Refusing, clobber=True)
    with pytest.raises(UsageError, match="no access") as caught:
        plan("mine", [url], Read())
    shown = "".join(traceback.format_exception(caught.value))
    assert "***@bucket" in shown
    assert "cret" not in shown


class Breaking(MemoryFileSystem):
    """A store that goes down while a file is read."""

    protocol = "breaking"

    def _open(self, path: str, *arguments: object, **options: object) -> io.BytesIO:
        file = super()._open(path, *arguments, **options)
        return Broken(file.getvalue())


class Broken(io.BytesIO):
    def read(self, count: int | None = -1) -> bytes:
        raise ConnectionError("went away: breaking://AKIA:se/cret@bucket/x.jsonl")


@pytest.mark.parametrize("name", ["x.jsonl", "x.parquet"])
def test_a_store_that_goes_down_while_it_is_read_is_an_error_without_credentials(name: str) -> None:
    fsspec.register_implementation("breaking", Breaking, clobber=True)
    Breaking().pipe({"breaking://down/x.jsonl": LINES, "breaking://down/x.parquet": parquet()})
    with pytest.raises(UsageError, match=r"cannot open breaking://down/x.*went away: breaking://\*\*\*@bucket"):
        plan("mine", [f"breaking://down/{name}"], Read())


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("cannot open s3://KEY:a/b+c@bucket/x.jsonl: no", "cannot open s3://***@bucket/x.jsonl: no"),
        ("'https://me@host/x.jsonl?sig=1/2&k=v'", "'https://***@host/x.jsonl?***'"),
        ("hf://datasets/org/name@v1/x.jsonl", "hf://datasets/org/name@v1/x.jsonl"),
        ("memory://bucket/?.jsonl", "memory://bucket/?.jsonl"),
        ("mail a@b.org: it's 1 ? 2", "mail a@b.org: it's 1 ? 2"),
    ],
)
def test_credentials_are_taken_out_of_urls(text: str, shown: str) -> None:
    assert redacted(text) == shown


def test_a_prepared_folder_in_a_store_is_refused() -> None:
    fsspec.filesystem("memory").pipe("/published/manifest.json", b'{"made_by": {"turnmill": "1"}, "files": []}')
    with pytest.raises(UsageError, match="is what turnmill prepared"):
        plan("mine", ["memory://published"], Read())
