"""The sockets a daemon listens on, and who may use them."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from wakeful.integrations.net.guard import is_loopback
from wakeful.server.daemon.home import SOCKET_NAME, DaemonRefused

if TYPE_CHECKING:
    import uvicorn

    from wakeful.config import Loaded
    from wakeful.server.http import Access


log = logging.getLogger("wakeful.server.daemon")

SOCKET_PATH_MAX: Final = 100
"""Bytes. Linux allows 107 and macOS 103 for the path of a Unix socket."""
OWN_TOKEN: Final = "home"  # noqa: S105 - the name of the home's token
SERVER_TOKEN: Final = "server"  # noqa: S105 - the name of [server] token


@dataclass(frozen=True, slots=True)
class Listening:
    """A daemon that is ready."""

    home: Path
    address: str
    host: str
    port: int
    link: str | None = None  # to the page, with a one-time code; None if no login is needed


def bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def asked_at(host: str) -> str:
    """The host for programs on this machine: loopback if the daemon listens on all interfaces."""
    return {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, bracketed(host))  # noqa: S104 - nothing is bound to it


def access(loaded: Loaded, own_token: str) -> Access:
    """The access rules from these settings; `own_token` is the home's random token."""
    from wakeful.server.http import Access, NamedToken

    settings, server = loaded.settings, loaded.settings.server
    if server.token is None:
        first = NamedToken(OWN_TOKEN, own_token)
    else:
        first = NamedToken(SERVER_TOKEN, server.token.reveal())
    further = [
        NamedToken(name, token.token.reveal(), token.role, token.agent) for name, token in settings.tokens.items()
    ]
    return Access(
        server.host,
        server.auth,
        (first, *further),
        allowed_hosts=frozenset(name.rstrip(".").lower() for name in server.allowed_hosts),
        public_url=server.public_url,
        trusted_proxies=server.trusted_proxies,
        own_tokens=frozenset({own_token}),
    )


@contextmanager
def bound(loaded: Loaded) -> Iterator[socket.socket]:
    """The TCP socket, bound first, so that a port conflict is reported immediately."""
    server = loaded.settings.server
    if server.token is None and not is_loopback(server.host):
        raise DaemonRefused(
            f"{server.host} can be reached from other machines, and no token is set; set [server] token"
        )
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
            text = f"{server.host}:{server.port} is not available ({error.strerror}); choose another --port"
            raise DaemonRefused(text) from error
        yield door


@contextmanager
def unix_socket(home: Path) -> Iterator[socket.socket | None]:
    """The Unix socket in the home folder, accessible only to its owner; None if its path would be too long."""
    path = home / SOCKET_NAME
    if len(os.fsencode(path)) > SOCKET_PATH_MAX:
        log.warning("%s is too long for a Unix socket; the command line uses TCP with the token instead", path)
        yield None
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
        try:
            path.unlink(missing_ok=True)  # left by a killed daemon: this one holds the home
            os.fchmod(door.fileno(), 0o600)
            door.bind(str(path))
            path.chmod(0o600)
        except OSError as error:
            log.warning("cannot listen on %s (%s); the command line uses TCP instead", path, error.strerror)
            yield None
            return
        try:
            yield door
        finally:
            path.unlink(missing_ok=True)


async def until_open(server: uvicorn.Server, serving: asyncio.Task[None]) -> None:
    while not server.started and not serving.done():  # noqa: ASYNC110 - the server only has a flag to poll
        await asyncio.sleep(0.01)
    if serving.done():
        await serving
        raise DaemonRefused("the HTTP server could not be started; see the log")
