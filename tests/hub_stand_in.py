"""A server that answers what `hf://` asks of a dataset hub, and what pushing and pulling do.

One repository lies there from the start, in memory, with commits and a branch; others are made over the wire.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

from hub_writes import Made, Writes

REPOSITORY = "org/name"
TOKEN = "hf_a-token-that-opens-the-door"
PRIVATE = "org/private"


class Hub:
    """Commits of one public dataset; another one is private and has the same files."""

    def __init__(self) -> None:
        self.commits: dict[str, dict[str, bytes]] = {}
        self.branches: dict[str, str] = {}
        self.asked: list[str] = []
        self.ranges: list[str] = []
        """Of the files that were sent."""
        self.sends: int | None = None
        """Bytes of files that it still sends before it refuses; None: all."""
        self.url = ""
        self.token = TOKEN
        self.made: dict[str, Made] = {}
        self.objects: dict[str, bytes] = {}
        self.uploads: list[str] = []
        self.takes: int | None = None
        """Uploads that it still takes before it refuses; None: all."""

    def commit(self, files: dict[str, bytes], branch: str = "main") -> str:
        """Add a commit, which the branch then stands at; gives its hash."""
        content = repr((len(self.commits), sorted(files.items()))).encode()
        sha = hashlib.sha1(content, usedforsecurity=False).hexdigest()
        self.commits[sha] = files
        self.branches[branch] = sha
        return sha

    def files_at(self, revision: str) -> tuple[str, dict[str, bytes]] | None:
        """Hash and files of a branch or commit, None where there is none of that name."""
        sha = self.branches.get(revision, revision)
        return (sha, self.commits[sha]) if sha in self.commits else None


def entry(path: str, content: bytes) -> dict[str, Any]:
    oid = hashlib.sha1(content, usedforsecurity=False).hexdigest()
    found = {"type": "file", "oid": oid, "size": len(content), "path": path}
    if path.endswith(".parquet"):  # a hub keeps the hash of large files
        found["lfs"] = {"oid": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 134}
    return found


def listing(files: dict[str, bytes], below: str, recursive: bool) -> list[dict[str, Any]] | None:
    prefix = f"{below}/" if below else ""
    inside = {path: content for path, content in files.items() if path.startswith(prefix)}
    if not inside:
        return None
    cuts = {path[: match.start()] for path in inside for match in re.finditer("/", path)}
    parents = {path for path in cuts if len(path) > len(below)}
    found = [{"type": "directory", "oid": "0" * 40, "size": 0, "path": path} for path in sorted(parents)]
    found += [entry(path, content) for path, content in sorted(inside.items())]
    return [each for each in found if recursive or "/" not in each["path"].removeprefix(prefix)]


class Handler(Writes, BaseHTTPRequestHandler):
    """The four routes: revision, tree, paths-info, resolve."""

    hub: Hub
    wbufsize = 1 << 16  # one packet an answer
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self.answer(head=True)

    def do_GET(self) -> None:
        self.answer()

    def do_POST(self) -> None:
        raw = self._read_body()
        if self.written(raw):
            return
        body = raw.decode()
        paths = json.loads(body)["paths"] if body.startswith("{") else re.findall("paths=([^&]*)", body)
        self.answer(paths=[unquote(path) for path in paths])

    def answer(self, head: bool = False, paths: list[str] | None = None) -> None:
        asked = urlsplit(self.path)
        self.hub.asked.append(asked.path)
        route = re.fullmatch(
            r"(?:/api)?/datasets/([^/]+/[^/]+)(?:/(revision|tree|paths-info|resolve)/([^/]+)/?(.*))?", asked.path
        )
        if route is None or route[1] not in (REPOSITORY, PRIVATE, *self.hub.made):
            return self.refuse(404, "RepoNotFound")
        made = self.hub.made.get(route[1])
        if (route[1] == PRIVATE or (made and made.private)) and self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self.refuse(401, "GatedRepo")
        found = (made or self.hub).files_at(unquote(route[3] or "main"))
        if found is None:
            return self.refuse(404, "RevisionNotFound")
        sha, files = found
        kind, path = route[2], unquote(route[4] or "")
        if kind == "resolve":
            return self.send_file(files.get(path), sha, head)
        if kind == "tree":
            return self.send_json(listing(files, path, "recursive=true" in asked.query.lower()))
        if kind == "paths-info":
            return self.send_json([entry(name, files[name]) for name in paths or () if name in files])
        return self.send_json({"id": route[1], "sha": sha, "siblings": [], "tags": [], "downloads": 0, "likes": 0,
                               "private": bool(made and made.private), "disabled": False})  # fmt: skip

    def refuse(self, status: int, code: str) -> None:
        self.send(status, b'{"error": "no"}', {"X-Error-Code": code, "Content-Type": "application/json"})

    def send_json(self, value: Any) -> None:
        if value is None:
            return self.refuse(404, "EntryNotFound")
        self.send(200, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def send_file(self, content: bytes | None, sha: str, head: bool) -> None:
        if content is None:
            return self.refuse(404, "EntryNotFound")
        headers = {"X-Repo-Commit": sha, "ETag": f'"{entry("", content)["oid"]}"', "Accept-Ranges": "bytes"}
        self.hub.ranges.append(self.headers.get("Range", ""))
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if asked is None:
            return self.send(200, content, headers, head)
        first, last = int(asked[1]), min(int(asked[2] or len(content)), len(content) - 1)
        headers["Content-Range"] = f"bytes {first}-{last}/{len(content)}"
        body = content[first : last + 1]
        if self.hub.sends is not None:
            left, self.hub.sends = self.hub.sends, max(0, self.hub.sends - len(body))
            if left < len(body):
                return self.refuse(403, "NoMore")  # what a client does not ask for again by itself
        self.send(206, body, headers, head)

    def send(self, status: int, body: bytes, headers: dict[str, str], head: bool = False) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if not head and self.command != "HEAD":
            self.wfile.write(body)


@contextmanager
def serving() -> Iterator[Hub]:
    """A hub at a free port of this machine."""
    hub = Hub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("HubHandler", (Handler,), {"hub": hub}))
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
