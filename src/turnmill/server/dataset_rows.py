"""The rows of a dataset over REST: explained one by one, and held against another's."""

from __future__ import annotations

from typing import Annotated, Any

from anyio.to_thread import run_sync
from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from turnmill.errors import UnsafeTemplate, UsageError, quote
from turnmill.models import own_templates
from turnmill.server.answers import SharedRows
from turnmill.server.dataset_items import ITEM, UNKNOWN, Name
from turnmill.server.dataset_profile import remembered
from turnmill.server.explained import Explained, ExplainRequest
from turnmill.server.listings import reading_of
from turnmill.server.problems import Problem
from turnmill.server.registry import Registry, TheRegistry
from turnmill.server.written import NOT_MODIFIED, Written, answered
from turnmill.shelf.rows import explain_row, shared_rows

router = APIRouter(tags=["datasets"])


@router.get(
    f"{ITEM}/diff",
    response_model=SharedRows,
    responses={**NOT_MODIFIED, **UNKNOWN, 503: {"description": "took-too-long, shelf-not-readable"}},
)
async def diff(
    request: Request, registry: TheRegistry, name: Name, against: Annotated[str, Query(max_length=256)]
) -> Response:
    """Which rows a dataset shares with another one, whatever their files look like."""
    listed = await registry.listings.current()
    here, there = listed.dataset(name), listed.dataset(against)

    def made() -> dict[str, Any]:
        shared = shared_rows((here.folder, here.manifest), (there.folder, there.manifest))
        return {"name": name, "against": against, **shared}

    return answered(request, await remembered(registry, ("diff", *reading_of(here), *reading_of(there)), made))


@router.post(
    f"{ITEM}/explain",
    response_model=Explained,
    responses={
        400: {"description": "row-unknown, model-unknown, template-not-usable, not-scored"},
        **UNKNOWN,
    },
)
async def explain(registry: TheRegistry, name: Name, asked: ExplainRequest) -> Response:
    """What a model learns of one row: under a model of the server, a template of turnmill's own, or any text of one."""
    dataset = (await registry.listings.current()).dataset(name)

    sections = {
        "model": _model_of(registry, asked),
        **asked.model_dump(include={"render", "loss", "fit"}),
    }

    def made() -> Written:
        place = (dataset.folder, dataset.manifest, asked.line)
        return Written.of(explain_row(*place, sections, asked.template_text, is_scored=asked.score))

    try:
        written = await run_sync(made, limiter=registry.scorers if asked.score else registry.row_readers)
    except UnsafeTemplate as error:
        raise Problem(400, "template-not-usable", f"{error.code}: {error.message}") from None
    except UsageError as error:
        code = "not-scored" if asked.score else "template-not-usable"
        code = "row-unknown" if error.message.startswith("no row ") else code
        raise Problem(400, code, error.message) from None
    return Response(written.body, headers={"ETag": written.etag}, media_type="application/json")


def _model_of(registry: Registry, asked: ExplainRequest) -> dict[str, Any]:
    """The config's section `model`; no name of the request is ever a path.

    Raises:
        Problem: 400.
    """
    if not (asked.model or asked.template or asked.template_text):
        raise Problem(400, "request-not-valid", "expected a `model`, a `template` or a `template_text`")
    if asked.template_text is not None and (asked.model or asked.template):
        raise Problem(400, "request-not-valid", "`template_text` goes with neither `model` nor `template`")
    if asked.score and asked.model is None:
        raise Problem(400, "request-not-valid", "`score` needs a `model`, and not a template alone")
    models = registry.service.options.models
    if asked.model is not None and asked.model not in models:
        known = ", ".join(sorted(models)) or "none"
        raise Problem(400, "model-unknown", f"no model is called {quote(asked.model)}; this server has: {known}")
    if asked.template is not None and asked.template not in own_templates():
        known = ", ".join(own_templates())
        raise Problem(400, "template-not-usable", f"no template is called {quote(asked.template)}; expected: {known}")
    path = None if asked.model is None else str(models[asked.model])
    return {"name_or_path": path, "template": asked.template, "special_tokens": asked.special_tokens}
