"""Records of datasets: what was seen on a shelf, when, and whether a sidecar has this version of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from sqlalchemy import delete, select, update
from sqlalchemy.exc import IntegrityError

from turnmill.shelf.content import Content
from turnmill.shelf.tables import DatasetRecord, DatasetVersion, now

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from turnmill.shelf.database import Database
    from turnmill.shelf.scan import Dataset, Listing

STORED, SYNCED = "stored", "synced"
BATCH = 500
"""So many records are asked for at once: fewer than the variables that one statement of SQLite can have."""


@dataclass(frozen=True, slots=True)
class Change:
    """What bringing the records up to date did to one of them."""

    name: str
    what: str
    """`new` or `replaced`."""
    sha256: str

    def as_json(self) -> dict[str, str]:
        """As `dataset sync --json` says it."""
        return {"name": self.name, "what": self.what, "sha256": self.sha256}


@dataclass(frozen=True, slots=True)
class _Seen:
    """What was read, and the number that the database's changes had before."""

    at: int | None
    datasets: tuple[Dataset, ...]
    records: dict[str, DatasetRecord]


class Records:
    """The records of one database.

    The shelf's directory is the truth: a record follows it, and stays when its dataset goes.

    Args:
        database: with the tables of this version.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._seen: _Seen | None = None

    def sync(self, listing: Listing) -> dict[str, DatasetRecord]:
        """The record of every dataset of a listing by name, after those that are behind were brought up to date.

        A dataset that is new gets a record; one whose file changed is `stored` again. Nothing is written where nothing
        changed.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        at, seen = self._database.changes(), self._seen
        if seen is not None and at is not None and seen.at == at and seen.datasets == listing.datasets:
            return seen.records
        found = {dataset.manifest.name: dataset.content for dataset in listing.datasets}
        records = self._brought_up(found)[0]
        self._seen = _Seen(at, listing.datasets, records)
        return records

    def changes(self, listing: Listing) -> list[Change]:
        """As `sync`; gives what it changed, by name.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        found = {dataset.manifest.name: dataset.content for dataset in listing.datasets}
        return self._brought_up(found)[1]

    def put(self, name: str, content: Content) -> DatasetRecord:
        """The record of one dataset, whose file has, or is about to get, that content.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        return self._brought_up({name: content})[0][name]

    def get(self, name: str) -> DatasetRecord | None:
        """The record of a dataset as it is; None where it never had one.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        with self._database.reading() as session:
            return session.scalar(select(DatasetRecord).where(DatasetRecord.filename == filename_of(name)))

    def take_back(self, name: str, sha256: str, before: DatasetRecord | None) -> None:
        """Let the record be what it was before `put`, unless it has become something else since.

        Args:
            name: of the dataset.
            sha256: what `put` was given.
            before: the record, None where there was none.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        if before is not None and before.sha256 == sha256:
            return
        with self._database.writing() as session:
            record = session.scalar(_of([name]).with_for_update())
            if record is None or record.sha256 != sha256:
                return
            version = (DatasetVersion.dataset_id == record.id) & (DatasetVersion.sha256 == sha256)
            if before is None:
                session.execute(delete(DatasetVersion).where(DatasetVersion.dataset_id == record.id))
                session.delete(record)
                return
            session.execute(delete(DatasetVersion).where(version, DatasetVersion.first_seen_at >= record.updated_at))
            for field in ("size_bytes", "num_records", "sha256", "status", "updated_at", "synced_at"):
                setattr(record, field, getattr(before, field))

    def mark_synced(self, name: str, sha256: str) -> bool:
        """Note that a sidecar has taken that version of a dataset; gives whether it still is the current one.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        current = (DatasetRecord.filename == filename_of(name)) & (DatasetRecord.sha256 == sha256)
        with self._database.writing() as session:
            done = session.execute(update(DatasetRecord).where(current).values(status=SYNCED, synced_at=now()))
            return bool(done.rowcount)  # type: ignore[attr-defined]  # an update's result counts rows

    def versions(self, name: str) -> list[DatasetVersion]:
        """The contents that a dataset's file had, the one that it became last first.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        newest = (DatasetVersion.last_seen_at.desc(), DatasetVersion.first_seen_at.desc(), DatasetVersion.id)
        of_dataset = select(DatasetVersion).join(DatasetRecord).where(DatasetRecord.filename == filename_of(name))
        with self._database.reading() as session:
            return list(session.scalars(of_dataset.order_by(*newest)))

    def _brought_up(self, found: dict[str, Content]) -> tuple[dict[str, DatasetRecord], list[Change]]:
        with self._database.reading() as session:
            records = _stored(session, found)
        behind = [name for name, content in found.items() if not _says(records.get(name), content)]
        if not behind:
            return records, []
        wanted = {name: found[name] for name in sorted(behind)}
        try:
            written, changes = self._written(wanted)
        except IntegrityError:  # another process made the record first; now it is there
            written, changes = self._written(wanted)
        return {**records, **written}, changes

    def _written(self, found: dict[str, Content]) -> tuple[dict[str, DatasetRecord], list[Change]]:
        """The records of datasets, made or replaced; they are locked in one order, so no two writers wait crosswise."""
        changes = []
        with self._database.writing() as session:
            records = _stored(session, found, locks=True)
            at = now()
            for name, content in found.items():
                record = records.get(name)
                if _says(record, content):
                    continue
                what = "new" if record is None else "replaced"
                if record is None:
                    record = records[name] = DatasetRecord(filename=filename_of(name), created_at=at)
                    session.add(record)
                _replace(record, content, at)
                changes.append(Change(name, what, content.sha256))
            session.flush()
            for change in changes:
                _note_version(session, records[change.name], at)
        return records, changes


def filename_of(name: str) -> str:
    """What a dataset's file is called in its record, and where it is trained on."""
    return f"{name}.jsonl"


def _of(names: Sequence[str]):  # type: ignore[no-untyped-def]  # SQLAlchemy's Select of records
    return (
        select(DatasetRecord)
        .where(DatasetRecord.filename.in_([filename_of(name) for name in names]))
        .order_by(DatasetRecord.filename)
    )


def _stored(session: Session, names: Iterable[str], *, locks: bool = False) -> dict[str, DatasetRecord]:
    """Name → record, of those that have one."""
    asked = sorted(names)
    records: dict[str, DatasetRecord] = {}
    for start in range(0, len(asked), BATCH):
        query = _of(asked[start : start + BATCH])
        for record in session.scalars(query.with_for_update() if locks else query):
            records[record.filename.removesuffix(".jsonl")] = record
    return records


def _says(record: DatasetRecord | None, content: Content) -> bool:
    return record is not None and (record.sha256, record.size_bytes, record.num_records) == (
        content.sha256, content.size_bytes, content.num_records,
    )  # fmt: skip


def _replace(record: DatasetRecord, content: Content, at: datetime) -> None:
    record.sha256, record.size_bytes, record.num_records = content.sha256, content.size_bytes, content.num_records
    record.status, record.updated_at, record.synced_at = STORED, at, None


def _note_version(session: Session, record: DatasetRecord, at: datetime) -> None:
    """Keep that the dataset's file has become what its record says."""
    of_record = (DatasetVersion.dataset_id == record.id) & (DatasetVersion.sha256 == record.sha256)
    version = session.scalar(select(DatasetVersion).where(of_record))
    if version is None:
        version = DatasetVersion(dataset_id=record.id, sha256=record.sha256, first_seen_at=at)
        session.add(version)
    version.size_bytes, version.num_records, version.last_seen_at = record.size_bytes, record.num_records, at
