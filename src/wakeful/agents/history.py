"""The history of a session: what it tells about one turn.

A history is a list of events in the order they happened. Ours begins with a `user.message` under our correlation id,
or, where events carry none, with our text after the point that was marked before sending. What follows it, up to its
terminal event (`session.idle`, `session.error`) or the next message of someone, is the turn.
"""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias
from urllib.parse import quote

from wakeful.adapters.exchange import parse_json
from wakeful.adapters.text import one_line
from wakeful.adapters.threads import in_thread
from wakeful.agents.client import Client
from wakeful.agents.reply import reply_of, session_id_of
from wakeful.core.instants import Duration
from wakeful.core.usage import Usage, added, usage_of
from wakeful.ports.exchange import About

HISTORY_MAX: Final = 32 * 1024 * 1024
"""How much of a history is read; of a file it is the end of it."""

Event: TypeAlias = dict[str, Any]

_LISTS: Final = ("events", "history", "messages")
_LIFE: Final = ("assistant.", "tool.")


@dataclass(frozen=True, slots=True)
class Story:
    """What a history tells about our turn."""

    is_found: bool = False
    is_alive: bool = False
    is_ended: bool = False
    error: str | None = None
    reply: str | None = None
    usage: Usage | None = None
    has_others: bool = False  # messages that are not ours are in it
    has_keys: bool = False  # its messages carry correlation ids


class History(Protocol):
    """Where the events of sessions are read from."""

    async def mark(self, session_id: str, slug: str) -> int | None:
        """Where the history ends now; None if it cannot be read here."""
        ...

    async def since(self, session_id: str, mark: int, slug: str) -> list[Event] | None:
        """The events after a mark; None if it cannot be read here."""
        ...


class HttpHistory:
    """Events the server hands out: a JSON list, an object with one, or a line each."""

    def __init__(self, client: Client, path: str, limit: Duration) -> None:
        self._client = client
        self._path = path
        self._limit = limit

    async def mark(self, session_id: str, slug: str) -> int | None:
        events = await self.since(session_id, 0, slug)
        return None if events is None else len(events)

    async def since(self, session_id: str, mark: int, slug: str) -> list[Event] | None:
        path = self._path.replace("{id}", quote(session_id, safe=""))
        response = await self._client.request(
            "GET", path, About("agent-history", slug), limit=self._limit, read_max=HISTORY_MAX
        )
        if not response.is_ok or not response.is_whole:
            return None
        value = await response.json()
        events = _listed(value) if value is not None else _lines(response.text)
        if events is None:
            return None
        return events[mark:] if len(events) >= mark else events  # a shorter one was begun anew


class FileHistory:
    """Events in a file of this machine, one a line."""

    def __init__(self, path: str) -> None:
        self._path = path

    async def mark(self, session_id: str, slug: str) -> int | None:
        return await in_thread(partial(self._size, session_id), name="history")

    async def since(self, session_id: str, mark: int, slug: str) -> list[Event] | None:
        return await in_thread(partial(self._read, session_id, mark), name="history")

    def _size(self, session_id: str) -> int:
        try:
            return self._place(session_id).stat().st_size
        except OSError:
            return 0

    def _read(self, session_id: str, mark: int) -> list[Event] | None:
        try:
            with self._place(session_id).open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                begin = mark if mark <= size else 0
                file.seek(max(begin, size - HISTORY_MAX))
                return _lines(file.read(HISTORY_MAX).decode("utf-8", "replace"))
        except OSError:
            return None

    def _place(self, session_id: str) -> Path:
        if session_id_of(session_id) is None:
            raise FileNotFoundError(session_id)  # it would lead out of the folder
        return Path(self._path.replace("{id}", session_id)).expanduser()


def tell(events: Sequence[Event], key: str, texts: Iterable[str] = ()) -> Story:
    """The story of the turn that was asked under the key, or, where no message has one, with one of the texts."""
    wanted = {text.strip() for text in texts}
    asked = [index for index, event in enumerate(events) if _kind(event) == "user.message"]
    has_keys = any(_key(events[index]) is not None for index in asked)
    ours = [index for index in asked if _key(events[index]) == key]
    if not ours and not has_keys:
        ours = [index for index in asked if (_text(events[index]) or "").strip() in wanted]
    if not ours:
        return Story(has_others=bool(asked), has_keys=has_keys)
    return _turn(events[ours[-1] + 1 :], has_others=len(asked) > len(ours), has_keys=has_keys)


def _turn(events: Sequence[Event], *, has_others: bool, has_keys: bool) -> Story:
    is_alive = is_ended = False
    error: str | None = None
    reply: str | None = None
    usage: Usage | None = None
    for event in events:
        kind = _kind(event)
        if kind == "user.message":
            break
        is_alive = is_alive or kind.startswith(_LIFE)
        usage = added(usage, _usage(kind, event))
        if kind == "assistant.message":
            reply = _later(reply, reply_of(_text(event)))
        elif kind in ("session.idle", "session.error"):
            is_ended = True
            error = (one_line(_text(event) or "") or "the session ended in error") if kind == "session.error" else None
            break
    return Story(True, is_alive, is_ended, error, reply, usage, has_others, has_keys)


def _later(reply: str | None, text: str | None) -> str | None:
    """The reply after one more message: the last that says something, as one that only calls a tool is empty."""
    if text is None or not text.strip():
        return reply if reply is not None and reply.strip() else text
    return text


def _listed(value: Any) -> list[Event] | None:
    if isinstance(value, dict):
        value = next((value[name] for name in _LISTS if isinstance(value.get(name), list)), None)
    return [event for event in value if isinstance(event, dict)] if isinstance(value, list) else None


def _lines(text: str) -> list[Event] | None:
    """Events a line each; a last line that is still being written is no JSON yet, and left for the next look."""
    values = [parse_json(line) for line in text.split("\n") if line.strip()]
    events = [value for value in values if isinstance(value, dict)]
    return events if events or not values else None


def _kind(event: Event) -> str:
    kind = event.get("type")
    return kind if isinstance(kind, str) else ""


def _data(event: Event) -> Event:
    data = event.get("data")
    return data if isinstance(data, dict) else event


def _key(event: Event) -> str | None:
    found = event.get("correlationId") or _data(event).get("correlationId")
    return found if isinstance(found, str) else None


def _text(event: Event) -> str | None:
    data = _data(event)
    for name in ("content", "message", "text", "prompt", "error"):
        value = data.get(name)
        if isinstance(value, dict):  # an error is often an object with a message
            value = value.get("message")
        if isinstance(value, str):
            return value
    return None


def _usage(kind: str, event: Event) -> Usage | None:
    data = _data(event)
    counted = usage_of(data.get("usage"))
    if counted is not None or kind != "assistant.usage":
        return counted
    return usage_of({name: count for name, count in data.items() if name.lower().endswith("tokens")})
