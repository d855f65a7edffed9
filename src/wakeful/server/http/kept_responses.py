"""Responses for repeated requests: kept in the store for a day, limited in number and size, so that they survive a
restart. They are stored before they are sent: a caller who got a response can get it again.

The node that processes a key is recorded as well, before anything is executed: of several nodes with the same request
the store admits one, as long as it renews its claim. The claim of a node that died expires after `HELD_FOR`."""

import asyncio
import json
import logging
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, NamedTuple

from starlette.types import Message

from wakeful.api.python import Wakeful
from wakeful.core.time.instants import DAY, SECOND, Duration, Instant
from wakeful.ports.store import StoreUnavailable, Tx
from wakeful.server.http.kept_rows import Answer, Answers

log = logging.getLogger("wakeful.server.http")

KEPT_FOR: Final[Duration] = DAY
KEPT_MAX: Final = 10_000
KEPT_BYTES_MAX: Final = 16 * 1_048_576
PRUNE_EVERY: Final = 100
"""Number of stored responses between two cleanups."""
HELD_FOR: Final[Duration] = 15 * SECOND
HELD_AGAIN: Final[Duration] = 4 * SECOND


class KeptResponse(NamedTuple):
    """A response, and the request it belongs to."""

    fingerprint: str
    messages: Sequence[Message]


class KeptAnswers:
    """The kept responses in the store of one app."""

    def __init__(self, app: Wakeful) -> None:
        self._app = app
        self._count = 0
        self._asker = secrets.token_hex(8)  # unique to this process

    async def begin(self, key: str) -> KeptResponse | bool:
        """The response stored under this key within the last day; else whether this process may execute the request."""
        now = self._app._moment().now
        kept = await self._app._store.read(lambda tx: _get(tx, key, now))
        if kept is not None:
            return kept

        def begin(tx: Tx) -> KeptResponse | bool:
            if not tx[Answers].begin(key, self._asker, now=now, until=now + HELD_FOR):
                return False
            if (meanwhile := _get(tx, key, now)) is None:
                return True
            tx[Answers].release(key, self._asker)
            return meanwhile

        return await self._app._store.write(begin)

    @asynccontextmanager
    async def held(self, key: str) -> AsyncIterator[None]:
        """Renew the claim while the request is in progress; release it afterwards."""
        renewing = asyncio.create_task(self._renew(key))
        try:
            yield
        finally:
            renewing.cancel()
            await asyncio.wait([renewing])
            try:
                await self._app._store.write(lambda tx: tx[Answers].release(key, self._asker))
            except StoreUnavailable as error:  # the claim expires by itself
                log.debug("the Idempotency-Key %r could not be released now: %s", key, error)

    async def _renew(self, key: str) -> None:
        while True:
            await self._app.sleep(HELD_AGAIN)
            now = self._app._moment().now
            until = now + HELD_FOR
            try:
                await self._app._store.write(lambda tx: tx[Answers].begin(key, self._asker, now=now, until=until))  # noqa: B023 - awaited where it is made
            except StoreUnavailable as error:
                log.debug("the claim on the Idempotency-Key %r could not be renewed: %s", key, error)

    async def pause(self, duration: Duration) -> None:
        """Wait."""
        await self._app.sleep(duration)

    async def keep(self, key: str, kept: KeptResponse) -> None:
        """Store the response."""
        now = self._app._moment().now
        text = _text(kept.messages)
        row = Answer(key, kept.fingerprint, text, len(text.encode()), now)
        is_pruning = self._count % PRUNE_EVERY == 0
        self._count += 1

        def keep(tx: Tx) -> None:
            tx[Answers].put(row)
            if is_pruning:
                tx[Answers].prune_to(before=now - KEPT_FOR, most=KEPT_MAX, size_max=KEPT_BYTES_MAX)

        await self._app._store.write(keep)


def _get(tx: Tx, key: str, now: Instant) -> KeptResponse | None:
    row = tx[Answers].get(key)
    if row is None or row.answered_at <= now - KEPT_FOR:
        return None
    return KeptResponse(row.fingerprint, _messages(row.answer))


def _text(messages: Sequence[Message]) -> str:
    """The response as JSON; bytes that are not UTF-8 survive as lone surrogates."""
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
