"""From what a source names (files, directories, globs, URLs, `-`) to the files it is made of."""

from __future__ import annotations

import atexit
import glob
import os
import re
import shutil
import stat
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from turnmill.errors import UsageError, shell_word
from turnmill.files.disk import writing
from turnmill.files.inventory import MANIFEST, is_published, verify
from turnmill.files.storage import look_at
from turnmill.files.stores import filesystem, forget_listings, is_url, pinned, remote

STDIN = "-"
STDIN_NAME = "stdin"

_SUFFIX = re.compile(r"\.(jsonl|json|ndjson|parquet|traj)(\.(gz|gzip|zst|zstd))?$", re.IGNORECASE)
_DATA_OF = {
    "prepared": "^conversations/",
    "rendered": "^texts/",
    "conversations": "/conversations.parquet$",
    "render": "/texts.parquet$",
    "normalize": "/texts.parquet$",
}
"""Kind of a published folder, or name of the step that a folder holds → which of its files are data."""
_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
SUFFIXES = ".jsonl, .ndjson, .json, .traj, .parquet, each also with .gz or .zst"
"""What a file in a directory must end with; a file that is named itself may end with anything."""


def resolve(data: Sequence[str]) -> list[tuple[str, str]]:
    """The files of a source in order: path or URL, and name relative to the source's root.

    The root is what the given directories, globs' fixed parts and files' directories have in common. A directory gives
    its files with a known suffix, recursively and sorted, without what begins with a dot or turnmill has published; a
    folder that `prepare` published gives its conversations; standard input is written to a temporary file first.
    No two files have one name.

    Raises:
        UsageError: nothing is there, nothing fits, or a file is named twice.
        StaleError: a prepared folder is not what its manifest lists.
    """
    if not data:
        what = "no data named; expected files, directories, globs or -"
        raise UsageError(what, next_step="turnmill prepare --help")
    _refuse_twice([item for item in data if item == STDIN])
    found: list[tuple[str, str]] = []
    local = [item for item in data if not (is_url(item) or _is_stream(item))]
    root = _common_root([_root_of(item) for item in local])
    for item in data:
        if _is_stream(item):
            found.append(_spooled(item))
        elif is_url(item):
            found += _remote_files(item)
        else:
            found += [(path, Path(os.path.abspath(path)).relative_to(root).as_posix()) for path in _local_files(item)]
    _refuse_twice([path for path, _ in found])
    return list(_named_apart(found))


