"""What a dataset hub does when somebody pushes: repositories that are made, large files, commits."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from typing import Any
from urllib.parse import unquote, urlsplit


class Made:
    """A repository that was made over the wire: commits, branches, and whether it is private."""

    def __init__(self, private: bool) -> None:
        self.private = private
        self.commits: dict[str, dict[str, bytes]] = {}
        self.branches: dict[str, str] = {}
        self.messages: list[str] = []
        self.commit({".gitattributes": b""}, "main", "begin")

    def commit(self, files: dict[str, bytes], branch: str, message: str) -> str:
        """Hash of a new commit, which the branch then stands at."""
        content = repr((len(self.commits), sorted(files.items()))).encode()
        sha = hashlib.sha1(content, usedforsecurity=False).hexdigest()
        self.commits[sha] = files
        self.branches[branch] = sha
        self.messages.append(message)
        return sha

    def files_at(self, revision: str) -> tuple[str, dict[str, bytes]] | None:
        """Hash and files of a branch or commit."""
        sha = self.branches.get(revision, revision)
        return (sha, self.commits[sha]) if sha in self.commits else None

    @property
    def files(self) -> dict[str, bytes]:
        """Of the main branch."""
        return self.commits[self.branches["main"]]


class Writes:
    """The routes that change something; mixed into the handler of the hub.

    Args:
        hub: has `made` (name → `Made`), `objects` (sha256 → bytes), `uploads` (those that were sent), `token`, and
            `takes`: so many uploads before it refuses, None: all.
    """

    hub: Any

    def do_PUT(self) -> None:
        content = self._read_body()
        if self.hub.takes is not None and len(self.hub.uploads) >= self.hub.takes:
            return self.refuse(403, "NoMore")
        digest = hashlib.sha256(content).hexdigest()
        assert self.path.endswith(digest)
        self.hub.objects[digest] = content
        self.hub.uploads.append(digest)
        return self.send(200, b"", {})

    def written(self, body: bytes) -> bool:
        """Whether the request was one that writes; it is answered then."""
        path = urlsplit(self.path).path
        if path == "/api/validate-yaml":
            self.send_json({"errors": [], "warnings": []})
        elif path == "/api/repos/create":
            self._create(json.loads(body))
        elif route := re.fullmatch(r"/datasets/([^/]+/[^/]+)\.git/info/lfs/objects/batch", path):
            self._batch(json.loads(body))
        elif route := re.fullmatch(r"/api/datasets/([^/]+/[^/]+)/(preupload|commit|branch)/([^/]+)", path):
            self._write(self.hub.made.get(route[1]), route[2], unquote(route[3]), body)
        else:
            return False
        return True

    def _read_body(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _may_write(self) -> bool:
        return self.headers.get("Authorization") == f"Bearer {self.hub.token}"

    def _create(self, asked: dict[str, Any]) -> None:
        name = f"{asked['organization']}/{asked['name']}" if asked.get("organization") else asked["name"]
        if not self._may_write():
            return self.refuse(403, "")
        if name in self.hub.made:
            return self.refuse(409, "")
        self.hub.made[name] = Made(asked.get("visibility") == "private" or bool(asked.get("private")))
        return self.send_json({"url": f"{self.hub.url}/datasets/{name}"})

    def _batch(self, asked: dict[str, Any]) -> None:
        objects = []
        for one in asked["objects"]:
            href = f"{self.hub.url}/objects/{one['oid']}"
            is_new = one["oid"] not in self.hub.objects
            objects.append({**one, **({"actions": {"upload": {"href": href}}} if is_new else {})})
        return self.send_json({"transfer": "basic", "objects": objects})

    def _write(self, made: Made | None, what: str, revision: str, body: bytes) -> None:
        if made is None or not self._may_write():
            return self.refuse(404 if made is None else 403, "RepoNotFound" if made is None else "")
        if what == "branch":
            if revision in made.branches:
                return self.refuse(409, "")
            made.branches[revision] = made.branches["main"]
            return self.send_json({})
        found = made.files_at(revision)
        if found is None:
            return self.refuse(404, "RevisionNotFound")
        if what == "preupload":
            return self.send_json({"files": [_mode(one, found[1]) for one in json.loads(body)["files"]]})
        return self._commit(made, revision, dict(found[1]), [json.loads(line) for line in body.splitlines()])

    def _commit(self, made: Made, branch: str, files: dict[str, bytes], lines: list[dict[str, Any]]) -> None:
        header = lines[0]["value"]
        if header.get("parentCommit") not in (None, made.branches[branch]):
            return self.refuse(412, "")
        for line in lines[1:]:
            value = line["value"]
            if line["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                files[value["path"]] = self.hub.objects[value["oid"]]
            else:
                del files[value["path"]]
        sha = made.commit(files, branch, header["summary"])
        name = urlsplit(self.path).path.removeprefix("/api/datasets/").partition("/commit/")[0]
        url = f"{self.hub.url}/datasets/{name}/commit/{sha}"
        return self.send_json({"commitUrl": url, "commitOid": sha, "success": True})


def _mode(asked: dict[str, Any], files: dict[str, bytes]) -> dict[str, Any]:
    """How a file is to be sent, and what the repository has of that name: the hash that git gives a small file."""
    path = asked["path"]
    mode = "lfs" if path.endswith((".parquet", ".arrow")) else "regular"
    held = files.get(path)
    oid = None
    if held is not None:
        digest = hashlib.sha256(held) if mode == "lfs" else hashlib.sha1(
            b"blob %d\0" % len(held) + held, usedforsecurity=False
        )  # fmt: skip
        oid = digest.hexdigest()
    return {"path": path, "uploadMode": mode, "shouldIgnore": False, "oid": oid}
