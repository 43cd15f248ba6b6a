"""The datasets that jobs brought along: a file a name, replaced whole before the job starts, or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from turnmill.errors import UsageError, quote
from turnmill.files.disk import sync_names
from turnmill.shelf.content import CHUNK_BYTES, Content, Fault, examine, first_lines
from turnmill.shelf.inside import opened_inside
from turnmill.shelf.manifest import NAME_RULE, Manifest, checked_name
from turnmill.sidecar.dataset import TrainingDataset
from turnmill.sidecar.problems import Refused

SUFFIX = ".jsonl"
LINE_RULE_DIALECT, CHAT_DIALECT = "alpaca", "openai"
"""How `prepare` reads instruction, input and output; and how it reads `messages`."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A dataset on the disk, checked, and not yet in its place."""

    path: Path
    content: Content
    dialect: str

    @property
    def filename(self) -> str:
        """Of the dataset."""
        return self.path.name


def checked_filename(filename: object) -> str:
    """The file name, where a dataset can have it.

    Raises:
        Refused: it is a path, hidden, too long, or does not end in `.jsonl`.
    """
    if isinstance(filename, str) and filename.endswith(SUFFIX):
        try:
            return f"{checked_name(filename.removesuffix(SUFFIX))}{SUFFIX}"
        except UsageError:
            pass
    what = f"dataset is {quote(filename)}; expected NAME{SUFFIX}, and of NAME {NAME_RULE}"
    raise Refused(400, "dataset-name-invalid", what)


class Store:
    """The directory of the datasets.

    Args:
        folder: of the datasets; made where it is not there.
        drafts: where files are written first, on the same disk.
        max_bytes: of a file.
    """

    def __init__(self, folder: Path, drafts: Path, max_bytes: int) -> None:
        self.folder, self._drafts, self.max_bytes = folder, drafts, max_bytes
        folder.mkdir(exist_ok=True, mode=0o700)

    def dataset(self, filename: str) -> TrainingDataset | None:
        """What is known of a stored dataset; None where there is none of that name."""
        try:
            return TrainingDataset.from_path(self.folder / checked_filename(filename))
        except OSError:
            return None

    @contextmanager
    def drafted(self, filename: str, chunks: Iterable[bytes]) -> Iterator[Draft]:
        """What comes, written beside the store and checked; gone afterwards, unless it was put in its place.

        Raises:
            Refused: it is too large, or a line of it is no row.
            OSError: the disk does not take it.
        """
        with self._folder() as folder:
            path = folder / filename
            size = _write(path, chunks, self.max_bytes)
            draft = self._checked(path)
            if size != draft.content.size_bytes:
                raise OSError(f"{path} has other bytes than were written")
            yield draft

    @contextmanager
    def taken(self, filename: str) -> Iterator[Draft]:
        """A copy of a stored dataset: what replaces it meanwhile does not change it.

        Raises:
            Refused: there is none of that name.
        """
        with ExitStack() as opened:
            try:
                file = opened.enter_context(opened_inside(self.folder, filename))
            except FileNotFoundError:
                what = f"no dataset {quote(filename)} is stored here; expected its dataset_content beside it"
                raise Refused(400, "dataset-absent", what) from None
            chunks = iter(lambda: file.read(CHUNK_BYTES), b"")
            yield opened.enter_context(self.drafted(filename, chunks))

    def replace(self, draft: Draft) -> None:
        """Put a draft in its place, in place of an earlier file of its name; it is there when the disk lost power."""
        os.replace(draft.path, self.folder / draft.filename)
        sync_names(self.folder)

    @contextmanager
    def _folder(self) -> Iterator[Path]:
        folder = Path(tempfile.mkdtemp(prefix="dataset.", dir=self._drafts))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _checked(self, path: Path) -> Draft:
        first: list[Fault] = []

        def refuse(fault: Fault) -> None:
            first.append(fault)
            raise Refused(400, "dataset-rows-invalid", str(first[0]))

        manifest = Manifest(path.name.removesuffix(SUFFIX), path.name)
        is_chat = _holds_messages(first_lines(path.parent, manifest, 1))
        said = Manifest(manifest.name, manifest.file, dialect=CHAT_DIALECT if is_chat else None)
        content = examine(path.parent, said, self.max_bytes, refuse)
        return Draft(path, content, CHAT_DIALECT if is_chat else LINE_RULE_DIALECT)


def _write(path: Path, chunks: Iterable[bytes], max_bytes: int) -> int:
    """Write a file through to the disk; gives its size."""
    size = 0
    with path.open("xb") as file:
        for chunk in chunks:
            size += len(chunk)
            if size > max_bytes:
                what = f"{path.name} has more than {max_bytes:,} bytes; expected a smaller file"
                raise Refused(413, "dataset-too-large", what)
            file.write(chunk)
        file.flush()
        os.fsync(file.fileno())
    return size


def _holds_messages(first: list[str]) -> bool:
    """Whether the first row is a chat; a row that is no JSON is left to the line rule to refuse."""
    try:
        row = msgspec.json.decode(first[0]) if first else None
    except (msgspec.DecodeError, RecursionError):
        return False
    return isinstance(row, dict) and "messages" in row
