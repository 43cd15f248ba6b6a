"""Stores of this machine: a dataset hub, and Amazon's object store as moto plays it. Each is started once a session."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

import hub_stand_in
from stores_of_tests import SECRET


@pytest.fixture(scope="session")
def hub_server() -> Iterator[hub_stand_in.Hub]:
    with hub_stand_in.serving() as hub:
        yield hub


@pytest.fixture
def hub(hub_server, monkeypatch) -> Iterator[hub_stand_in.Hub]:
    """The hub, asked by one who has no token."""
    from huggingface_hub import HfFileSystem, constants

    stands_at = "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "ENDPOINT", hub_server.url)  # as HF_ENDPOINT sets both when a process begins
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", f"{hub_server.url}{stands_at}")
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.setenv("HF_HUB_DISABLE_IMPLICIT_TOKEN", "1")
    HfFileSystem.clear_instance_cache()
    yield hub_server
    HfFileSystem.clear_instance_cache()


@pytest.fixture(scope="session")
def s3_server() -> Iterator[str]:
    """Address of the server."""
    command = [sys.executable, "-m", "moto.server", "-p", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as server:
        assert server.stderr is not None
        said = (re.search(r"Running on (http://\S+)", line) for line in server.stderr)
        address = next(found[1] for found in said if found)
        rest = threading.Thread(target=server.stderr.read)  # a line a request: unread they would stop the server
        rest.start()
        yield address
        server.terminate()
        rest.join()


@pytest.fixture
def s3(s3_server, monkeypatch):
    """The file system that writes into the store; the environment says where it is and who asks."""
    import s3fs

    settings = {"ENDPOINT_URL": s3_server, "ACCESS_KEY_ID": "AKIAKNOWN", "SECRET_ACCESS_KEY": SECRET}
    settings |= {"DEFAULT_REGION": "us-east-1", "EC2_METADATA_DISABLED": "true"}
    for name, value in settings.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    s3fs.S3FileSystem.clear_instance_cache()
    system = s3fs.S3FileSystem()
    system.mkdir("bucket")
    yield system
    s3fs.S3FileSystem.clear_instance_cache()
    clean = s3fs.S3FileSystem(key="AKIAKNOWN", secret=SECRET, endpoint_url=s3_server)
    clean.rm("bucket", recursive=True)
    s3fs.S3FileSystem.clear_instance_cache()
