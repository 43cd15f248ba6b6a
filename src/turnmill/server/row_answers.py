"""The answers of the routes of rows, as OpenAPI says them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from turnmill.server.answers import Answer, RowCheck

MAX_REPAIRS = 32


class RowSummary(Answer):
    """A row of a list; what only a conversation has is null where the record could not be converted."""

    line: int = Field(description="In the data file, from 1; of a file that is not JSON lines, the row.")
    id: str | None = Field(description="Of the conversation; null where it was rejected.")
    code: str | None = Field(description="That it would leave with.")
    error: str | None
    source: str = Field(description="What the row's field `source` says, else the dataset's name.")
    excerpt: str = Field(description="How the first thing that a user says begins, at most 160 characters.")
    turns: int | None
    characters: int | None
    roles: str | None = Field(description="First letters of the turns' roles, a space between two: `s u a t a`.")
    has_reasoning: bool | None
    has_tool_calls: bool | None
    has_tools: bool | None


class RowPage(Answer):
    """Some rows of a dataset, those that are asked for."""

    name: str
    sha256: str = Field(description="Of the data file.")
    num_records: int | None = Field(description="Rows of the whole dataset; null of one that is a problem.")
    rows: list[RowSummary]
    next: str | None = Field(description="The cursor of what is behind it; null at the end of the file.")
    scanned: int = Field(description="Rows that were looked at for this page.")


class ReadMessage(Answer):
    """One message of a conversation as it was read."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    text: str = Field(description="What is said; of a call its arguments as JSON text.")
    channel: Literal["analysis", "commentary", "final", "text"] | None
    name: str | None = Field(description="The author's; on a tool's result the function that speaks.")
    recipient: str | None = Field(description="The tool that is called; `assistant` on a tool's result.")
    weight: float | None = Field(description="The recorded loss weight.")
    recorded: int = Field(description="Index in the recorded list of messages; -1: it stood outside of it.")


class ReadConversation(Answer):
    """A row as it was read: the one shape of a chat."""

    messages: list[ReadMessage]
    tools: list[Any] = Field(description="Definitions as recorded.")
    template_kwargs: dict[str, Any] = Field(description="Arguments of the chat template recorded with the row.")
    source_id: str | None = Field(description="The row's id in its source.")
    verbatim: dict[str, str] = Field(description="By recorded index: content that a think block was taken out of.")


class DatasetRow(Answer):
    """One row: as it lies in the file, and as it is read."""

    name: str
    sha256: str = Field(description="Of the data file.")
    line: int
    previous: int | None = Field(description="Line of the row before it.")
    next: int | None = Field(description="Line of the row behind it.")
    dialect: str = Field(description="That it was read as.")
    raw: str = Field(description="As it lies in the file; a megabyte at most.")
    bytes: int = Field(description="Of the row in the file.")
    truncated: bool = Field(description="Whether the row has more than `raw`.")
    source: str
    record: dict[str, Any] | None = Field(description="Parsed; null where it cannot be, or has over four megabytes.")
    id: str | None
    code: str | None = Field(description="That it would leave with.")
    error: str | None
    at: int | None = Field(description="The message that is at fault, as an index of the recorded list.")
    stage: Literal["read", "convert", "repair", "check"] | None = Field(description="Where it leaves.")
    repairs: list[str] = Field(description="Those that changed it.")
    conversation: ReadConversation | None = Field(description="null where `record` is, or cannot be converted.")


class RowHistogram(Answer):
    """How many values lie in each part of a scale."""

    edges: list[int] = Field(description="Where each part begins; the last one has no end.")
    counts: list[int] = Field(description="Rows from each edge up to the next.")


class RowKinds(Answer):
    """Rows that have some."""

    reasoning: int
    calls: int
    tools: int


class DatasetProfile(RowCheck):
    """What the rows of a dataset would come to, and what they are like; of those that could be converted."""

    sources: dict[str, int] = Field(description="What rows say they come from → rows; the 100 most frequent.")
    other_sources: int = Field(description="Sources beyond these.")
    roles: dict[str, int] = Field(description="Role → rows that have a turn of it.")
    kinds: RowKinds
    turns: RowHistogram
    characters: RowHistogram


class ReplayRequest(BaseModel):
    """How rejected rows are checked once more."""

    model_config = ConfigDict(extra="forbid")

    repairs: list[str] | None = Field(None, max_length=MAX_REPAIRS, description="Made before, in order; by name.")
    dialect: str | None = Field(None, max_length=64, description="That they are read as, in place of their own.")
    line: int | None = Field(None, ge=1, le=10**9, description="Of the only row; null: all.")


class ReplayMove(Answer):
    """Rows that leave with one code, and what becomes of them."""

    code: str
    becomes: str = Field(description="`passes`, or the code that they leave with then.")
    rows: int
    lines: list[int] = Field(description="The first of them, at most 20.")


class DatasetReplay(Answer):
    """What would become of the rejected rows; nothing was written."""

    name: str
    sha256: str = Field(description="Of the data file.")
    rows: int = Field(description="That were looked at, accepted ones too.")
    rejected: int
    passes: int
    moves: list[ReplayMove]
    complete: bool = Field(description="False: there are more rows than are looked at, or they took too long.")


class CodeMeaning(Answer):
    """What a code means."""

    code: str
    stage: str = Field(description="The verb that gives it.")
    means: str
    example: str
    remedy: str


class Codes(Answer):
    """Every code that a row can leave with, or a template is refused with."""

    codes: list[CodeMeaning]


class Plugin(Answer):
    """One plug-in of a family."""

    name: str
    summary: str


class Plugins(Answer):
    """The plug-ins of a family."""

    family: str
    plugins: list[Plugin]
