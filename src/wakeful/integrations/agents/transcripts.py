"""Transcripts as files in one folder, one file per session.

Three limits apply: turns per session, bytes per session, and sessions. The oldest are dropped first, which only costs
an agent some memory. Files are replaced atomically, so a crash leaves the old one or the new one.
"""

import hashlib
import json
import re
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from wakeful.integrations.system.plain_files import replace_private
from wakeful.integrations.system.threads import in_thread

TURNS_MAX: Final = 50
BYTES_MAX: Final = 256 * 1024
SESSIONS_MAX: Final = 50

_FILE_MAX: Final = 4 * BYTES_MAX  # JSON may write a character as six
_PLAIN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}(\.[A-Za-z0-9_-]{1,50})*", re.ASCII)
_SUFFIX: Final = ".json"


class TranscriptTurn(NamedTuple):
    """One turn of a transcript: the prompt, its key, and the reply."""

    key: str
    prompt: str
    reply: str


class Transcripts:
    """Keeps conversations for agents that have no memory themselves, in a folder that only its owner can read."""

    def __init__(self, folder: Path, *, sessions_max: int = SESSIONS_MAX, turns_max: int = TURNS_MAX) -> None:
        self._folder = folder
        self._sessions_max = sessions_max
        self._turns_max = turns_max

    async def read(self, session_id: str) -> Sequence[TranscriptTurn]:
        """The conversation, oldest turn first; empty for an unknown session."""
        return await in_thread(partial(self._read, session_id), name="transcript")

    async def add(self, session_id: str, spoken: TranscriptTurn) -> None:
        """Add a turn, replacing an earlier turn with the same key."""
        await in_thread(partial(self._add, session_id, spoken), name="transcript")

    def _read(self, session_id: str) -> list[TranscriptTurn]:
        try:
            with self._path(session_id).open("rb") as file:
                entries = json.loads(file.read(_FILE_MAX))
        except (OSError, ValueError, RecursionError):  # missing or corrupt: the agent starts over
            return []
        return [spoken for entry in entries if (spoken := _spoken(entry))] if isinstance(entries, list) else []

    def _add(self, session_id: str, spoken: TranscriptTurn) -> None:
        earlier = [turn for turn in self._read(session_id) if turn.key != spoken.key]
        kept = [turn._asdict() for turn in _bounded([*earlier, spoken], self._turns_max)]
        replace_private(self._path(session_id), json.dumps(kept, ensure_ascii=False))
        self._forget_oldest()

    def _forget_oldest(self) -> None:
        aged = sorted((_age(path), path) for path in self._folder.glob(f"*{_SUFFIX}"))
        for _, path in aged[: max(len(aged) - self._sessions_max, 0)]:
            with suppress(OSError):
                path.unlink()

    def _path(self, session_id: str) -> Path:
        # A session id may come from a file that a person edited: it must not escape the folder.
        is_plain = _PLAIN.fullmatch(session_id) is not None and len(session_id) <= 150
        name = session_id if is_plain else hashlib.sha256(session_id.encode("utf-8", "replace")).hexdigest()
        return self._folder / (name + _SUFFIX)


def _bounded(transcript: list[TranscriptTurn], turns_max: int) -> list[TranscriptTurn]:
    """The latest turns that fit; the last one always does, because its parts are bounded."""
    kept: list[TranscriptTurn] = []
    room = BYTES_MAX
    for spoken in reversed(transcript[-turns_max:]):
        room -= len(spoken.prompt.encode("utf-8", "replace")) + len(spoken.reply.encode("utf-8", "replace"))
        if kept and room < 0:
            break
        kept.append(spoken)
    return kept[::-1]


def _spoken(entry: Any) -> TranscriptTurn | None:
    if not isinstance(entry, dict):
        return None
    parts = [entry.get(name) for name in TranscriptTurn._fields]
    return TranscriptTurn(*map(str, parts)) if all(isinstance(part, str) for part in parts) else None


def _age(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0
