"""What datasets would give to an epoch, over REST."""

from __future__ import annotations

from collections import Counter
from typing import Any, Literal

from fastapi import APIRouter
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from turnmill.errors import UsageError, quote
from turnmill.options import Mix
from turnmill.server.answers import Answer
from turnmill.server.problems import Problem
from turnmill.server.registry import TheRegistry
from turnmill.server.written import Written
from turnmill.verbs.mix import as_json, of_rows, warnings_of

router = APIRouter(tags=["datasets"])
MAX_DATASETS = 200


class MixedDataset(BaseModel):
    """A dataset, and how much of an epoch it is to be."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(max_length=256)
    weight: float | None = Field(None, ge=0, allow_inf_nan=False, description="null: its share of all rows.")


class MixRequest(BaseModel):
    """Datasets, and how an epoch is made of them."""

    model_config = ConfigDict(extra="forbid")

    datasets: list[MixedDataset] = Field(min_length=1, max_length=MAX_DATASETS)
    epoch: Literal["total", "first-exhausted"] = Field(
        "total", description="As large as all of them, or ends where the first one has been gone through."
    )
    max_passes: float | None = Field(None, gt=0, allow_inf_nan=False, description="Through a dataset, in an epoch.")


class MixShare(Answer):
    """What a dataset gives to an epoch."""

    source: str
    examples: int = Field(description="Rows that it has.")
    weight: float = Field(description="Of all datasets together 1.")
    drawn: int = Field(description="Rows an epoch.")
    passes: float = Field(description="How often it is gone through in an epoch.")
    says: Literal["empty", "upsampled", "subsampled", "one pass"]


class MixPlan(Answer):
    """What an epoch would be, if every row became one example."""

    examples: int = Field(description="Rows of an epoch.")
    sources: list[MixShare]
    warnings: list[str]


@router.post(
    "/mix",
    response_model=MixPlan,
    responses={
        400: {"description": "mix-not-valid"},
        404: {"description": "dataset-unknown, dataset-not-usable"},
        503: {"description": "shelf-not-readable"},
    },
)
async def mix(registry: TheRegistry, asked: MixRequest) -> Response:
    """What each of some datasets would give to an epoch, as `turnmill mix` says it of files; nothing is written."""
    weights = {one.name: one.weight for one in asked.datasets}
    ((name, times),) = Counter(one.name for one in asked.datasets).most_common(1)
    if times > 1:
        raise Problem(400, "mix-not-valid", f"the dataset {quote(name)} is named {times} times; expected each once")
    listed = await registry.listings.current()
    rows = {name: listed.dataset(name).content.num_records for name in weights}
    try:
        mixed = of_rows(rows, weights, Mix(epoch=asked.epoch, max_passes=asked.max_passes))
    except UsageError as error:
        raise Problem(400, "mix-not-valid", error.message) from None
    said: dict[str, Any] = as_json(mixed)
    kept = [{key: share[key] for key in MixShare.model_fields} for share in said["sources"]]
    written = Written.of({"examples": said["examples"], "sources": kept, "warnings": warnings_of(mixed)})
    return Response(written.body, headers={"ETag": written.etag}, media_type="application/json")
