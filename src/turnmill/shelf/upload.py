"""A file on its way onto the shelf: received beside the datasets, checked, recorded and named, or gone."""

from __future__ import annotations

import dataclasses
import fcntl
import hashlib
import os
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, BinaryIO

from turnmill.errors import UsageError, quote
from turnmill.files.disk import sync_names, write_whole, writing
from turnmill.shelf.content import CHUNK_BYTES, MAX_BYTES, Content, Fault, examine
from turnmill.shelf.inside import directory_inside
from turnmill.shelf.manifest import FORMATS, MANIFEST, MAX_NAME_CHARACTERS, Manifest, checked_name, parse_manifest
from turnmill.shelf.scan import Dataset, Listing, Shelf, read_manifest

if TYPE_CHECKING:
    from turnmill.shelf.records import Records

UPLOADS, LOCKS = ".uploads", ".locks"
"""Directories of the shelf that no listing looks at: files on their way, and a lock for each name."""
MAX_TOLD_FAULTS = 20
_PLAIN = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class UploadRefused(UsageError):
    """A file that does not come onto the shelf.

    Args:
        code: why, lower-kebab; part of the interface.
        message: what, got, expected.
        faults: the first of what is wrong with its rows.
        count: how many there are.
    """

    def __init__(self, code: str, message: str, faults: tuple[Fault, ...] = (), count: int = 0) -> None:
        super().__init__(message)
        self.code = code
        self.faults = faults
        self.count = count


@dataclasses.dataclass(frozen=True, slots=True)
class Wanted:
    """What a file is to become."""

    name: str
    """Of the dataset and its directory."""
    format: str = "jsonl"
    dialect: str | None = None

    @property
    def file(self) -> str:
        """What the data file is called in the dataset's directory."""
        return f"{self.name}.{self.format}"

    def manifest(self) -> bytes:
        """A manifest for a directory that has none."""
        said = {"name": self.name, "file": self.file, "format": self.format, "dialect": self.dialect}
        return "".join(f'{key} = "{value}"\n' for key, value in said.items() if value is not None).encode()


def wanted_of(filename: str, format: str | None = None, dialect: str | None = None) -> Wanted:
    """What a file of that name becomes: the dataset named like it, without the ending.

    Args:
        filename: a plain name that ends in `.` and the format.
        format: `jsonl` where it is not given.
        dialect: how its rows say a chat; None: by the line rule.

    Raises:
        UploadRefused: no dataset can be called so, or no such format or dialect.
    """
    ending = format or "jsonl"
    if ending not in FORMATS:
        raise UploadRefused("file-not-valid", f"`format` is {quote(format)}; expected {', '.join(FORMATS)}")
    stem = filename.removesuffix(f".{ending}")
    if stem == filename:
        raise UploadRefused("name-not-valid", f"the file is called {quote(filename)}; expected a name in .{ending}")
    try:
        wanted = Wanted(checked_name(stem), ending, dialect)
    except UsageError as error:
        raise UploadRefused("name-not-valid", error.message) from None
    if dialect is not None and not _PLAIN.fullmatch(dialect):  # it is written into a manifest
        raise UploadRefused("file-not-valid", f"`dialect` is {quote(dialect)}; expected the name of one")
    with _refused("file-not-valid"):
        parse_manifest(wanted.manifest(), wanted.name)
    return wanted


class Incoming:
    """A file while it is received; it lies where no listing looks, and is gone at the end unless it was published.

    It is locked as long as its writer lives, so that what a killed one left can be told apart, and is removed.

    Args:
        shelf: the directory of the datasets; made where it is not there.
        max_bytes: of the whole file.
    """

    def __init__(self, shelf: Path, max_bytes: int = MAX_BYTES) -> None:
        self.folder = shelf / UPLOADS
        self._max_bytes = max_bytes
        self.size = 0
        self._sha256 = hashlib.sha256()
        self.folder.mkdir(parents=True, exist_ok=True)
        remove_left(shelf)
        self._file, self.path = _new_file(self.folder)

    @property
    def sha256(self) -> str:
        """Of what was received until now."""
        return self._sha256.hexdigest()

    def write(self, chunk: bytes) -> None:
        """Take a further piece.

        Raises:
            UploadRefused: the file has become too large.
            OSError: the disk refuses it.
        """
        self.size += len(chunk)
        if self.size > self._max_bytes:
            raise UploadRefused("too-large", f"the file has more than {self._max_bytes:,} bytes")
        self._sha256.update(chunk)
        self._file.write(chunk)

    def finish(self) -> None:
        """Wait until all of it is on the disk."""
        self._file.flush()
        os.fsync(self._file.fileno())

    def __enter__(self) -> Incoming:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.path.unlink(missing_ok=True)
        with suppress(OSError):  # what a full disk did not take is not tried again
            self._file.close()


