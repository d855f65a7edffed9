"""The door: the socket a daemon is asked at, and who may come in."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from wakeful.daemon.refusal import DaemonRefused

if TYPE_CHECKING:
    import uvicorn

    from wakeful.http import Access
    from wakeful.settings import Loaded


@dataclass(frozen=True, slots=True)
class Listening:
    """A daemon that is ready."""

    home: Path
    address: str
    host: str
    port: int


def bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def asked_at(host: str) -> str:
    """The host that a program on this machine asks: one that listens everywhere is asked on loopback."""
    return {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, bracketed(host))  # noqa: S104 - nothing is bound to it


def access(loaded: Loaded) -> Access:
    from wakeful.http import Access

    server = loaded.settings.server
    return Access(server.host, None if server.token is None else server.token.reveal())


@contextmanager
def bound(loaded: Loaded) -> Iterator[socket.socket]:
    """The socket, bound before anything else is done: a port that is taken is said at once."""
    server = loaded.settings.server
    if server.token is None and not access(loaded).is_local:
        raise DaemonRefused(f"{server.host} can be reached by others, and there is no token; set [server] token")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            server.host, server.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        door = socket.socket(family, kind, protocol)
    except OSError as error:
        raise DaemonRefused(f"{server.host} is not an address of this machine ({error}); set [server] host") from error
    with door:
        try:
            door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            door.bind(address)
        except OSError as error:
            text = f"{server.host}:{server.port} cannot be listened on ({error.strerror}); choose another --port"
            raise DaemonRefused(text) from error
        yield door


async def until_open(server: uvicorn.Server, serving: asyncio.Task[None]) -> None:
    while not server.started and not serving.done():  # noqa: ASYNC110 - the server only has a flag to look at
        await asyncio.sleep(0.01)
    if serving.done():
        await serving
        raise DaemonRefused("the door could not be opened; the log says why")
