"""`Idempotency-Key`: a POST that is repeated because its response got lost returns that response and is not executed
again.

Only successful responses are kept (see `kept_responses`): a refused request did nothing and may be repeated. Two
concurrent requests with the same key are one request: the second waits for the response of the first, in this process
or, if another node handles it, by polling the store. If the process crashes between the commit and storing the
response, no response was sent, and a repeat is executed again.
"""

import asyncio
import hashlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from wakeful.core.errors import FieldError
from wakeful.core.time.instants import MINUTE, SECOND, Duration
from wakeful.ports.store import StoreUnavailable
from wakeful.server.http.access import caller_of
from wakeful.server.http.kept_responses import KeptAnswers, KeptResponse
from wakeful.server.http.problems import Problem, Refused, refusal_of, unavailable

log = logging.getLogger("wakeful.server.http")

HEADER: Final = "idempotency-key"
KEY_MAX: Final = 255
REPEATED: Final = (b"idempotent-replayed", b"true")
LOOK_EVERY: Final[Duration] = SECOND // 5
WAIT_FOR: Final[Duration] = MINUTE + 15 * SECOND
"""How long to wait for another node's response: longer than any request may take (`?wait=true`, 60 s)."""
ELSEWHERE: Final = "another node is still processing the request with this Idempotency-Key; try again"


@dataclass(slots=True)
class _Asked:
    """A key whose request is in progress."""

    ended: asyncio.Event = field(default_factory=asyncio.Event)
    kept: KeptResponse | None = None


class Repeats:
    """Middleware in front of the routes; other methods, and requests without a key, pass through."""

    def __init__(self, inner: ASGIApp, answers: KeptAnswers) -> None:
        self._inner = inner
        self._answers = answers
        self._asked: dict[str, _Asked] = {}

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
        try:
            await self._once(_own(key, scope), _fingerprint(scope, body), scope, _again(body, receive), send)
        except StoreUnavailable as error:
            await unavailable(error)(scope, receive, send)

    async def _once(self, key: str, fingerprint: str, scope: Scope, receive: Receive, send: Send) -> None:
        while (other := self._asked.get(key)) is not None:
            await other.ended.wait()
            if other.kept is not None:
                await _repeat(other.kept, fingerprint, scope, receive, send)
                return
        asked = self._asked[key] = _Asked()
        try:
            begun = await self._begin(key)
            if begun is None:
                await Problem(409, ELSEWHERE, headers={"Retry-After": "1"})(scope, receive, send)
                return
            if isinstance(begun, KeptResponse):
                asked.kept = begun
                await _repeat(begun, fingerprint, scope, receive, send)
                return
            async with self._answers.held(key):
                answer = await self._answered(scope, receive)
                if answer[0]["status"] < 300:
                    asked.kept = KeptResponse(fingerprint, answer)
                    await self._keep(key, asked.kept)
        finally:
            del self._asked[key]
            asked.ended.set()
        for message in answer:
            await send(message)

    async def _begin(self, key: str) -> KeptResponse | Literal[True] | None:
        """Another node's response, or permission for this node to process the request; None while another node
        processes it."""
        for _ in range(WAIT_FOR // LOOK_EVERY):
            begun = await self._answers.begin(key)
            if begun is not False:
                return begun
            await self._answers.pause(LOOK_EVERY)
        return None

    async def _answered(self, scope: Scope, receive: Receive) -> Sequence[Message]:
        answer: list[Message] = []

        async def noted(message: Message) -> None:
            answer.append(message)

        await self._inner(scope, receive, noted)
        return answer

    async def _keep(self, key: str, kept: KeptResponse) -> None:
        try:
            await self._answers.keep(key, kept)
        except StoreUnavailable as error:  # the request was executed, so the response is still correct
            log.warning("the response for the Idempotency-Key %r cannot be stored: %s", key, error)


async def _repeat(kept: KeptResponse, fingerprint: str, scope: Scope, receive: Receive, send: Send) -> None:
    """Send the response again, if it belongs to the same request."""
    if kept.fingerprint != fingerprint:
        wrong = FieldError("Idempotency-Key", "was already used for a different request; use a new key")
        await refusal_of([wrong])(scope, receive, send)
        return
    start, *rest = kept.messages
    await send({**start, "headers": [*start["headers"], REPEATED]})
    for message in rest:
        await send(message)


def _own(key: str, scope: Scope) -> str:
    """The key as it is stored. Each agent's keys are separate, so no caller gets another caller's response."""
    caller = caller_of(scope)
    if caller is None or caller.role not in ("agent", "run"):
        return key
    own = f"{caller.role}\n{caller.agent or caller.name}\n{key}"
    return f"agent:{hashlib.sha256(own.encode()).hexdigest()}"


def _fingerprint(scope: Scope, body: bytes) -> str:
    asked = f"{scope['path']}?".encode() + scope["query_string"]
    return hashlib.sha256(hashlib.sha256(asked).digest() + body).hexdigest()


def _again(body: bytes, receive: Receive) -> Receive:
    """The body that was already read, then the rest."""
    is_given = False

    async def again() -> Message:
        nonlocal is_given
        if is_given:
            return await receive()
        is_given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again
