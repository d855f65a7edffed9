"""A proxy on loopback between a daemon and its PostgreSQL server, whose connections the drill can cut."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from wakeful.drill.scratch import with_parameters

CHUNK: Final = 65_536


class Proxy:
    """Passes bytes on, until it is cut."""

    def __init__(self, host: str, port: int) -> None:
        self._host, self._port = host, port
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()
        self._is_cut = False

    @classmethod
    async def start(cls, host: str, port: int) -> Proxy:
        """A proxy in front of this server; a host that is a path is the folder of its socket."""
        proxy = cls(host, port)
        proxy._server = await asyncio.start_server(proxy._serve, "127.0.0.1", 0)
        return proxy

    def url(self, url: str) -> str:
        """The server's address, through the proxy. The host's name stays, because its certificate is checked."""
        assert self._server is not None  # noqa: S101 - it is started where it is made
        port = self._server.sockets[0].getsockname()[1]
        through = with_parameters(url, hostaddr="127.0.0.1", port=str(port))
        return with_parameters(through, host="localhost") if self._host.startswith("/") else through

    def cut(self) -> None:
        """Close every connection, and refuse new ones."""
        self._is_cut = True
        for task in list(self._open):
            task.cancel()

    def reconnect(self) -> None:
        """Let connections through again."""
        self._is_cut = False

    async def stop(self) -> None:
        """Close everything."""
        self.cut()
        if self._server is not None:
            self._server.close()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a coroutine always runs in one
        self._open.add(task)
        try:
            if not self._is_cut:
                await self._join(reader, writer)
        except (OSError, asyncio.CancelledError):
            pass  # nothing to do but close it
        finally:
            self._open.discard(task)
            writer.close()

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        back, forth = await self._connect()
        try:
            ways = [asyncio.create_task(_copy(reader, forth)), asyncio.create_task(_copy(back, writer))]
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()
        finally:
            forth.close()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._host.startswith("/"):
            return await asyncio.open_unix_connection(f"{self._host}/.s.PGSQL.{self._port}")
        return await asyncio.open_connection(self._host, self._port)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()
