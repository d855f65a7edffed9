"""Notes on the sessions on this machine's disk: the total usage of each.

If a program reports only the total of its session, the usage of one turn is a difference, so the last total is kept in
a file of the home folder, on the same machine as the session. A session without a note was started by another node, by
a person, or before notes existed.
"""

import asyncio
import json
from pathlib import Path
from typing import Any, Final, NamedTuple

from wakeful.core.run.usage import Usage, usage_of
from wakeful.core.time.instants import Instant
from wakeful.integrations.system.plain_files import replace_private
from wakeful.integrations.system.threads import in_thread

NOTES_MAX: Final = 1_000
"""How many sessions of one agent are remembered; the least recently used are dropped first."""


class SessionUsage(NamedTuple):
    """The total usage of one session."""

    totals: Usage | None = None


class SessionNotes:
    """The notes of one agent, in one small file that is replaced atomically."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._file = folder / "sessions.json"
        self._lock = asyncio.Lock()

    async def read(self, session_id: str) -> SessionUsage | None:
        """A session's note; None if it was not started on this machine."""
        kept = (await in_thread(self._load, name="notes")).get(session_id)
        return None if not isinstance(kept, dict) else SessionUsage(usage_of(kept.get("totals")))

    async def write(self, session_id: str, note: SessionUsage, now: Instant) -> None:
        """Store a note. Raises OSError."""
        async with self._lock:
            await in_thread(lambda: self._store(session_id, note, now), name="notes")

    def _load(self) -> dict[str, Any]:
        try:
            kept = json.loads(self._file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return kept if isinstance(kept, dict) else {}

    def _store(self, session_id: str, note: SessionUsage, now: Instant) -> None:
        kept = self._load()
        kept.pop(session_id, None)
        kept[session_id] = {"totals": note.totals, "at": now}
        replace_private(self._file, json.dumps(dict(list(kept.items())[-NOTES_MAX:])))
