"""The tables of a shelf's database."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, ClassVar
from uuid import uuid4

from sqlalchemy import JSON, BigInteger, DateTime, ForeignKey, Index, MetaData, String, Text, UniqueConstraint
from sqlalchemy.engine import Dialect
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.types import TypeDecorator

NAMES = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s",
    "pk": "pk_%(table_name)s",
}
"""Of keys and indexes: the same in every database, so that a later migration can name them."""


class UtcTime(TypeDecorator[datetime]):
    """An aware time, in UTC whatever the database keeps."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """The time as it is stored."""
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: Any | None, dialect: Dialect) -> datetime | None:
        """The time as it is read; SQLite gives it without its zone."""
        if value is None:
            return None
        time: datetime = value
        return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)


def now() -> datetime:
    """The time, aware, in UTC."""
    return datetime.now(UTC)


def new_id() -> str:
    """An id that nothing else has: 32 hex digits."""
    return uuid4().hex


class Table(DeclarativeBase):
    """What all tables share."""

    metadata = MetaData(naming_convention=NAMES)
    type_annotation_map: ClassVar = {datetime: UtcTime, dict[str, Any]: JSON}


class DatasetRecord(Table):
    """A dataset that was seen on the shelf; it stays when the dataset goes."""

    __tablename__ = "datasets"

    id: Mapped[str] = mapped_column(String(32), primary_key=True, default=new_id)
    filename: Mapped[str] = mapped_column(String(128), unique=True)
    """`NAME.jsonl`."""
    size_bytes: Mapped[int] = mapped_column(BigInteger)
    num_records: Mapped[int] = mapped_column(BigInteger)
    sha256: Mapped[str] = mapped_column(String(64))
    status: Mapped[str] = mapped_column(String(16), default="stored")
    """`stored`, or `synced`: a job has taken this version of the file to the sidecar."""
    created_at: Mapped[datetime] = mapped_column(default=now)
    updated_at: Mapped[datetime] = mapped_column(default=now)
    """When it last described a new version of the file."""
    synced_at: Mapped[datetime | None]


class DatasetVersion(Table):
    """A content that a dataset's file had."""

    __tablename__ = "dataset_versions"
    __table_args__ = (UniqueConstraint("dataset_id", "sha256"),)

    id: Mapped[str] = mapped_column(String(32), primary_key=True, default=new_id)
    dataset_id: Mapped[str] = mapped_column(ForeignKey("datasets.id"), index=True)
    sha256: Mapped[str] = mapped_column(String(64))
    size_bytes: Mapped[int] = mapped_column(BigInteger)
    num_records: Mapped[int] = mapped_column(BigInteger)
    first_seen_at: Mapped[datetime] = mapped_column(default=now)
    last_seen_at: Mapped[datetime] = mapped_column(default=now)
    """When the file was last found to have become this content."""


class Job(Table):
    """Work that a worker does, or did."""

    __tablename__ = "jobs"
    __table_args__ = (Index(None, "status", "created_at"),)

    id: Mapped[str] = mapped_column(String(32), primary_key=True, default=new_id)
    kind: Mapped[str] = mapped_column(String(16))
    dataset: Mapped[str] = mapped_column(String(128), index=True)
    """Name of the dataset."""
    filename: Mapped[str] = mapped_column(String(128))
    sha256: Mapped[str] = mapped_column(String(64))
    """Of the dataset's file when the job was made: the job is given exactly that."""
    options: Mapped[dict[str, Any]]
    status: Mapped[str] = mapped_column(String(16), default="queued")
    """`queued`, `running`, `done`, `failed` or `cancelled`."""
    attempt: Mapped[int] = mapped_column(default=0)
    """How often a worker has taken it."""
    cancel_requested: Mapped[bool] = mapped_column(default=False)
    leased_by: Mapped[str | None] = mapped_column(String(128))
    """The worker that has it."""
    leased_until: Mapped[datetime | None]
    """When another worker may take it, if this one says nothing until then."""
    progress: Mapped[dict[str, Any]] = mapped_column(default=dict)
    result: Mapped[dict[str, Any]] = mapped_column(default=dict)
    error: Mapped[str | None] = mapped_column(Text)
    idempotency_key: Mapped[str | None] = mapped_column(String(128), unique=True)
    created_at: Mapped[datetime] = mapped_column(default=now)
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]


class JobEvent(Table):
    """Something that happened to a job, in order."""

    __tablename__ = "job_events"

    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id"), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    """From 1 on, without a gap within a job: what a reader that comes back says it has seen."""
    kind: Mapped[str] = mapped_column(String(16))
    """`status` or `progress`."""
    data: Mapped[dict[str, Any]]
    at: Mapped[datetime] = mapped_column(default=now)


class AccessToken(Table):
    """A token that opens the service; only its hash is kept."""

    __tablename__ = "access_tokens"

    id: Mapped[str] = mapped_column(String(32), primary_key=True, default=new_id)
    name: Mapped[str] = mapped_column(String(128), unique=True)
    sha256: Mapped[str] = mapped_column(String(64), unique=True)
    scope: Mapped[str] = mapped_column(String(16))
    """`read`, `write` or `admin`; each may do what the one before it may."""
    created_at: Mapped[datetime] = mapped_column(default=now)
    expires_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]
    last_used_at: Mapped[datetime | None]
