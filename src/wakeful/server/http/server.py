"""The web server, as the daemon runs it.

Anything that can connect can send bytes before it is authenticated. So a request has a budget: of bytes and of headers
until its head is complete (431), of time until it has arrived and, without authentication, until its response was
taken, and of requests that are sent ahead of the responses. `connections` limits how many may be open.
"""

import asyncio
import logging
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus
from typing import Any, Final

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from wakeful.server.http.authentication import CONNECTION, PEER
from wakeful.server.http.connections import Connections
from wakeful.server.http.problems import MEDIA_TYPE, Problem

DOOR_GRACE: Final = 3
"""Seconds that open requests get at shutdown: a stream never ends on its own."""
ARRIVE_WITHIN: Final = 60
"""Seconds within which the head of a request must arrive, and then its body."""

HEAD_MAX: Final = 65_536
"""Bytes before a request's body: the request line and all headers."""
HEADERS_MAX: Final = 100
PIPELINE_MAX: Final = 16
"""Requests that a client may send while an earlier response is not complete."""
LINGER: Final = 2.0
"""Seconds in which the rest of a refused head is thrown away: a connection closed at once would be reset, and the
client would not see the response."""
DISCARDED_MAX: Final = 1_048_576

_TOO_LARGE: Final = (
    f"the head of the request is larger than {HEAD_MAX} bytes, or has more than {HEADERS_MAX} headers; send less"
)
_WIRE: Final = logging.getLogger("wakeful.server.http.wire")
_WIRE.setLevel(logging.ERROR)

_UCRED: Final = struct.Struct("3i")  # pid, user and group


class _HeadTooLarge(Exception):
    """Stops the parser."""


class Protocol(HttpToolsProtocol):
    """Uvicorn's HTTP protocol within a budget. A connection whose request does not arrive in time is closed."""

    arrive_within: float = ARRIVE_WITHIN

    def __init__(self, *given: Any, door: Connections, **settings: Any) -> None:
        super().__init__(*given, **settings)
        self.logger = _WIRE
        self._door = door
        self._arriving: asyncio.TimerHandle | None = None
        self._running: Any = None  # the request that is being responded to
        self._unparsed = 0  # bytes since the parser last had something complete
        self._head_size = self._header_count = 0
        self._is_refused = False
        self._discarded = 0  # bytes that arrived after that

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if self.client is None:
            peer = _peer_of(transport)
            if peer is not None:
                self.app_state = {**self.app_state, PEER: peer}
        else:
            self.app_state = {**self.app_state, CONNECTION: self}
            self._door.opened(self, self.client[0])
        self._await_rest()

    def connection_lost(self, exc: Exception | None) -> None:
        self._has_arrived()
        self._door.closed(self)
        self._cut_off()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._is_refused:
            self._discarded += len(data)
            if self._discarded > DISCARDED_MAX:
                self.turn_away()
            return
        self._unparsed += len(data)
        super().data_received(data)
        if self._unparsed > HEAD_MAX:
            self._refuse_head()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head_size = self._header_count = 0
        self._await_rest()

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        self._grow_head(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        self._header_count += 1  # trailers count as well
        self._grow_head(len(name) + len(value) + 4)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._unparsed = 0
        self._await_rest()
        super().on_headers_complete()
        if len(self.pipeline) > PIPELINE_MAX:
            self.turn_away()

    def on_body(self, body: bytes) -> None:
        self._unparsed = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._unparsed = 0
        if self._door.is_stranger(self):
            self._await_rest()  # the response must be taken in time
        else:
            self._has_arrived()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        if not self.pipeline and not self._unparsed:
            self._has_arrived()  # uvicorn closes idle connections
        super().on_response_complete()

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def send_400_response(self, msg: str) -> None:
        if self._is_head_too_large:
            self._refuse_head()
        else:
            self._cut_off()
            super().send_400_response(msg)

    @property
    def _is_head_too_large(self) -> bool:
        return self._head_size > HEAD_MAX or self._header_count > HEADERS_MAX

    def _grow_head(self, size: int) -> None:
        self._head_size += size
        if self._is_head_too_large:
            raise _HeadTooLarge

    def authenticated(self) -> None:
        """A request on this connection was authenticated."""
        self._door.authenticated(self)

    def turn_away(self) -> None:
        """Close it now, without waiting for what was not sent yet."""
        self._has_arrived()
        self._cut_off()
        self.transport.abort()

    def _cut_off(self) -> None:
        """Nothing more is sent of the responses in progress. Uvicorn notes that for the newest request only, and the
        ones before it would write to a closed connection, each with a traceback in the log."""
        for cycle in (self._running, *(waiting for waiting, _ in self.pipeline)):
            if cycle is not None and not cycle.response_complete:
                cycle.disconnected = True
                cycle.message_event.set()
        self.pipeline.clear()

    def _refuse_head(self) -> None:
        """Respond 431, and close the connection once the client had time to read it."""
        if self._is_refused or self.transport.is_closing():
            return
        self._is_refused = True
        if self.client is not None:
            self._door.refused(self.client[0])
        if self.cycle is not None and not self.cycle.response_complete:
            self.turn_away()  # it would be mixed with an earlier response
            return
        self.transport.write(_refusal(431, _TOO_LARGE))
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._has_arrived()
        self._arriving = self.loop.call_later(LINGER, self.turn_away)

    def _await_rest(self) -> None:
        self._has_arrived()
        self._arriving = self.loop.call_later(self.arrive_within, self._give_up)

    def _has_arrived(self) -> None:
        if self._arriving is not None:
            self._arriving.cancel()
            self._arriving = None

    def _give_up(self) -> None:
        if not self.transport.is_closing():
            self.turn_away()


def _refusal(status: int, text: str) -> bytes:
    """A problem response that closes the connection, before there is a request."""
    body = Problem(status, text).body
    head = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nContent-Type: {MEDIA_TYPE}\r\n"
    return f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + bytes(body)


def _peer_of(transport: Any) -> int | None:
    """The process at the other end of a Unix socket, where the system tells; 0 if it is in another namespace."""
    connection = transport.get_extra_info("socket")
    if connection is None or connection.family != socket.AF_UNIX or not hasattr(socket, "SO_PEERCRED"):
        return None
    try:
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)
    except OSError:
        return None
    pid: int = _UCRED.unpack(credentials)[0]
    return pid


def make_server(
    api: ASGIApp,
    *,
    door_grace: int = DOOR_GRACE,
    protocol: type[Protocol] = Protocol,
    connections: Connections | None = None,
) -> uvicorn.Server:
    """A server on an existing event loop, whose owner also handles the signals."""
    door = connections or Connections(_monotonic)
    config = uvicorn.Config(
        api,
        http=partial(protocol, door=door),  # type: ignore[arg-type]  # it is only called
        ws="none",
        lifespan="off",
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=door_grace,
        backlog=door.limits.total,  # they are all accepted in one pass of the loop, before any is closed
    )
    server = uvicorn.Server(config)
    server.capture_signals = _leave_signals  # type: ignore[method-assign]  # it has no other switch for this
    return server


def _monotonic() -> int:
    return time.monotonic_ns() // 1_000_000


@contextmanager
def _leave_signals() -> Iterator[None]:
    yield
