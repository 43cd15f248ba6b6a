"""What is asked of a row and what is told of it, as OpenAPI says them."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from turnmill.server.answers import Answer


class Asked(BaseModel):
    """What the parts of a request share: no field but the ones that are said."""

    model_config = ConfigDict(extra="forbid")


class AskedRender(Asked):
    """Options of the section `render`."""

    history: Literal["final", "auto", "per-turn"] = "final"
    control_tokens: Literal["escape", "reject", "keep"] = "escape"


class AskedLoss(Asked):
    """Options of the section `loss`."""

    turns: Literal["all", "last"] = "all"
    reasoning: bool = True
    observations: bool = False
    scaling: Literal["uniform", "progressive", "last-heavy"] = "uniform"
    fractional: bool = False


class AskedFit(Asked):
    """Options of the section `fit`."""

    max_tokens: int | None = Field(default=None, ge=1, le=1 << 24)
    overflow: Literal["cut", "drop", "continue"] = "cut"


class ExplainRequest(Asked):
    """A row, and what it is put under."""

    line: int = Field(
        ge=1, le=10**9, description="Of the data file, from 1; of a file that is not JSON lines, the row."
    )
    model: str | None = Field(None, max_length=128, description="A name that the server was given a model under.")
    template: str | None = Field(None, max_length=128, description="One of turnmill's own templates, by name.")
    template_text: str | None = Field(
        None,
        max_length=1 << 18,
        description="A template's own text; it is rendered in a process of its own, with limits.",
    )
    special_tokens: dict[str, str] = Field(
        default_factory=dict, max_length=32, description="Variables of the template, such as bos_token."
    )
    render: AskedRender = Field(default_factory=AskedRender, description="As a config's section says them.")
    loss: AskedLoss = Field(default_factory=AskedLoss)
    fit: AskedFit = Field(default_factory=AskedFit)
    score: bool = Field(False, description="Say what each token costs the model, which must have weights.")


class ExplainedSpan(Answer):
    """Characters [start, end) of one message and kind."""

    start: int
    end: int
    message: int | None
    kind: str
    trained: bool


class ExplainedTurn(Answer):
    """Whether a message trains, and why."""

    message: int
    trained: bool
    why: str
    role: str = Field(description="Who speaks.")


class ExplainedRun(Answer):
    """Tokens up to `end` (from the run before), of one message and kind, that train or not for one reason."""

    end: int
    message: int | None
    kind: str
    why: str


class ExplainedCut(Answer):
    """Characters [start, end) of the row's text that no example has; offsets are counted from `start`."""

    start: int
    end: int
    input_ids: list[int]
    offsets: list[tuple[int, int]]
    runs: list[ExplainedRun]
    control: list[int]
    bytes: list[tuple[int, str]]


class ExplainedExample(Answer):
    """One training example of a row."""

    part: int
    text: str
    spans: list[ExplainedSpan]
    input_ids: list[int] | None
    labels: list[int] | None
    weights: list[float] | None
    offsets: list[tuple[int, int]] = Field(description="Characters of each token, in the example's own text.")
    runs: list[ExplainedRun] = Field(description="Whose the tokens are, and why they train or not.")
    control: list[int] = Field(description="Which tokens are control tokens.")
    bytes: list[tuple[int, str]] = Field(
        description="Which tokens stand for bytes that are no whole character, and the bytes in hex."
    )
    kept: list[tuple[int, int]] | None = Field(
        description="Characters of the row's text that the example's is put together of; null: of another render."
    )
    nll: list[float | None] | None = Field(
        None, description="Where it was asked: nats that each token costs the model; null for the first."
    )


class ControlHit(Answer):
    """Control-token text in content."""

    start: int
    end: int
    text: str


class Explained(Answer):
    """What a model learns of a row: as `turnmill explain --json` says it."""

    row: int
    id: str | None
    text: str | None
    spans: list[ExplainedSpan]
    input_ids: list[int] | None
    labels: list[int] | None
    turns: list[ExplainedTurn]
    examples: list[ExplainedExample]
    cut: list[ExplainedCut] = Field(description="What of the text no example has.")
    max_tokens: int | None = Field(description="That an example may have; null without a tokenizer.")
    repairs: list[str] | None = None
    code: str | None = Field(None, description="Of a row that leaves.")
    message: str | None = None
    at: int | None = Field(None, description="Of a row that leaves: the message at fault.")
    control_hits: list[ControlHit] | None = None
