"""`s3://` against a server that speaks the protocol."""

from __future__ import annotations

import gzip
import json
import os
import urllib.request

import pytest
import s3fs

from chats import chat, numbered
from stores_of_tests import NOBODY, SECRET, found_at, lines_of
from turnmill.errors import StaleError, UsageError
from turnmill.files.plan import plan
from turnmill.files.read import records
from turnmill.options import Read

FILES = {"rows/a.jsonl": lines_of(40), "rows/b/c.json.gz": gzip.compress(lines_of(7)), "rows/notes.md": b"x"}


@pytest.fixture
def bucket(s3) -> s3fs.S3FileSystem:
    s3.pipe({f"bucket/{name}": content for name, content in FILES.items()})
    return s3


@pytest.mark.parametrize(
    ("url", "names"),
    [
        ("s3://bucket/rows", ["a.jsonl", "b/c.json.gz"]),
        ("s3://bucket", ["rows/a.jsonl", "rows/b/c.json.gz"]),
        ("s3://bucket/rows/*.jsonl", ["a.jsonl"]),
        ("s3://bucket/**/*.gz", ["rows/b/c.json.gz"]),
        ("s3://bucket/rows/a.jsonl", ["a.jsonl"]),
    ],
)
def test_objects_folders_and_patterns_are_read(bucket, url, names):
    assert [name for name, _ in found_at(url)] == names


def test_objects_have_the_hashes_and_rows_of_local_files(bucket, tmp_path):
    for name in ("rows/a.jsonl", "rows/b/c.json.gz"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(FILES[name])
    assert found_at("s3://bucket/rows") == found_at(str(tmp_path / "rows"))


def test_an_object_that_changed_since_the_last_run_is_another_input(bucket):
    before = found_at("s3://bucket/rows/a.jsonl")
    bucket.pipe("bucket/rows/a.jsonl", lines_of(40, first=1))
    assert found_at("s3://bucket/rows/a.jsonl") != before


@pytest.mark.parametrize("content", [lines_of(40)[:-9] + b"         ", lines_of(41)], ids=["same size", "other size"])
def test_an_object_that_changes_before_it_is_read_is_refused(bucket, content):
    planned = plan("mine", ["s3://bucket/rows/a.jsonl"], Read())
    bucket.pipe("bucket/rows/a.jsonl", content)
    with pytest.raises(StaleError, match="has changed since it was planned") as caught:
        list(records(planned.shards[0], Read()))
    assert caught.value.next_step == "aws s3 ls s3://bucket/rows/a.jsonl"


def refused(url: str) -> UsageError:
    with pytest.raises(UsageError) as caught:
        plan("mine", [url], Read())
    assert SECRET not in f"{caught.value.message} {caught.value.next_step}"
    assert caught.value.next_step == f"aws s3 ls '{url}'" if "*" in url else f"aws s3 ls {url}"
    return caught.value


@pytest.mark.parametrize(
    "url", ["s3://bucket/none.jsonl", "s3://bucket/none", "s3://bucket/none*.jsonl", "s3://nobody-s/rows.jsonl"]
)
def test_what_is_not_there_is_named(bucket, url):
    assert f"no data file at {url}" in refused(url).message


def test_who_has_no_credentials_is_told(bucket, monkeypatch):
    s3fs.S3FileSystem.clear_instance_cache()
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    assert "credentials" in refused("s3://bucket/rows/a.jsonl").message


def admit(requests: int) -> None:
    """Let so many requests pass without looking who asks."""
    address = f"{os.environ['AWS_ENDPOINT_URL']}/moto-api/reset-auth"
    kind = {"Content-Type": "application/octet-stream"}
    urllib.request.urlopen(urllib.request.Request(address, str(requests).encode(), kind)).close()


def test_who_may_not_read_is_told(bucket):
    s3fs.S3FileSystem.clear_instance_cache()
    admit(0)
    try:
        assert "cannot open s3://bucket/rows/a.jsonl: " in refused("s3://bucket/rows/a.jsonl").message
    finally:
        admit(1_000_000_000)


def test_a_store_that_is_down_is_named(bucket, monkeypatch):
    s3fs.S3FileSystem.clear_instance_cache()
    monkeypatch.setenv("AWS_ENDPOINT_URL", NOBODY)
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    monkeypatch.setattr(s3fs.S3FileSystem, "retries", 1)
    assert f'Could not connect to the endpoint URL: "{NOBODY}/' in refused("s3://bucket/rows/a.jsonl").message


def test_preparing_objects_gives_what_preparing_files_gives(bucket, turnmill, tmp_path):
    content = "".join(json.dumps(chat(*row)) + "\n" for row in numbered(30))
    bucket.pipe("bucket/chats/rows.jsonl", content.encode())
    (tmp_path / "rows.jsonl").write_text(content)
    made = {}
    for name, data in {"remote": "s3://bucket/chats/rows.jsonl", "local": tmp_path / "rows.jsonl"}.items():
        answer = turnmill("prepare", data, "--model", "smollm2", "--output", tmp_path / name, "--workers", "2")
        assert (answer.code, SECRET in answer.out + answer.err) == (0, False), answer.err
        made[name] = json.loads((tmp_path / name / "manifest.json").read_text())["files"]
    assert [entry["sha256"] for entry in made["remote"]] == [entry["sha256"] for entry in made["local"]]
    run = json.loads((tmp_path / "remote" / "run.json").read_text())
    assert list(run["remote_files"].values()) == [{"rows.jsonl": "s3://bucket/chats/rows.jsonl"}]
    files = [path for path in (tmp_path / "remote").rglob("*") if path.is_file()]
    assert not [path for path in files if SECRET.encode() in path.read_bytes()]
