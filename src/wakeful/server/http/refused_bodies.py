"""Refusing a body and being heard.

Whoever is told that a body is too large is usually still sending it. A connection that is closed while bytes are under
way is reset, and a reset takes away what was answered: the sender sees a broken pipe and never learns why. So the
answer goes out at once, and what still arrives is read and thrown away for a while, before the connection ends.
"""

import asyncio
from typing import Final

from starlette.types import Message, Receive, Send

LINGER: Final = 2.0
"""Seconds; nobody who sends slowly holds a connection for longer."""
THROWN_AWAY_MAX: Final = 64 * 1_048_576


class RefusedBody:
    """The two ways of one request: notes what has arrived, and stays for the rest after a refusal for its size."""

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
            pass  # it had its time
