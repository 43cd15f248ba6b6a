"""Finished steps and shards in an object store, where nothing can be renamed.

A file lies under the hash of its content, `objects/ab/ab12…`, and counts only once a small record names it:
`shards/STEP/00007.json` of a shard, `steps/STEP.json` of a whole step. Records are written last, and once: two runners
that make the same step write the same objects and the same record, and a crash leaves objects that no record names.

    URL/objects/<2 digits>/<sha256>
    URL/shards/<step's folder name>/<number>.json
    URL/steps/<step's folder name>.json
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from turnmill.errors import StaleError, UsageError
from turnmill.files.disk import sync_names, sync_tree, write_whole, writing
from turnmill.files.inventory import MANIFEST, FileEntry, read_manifest
from turnmill.files.storage import look_at, sha256_of
from turnmill.files.stores import KEYED, filesystem, is_url, remote
from turnmill.packages import cache_directory

RECORD_OF_SHARD = "result.json"
URL_DIGITS = 16


class StepStore(NamedTuple):
    """A place in a store for the steps of one cache, and where they lie on this machine's disk."""

    url: str
    """Without a slash at its end."""
    folder: Path
    """The local cache: what is needed is fetched to it, what is made is made in it."""

    def fetch_step(self, name: str) -> bool:
        """Bring a whole step to the local cache; False where the store has none of that name.

        Raises:
            StaleError: an object is missing, or not what its name says.
        """
        if (self.folder / name).exists():
            return True
        record = self._read(f"steps/{name}.json")
        if record is None:
            return False
        entries = msgspec.json.decode(record, type=_Listed).files
        self._place(self.folder / name, entries, MANIFEST, record)
        return True

    def has_step(self, name: str) -> bool:
        """Whether the store has a whole step of that name."""
        return self._read(f"steps/{name}.json") is not None

    def push_step(self, name: str) -> None:
        """Put a finished step of the local cache into the store; its record last."""
        folder = self.folder / name
        manifest = (folder / MANIFEST).read_bytes()
        self._push_files(folder, msgspec.convert(read_manifest(folder), _Listed).files)
        self._write_once(f"steps/{name}.json", manifest)

    def fetch_shard(self, target: Path) -> bool:
        """Bring a finished shard to its place; False where the store has none."""
        record = self._read(_shard_key(target))
        if record is None:
            return False
        entries = msgspec.json.decode(record, type=_Listed).files
        self._place(target, entries, RECORD_OF_SHARD, record)
        return True

    def push_shard(self, folder: Path) -> None:
        """Put a finished shard into the store; its record last."""
        record = (folder / RECORD_OF_SHARD).read_bytes()
        self._push_files(folder, msgspec.json.decode(record, type=_Listed).files)
        self._write_once(_shard_key(folder), record)

    def fetch_inputs(self, shard: Any) -> None:
        """Bring the steps that a shard's paths lie in.

        Raises:
            UsageError: one is neither on this machine nor in the store.
        """
        for name in sorted(set(_steps_in(shard, self.folder))):
            if not self.fetch_step(name):
                what = f"{self.folder / name} is not on this machine, nor in {self.url}"
                raise UsageError(what, next_step=look_at(f"{self.url}/steps/"))

    def _place(self, target: Path, entries: Iterable[FileEntry], record_name: str, record: bytes) -> None:
        """Write files and their record beside the target, and rename them to it when they are whole."""
        with writing(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            draft = Path(tempfile.mkdtemp(prefix=f".{target.name}.fetch.", dir=target.parent))
            try:
                for entry in entries:
                    if entry.path != record_name:
                        self._fetch_object(entry, draft / entry.path)
                write_whole(draft / record_name, record)
                sync_tree(draft)
                os.chmod(draft, 0o755)
                if not target.exists():  # another process of this machine may have been first
                    os.rename(draft, target)
                sync_names(target.parent)
            finally:
                shutil.rmtree(draft, ignore_errors=True)

    def _fetch_object(self, entry: FileEntry, target: Path) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        url = self._object(entry.sha256)
        system, path = filesystem(url)
        with remote(url):
            if not system.exists(path):
                raise StaleError(f"{url} is gone, and a record names it ({entry.path})", next_step=look_at(self.url))
            system.get_file(path, str(target))
        found = sha256_of(target)
        if found != entry.sha256:
            what = f"{url} holds other bytes (sha256 {found}) than its name says"
            raise StaleError(what, next_step=look_at(url))

    def _push_files(self, folder: Path, entries: Iterable[FileEntry]) -> None:
        for entry in entries:
            url = self._object(entry.sha256)
            system, path = filesystem(url)
            with remote(url):
                if not (system.exists(path) and system.size(path) == entry.bytes):
                    _make_folder(system, path)
                    system.put_file(str(folder / entry.path), path)

    def _object(self, sha256: str) -> str:
        return f"{self.url}/objects/{sha256[:2]}/{sha256}"

    def _read(self, key: str) -> bytes | None:
        url = f"{self.url}/{key}"
        system, path = filesystem(url)
        with remote(url):
            system.invalidate_cache()
            return bytes(system.cat_file(path)) if system.exists(path) else None

    def _write_once(self, key: str, content: bytes) -> None:
        """A record, unless one is there: who was first made the same."""
        url = f"{self.url}/{key}"
        system, path = filesystem(url)
        with remote(url):
            _make_folder(system, path)
            try:
                system.pipe_file(path, content, mode="create")
            except FileExistsError:
                return
            except (NotImplementedError, TypeError):  # a store without conditional writes: the same bytes again
                system.pipe_file(path, content)


class Place(NamedTuple):
    """Where finished steps are kept: a folder, and a store behind it where a URL was named."""

    folder: Path
    store: StepStore | None


def place_of(named: str | None, default: Path) -> Place:
    """The cache that was named.

    Args:
        named: a folder, or the URL of a store, whose steps are fetched to a folder of this machine's own; None: the
            default.
        default: a folder.
    """
    if named is None or not is_url(named):
        return Place(default if named is None else Path(named), None)
    url = named.rstrip("/")
    folder = cache_directory() / "stores" / hashlib.sha256(url.encode()).hexdigest()[:URL_DIGITS]
    return Place(folder, StepStore(url, folder))


class _Listed(msgspec.Struct):
    """Of a record, what it names."""

    files: tuple[FileEntry, ...]


def _make_folder(system: Any, path: str) -> None:
    """The folder of a path, in a store that has folders."""
    protocols = (system.protocol,) if isinstance(system.protocol, str) else system.protocol
    if not KEYED.intersection(protocols):
        system.makedirs(path.rpartition("/")[0], exist_ok=True)


def _shard_key(folder: Path) -> str:
    """Of a shard's folder in a step's draft, `.STEP.draft/shards/00007`."""
    step = folder.parents[1].name.removeprefix(".").removesuffix(".draft")
    return f"shards/{step}/{folder.name}.json"


def _steps_in(value: Any, root: Path) -> Iterator[str]:
    """Names of the step folders below `root` that texts and paths inside a value lie in."""
    inside = f"{root}/"
    for text in _texts(msgspec.to_builtins(value, enc_hook=str)):
        if text.startswith(inside):
            yield text.removeprefix(inside).partition("/")[0]


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)
