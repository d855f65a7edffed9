"""Answers that are given again: kept in the store, for a day and up to a number and a size, so that a restart does not
forget them. Kept before they are sent: whoever has an answer can have it again."""

import json
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from starlette.types import Message

from wakeful.app import Wakeful
from wakeful.core.instants import DAY, Duration
from wakeful.ports.store import Answer, Tx

KEPT_FOR: Final[Duration] = DAY
KEPT_MAX: Final = 10_000
KEPT_BYTES_MAX: Final = 16 * 1_048_576
PRUNE_EVERY: Final = 100
"""Answers kept between two looks at what is too old or too much."""


class Kept(NamedTuple):
    """An answer, and what it was an answer to."""

    fingerprint: str
    messages: Sequence[Message]


class KeptAnswers:
    """The answers in the store of one app."""

    def __init__(self, app: Wakeful) -> None:
        self._app = app
        self._count = 0

    async def get(self, key: str) -> Kept | None:
        """The answer given under this key within the last day."""
        oldest = self._app.moment().now - KEPT_FOR
        found = await self._app.store.read(lambda tx: tx.answers.get(key))
        if found is None or found.answered_at <= oldest:
            return None
        return Kept(found.fingerprint, _messages(found.answer))

    async def keep(self, key: str, kept: Kept) -> None:
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
