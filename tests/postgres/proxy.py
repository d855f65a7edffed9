"""A proxy on loopback between a node and its server, which breaks connections where it hurts most.

It reads the messages of the client and closes the connection, with a given probability, at those that begin or end a
transaction: before the server gets them, or after the server was told and before its answer comes back.
"""

import asyncio
import random
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import parse_qsl, quote, urlsplit

from psycopg.conninfo import conninfo_to_dict

WORDS = (b"BEGIN", b"COMMIT")


class BreakingProxy:
    """Breaks a share of the transactions that pass; `share` may be changed at any time."""

    def __init__(self, upstream: str, *, seed: int = 1) -> None:
        known = conninfo_to_dict(upstream)
        self._host, self._port = str(known.get("host") or "127.0.0.1"), str(known.get("port") or 5432)
        self._rng = random.Random(seed)
        self._loop = asyncio.new_event_loop()
        self._open: set[asyncio.StreamWriter] = set()
        self.share = 0.0
        self.is_shut = False  # takes connections and closes them
        self.broken = 0
        self.port = 0

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Close what is open."""
        self._server.close()
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    def url(self, upstream: str) -> str:
        """The same address, through the proxy."""
        parts = urlsplit(upstream)
        known = conninfo_to_dict(upstream.partition("schema=")[0].rstrip("?&"))
        user, database = quote(str(known.get("user") or "postgres")), known.get("dbname") or "postgres"
        schema = dict(parse_qsl(parts.query))["schema"]
        return (
            f"postgresql://{user}@127.0.0.1:{self.port}/{database}?sslmode=disable&gssencmode=disable&schema={schema}"
        )

    def cut(self) -> None:
        """Close every connection, and all that are made from now on."""
        self.is_shut = True
        self._loop.call_soon_threadsafe(self._close_all)

    def _close_all(self) -> None:
        for writer in list(self._open):
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            if not self.is_shut:
                await self._join(reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            self._open.discard(writer)
            writer.close()

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._host.startswith("/"):
            back, forth = await asyncio.open_unix_connection(f"{self._host}/.s.PGSQL.{self._port}")
        else:
            back, forth = await asyncio.open_connection(self._host, int(self._port))
        answering = asyncio.create_task(_copy(back, writer))
        try:
            forth.write(await _first(reader))
            while not self.is_shut:
                message = await _message(reader)
                fate = self._fate(message)
                if fate == "before":
                    return
                forth.write(message)
                await forth.drain()
                if fate == "after":
                    answering.cancel()
                    await asyncio.sleep(0.05)  # the server gets it, the client hears nothing
                    return
        finally:
            answering.cancel()
            forth.close()

    def _fate(self, message: bytes) -> str:
        if message[:1] != b"Q" or not message[5:].lstrip().startswith(WORDS) or self._rng.random() >= self.share:
            return "passes"
        self.broken += 1
        return self._rng.choice(("before", "after"))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()


async def _first(reader: asyncio.StreamReader) -> bytes:
    length = await reader.readexactly(4)
    return length + await reader.readexactly(struct.unpack("!I", length)[0] - 4)


async def _message(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readexactly(5)
    return head + await reader.readexactly(struct.unpack("!I", head[1:])[0] - 4)


@contextmanager
def breaking(upstream: str, *, seed: int = 1) -> Iterator[BreakingProxy]:
    """A proxy in a thread of its own."""
    proxy = BreakingProxy(upstream.partition("schema=")[0].rstrip("?&"), seed=seed)
    loop = proxy._loop
    started = threading.Event()

    def run() -> None:
        asyncio.set_event_loop(loop)
        loop.run_until_complete(proxy.start())
        started.set()
        loop.run_forever()
        loop.run_until_complete(proxy.stop())
        loop.run_until_complete(asyncio.sleep(0.1))  # transports close in the rounds that follow
        loop.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert started.wait(60)
    try:
        yield proxy
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(60)