def _new_file(folder: Path) -> tuple[BinaryIO, Path]:
    """A locked file that nobody else has."""
    while True:
        path = folder / secrets.token_hex(16)
        file = os.fdopen(os.open(path, _NEW, 0o644), "wb")
        with suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if path.exists():  # nobody took it for a left one before it was locked
                return file, path
        file.close()


def remove_left(shelf: Path) -> None:
    """Remove files whose writers were killed."""
    with suppress(FileNotFoundError), os.scandir(shelf / UPLOADS) as entries:
        for entry in entries:
            with suppress(OSError), open(entry.path, "rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(entry.path)


@contextmanager
def name_locked(shelf: Path, name: str) -> Iterator[None]:
    """Alone with a directory of the shelf, among all processes that ask here."""
    from filelock import FileLock

    (shelf / LOCKS).mkdir(parents=True, exist_ok=True)
    key = name if len(os.fsencode(name)) <= MAX_NAME_CHARACTERS else hashlib.sha256(os.fsencode(name)).hexdigest()
    with FileLock(shelf / LOCKS / f"{key}.lock"):
        yield


def publish(
    incoming: Incoming,
    wanted: Wanted,
    shelf: Shelf,
    records: Records | None = None,
    require: Callable[[Dataset | None], None] = lambda _: None,
    look: Callable[[], Listing] | None = None,
) -> tuple[Dataset, bool]:
    """Let a received file become a dataset, or replace the file of one; gives it, and whether it is new.

    Either the file, its record and a manifest are all there at the end, or none of them.

    Args:
        incoming: whole.
        wanted: what it becomes.
        shelf: that it was received for.
        records: that are brought up to date; None: none are kept.
        require: told of the dataset that is replaced, None where there is none; raises to refuse.
        look: gives a listing of the shelf that was begun after it was asked for; None: the shelf's own.

    Raises:
        UploadRefused: the file is not valid, or the name is taken.
        DatabaseUnavailable: the database does not answer.
        OSError: the disk refuses.
    """
    with name_locked(shelf.directory, wanted.name):
        incoming.finish()
        listing = look() if look else shelf.listing()
        folder, manifest = _place(shelf.directory, listing, wanted)
        before = next((one for one in listing.datasets if one.manifest.name == wanted.name), None)
        require(before)
        said = manifest or parse_manifest(wanted.manifest(), wanted.name)
        content = _examined(incoming, said, shelf.max_bytes)
        _named(incoming, folder, wanted, content, records, has_manifest=manifest is not None)
        dataset = Dataset(folder, wanted.name, said, content)
        shelf.know(dataset)
        return dataset, before is None


def added(file: Path, shelf: Shelf, name: str | None = None, dialect: str | None = None) -> tuple[Dataset, bool]:
    """Publish a copy of a file of this machine, as `publish` does, without a record.

    Args:
        file: that ends in `.jsonl`, `.json` or `.parquet`.
        shelf: that it is added to.
        name: of the dataset; None: the file's, without its ending.
        dialect: how its rows say a chat.

    Raises:
        UploadRefused: the file is not valid, or the name is taken.
        UsageError: the file cannot be read, or the shelf not be written.
    """
    ending = file.suffix.removeprefix(".")
    wanted = wanted_of(f"{name}{file.suffix}" if name else file.name, ending if ending in FORMATS else None, dialect)
    with writing(shelf.directory), Incoming(shelf.directory, shelf.max_bytes) as incoming:
        with file.open("rb") as source:
            while chunk := source.read(CHUNK_BYTES):
                incoming.write(chunk)
        return publish(incoming, wanted, shelf)


def _place(shelf: Path, listing: Listing, wanted: Wanted) -> tuple[Path, Manifest | None]:
    """The dataset's real directory, which may not be there yet, and the manifest that it has.

    Raises:
        UploadRefused: the name, or the directory, is another dataset's.
    """
    other = next((one for one in listing.datasets if one.manifest.name == wanted.name != one.dir), None)
    if other is not None:
        raise UploadRefused("name-taken", f"{quote(wanted.name)} is the dataset in {quote(other.dir)}")
    with _refused("name-taken"):
        try:
            folder = directory_inside(shelf, wanted.name)
        except OSError:
            raise UsageError(f"{quote(wanted.name)} in the shelf is a link that leads nowhere") from None
    if not os.path.lexists(folder):
        return folder, None
    if not folder.is_dir():
        raise UploadRefused("name-taken", f"{quote(wanted.name)} in the shelf is a file; expected a directory")
    if (folder / wanted.file).is_dir():
        raise UploadRefused("name-taken", f"{quote(wanted.name)}/{wanted.file} is a directory; expected a file")
    if not os.path.lexists(folder / MANIFEST):
        return folder, None
    with _refused("dataset-not-usable", f"{quote(wanted.name)} has a manifest that cannot be used: "):
        manifest = read_manifest(folder, wanted.name)
    _require_same(manifest, wanted)
    return folder, manifest


def _require_same(manifest: Manifest, wanted: Wanted) -> None:
    """The manifest that is there stays, so the file has to be the one that it describes."""
    if manifest.name != wanted.name:
        what = f"the directory {quote(wanted.name)} is that of the dataset {quote(manifest.name)}"
        raise UploadRefused("name-taken", what)
    if manifest.file != wanted.file:
        what = f"the manifest of {quote(wanted.name)} names the data file {quote(manifest.file)}"
        raise UploadRefused("file-named-otherwise", f"{what}; it would be {quote(wanted.file)}")
    if wanted.dialect is not None and wanted.dialect != manifest.dialect:
        what = f"the manifest of {quote(wanted.name)} has the dialect {quote(manifest.dialect)}"
        raise UploadRefused("manifest-says-otherwise", f"{what}, not {quote(wanted.dialect)}")


@contextmanager
def _refused(code: str, begins: str = "") -> Iterator[None]:
    try:
        yield
    except UsageError as error:
        raise UploadRefused(code, begins + error.message) from None


def _examined(incoming: Incoming, manifest: Manifest, max_bytes: int) -> Content:
    """The file as the dataset's own will be read.

    Raises:
        UploadRefused: it is not valid.
    """
    faults: list[Fault] = []
    count = 0

    def told(fault: Fault) -> None:
        nonlocal count
        count += 1
        if len(faults) < MAX_TOLD_FAULTS:
            error = fault.error.replace(incoming.path.name, manifest.file)
            faults.append(Fault(manifest.file, fault.line, error))

    content = examine(incoming.folder, dataclasses.replace(manifest, file=incoming.path.name), max_bytes, told)
    if not content.is_usable:
        what = f"{count:,} fault" + ("" if count == 1 else "s")
        raise UploadRefused("file-not-valid", f"{what}: {faults[0]}", tuple(faults), count)
    if content.sha256 != incoming.sha256:
        raise OSError(f"{incoming.path} is not what was written to it")
    return content


def _named(
    incoming: Incoming, folder: Path, wanted: Wanted, content: Content, records: Records | None, *, has_manifest: bool
) -> None:
    """Record the file, then give it its name; what was done is undone where a later part fails."""
    is_new_folder = not folder.exists()
    folder.mkdir(exist_ok=True)
    draft = folder / f".{MANIFEST}.{incoming.path.name}"
    for left in folder.glob(f".{MANIFEST}.*"):  # by a writer that was killed: this one is alone here
        left.unlink(missing_ok=True)
    try:
        if not has_manifest:
            write_whole(draft, wanted.manifest())
        with _recorded(records, wanted.name, content):
            _renamed(incoming, folder, wanted, draft, has_manifest=has_manifest)
    except BaseException:
        draft.unlink(missing_ok=True)
        if is_new_folder:
            with suppress(OSError):
                folder.rmdir()
        raise
    sync_names(folder)
    sync_names(folder.parent)


@contextmanager
def _recorded(records: Records | None, name: str, content: Content) -> Iterator[None]:
    if records is None:
        yield
        return
    before = records.get(name)
    records.put(name, content)
    try:
        yield
    except BaseException:
        records.take_back(name, content.sha256, before)
        raise


def _renamed(incoming: Incoming, folder: Path, wanted: Wanted, draft: Path, *, has_manifest: bool) -> None:
    """The data file first: its directory is a dataset once it has a manifest."""
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.rename(incoming.path, wanted.file, dst_dir_fd=number)
        if not has_manifest:
            try:
                os.rename(draft.name, MANIFEST, src_dir_fd=number, dst_dir_fd=number)
            except BaseException:
                os.unlink(wanted.file, dir_fd=number)
                raise
    finally:
        os.close(number)
