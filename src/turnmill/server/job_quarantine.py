"""The rows that left a job's prepared data, over REST, and what other repairs would make of them."""

from __future__ import annotations

from typing import Annotated, Any

from anyio.to_thread import run_sync
from fastapi import APIRouter, Query
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from turnmill.errors import UsageError, shell_word
from turnmill.server.job_answers import LeftRows, Replay
from turnmill.server.job_results import PREPARED, folder_of, not_prepared, told
from turnmill.server.jobs import TheId
from turnmill.server.problems import Problem
from turnmill.server.registry import TheRegistry
from turnmill.server.service import Service, TheService
from turnmill.server.written import Written
from turnmill.shelf.job_folder import JobFolder
from turnmill.shelf.job_quarantine import left_as_json, left_page, reasons, replay_counts
from turnmill.verbs.quarantine import Wanted

router = APIRouter(prefix="/jobs", tags=["jobs"])
MAX_ROWS = 200
Named = Annotated[str | None, Field(max_length=256)]


class LeftQuery(BaseModel):
    """Which of the rows that left."""

    cursor: Annotated[int, Field(ge=0, le=1 << 50, description="`next` of the page before.")] = 0
    limit: Annotated[int, Field(ge=1, le=MAX_ROWS)] = 50
    code: Named = None
    source: Named = None
    stage: Named = None
    duplicates: Annotated[bool, Field(description="The rows that left as duplicates, in place of the others.")] = False


class ReplayRequest(BaseModel):
    """Which rows are checked again, and with which repairs."""

    model_config = ConfigDict(extra="forbid")

    repairs: list[Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")]] | None = Field(
        None, max_length=64, description="By name; null: the ones that the rows were prepared with."
    )
    code: str | None = Field(None, max_length=128, description="Only rows that left with this code.")
    source: str | None = Field(None, max_length=256, description="Only rows of this source.")


@router.get("/{job_id}/quarantine", response_model=LeftRows, responses=PREPARED)
async def quarantine(
    service: TheService, registry: TheRegistry, job_id: TheId, asked: Annotated[LeftQuery, Query()]
) -> Response:
    """The rows that left a job's prepared data: why, how many, and the rows themselves. A page can be short."""
    wanted = Wanted(asked.code, asked.source, asked.stage, asked.duplicates)

    def made() -> dict[str, Any]:
        folder = _prepared(service, job_id)
        page = left_page(folder.prepared, wanted, asked.cursor, asked.limit)
        rows = [left_as_json(number, left) for number, left in page.rows]
        return {"reasons": reasons(folder.prepared, duplicates=asked.duplicates), "rows": rows, "next": page.next}

    with told():
        said = await run_sync(made, limiter=registry.row_readers)
    return Response(Written.of(said).body, media_type="application/json")


@router.post("/{job_id}/quarantine/replay", response_model=Replay, responses=PREPARED)
async def replay(service: TheService, registry: TheRegistry, job_id: TheId, asked: ReplayRequest) -> Response:
    """What the rows that left would become with other repairs; nothing is written, and 20 seconds are taken at most."""
    wanted = Wanted(asked.code, asked.source)

    def made() -> dict[str, Any]:
        return replay_counts(_prepared(service, job_id).prepared, wanted, asked.repairs)

    with told():
        try:
            said = await run_sync(made, limiter=registry.row_readers)
        except UsageError as error:
            raise Problem(400, "request-not-valid", error.message) from None
    command = f"turnmill quarantine replay JOBS/{job_id}/prepared"
    if asked.repairs is not None:
        command += f" --repairs {shell_word(','.join(asked.repairs))}"
    return Response(Written.of({**said, "command": command}).body, media_type="application/json")


def _prepared(service: Service, job_id: str) -> JobFolder:
    """The folder of a job that has prepared rows.

    Raises:
        Problem: 404.
    """
    folder = folder_of(service, job_id)
    if not (folder.prepared / "manifest.json").is_file():
        raise not_prepared()
    return folder
