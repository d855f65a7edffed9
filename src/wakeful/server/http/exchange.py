"""What is received and sent in one request, on its way between the server and the routes.

The body is counted as it arrives, so that nothing above the limit is held in memory: a chunked one has no length up
front. A request without authentication has no place (`places`) while it waits for its body; every request leaves its
place when its response begins, because a stream never ends on its own.

A client that gets 413 is usually still sending. Closing the connection while bytes are in flight resets it, and a
reset discards the response: the client sees a broken pipe and never learns why. So the response is sent immediately,
and further bytes are read and discarded for a while before the connection is closed.
"""

import asyncio
from typing import Final

from starlette.types import Message, Receive, Send

from wakeful.server.http.places import Place
from wakeful.server.http.problems import Refused

LINGER: Final = 2.0
"""Seconds; a slow sender cannot hold a connection for longer."""
THROWN_AWAY_MAX: Final = 64 * 1_048_576


class Exchange:
    """Receive and send of one request that has a place."""

    def __init__(self, receive: Receive, send: Send, place: Place, body_max: int, *, is_stranger: bool) -> None:
        self._receive = receive
        self._send = send
        self._place = place
        self._body_max = body_max
        self._is_stranger = is_stranger
        self._seen = 0
        self._is_all_here = False
        self._is_refused = False
        self.is_begun = False  # a part of the response was sent

    async def receive(self) -> Message:
        message = await (self._place.without(self._receive()) if self._is_stranger else self._receive())
        self._count(message)
        if self._seen > self._body_max:
            raise too_large(self._body_max)
        return message

    async def send(self, message: Message) -> None:
        self.is_begun = True
        self._place.leave()
        if message["type"] == "http.response.start":
            self._is_refused = message["status"] == 413
        is_last = message["type"] == "http.response.body" and not message.get("more_body", False)
        if not (self._is_refused and is_last):
            await self._send(message)
            return
        await self._send({**message, "more_body": True})
        await self._throw_away()
        await self._send({"type": "http.response.body", "body": b""})

    def _count(self, message: Message) -> None:
        self._seen += len(message.get("body", b""))
        self._is_all_here = not message.get("more_body", False)

    async def _throw_away(self) -> None:
        until = self._seen + THROWN_AWAY_MAX
        try:
            async with asyncio.timeout(LINGER):
                while self._seen < until and not self._is_all_here:
                    self._count(await self._receive())
        except TimeoutError:
            pass  # timed out


def too_large(body_max: int) -> Refused:
    """A body over the limit; the connection is closed, so that the rest need not be read."""
    text = f"the body is larger than {body_max} bytes; send less, or raise body_max under [limits]"
    return Refused(413, text, headers={"Connection": "close"})