def _named_apart(files: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """The files; a name that one before has too (two URLs share no root) is followed by how many have it by then."""
    times: Counter[str] = Counter()
    for path, name in files:
        times[name] += 1
        yield path, name if times[name] == 1 else f"{name} ({times[name]})"


def _root_of(item: str) -> str:
    path = os.path.abspath(item)
    if os.path.isdir(path):
        return path
    fixed = path
    while glob.has_magic(fixed) and not os.path.exists(fixed):
        fixed = os.path.dirname(fixed)
    return os.path.dirname(path) if fixed == path else fixed


def _common_root(roots: list[str]) -> str:
    return os.path.commonpath(roots) if roots else ""


def _local_files(item: str) -> list[str]:
    if os.path.isdir(item):
        return _published_files(Path(item)) if _looks_published(Path(item)) else _files_below(item)
    if os.path.exists(item):
        return [_regular(item)]
    if not glob.has_magic(item):
        raise UsageError(
            f"no such file or directory: {item}", next_step=f"ls {shell_word(os.path.dirname(item) or '.')}"
        )
    files = [path for path in _matches(item) if os.path.isfile(path)]
    if not files:
        raise UsageError(f"no file matches {item}", next_step="quote the pattern so that the shell leaves it alone")
    return files


def _regular(path: str) -> str:
    """The path of what can be read twice and ends; of a broken link, too, which says by itself what it is.

    Raises:
        UsageError: a device, a socket, or a pipe in a folder, which nobody may ever write to.
    """
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return path
    if not stat.S_ISREG(mode):
        kind = _KINDS.get(stat.S_IFMT(mode), "no regular file")
        raise UsageError(f"{path} is {kind}; expected a file", next_step=f"ls -l {shell_word(path)}")
    return path


def _matches(pattern: str) -> list[str]:
    """Paths that fit the pattern, sorted; `**` searches no linked folder, so that links that lead back end."""
    parts = Path(pattern).parts
    if "**" not in parts:
        return sorted(glob.glob(pattern))
    fixed = next(number for number, part in enumerate(parts) if glob.has_magic(part))
    root = Path(*parts[:fixed])
    rest = [part if part == "**" else part.replace("**", "*") for part in parts[fixed:]]
    found = root.glob("/".join([*rest, "*"] if rest[-1] == "**" else rest))
    asks_for_hidden = any(part.startswith(".") for part in rest)
    return sorted(str(path) for path in found if asks_for_hidden or _is_shown(str(path.relative_to(root)), ""))


def _looks_published(folder: Path) -> bool:
    """Whether turnmill published the folder, or did before its manifest was damaged."""
    return is_published(folder) or all((folder / name).is_file() for name in (MANIFEST, "report.json"))


def _published_files(folder: Path) -> list[str]:
    """The data of a published folder, in the order of its manifest: conversations, or rendered texts."""
    manifest = verify(folder, whole=False)
    belongs = _DATA_OF.get(manifest.get("kind") or manifest.get("step", {}).get("name"))
    if belongs is None:
        held = "holds a step of a run" if "step" in manifest else "is a folder of turnmill's own"
        what = f"{folder} {held}, not chat data; expected data, or what `prepare` published"
        raise UsageError(what, next_step=f"ls {shell_word(folder)}")
    listed = [entry for entry in manifest["files"] if re.search(belongs, entry["path"])]
    found = [os.path.join(folder, entry["path"]) for entry in listed if entry["rows"]]
    if not found:
        raise UsageError(f"{folder} holds no conversations", next_step=f"turnmill census {shell_word(folder)}")
    return found


def _files_below(directory: str) -> list[str]:
    found: list[str] = []
    for folder, folders, names in os.walk(directory, onerror=_refuse):
        folders[:] = [name for name in folders if not (name.startswith(".") or is_published(Path(folder, name)))]
        shown = [name for name in names if not name.startswith(".") and _SUFFIX.search(name)]
        found += [_regular(os.path.join(folder, name)) for name in shown]
    if not found:
        what = f"no data file in {directory}; expected files that end with {SUFFIXES}; linked folders are not searched"
        raise UsageError(what, next_step=f"ls -R {shell_word(directory)}")
    return sorted(found, key=lambda path: path.split(os.sep))


def _refuse(problem: OSError) -> None:
    raise UsageError(
        f"cannot read {problem.filename}: {problem.strerror}", next_step=f"ls -ld {shell_word(problem.filename)}"
    ) from problem


def _remote_files(url: str) -> list[tuple[str, str]]:
    """The URLs of a store's files, chosen, named and ordered as local ones are."""
    system, named = filesystem(url)
    with remote(url):
        forget_listings(system, named)
        inner = pinned(system, named)
        found, root = _found(system, inner, url)
    if not found:
        raise UsageError(f"no data file at {url}; expected files that end with {SUFFIXES}", next_step=look_at(url))
    bare = url.rstrip("/")
    place = bare.removesuffix(named)  # with host and options, which the path inside has not
    urls = [f"{place}{path}" if f"{place}{named}" == bare else system.unstrip_protocol(path) for path in found]
    return [(each, _remote_name(path, root)) for each, path in zip(urls, found, strict=True)]


def _found(system: Any, inner: str, url: str) -> tuple[list[str], str]:
    """Paths inside the store, and the root that they are named from."""
    if glob.has_magic(inner) and not system.exists(inner):
        root = re.split(r"[*?\[]", inner, maxsplit=1)[0].rpartition("/")[0]
        entries = system.glob(inner, detail=True).items()
        return sorted(path for path, entry in entries if entry["type"] == "file" and _is_shown(path, root)), root
    if system.isdir(inner):
        if system.exists(f"{inner}/{MANIFEST}") and b'"turnmill"' in system.cat_file(f"{inner}/{MANIFEST}"):
            what = f"{url} is what turnmill prepared; expected it on a local disk: fetch the folder first"
            raise UsageError(what, next_step=look_at(url))
        below = [path for path in system.find(inner) if _SUFFIX.search(path) and _is_shown(path, inner)]
        return sorted(below, key=lambda path: path.split("/")), inner
    return [inner] if system.exists(inner) else [], inner.rpartition("/")[0]


def _is_shown(path: str, root: str) -> bool:
    return not any(part.startswith(".") for part in path.removeprefix(root).split("/"))


def _remote_name(path: str, root: str) -> str:
    """A name relative to the root, without the query of a web address, which may hold credentials."""
    name = path.removeprefix(root).lstrip("/")
    return name.partition("?")[0] if path.startswith(("http://", "https://")) else name


def _is_stream(item: str) -> bool:
    """Whether it can be read only once: standard input, a pipe that the shell made (`<(zcat …)`)."""
    try:
        return item == STDIN or stat.S_ISFIFO(os.stat(item).st_mode)
    except OSError:
        return False


def _spooled(item: str) -> tuple[str, str]:
    """Path and name of a temporary file with all that comes from a stream."""
    folder = tempfile.mkdtemp(prefix="turnmill-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = os.path.join(folder, STDIN_NAME)
    with writing(path), open(path, "wb") as spool:
        if item == STDIN:
            shutil.copyfileobj(sys.stdin.buffer, spool)
        else:
            with open(item, "rb") as stream:
                shutil.copyfileobj(stream, spool)
    return path, STDIN_NAME if item == STDIN else os.path.basename(item)


def _refuse_twice(paths: list[str]) -> None:
    places = [path if path == STDIN or is_url(path) else os.path.abspath(path) for path in paths]
    for place, times in Counter(places).items():
        if times > 1:
            raise UsageError(f"{place} is named {times} times in one source; expected each file once")
