"""The files of the page, held in memory: a few dozen small files that change only with the package.

Text in a name, a prompt, a reply or an error must never become markup or script. So the page may load only its own
files, inline code is forbidden, and with trusted types the browser refuses every way to turn text into markup: code
that does so by mistake breaks instead of opening a hole.
"""

import hashlib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final, NamedTuple

PREFIX: Final = "/page/"
PAGE: Final = "index.html"

_KINDS: Final = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
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
    media_type: str
    etag: str


@cache
def read_files() -> Mapping[str, File]:
    """Every file of the page by its path below `PREFIX`."""
    return dict(_walk(files("wakeful.server.page") / "static", ""))


def _walk(folder: Traversable, prefix: str) -> list[tuple[str, File]]:
    found: list[tuple[str, File]] = []
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        path = f"{prefix}{entry.name}"
        kind = _KINDS.get(entry.name.rpartition(".")[2])
        if entry.is_dir():
            found += _walk(entry, f"{path}/")
        elif kind is not None:
            content = entry.read_bytes()
            found.append((path, File(content, kind, f'"{hashlib.sha256(content).hexdigest()[:32]}"')))
    return found
