"""Refuse a body so that the client sees the response.

A client that gets 413 is usually still sending. Closing the connection while bytes are in flight resets it, and a
reset discards the response: the client sees a broken pipe and never learns why. So the response is sent immediately,
and further bytes are read and discarded for a while before the connection is closed.
"""

import asyncio
from typing import Final

from starlette.types import Message, Receive, Send

LINGER: Final = 2.0
"""Seconds; a slow sender cannot hold a connection for longer."""
THROWN_AWAY_MAX: Final = 64 * 1_048_576


class RefusedBody:
    """Receive and send of one request: tracks what has arrived, and drains the rest after a 413."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send
        self._is_all_here = False
        self._is_refused = False

    async def receive(self) -> Message:
        message = await self._receive()
        self._is_all_here = not message.get("more_body", False)
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._is_refused = message["status"] == 413
        is_last = message["type"] == "http.response.body" and not message.get("more_body", False)
        if not (self._is_refused and is_last):
            await self._send(message)
            return
        await self._send({**message, "more_body": True})
        await self._throw_away()
        await self._send({"type": "http.response.body", "body": b""})

    async def _throw_away(self) -> None:
        left = THROWN_AWAY_MAX
        try:
            async with asyncio.timeout(LINGER):
                while left > 0 and not self._is_all_here:
                    left -= len((await self.receive()).get("body", b""))
        except TimeoutError:
            pass  # timed out
