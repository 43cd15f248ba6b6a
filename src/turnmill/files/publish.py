"""Publishing OUT whole: a draft of hard links beside it, swapped in by rename, one run at a time."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from turnmill.conversation import Json
from turnmill.errors import UsageError, shell_word
from turnmill.files.disk import beside, link_or_copy, sync_names, sync_tree, write_whole, writing
from turnmill.files.inventory import MANIFEST, inventory, is_published, json_file, made_by

LOCK_WAIT_S = 10.0


@contextmanager
def claim(output: Path, *, wait_s: float = LOCK_WAIT_S) -> Iterator[None]:
    """The right to write `output`, held by one run at a time; a run that has it may take it again.

    A link is followed: what it points to is written, and the link stays.

    Raises:
        UsageError: another run has it for longer than `wait_s`; or `output` is not ours to replace.
    """
    from filelock import FileLock, Timeout

    output = Path(os.path.realpath(output))
    owner = beside(output, "owner.lock")
    lock = FileLock(beside(output, "lock"), is_singleton=True)
    if lock.is_locked:
        yield
        return
    with writing(output):
        output.parent.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(timeout=wait_s)
        except Timeout:
            raise _taken(output, owner, wait_s) from None
    try:
        with writing(output):
            owner.write_text(f"{os.getpid()} {platform.node()}")
            _restore(output)
            refuse_foreign(output)
        yield
    finally:
        owner.unlink(missing_ok=True)
        lock.release()


def _taken(output: Path, owner: Path, wait_s: float) -> UsageError:
    name, look = "another process", f"ls -l {shell_word(owner.parent)}"
    with suppress(OSError, ValueError):
        number, _, host = owner.read_text().partition(" ")
        name, look = f"process {int(number)}", f"ps -p {number}"
        if host != platform.node():  # the place lies on a disk that several machines see
            name, look = f"{name} of {host or 'another machine'}", f"ssh {shell_word(host)} {look}"
    return UsageError(f"{output} is being written by {name}; waited {wait_s:g} s", next_step=look)


def refuse_foreign(output: Path) -> None:
    """Refuse a place that holds something turnmill did not publish.

    Raises:
        UsageError: a file, a folder that is not empty and has no manifest of turnmill's, or a place inside another that
            has one.
    """
    around = next((folder for folder in output.parents if is_published(folder)), None)
    if around is not None:
        what = f"{output} lies inside {around}, which turnmill published and would replace whole; choose another place"
        raise UsageError(what, next_step=f"ls {shell_word(around)}")
    if not output.exists() or is_published(output):
        return
    if not output.is_dir():
        raise UsageError(f"{output} is a file; expected a folder, or nothing", next_step=f"ls -l {shell_word(output)}")
    if any(output.iterdir()):
        what = f"{output} holds files that turnmill did not write; expected nothing, or an earlier output"
        raise UsageError(what, next_step=f"ls {shell_word(output)}")


def publish(
    contents: Mapping[str, Path | bytes],
    output: Path,
    *,
    about: Mapping[str, Json] | None = None,
    unlisted: Mapping[str, bytes] | None = None,
) -> dict[str, Any]:
    """Make `output` hold exactly these files, all at once, in place of what it held; gives its manifest.

    Args:
        contents: path inside `output` → a file that is linked there, or bytes.
        output: the folder.
        about: what the manifest says beside `made_by` and `files`.
        unlisted: files that no manifest lists and no comparison reads (`run.json`).

    Raises:
        UsageError: the place cannot be written, is not ours, or another run writes it.
    """
    output = Path(os.path.realpath(output))
    draft = beside(output, "draft")
    with claim(output), writing(output):
        shutil.rmtree(draft, ignore_errors=True)
        try:
            manifest = _write_draft(draft, contents, dict(about or {}), unlisted or {})
            _swap(draft, output)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    return manifest


def adopt(folder: Path, output: Path) -> None:
    """Put a whole folder, with a manifest of its own, in place of what `output` held; it is gone from where it was.

    Args:
        folder: beside the output, on the same disk.
        output: where it goes.

    Raises:
        UsageError: the place cannot be written, is not ours, or another run writes it.
    """
    output = Path(os.path.realpath(output))
    draft = beside(output, "draft")
    with claim(output), writing(output):
        sync_tree(folder)
        shutil.rmtree(draft, ignore_errors=True)
        os.rename(folder, draft)
        _swap(draft, output)


def _write_draft(
    draft: Path, contents: Mapping[str, Path | bytes], about: dict[str, Json], unlisted: Mapping[str, bytes]
) -> dict[str, Any]:
    draft.mkdir(parents=True)
    _place(draft, contents)
    manifest = {"made_by": made_by(), **about, "files": [msgspec.to_builtins(entry) for entry in inventory(draft)]}
    _place(draft, {**unlisted, MANIFEST: json_file(manifest)})
    sync_tree(draft)
    return manifest


def _place(draft: Path, contents: Mapping[str, Path | bytes]) -> None:
    for name, content in contents.items():
        target = draft / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, Path):
            link_or_copy(content, target)
        else:
            write_whole(target, content)


def _swap(draft: Path, output: Path) -> None:
    """Put the draft in the output's place. A crash between the two renames is mended by the next claim."""
    old = beside(output, "old")
    if output.exists():
        os.rename(output, old)
    os.rename(draft, output)
    sync_names(output.parent)
    shutil.rmtree(old, ignore_errors=True)


def _restore(output: Path) -> None:
    """Finish or undo a swap that was interrupted."""
    old = beside(output, "old")
    if not old.exists():
        return
    if output.exists():
        shutil.rmtree(old)
    else:
        os.rename(old, output)
