"""The web server, as the daemon runs it."""

import asyncio
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from wakeful.server.http.authentication import PEER

DOOR_GRACE: Final = 3
"""Seconds that open requests get at shutdown: a stream never ends on its own."""
ARRIVE_WITHIN: Final = 60
"""Seconds within which the head of a request must arrive, and then its body."""


_UCRED: Final = struct.Struct("3i")  # pid, user and group


class Protocol(HttpToolsProtocol):
    """Uvicorn's HTTP protocol with a timeout: a connection whose request does not arrive in time is closed."""

    arrive_within: float = ARRIVE_WITHIN
    _arriving: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        peer = _peer_of(transport)
        if peer is not None:
            self.app_state = {**self.app_state, PEER: peer}
        self._await_rest()

    def connection_lost(self, exc: Exception | None) -> None:
        self._has_arrived()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._await_rest()

    def on_headers_complete(self) -> None:
        self._await_rest()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._has_arrived()
        super().on_message_complete()

    def _await_rest(self) -> None:
        self._has_arrived()
        self._arriving = self.loop.call_later(self.arrive_within, self._give_up)

    def _has_arrived(self) -> None:
        if self._arriving is not None:
            self._arriving.cancel()
            self._arriving = None

    def _give_up(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()


def _peer_of(transport: Any) -> int | None:
    """The process at the other end of a Unix socket, where the system tells."""
    connection = transport.get_extra_info("socket")
    if connection is None or connection.family != socket.AF_UNIX or not hasattr(socket, "SO_PEERCRED"):
        return None
    try:
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)
    except OSError:
        return None
    pid: int = _UCRED.unpack(credentials)[0]
    return pid or None


def make_server(api: ASGIApp, *, door_grace: int = DOOR_GRACE, protocol: type[Protocol] = Protocol) -> uvicorn.Server:
    """A server on an existing event loop, whose owner also handles the signals."""
    config = uvicorn.Config(
        api,
        http=protocol,
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
