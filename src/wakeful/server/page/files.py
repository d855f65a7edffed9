"""The files of the page, held in memory: a few dozen small files that change only with the package.

Text in a name, a prompt, a reply or an error must never become markup or script. So the page may load only its own
files, inline code is forbidden, and with trusted types the browser refuses every way to turn text into markup: code
that does so by mistake breaks instead of opening a hole.
"""

import gzip
import hashlib
import posixpath
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final, NamedTuple

PREFIX: Final = "/page/"
PAGE: Final = "index.html"
_STYLE: Final = "style.css"
_STYLES: Final = ("tokens", "base", "frame", "parts", "today", "timeline", "views", "planning")
"""In this order: a later one refines an earlier one."""
_FIRST: Final = ("main.js", "views/today.js")
_IMPORT: Final = re.compile(r'^(?:import|\}) .*?"(\.{1,2}/[^"]+)";$', re.MULTILINE)
_PRELOADS: Final = b"<!-- preloads -->"

_KINDS: Final = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "png": "image/png",
    "webmanifest": "application/manifest+json",
}
_POLICY: Final = "; ".join(
    (
        "default-src 'self'",
        "object-src 'none'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
HEADERS: Final = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-cache",  # revalidated on each load; 304 until the package changes
}


class File(NamedTuple):
    """One file, ready to be sent."""

    content: bytes
    packed: bytes | None  # compressed; None for what compresses badly
    media_type: str
    etag: str


@cache
def read_files() -> Mapping[str, File]:
    """Every file of the page by its path below `PREFIX`."""
    by_path = dict(_walk(files("wakeful.server.page") / "static", ""))
    styles = b"".join(by_path[f"style/{name}.css"].content for name in _STYLES)
    by_path[_STYLE] = _file(styles, _KINDS["css"])  # one request before the first paint, not one for each
    page = by_path[PAGE]
    return by_path | {PAGE: _file(page.content.replace(_PRELOADS, _preloads(by_path)), page.media_type)}


def _walk(folder: Traversable, prefix: str) -> list[tuple[str, File]]:
    entries: list[tuple[str, File]] = []
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        path = f"{prefix}{entry.name}"
        kind = _KINDS.get(entry.name.rpartition(".")[2])
        if entry.is_dir():
            entries += _walk(entry, f"{path}/")
        elif kind is not None:
            entries.append((path, _file(entry.read_bytes(), kind)))
    return entries


def _file(content: bytes, kind: str) -> File:
    packed = None if kind == _KINDS["png"] else gzip.compress(content, mtime=0)
    return File(content, packed, kind, f'"{hashlib.sha256(content).hexdigest()[:32]}"')


def _preloads(by_path: Mapping[str, File]) -> bytes:
    """Links to all modules that the first view needs: the browser fetches them together, not one import at a time, and
    after the style sheet, which the first paint waits for."""
    needed: dict[str, None] = {}
    left = list(_FIRST)
    while left:
        name = left.pop()
        if name not in needed:
            needed[name] = None
            folder, text = posixpath.dirname(name), by_path[name].content.decode()
            left += [posixpath.normpath(posixpath.join(folder, path)) for path in _IMPORT.findall(text)]
    links = (f'<link rel="modulepreload" href="{PREFIX}{name}" fetchpriority="low">' for name in sorted(needed))
    return "\n".join(links).encode()
