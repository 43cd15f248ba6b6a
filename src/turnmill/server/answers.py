"""The answers of the routes of datasets, as OpenAPI says them."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class Answer(BaseModel):
    """What all of them share: no field but the ones that are said."""

    model_config = ConfigDict(extra="forbid")


class Dataset(Answer):
    """A dataset that a job can use: its record, and what its manifest says."""

    id: str = Field(description="Of the record.")
    name: str = Field(description="What a job asks for.")
    description: str
    format: Literal["jsonl", "json", "parquet"]
    file: str = Field(description="The data file, relative to the dataset's directory.")
    version: str
    generator: str = Field(description="The script that writes the data file; never run.")
    dir: str = Field(description="The dataset's directory in the shelf.")
    filename: str = Field(description="What the file is called where it is trained on: NAME.jsonl.")
    size_bytes: int
    num_records: int
    sha256: str = Field(description="Of the data file, 64 hex digits.")
    status: Literal["stored", "synced"] = Field(description="synced: a job has taken this version to the sidecar.")
    created_at: datetime
    updated_at: datetime = Field(description="When the record last described a new version of the file.")
    synced_at: datetime | None = Field(description="When the sidecar last took this version; null: it has not.")
    dialect: str | None = Field(None, description="How its rows say a chat; only where the manifest says it.")
    licence: str | None = None
    splits: dict[str, float] | None = Field(None, description="What of it is held out.")


class ShelfProblem(Answer):
    """A directory with a manifest that is no dataset."""

    dir: str
    error: str


class DatasetList(Answer):
    """What a shelf holds."""

    datasets: list[Dataset] = Field(description="By name.")
    problems: list[ShelfProblem] = Field(description="By directory; of pages, on the first.")
    next: str | None = Field(None, description="Of a page: the cursor of the one behind it, null on the last.")


class Preview(Answer):
    """The first rows of a dataset."""

    name: str
    lines: list[str]
    num_records: int = Field(description="Rows of the whole dataset.")
    truncated: bool = Field(description="Whether it has more rows than these.")


class Version(Answer):
    """A content that a dataset's file had."""

    sha256: str
    size_bytes: int
    num_records: int
    first_seen_at: datetime
    last_seen_at: datetime = Field(description="When the file was last found to have become this content.")
    current: bool = Field(description="Whether the file has it now.")


class Versions(Answer):
    """The contents that a dataset's file had."""

    name: str
    versions: list[Version] = Field(description="The one that it became last first.")


class RowFault(Answer):
    """What is wrong with a row."""

    line: int = Field(description="In the data file, from 1.")
    code: str
    error: str


class RowCheck(Answer):
    """What the rows of a dataset would come to, had they been checked."""

    name: str
    sha256: str
    rows: int = Field(description="That were read.")
    accepted: int
    codes: dict[str, int] = Field(description="Code → rows that would leave with it.")
    faults: list[RowFault] = Field(description="The first rows that would leave, at most 20.")
    complete: bool = Field(description="False: there are more rows than are looked at, or they took too long.")


class SharedRows(Answer):
    """What two datasets have in common; rows are the same where their conversations are."""

    name: str
    against: str
    rows: tuple[int, int] = Field(description="Rows that can be compared, of each.")
    rejected: tuple[int, int] = Field(description="Rows without a conversation, of each.")
    shared: int = Field(description="Conversations that both have.")
    only: tuple[int, int] = Field(description="Conversations that only one has, of each.")
    lines: tuple[list[int], list[int]] = Field(description="Of each, the first lines that the other lacks, at most 20.")


class Fault(Answer):
    """What is wrong with a field or a line."""

    at: str | None = Field(None, description="The field of the request.")
    file: str | None = None
    line: int | None = Field(None, description="Of the file, from 1; null: the whole file.")
    error: str


class ProblemAnswer(BaseModel):
    """What went wrong (RFC 9457); `code` is stable."""

    model_config = ConfigDict(title="Problem")

    type: str
    title: str
    status: int
    code: str
    detail: str
    faults: list[Fault] | None = Field(None, description="The first of what is wrong, at most 20.")
