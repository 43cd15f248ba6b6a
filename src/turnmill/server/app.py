"""The app: its routes, its guard, and how it says what is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

from fastapi import FastAPI

from turnmill.errors import UsageError
from turnmill.server import (
    about,
    access_tokens,
    dataset_file,
    dataset_items,
    dataset_profile,
    dataset_rows,
    datasets,
    health,
    job_quarantine,
    job_results,
    jobs,
    mixing,
    page,
    row_pages,
    uploads,
    vocabulary,
)
from turnmill.server.guard import Guard
from turnmill.server.metrics import Measured, Metrics
from turnmill.server.openapi import describe, operation_id
from turnmill.server.problems import handle_problems
from turnmill.server.registry import Registry
from turnmill.server.service import Serve, Service
from turnmill.shelf.database import Database
from turnmill.shelf.scan import Shelf

PARTS = (
    about, access_tokens, vocabulary, datasets, uploads, dataset_items, dataset_file, dataset_profile, dataset_rows,
    row_pages, mixing, jobs, job_results, job_quarantine,
)  # fmt: skip
"""Modules with routes, a noun each, in the order in which paths are looked for."""


def create_app(
    shelf: Path,
    database: Database,
    options: Serve | None = None,
    *,
    other_databases: Mapping[str, Database] | None = None,
) -> FastAPI:
    """An ASGI app that serves a shelf; it can be mounted in another one.

    Args:
        shelf: the directory of the datasets; it may not be there yet.
        database: of the records, jobs and access tokens.
        options: how it is served.
        other_databases: name → a database that has no datasets (`?db=NAME`).

    Raises:
        UsageError: the interface would lie where the page does, which is open to everybody.
    """
    chosen = options or Serve()
    if page.is_of_page(f"{chosen.api_prefix}/training"):
        raise UsageError(f"the prefix of the interface is {chosen.api_prefix}, where the page is; expected another one")
    service = Service(Shelf(shelf, chosen.max_bytes), database, chosen, Metrics(), other_databases or {})
    app = FastAPI(
        title="turnmill",
        version=version("turnmill"),
        docs_url=None,
        redoc_url=None,
        generate_unique_id_function=operation_id,
    )
    app.state.service = service
    app.state.registry = Registry(service)
    handle_problems(app)
    app.include_router(health.router)
    for part in PARTS:
        app.include_router(part.router, prefix=f"{chosen.api_prefix}/training")
    app.include_router(page.router)
    describe(app)
    app.add_middleware(Guard, service=service)
    app.add_middleware(Measured, metrics=service.metrics)
    return app
