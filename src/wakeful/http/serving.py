"""The web server, as the daemon runs it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import uvicorn
from starlette.types import ASGIApp

DOOR_GRACE: Final = 3
"""Seconds that open requests get when the door closes: a stream never ends by itself."""


def make_server(api: ASGIApp, *, door_grace: int = DOOR_GRACE) -> uvicorn.Server:
    """A server for an event loop that is somebody else's, who also hears the signals."""
    config = uvicorn.Config(
        api,
        http="httptools",
        ws="none",
        lifespan="off",
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=door_grace,
    )
    server = uvicorn.Server(config)
    server.capture_signals = _leave_signals  # type: ignore[method-assign]  # it has no other switch for this
    return server


@contextmanager
def _leave_signals() -> Iterator[None]:
    yield
