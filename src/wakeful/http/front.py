"""`/`: a page that says what is here, until there is more to see."""

from html import escape
from typing import Final

from fastapi import APIRouter, FastAPI
from starlette.responses import HTMLResponse, Response

from wakeful.http.shapes import problems

_PAGE: Final = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Wakeful</title>
<style>
  body {{ font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 48rem; padding: 0 1rem }}
  td {{ padding: .1rem 1rem .1rem 0; vertical-align: top }}
  code {{ font-family: ui-monospace, monospace }}
</style>
<h1>Wakeful</h1>
<p>The alarm clock for AI agents. The daemon runs; this is its API, described in
<a href="/api/openapi.json">/api/openapi.json</a>.</p>
<table>{rows}</table>
</html>
"""
_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
}


def routes(api: FastAPI) -> APIRouter:
    """The page, over the routes there are."""
    router = APIRouter(tags=["daemon"])

    @router.get(
        "/",
        summary="The page",
        response_class=HTMLResponse,
        responses={200: {"description": "The page.", "content": {"text/html": {}}}, **problems()},
    )
    async def get_page() -> Response:
        return HTMLResponse(_PAGE.format(rows="".join(_rows(api))), headers=_HEADERS)

    return router


def _rows(api: FastAPI) -> list[str]:
    rows = []
    for path, methods in api.openapi()["paths"].items():
        for method, operation in methods.items():
            asked, said = escape(f"{method.upper()} {path}"), escape(operation.get("summary", ""))
            rows.append(f"<tr><td><code>{asked}</code></td><td>{said}</td></tr>\n")
    return rows
