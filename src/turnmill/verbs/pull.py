"""pull: a folder that was pushed to a dataset hub, at one commit, every file compared with its manifest."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import msgspec

from turnmill.conversation import Json
from turnmill.errors import StaleError, UsageError, shell_word
from turnmill.files.disk import beside, writing
from turnmill.files.hub import DATASET, Hub, Repository, open_hub
from turnmill.files.inventory import MANIFEST, FileEntry, json_file, read_manifest, verify
from turnmill.files.publish import adopt, claim, refuse_foreign

ORIGIN = "hub.json"
"""Where the folder was pulled from; no manifest lists it."""
AT_ONCE = 8
CLIENTS_FOLDER = ".cache"
"""What the client keeps beside the files that it got, to go on."""


class Pulled(NamedTuple):
    """What was done."""

    repository: str
    commit: str
    output: Path
    kind: str
    files: int
    bytes: int
    is_pinned: bool
    """Whether the revision that was asked for is a commit."""

    def as_json(self) -> dict[str, Json]:
        """The answer of `pull --json`."""
        return {**self._asdict(), "output": str(self.output)}


def pull(source: Repository, output: Path, progress: Callable[[int, int], None] = lambda done, total: None) -> Pulled:
    """Publish a pushed folder here, whole; files that an interrupted run got are not fetched again.

    Args:
        source: repository and revision, which is taken at the commit that it stands for now.
        output: the folder; replaced whole.
        progress: called with the files that are there, and how many there are.

    Raises:
        UsageError: the hub refuses, or holds nothing that turnmill pushed; or the place cannot be written.
        StaleError: what came is not what its manifest lists; nothing was published.
    """
    refuse_foreign(output)
    hub = open_hub(writes=False)
    with hub.errors(f"pull {source}"):
        info = hub.api.repo_info(source.name, repo_type=DATASET, revision=source.revision)
        names = hub.api.list_repo_files(source.name, repo_type=DATASET, revision=info.sha)
    commit = str(info.sha)
    pinned = Repository(source.name, commit)
    if MANIFEST not in names:
        what = f"{pinned} has no {MANIFEST}: it was not pushed by turnmill, and can only be read as raw data"
        raise UsageError(what, next_step=f"turnmill prepare hf://datasets/{pinned} --model MODEL --output OUT")
    with writing(output):
        output.absolute().parent.mkdir(parents=True, exist_ok=True)
    with claim(output):
        scratch = beside(output.absolute(), f"pulled-{commit[:12]}")
        manifest = _fetched(hub, pinned, scratch, progress)
        adopt(scratch, output)
    size = sum(entry["bytes"] for entry in manifest["files"])
    is_pinned = source.revision == commit
    return Pulled(source.name, commit, output, str(manifest.get("kind")), len(manifest["files"]), size, is_pinned)


def _fetched(hub: Hub, source: Repository, scratch: Path, progress: Callable[[int, int], None]) -> dict[str, Any]:
    """The manifest of the whole folder, once it lies in `scratch` and every hash is right."""
    with hub.errors(f"pull {source}"), writing(scratch):
        scratch.mkdir(parents=True, exist_ok=True)
        _get(hub, source, MANIFEST, scratch)
    names = _names(source, read_manifest(scratch))
    with hub.errors(f"pull {source}"), writing(scratch):
        _get_all(hub, source, names, scratch, progress)
    try:
        manifest = verify(scratch)
    except StaleError as fault:
        shutil.rmtree(scratch, ignore_errors=True)
        what = f"{source} is not what its {MANIFEST} lists: {fault.message.partition(': ')[2]}; nothing was published"
        raise StaleError(what, next_step=f"turnmill pull {shell_word(source)} --output DIR") from None
    shutil.rmtree(scratch / CLIENTS_FOLDER, ignore_errors=True)
    (scratch / ORIGIN).write_bytes(json_file({"repository": source.name, "commit": source.revision}))
    return manifest


def _names(source: Repository, manifest: dict[str, Any]) -> list[str]:
    """The files that the manifest lists.

    Raises:
        StaleError: it lists a place outside of the folder, or none at all.
    """
    try:
        entries = msgspec.convert(manifest["files"], list[FileEntry])
    except msgspec.ValidationError as problem:
        raise StaleError(f"the {MANIFEST} of {source} lists no files: {problem}") from problem
    for entry in entries:
        parts = PurePosixPath(entry.path).parts
        if not parts or entry.path.startswith(("/", "~")) or "\\" in entry.path or {"..", CLIENTS_FOLDER} & {*parts}:
            raise StaleError(f"the {MANIFEST} of {source} lists a place outside of its folder: {entry.path[:80]!r}")
    return [entry.path for entry in entries]


def _get_all(
    hub: Hub, source: Repository, names: list[str], scratch: Path, progress: Callable[[int, int], None]
) -> None:
    with ThreadPoolExecutor(AT_ONCE) as threads:
        waiting = [threads.submit(_get, hub, source, name, scratch) for name in names]
        try:
            for done, one in enumerate(as_completed(waiting), 1):
                one.result()
                progress(done, len(names))
        finally:
            for one in waiting:
                one.cancel()


def _get(hub: Hub, source: Repository, name: str, folder: Path) -> None:
    hub.api.hf_hub_download(source.name, name, repo_type=DATASET, revision=source.revision, local_dir=folder)


def next_command(pulled: Pulled) -> str:
    """What a person types next."""
    output = shell_word(pulled.output)
    return f"turnmill census {output}" if pulled.kind == "prepared" else f"ls {output}"
