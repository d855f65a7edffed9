"""Answers that are given again: kept in the store, for a day and up to a number and a size, so that a restart does not
forget them. Kept before they are sent: whoever has an answer can have it again.

Who answers under a key is written there as well, before anything is done: of several nodes that are asked at the same
time the store lets one, for as long as it says that it is still at it. One that died meanwhile is taken over from after
`HELD_FOR`."""

import asyncio
import json
import logging
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, NamedTuple

from starlette.types import Message

from wakeful.app import Wakeful
from wakeful.core.time.instants import DAY, SECOND, Duration, Instant
from wakeful.ports.store import Answer, StoreUnavailable, Tx

log = logging.getLogger("wakeful.server.http")

KEPT_FOR: Final[Duration] = DAY
KEPT_MAX: Final = 10_000
KEPT_BYTES_MAX: Final = 16 * 1_048_576
PRUNE_EVERY: Final = 100
"""Answers kept between two looks at what is too old or too much."""
HELD_FOR: Final[Duration] = 15 * SECOND
HELD_AGAIN: Final[Duration] = 4 * SECOND


class KeptResponse(NamedTuple):
    """An answer, and what it was an answer to."""

    fingerprint: str
    messages: Sequence[Message]


class KeptAnswers:
    """The answers in the store of one app."""

    def __init__(self, app: Wakeful) -> None:
        self._app = app
        self._count = 0
        self._asker = secrets.token_hex(8)  # this process, and none before it

    async def begin(self, key: str) -> KeptResponse | bool:
        """The answer given under this key within the last day; else whether it is ours to answer from now on."""
        now = self._app.moment().now
        found = await self._app.store.read(lambda tx: _get(tx, key, now))
        if found is not None:
            return found

        def begin(tx: Tx) -> KeptResponse | bool:
            if not tx.answers.begin(key, self._asker, now=now, until=now + HELD_FOR):
                return False
            if (meanwhile := _get(tx, key, now)) is None:
                return True
            tx.answers.release(key, self._asker)
            return meanwhile

        return await self._app.store.write(begin)

    @asynccontextmanager
    async def held(self, key: str) -> AsyncIterator[None]:
        """While it is being answered: say so again and again; afterwards others may."""
        renewing = asyncio.create_task(self._renew(key))
        try:
            yield
        finally:
            renewing.cancel()
            await asyncio.wait([renewing])
            try:
                await self._app.store.write(lambda tx: tx.answers.release(key, self._asker))
            except StoreUnavailable as error:  # it runs out by itself
                log.debug("the Idempotency-Key %r is let go later: %s", key, error)

    async def _renew(self, key: str) -> None:
        while True:
            await self._app.sleep(HELD_AGAIN)
            now = self._app.moment().now
            until = now + HELD_FOR
            try:
                await self._app.store.write(lambda tx: tx.answers.begin(key, self._asker, now=now, until=until))  # noqa: B023 - awaited where it is made
            except StoreUnavailable as error:
                log.debug("the Idempotency-Key %r cannot be held now: %s", key, error)

    async def pause(self, duration: Duration) -> None:
        """Let time pass."""
        await self._app.sleep(duration)

    async def keep(self, key: str, kept: KeptResponse) -> None:
        """Keep it from now on."""
        now = self._app.moment().now
        text = _text(kept.messages)
        row = Answer(key, kept.fingerprint, text, len(text.encode()), now)
        is_pruning = self._count % PRUNE_EVERY == 0
        self._count += 1

        def keep(tx: Tx) -> None:
            tx.answers.put(row)
            if is_pruning:
                tx.answers.prune(before=now - KEPT_FOR, most=KEPT_MAX, size_max=KEPT_BYTES_MAX)

        await self._app.store.write(keep)


def _get(tx: Tx, key: str, now: Instant) -> KeptResponse | None:
    found = tx.answers.get(key)
    if found is None or found.answered_at <= now - KEPT_FOR:
        return None
    return KeptResponse(found.fingerprint, _messages(found.answer))


def _text(messages: Sequence[Message]) -> str:
    """The answer as JSON; bytes that are no text survive as lone surrogates, which JSON can write."""
    start, *rest = messages
    body = b"".join(message.get("body", b"") for message in rest)
    headers = [[name.decode("latin-1"), value.decode("latin-1")] for name, value in start.get("headers", ())]
    return json.dumps({"status": start["status"], "headers": headers, "body": body.decode("utf-8", "surrogateescape")})


def _messages(text: str) -> Sequence[Message]:
    said: dict[str, Any] = json.loads(text)
    headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in said["headers"]]
    return (
        {"type": "http.response.start", "status": said["status"], "headers": headers},
        {"type": "http.response.body", "body": said["body"].encode("utf-8", "surrogateescape")},
    )
