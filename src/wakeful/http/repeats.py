"""`Idempotency-Key`: a POST that is sent again, because its answer got lost, is answered again and not done again.

Only answers of success are kept: what was refused did nothing, and may be tried again. They are kept in memory, for a
day and up to a number and a size; a daemon that was restarted has forgotten them. Two requests with one key at the same
time are one request: the second waits for the answer of the first.
"""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from wakeful.core.errors import FieldError
from wakeful.core.instants import DAY, Duration
from wakeful.http.problems import Refused, refusal_of

HEADER: Final = "idempotency-key"
KEY_MAX: Final = 255
KEPT_FOR: Final[Duration] = DAY
KEPT_MAX: Final = 10_000
KEPT_BYTES_MAX: Final = 16 * 1_048_576
REPEATED: Final = (b"idempotent-replayed", b"true")


@dataclass(slots=True)
class _Kept:
    """One key: what it was sent with, and the answer, once there is one."""

    fingerprint: bytes
    kept_until: int
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    answer: list[Message] | None = None

    @property
    def size(self) -> int:
        return sum(len(message.get("body", b"")) for message in self.answer or ())


class Repeats:
    """Stands before the routes; other methods, and requests without a key, pass through."""

    def __init__(self, inner: ASGIApp, *, monotonic: Callable[[], int]) -> None:
        self._inner = inner
        self._monotonic = monotonic
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        keys = Headers(scope=scope).getlist(HEADER) if scope["type"] == "http" and scope["method"] == "POST" else []
        if not keys:
            await self._inner(scope, receive, send)
            return
        key = keys[0].strip()
        if len(keys) > 1 or not key or len(key) > KEY_MAX:
            wrong = FieldError("Idempotency-Key", f"write one key of 1 to {KEY_MAX} characters")
            await refusal_of([wrong])(scope, receive, send)
            return
        try:
            body = await Request(scope, receive).body()
        except Refused as refused:
            await refused.problem()(scope, receive, send)
            return
        await self._once(key, _fingerprint(scope, body), scope, _again(body, receive), send)

    async def _once(self, key: str, fingerprint: bytes, scope: Scope, receive: Receive, send: Send) -> None:
        while True:
            self._forget()
            kept = self._kept.get(key)
            if kept is None:
                await self._first(key, fingerprint, scope, receive, send)
                return
            if kept.fingerprint != fingerprint:
                wrong = FieldError("Idempotency-Key", "was sent before with something else; use a new key")
                await refusal_of([wrong])(scope, receive, send)
                return
            await kept.ended.wait()
            if kept.answer is not None:
                start, *rest = kept.answer
                await send({**start, "headers": [*start["headers"], REPEATED]})
                for message in rest:
                    await send(message)
                return

    async def _first(self, key: str, fingerprint: bytes, scope: Scope, receive: Receive, send: Send) -> None:
        kept = _Kept(fingerprint, self._monotonic() + KEPT_FOR)
        self._kept[key] = kept
        answer: list[Message] = []

        async def noted(message: Message) -> None:
            answer.append(message)
            await send(message)

        try:
            await self._inner(scope, receive, noted)
        finally:
            # Kept although the client may be gone by now: that is when it will ask again.
            if answer and answer[0].get("status", 500) < 300 and not answer[-1].get("more_body", False):
                kept.answer = answer
                self._bytes += kept.size
            else:
                self._kept.pop(key, None)
            kept.ended.set()

    def _forget(self) -> None:
        """Let go of what is too old, and of the oldest if it is too much; what is still being answered stays."""
        now = self._monotonic()
        while self._kept:
            key, oldest = next(iter(self._kept.items()))
            is_too_much = len(self._kept) > KEPT_MAX or self._bytes > KEPT_BYTES_MAX
            if oldest.answer is None or (oldest.kept_until > now and not is_too_much):
                return
            self._bytes -= oldest.size
            del self._kept[key]


def _fingerprint(scope: Scope, body: bytes) -> bytes:
    asked = f"{scope['path']}?".encode() + scope["query_string"]
    return hashlib.sha256(hashlib.sha256(asked).digest() + body).digest()


def _again(body: bytes, receive: Receive) -> Receive:
    """The body that was read already, then whatever follows."""
    is_given = False

    async def again() -> Message:
        nonlocal is_given
        if is_given:
            return await receive()
        is_given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again
