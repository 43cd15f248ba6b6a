"""The answers of the routes that tell what a job left."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from turnmill.server.answers import Answer


class JobFile(Answer):
    """A file that a job left."""

    path: str = Field(description="Relative to the job's folder: what to ask for behind `/files/`.")
    size_bytes: int


class JobFiles(Answer):
    """Files that a job left."""

    files: list[JobFile] = Field(description="By path.")
    next: str | None = Field(description="What to give as `after` for the next page; null: this was the last one.")


class PreparedStep(Answer):
    """A step that the rows went through."""

    name: str
    version: int
    fingerprint: str


class PreparedSource(Answer):
    """What a source gave."""

    name: str
    rows: dict[str, int] = Field(description="Fate → rows: read, accepted, rejected, filtered, duplicates, …")
    codes: dict[str, int] = Field(description="Code → rows that left with it.")
    repairs: dict[str, int] = Field(description="Repair → rows that it mended.")
    examples: int
    turns: int
    tokens: int
    trained_tokens: int


class PreparedManifest(Answer):
    """What the prepared rows of a job come to."""

    fingerprint: str
    max_tokens: int | None
    tokenizer_sha256: str | None
    template: str | None = Field(description="Where the chat template comes from.")
    steps: list[PreparedStep]
    rows: dict[str, int]
    codes: dict[str, int]
    repairs: dict[str, int]
    examples: int
    packs: int | None
    tokens: int
    trained_tokens: int | None
    fill: float | None = Field(description="Share of the packs that tokens fill.")
    sources: list[PreparedSource]


class RowsSide(Answer):
    """Some of the prepared rows: how many, of which sources, how long, and how well the model knows them."""

    rows: int
    examples: int
    tokens: int
    trained_tokens: int
    sources: dict[str, int] = Field(description="Source → rows.")
    trained_by_kind: dict[str, int] = Field(description="Kind → tokens that train.")
    lengths: dict[str, int] = Field(description="Percentile, or `max` → tokens of an example.")
    perplexity: dict[str, float] = Field(description="Of a row: least, quartiles, largest, mean; empty: not scored.")


class SelectionAgainstControl(Answer):
    """What a strategy chose, beside as many rows that were drawn at random."""

    strategy: str
    selected: RowsSide
    control: RowsSide
    shared_rows: int = Field(description="Rows that are in both.")


class JobMetrics(Answer):
    """What a training logged: lines with `step`, and `loss` or `eval/loss` and their like."""

    metrics: list[dict[str, Any]] = Field(
        description="`step`, `epoch`; of a step `loss`, `learning_rate`, `grad_norm`, `seconds`; of an evaluation "
        "`eval/loss`, `eval/NAME/loss`, `best`."
    )
    next: int | None = Field(description="There is more: ask for it with this as `after`; null: not now.")
    is_whole: bool = Field(description="The job has ended, and nothing comes behind this.")


class AuditAnswer(Answer):
    """A question, the answer that was recorded, and what the model says."""

    row_id: str
    part: int
    turn: int
    message: int
    source: str
    source_file: str
    source_line: int
    asked: str
    recorded: str
    answer: str | None
    ended: bool
    fault: str | None
    trained_tokens: int
    exact: float | None
    normalised: float | None
    f1: float | None
    nll: float | None


class AuditAnswers(Answer):
    """Answers of an audit, in its order."""

    answers: list[AuditAnswer]
    next: int | None = Field(description="What to give as `cursor`; a page can be short, and yet not the last.")


class LeftReason(Answer):
    """Why rows left, and how many."""

    class_: str = Field(alias="class")
    code: str
    source: str
    stage: str
    rows: int
    means: str = Field(description="What the code means.")
    remedy: str = Field(description="What to do.")


class LeftRow(Answer):
    """A row that left."""

    number: int = Field(description="Among the rows that left.")
    row: int
    source: str
    source_file: str
    source_line: int
    class_: str = Field(alias="class")
    stage: str = Field(description="The verb at which it left.")
    code: str
    message: str
    at: int | None = Field(description="Index of the offending message in the recorded list.")
    excerpt: str = Field(description="The row's beginning, as it was read.")
    is_whole: bool = Field(description="Whether that is all of it.")


class LeftRows(Answer):
    """Rows that left, in the order of their files."""

    reasons: list[LeftReason] = Field(description="Of all rows that left, the most frequent first.")
    rows: list[LeftRow]
    next: int | None = Field(description="What to give as `cursor` for the next page; null: this was the last one.")


class ReplayCount(Answer):
    """What rows that left with a code become now."""

    code: str
    becomes: str = Field(description="`passes`, or the code that they leave with now.")
    rows: int


class ReplayedRow(Answer):
    """A row that would pass, before and after."""

    source: str
    source_file: str
    source_line: int
    code: str
    before: str
    after: str = Field(description="Its messages as they were mended, as JSON text.")


class Replay(Answer):
    """What a replay would bring; nothing is written."""

    rows: int = Field(description="That were checked again.")
    passes: int
    left_later: int = Field(description="Rows that left behind `check`, and were not checked again.")
    counts: list[ReplayCount]
    examples: list[ReplayedRow] = Field(description="The first rows that pass, at most 20.")
    complete: bool = Field(description="False: it took too long, and there are more rows.")
    command: str = Field(description="What writes the rows that pass, as a further source.")
