"""The words of an answer over REST: what codes mean, and which plug-ins there are."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter, Request
from fastapi.responses import Response

from turnmill.codes import CODES
from turnmill.registry import family_registry
from turnmill.server.row_answers import Codes, Plugins
from turnmill.server.written import NOT_MODIFIED, Written, answered

router = APIRouter(tags=["vocabulary"])
Family = Literal["dialects", "repairs", "strategies"]


@router.get("/codes", response_model=Codes, responses={**NOT_MODIFIED})
async def codes(request: Request) -> Response:
    """Every code that a row can leave with: the stage that gives it, what it means, and what to do about it."""
    return answered(request, Written.of({"codes": [{"code": name, **code._asdict()} for name, code in CODES.items()]}))


@router.get("/plugins/{family}", response_model=Plugins, responses={**NOT_MODIFIED})
def plugins(request: Request, family: Family) -> Response:
    """The dialects, repairs or strategies that a request can name, each with the first line of its documentation."""
    registry = family_registry(family)
    found = [{"name": name, "summary": registry.summary(name)} for name in registry.names()]
    return answered(request, Written.of({"family": family, "plugins": found}))
