"""Sources of session histories: the server, or the file that a local server writes.

Not every server offers its history, and those that do put it in different places. The places in the settings, or the
two usual ones, are tried in order; the first readable one is used from then on. Whether there is one is known after the
first turn: see `Histories.finding`.
"""

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol, TypeAlias
from urllib.parse import quote

from wakeful.core.time.instants import Duration
from wakeful.integrations.agents.client import Client
from wakeful.integrations.agents.history import Event
from wakeful.integrations.agents.reply import session_id_of
from wakeful.integrations.net.exchange import NoAnswer, NoConnection
from wakeful.integrations.system.text import parse_json
from wakeful.integrations.system.threads import in_thread
from wakeful.ports.exchange import RequestContext

HISTORY_MAX: Final = 32 * 1024 * 1024
"""How much of a history is read; of a file, its end."""

USUAL_PATH: Final = "/api/sessions/{id}/events"
USUAL_FILE: Final = "~/.copilot/session-state/{id}/events.jsonl"

_LISTS: Final = ("events", "history", "messages")

Mark: TypeAlias = tuple[int | None, ...]
"""Where a history ended, in each place; None if it was not readable there. Empty: the beginning."""


class Finding(NamedTuple):
    """Whether and where session histories can be read, or why not."""

    is_readable: bool
    words: str


class Place(Protocol):
    """One place where the events of a session may be."""

    async def mark(self, session_id: str, slug: str) -> int | None:
        """Where the history ends now; None if it cannot be read at this place."""
        ...

    async def since(self, session_id: str, mark: int, slug: str) -> list[Event] | str:
        """The events after a mark, or an error message."""
        ...

    @property
    def words(self) -> str:
        """A description of the place."""
        ...


class Histories:
    """The history of sessions, wherever it can be read."""

    def __init__(self, places: Sequence[Place]) -> None:
        self._places = places
        self._used: Place | None = None  # the place that was readable, used from then on
        self.finding: Finding | None = None  # None: not tried yet

    async def mark(self, session_id: str, slug: str) -> Mark:
        """Where the history ends now."""
        return tuple([await self._mark(place, session_id, slug) for place in self._places])

    async def since(self, session_id: str, mark: Mark, slug: str) -> list[Event] | None:
        """The events after a mark; None if they cannot be read anywhere."""
        problems: list[str] = []
        for index, place in enumerate(self._places):
            begin = mark[index] if index < len(mark) else 0
            if self._used not in (None, place) or begin is None:
                continue
            events = await place.since(session_id, begin, slug)
            if not isinstance(events, str):
                self._used, self.finding = place, Finding(True, place.words)
                return events
            problems.append(events)
        if self._used is None:
            words = "; ".join(problems) or "it could not be read when the message was sent"
            self.finding = Finding(False, words)
        return None

    async def _mark(self, place: Place, session_id: str, slug: str) -> int | None:
        if self._used not in (None, place):
            return None
        try:
            return await place.mark(session_id, slug)
        except (NoConnection, NoAnswer):
            return None


class HttpHistory:
    """Events from the server: a JSON list, an object with a list, or JSON lines."""

    def __init__(self, client: Client, path: str, limit: Duration) -> None:
        self._client = client
        self._path = path
        self._limit = limit

    @property
    def words(self) -> str:
        return f"GET {self._path}"

    async def mark(self, session_id: str, slug: str) -> int | None:
        events = await self.since(session_id, 0, slug)
        return None if isinstance(events, str) else len(events)

    async def since(self, session_id: str, mark: int, slug: str) -> list[Event] | str:
        path = self._path.replace("{id}", quote(session_id, safe=""))
        response = await self._client.request(
            "GET", path, RequestContext("agent-history", slug), limit=self._limit, read_max=HISTORY_MAX
        )
        if not response.is_ok:
            return f"{self.words} returned {response.line}"
        if not response.is_whole:
            return f"{self.words} returned more than {HISTORY_MAX:,} bytes"
        value = await response.json()
        events = _listed(value) if value is not None else _lines(response.text)
        if events is None:
            return f"{self.words} returned no list of events"
        return events[mark:] if len(events) >= mark else events  # a shorter one was restarted


class FileHistory:
    """Events in a local file, one per line."""

    def __init__(self, path: str) -> None:
        self._path = path

    @property
    def words(self) -> str:
        return f"the file {self._path}"

    async def mark(self, session_id: str, slug: str) -> int | None:
        return await in_thread(partial(self._size, session_id), name="history")

    async def since(self, session_id: str, mark: int, slug: str) -> list[Event] | str:
        return await in_thread(partial(self._read, session_id, mark), name="history")

    def _size(self, session_id: str) -> int | None:
        try:
            return self._place(session_id).stat().st_size
        except FileNotFoundError:
            return 0
        except OSError:
            return None

    def _read(self, session_id: str, mark: int) -> list[Event] | str:
        try:
            with self._place(session_id).open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                begin = mark if mark <= size else 0
                file.seek(max(begin, size - HISTORY_MAX))
                events = _lines(file.read(HISTORY_MAX).decode("utf-8", "replace"))
        except OSError as error:
            return f"{self.words}: {(error.strerror or 'cannot be read').lower()}"
        return f"{self.words} contains no events" if events is None else events

    def _place(self, session_id: str) -> Path:
        if session_id_of(session_id) is None:
            raise FileNotFoundError(session_id)  # it would escape the folder
        return Path(self._path.replace("{id}", session_id)).expanduser()


def _listed(value: Any) -> list[Event] | None:
    if isinstance(value, dict):
        value = next((value[name] for name in _LISTS if isinstance(value.get(name), list)), None)
    return [event for event in value if isinstance(event, dict)] if isinstance(value, list) else None


def _lines(text: str) -> list[Event] | None:
    """JSON lines; an incomplete last line is left for the next read."""
    values = [parse_json(line) for line in text.split("\n") if line.strip()]
    events = [value for value in values if isinstance(value, dict)]
    return events if events or not values else None
