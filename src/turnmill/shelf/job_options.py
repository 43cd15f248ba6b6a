"""What a client may say of a job: names and numbers, never content, paths, addresses or code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, TypeAdapter, field_validator

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,121}$")]
"""Of a dataset, or of a model that the server knows."""
JobId = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
Share = Annotated[float, Field(gt=0, lt=1)]
Count = Annotated[int, Field(ge=1, le=1_000_000_000)]


class Asked(BaseModel):
    """What every job names."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True)

    dataset: Name
    """Its name on the shelf."""
    max_tokens: Count | None = None
    """Of an example; default: at most 4096, and what the model can take."""
    seed: Annotated[int, Field(ge=0, le=2**32 - 1)] = 0
    """Of every random draw."""

    def options(self) -> dict[str, Any]:
        """All but the kind and the dataset, without what was left open."""
        return self.model_dump(exclude={"kind", "dataset"}, exclude_none=True)


class Prepare(Asked):
    """Prepare the dataset for a model."""

    kind: Literal["prepare"]
    model: Name | None = None
    """One of the server's; default: its only one."""
    strategy: Annotated[str, Field(pattern=r"^[a-z0-9-]{1,40}$")] | None = None
    """How the rows that train are chosen (`turnmill list strategies`); all but `random` score them with the model, and
    draw a control beside. Left open: all rows train."""
    select_rows: Count | None = None
    """So many rows are chosen; default: all that pass."""
    max_perplexity: Annotated[float, Field(ge=0, le=1e12)] | None = None
    """Rows that the model finds more surprising leave; 0: none does. Default: 500."""

    @field_validator("strategy")
    @classmethod
    def _is_strategy(cls, value: str | None) -> str | None:
        from turnmill.strategies import strategies

        return None if value is None else _known(value, "strategy", strategies.names())


class Train(Asked):
    """Carry the dataset to the sidecar, which prepares it and trains a model on it."""

    kind: Literal["train"] = "train"
    model: Name | None = None
    """One of the sidecar's; default: its only one."""
    method: Literal["lora", "full"] | None = None
    """Adapters, or all weights."""
    epochs: Annotated[float, Field(gt=0, le=1000)] | None = None
    """Passes over the examples."""
    max_steps: Count | None = None
    """Of the optimizer; it ends after them."""
    learning_rate: Annotated[float, Field(gt=0, le=1)] | None = None
    """The greatest one."""
    batch_size: Annotated[int, Field(ge=1, le=4096)] | None = None
    """Packs or examples of a step on one device."""
    gradient_accumulation_steps: Annotated[int, Field(ge=1, le=4096)] | None = None
    """Of them that one step of the optimizer adds up."""
    lora_rank: Annotated[int, Field(ge=1, le=4096)] | None = None
    """Of the adapters."""


class _OfModel(Asked):
    """Work on a model: one of the server's, or one that a job trained."""

    model: Name | None = None
    """One of the server's; default: its only one. Of adapters that a job trained, the model that they change."""
    job: JobId | None = None
    """A `train` job that is done: its model is looked at."""


class Evaluate(_OfModel):
    """Score a model on the dataset's rows: token-weighted losses."""

    kind: Literal["evaluate"]
    samples: Count | None = None
    """So many rows at most."""


class Audit(_OfModel):
    """Ask a model the questions of the dataset it was trained on, and set its answers beside the recorded ones."""

    kind: Literal["audit"]
    samples: Annotated[int, Field(ge=1, le=100_000)] = 200
    """So many rows, drawn by the seed."""
    max_new_tokens: Annotated[int, Field(ge=1, le=100_000)] | None = None
    """Of an answer; default: by the recorded one's length."""


class Export(Asked):
    """Write the prepared dataset as another trainer takes it."""

    kind: Literal["export"]
    model: Name | None = None
    """One of the server's; default: its only one."""
    to: Annotated[str, Field(pattern=r"^[a-z0-9-]{1,40}$")]
    """Who takes it: `turnmill list exporters`."""

    @field_validator("to")
    @classmethod
    def _is_exporter(cls, value: str) -> str:
        from turnmill.exporters import exporters

        return _known(value, "exporter", exporters.names())


def _known(value: str, what: str, names: Sequence[str]) -> str:
    """A name that is one of them.

    Raises:
        ValueError: it is none.
    """
    if value not in names:
        raise ValueError(f"no {what} has that name; expected one of {', '.join(names)}")
    return value


def _kind_of(asked: Any) -> Any:
    """A job that says no kind trains."""
    return asked.get("kind", "train") if isinstance(asked, dict) else getattr(asked, "kind", None)


Request = Annotated[
    Annotated[Prepare, Tag("prepare")]
    | Annotated[Train, Tag("train")]
    | Annotated[Evaluate, Tag("evaluate")]
    | Annotated[Audit, Tag("audit")]
    | Annotated[Export, Tag("export")],
    Discriminator(_kind_of),
]
"""A job as it is asked for."""
REQUEST: TypeAdapter[Any] = TypeAdapter(cast(Any, Request))
