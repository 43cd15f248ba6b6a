"""The page: the bundle that `ui/` is built into, served as it lies in the wheel, under a strict policy."""

from __future__ import annotations

import gzip
import html
import mimetypes
from functools import lru_cache
from pathlib import Path

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from turnmill.server.problems import Problem
from turnmill.server.service import TheService

ROOT = "/page"
"""What every path of the page begins with; whatever lies below is open: it holds no data."""
BUNDLE = Path(__file__).parent / "static"
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'self'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
FOR_EVER = "public, max-age=31536000, immutable"
"""Names of assets hold the hash of what is in them."""
GZIP = {"Content-Encoding": "gzip"}
BASE = '<base href="/page/" />'
API = '<meta name="turnmill-api" content="/v1" />'
"""Lines of the built document that say where it lies, and where the interface is."""
MISSING = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>turnmill: no page</title></head>
<body><h1>This installation has no page</h1>
<p>The server and its REST interface, {api}, work. A released wheel holds the page; in a source tree
<code>make ui</code> builds it (it needs Node 20 or newer), and the server is started anew.</p></body></html>
"""
router = APIRouter(include_in_schema=False)


@router.get("/")
def front(request: Request) -> Response:
    """Leads to the page."""
    return RedirectResponse(f"{request.scope.get('root_path', '')}{ROOT}/", headers=HEADERS)


@router.get(f"{ROOT}/assets/{{name}}")
def asset(request: Request, name: str) -> Response:
    """A file of the bundle, packed where the browser takes it so."""
    index = BUNDLE / "index.html"
    path = _assets(BUNDLE, index.stat().st_mtime_ns).get(name) if index.is_file() else None
    if path is None:
        raise Problem(404, "not-found", "the page has no such file; load the page anew")
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    headers = {**HEADERS, "Cache-Control": FOR_EVER, "Vary": "Accept-Encoding"}
    if "gzip" not in request.headers.get("accept-encoding", ""):
        return Response(path.read_bytes(), media_type=kind, headers=headers)
    return Response(_packed(path, path.stat().st_mtime_ns), media_type=kind, headers={**headers, **GZIP})


@router.get(ROOT)
@router.get(f"{ROOT}/{{path:path}}")
def document(request: Request, service: TheService) -> Response:
    """The document, whatever the path below it: the screens are told apart in the browser."""
    root, api = request.scope.get("root_path", ""), service.options.api_prefix
    headers = {**HEADERS, "Cache-Control": "no-cache"}
    index = BUNDLE / "index.html"
    if not index.is_file():
        return HTMLResponse(MISSING.format(api=html.escape(f"{root}{api}/training")), 404, headers)
    written = index.read_text("utf-8")
    written = written.replace(BASE, f'<base href="{html.escape(root)}{ROOT}/" />', 1)
    written = written.replace(API, f'<meta name="turnmill-api" content="{html.escape(root + api)}" />', 1)
    return HTMLResponse(written, headers=headers)


def is_of_page(path: str) -> bool:
    """Whether a path, without what the app is mounted under, is the page's."""
    return path in ("/", ROOT) or path.startswith(f"{ROOT}/")


@lru_cache(maxsize=4)
def _assets(bundle: Path, _built_ns: int) -> dict[str, Path]:
    """The files of a bundle by name, as it was built: nothing of a request ever becomes a path."""
    return {path.name: path for path in bundle.joinpath("assets").glob("*") if path.is_file()}


@lru_cache(maxsize=256)
def _packed(path: Path, _modified_ns: int) -> bytes:
    return gzip.compress(path.read_bytes(), mtime=0)
