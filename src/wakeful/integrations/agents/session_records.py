"""Records of the sessions we use on a server, kept in a file because servers need not list them.

A record is written before a message is sent, with the message's key and where the session's history ended. After a
crash this distinguishes our own turn from someone else's. Records also show which of our sessions is the oldest, for
`sessions_max`, whether or not the server lists its sessions.
"""

import asyncio
import json
import logging
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from wakeful.core.time.instants import Instant
from wakeful.integrations.agents.history_places import Finding, Mark
from wakeful.integrations.system.plain_files import replace_private
from wakeful.integrations.system.threads import in_thread

log = logging.getLogger("wakeful.integrations.agents")

RECORDS_MAX: Final = 20_000
"""Above the largest `sessions_max`; the least recently used are forgotten first."""

FOLDER: Final = "sessions"
_FILE_MAX: Final = 32 * 1024 * 1024


class SessionRecord(NamedTuple):
    """One session that we use."""

    slug: str
    is_persistent: bool
    used_at: Instant
    key: str | None = None  # of the last message sent, unless the server refused it
    mark: Mark = ()  # where the history ended before it
    is_ours: bool = True  # created by us, not given by a person


class SessionRecords:
    """The sessions of one agent. Without a file they are known until the process ends."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._is_read = file is None
        self._records: dict[str, SessionRecord] = {}
        self._finding: Finding | None = None
        self._writing = asyncio.Lock()  # otherwise an older state could overwrite a newer one

    async def all(self) -> dict[str, SessionRecord]:
        """All sessions by id, least recently used first."""
        if not self._is_read:
            assert self._file is not None  # noqa: S101 - else nothing is to be read
            self._records, self._finding = await in_thread(partial(read_records, self._file), name="sessions")
            self._is_read = True
        return self._records

    async def of(self, session_id: str) -> SessionRecord | None:
        return (await self.all()).get(session_id)

    async def put(self, session_id: str, record: SessionRecord) -> None:
        """Store a session as the most recently used."""
        await self.all()
        self._records.pop(session_id, None)
        self._records[session_id] = record
        while len(self._records) > RECORDS_MAX:
            del self._records[next(iter(self._records))]
        await self._write()

    async def remove(self, session_id: str) -> None:
        """Remove a session that is no longer on the server."""
        if (await self.all()) and self._records.pop(session_id, None) is not None:
            await self._write()

    async def note_finding(self, finding: Finding | None) -> None:
        """Store whether the history can be read, for `wakeful doctor`."""
        await self.all()
        if finding is not None and finding != self._finding:
            self._finding = finding
            await self._write()

    async def _write(self) -> None:
        if self._file is None:
            return
        try:
            async with self._writing:
                await in_thread(partial(replace_private, self._file, json.dumps(self._kept())), name="sessions")
        except OSError as error:  # the turn matters more than its record
            log.warning("could not record an agent's sessions in %s: %s", self._file, error.strerror)

    def _kept(self) -> dict[str, Any]:
        return {
            "history": None if self._finding is None else self._finding._asdict(),
            "sessions": {session_id: record._asdict() for session_id, record in self._records.items()},
        }


def read_records(file: Path) -> tuple[dict[str, SessionRecord], Finding | None]:
    """The records in a file; empty if it is missing or corrupt."""
    try:
        with file.open("rb") as opened:
            kept = json.loads(opened.read(_FILE_MAX))
    except (OSError, ValueError, RecursionError):
        return {}, None
    if not isinstance(kept, dict):
        return {}, None
    sessions = kept.get("sessions")
    entries = sessions.items() if isinstance(sessions, dict) else ()
    records = {session_id: record for session_id, entry in entries if (record := _record(entry)) is not None}
    return records, _finding(kept.get("history"))


def _record(entry: Any) -> SessionRecord | None:
    match entry:
        case {
            "slug": str(slug),
            "is_persistent": bool(is_persistent),
            "used_at": int(used_at),
            "key": None | str() as key,
            "mark": list(mark),
            "is_ours": bool(is_ours),
        } if all(part is None or isinstance(part, int) for part in mark):
            return SessionRecord(slug, is_persistent, used_at, key, tuple(mark), is_ours)
    return None


def _finding(entry: Any) -> Finding | None:
    match entry:
        case {"is_readable": bool(is_readable), "words": str(words)}:
            return Finding(is_readable, words)
    return None
