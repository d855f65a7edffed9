"""When a usage limit of Codex resets, to the second.

Codex prints the minute ("try again at 8:19 AM"). The exact time is in the session's rollout file, in the `token_count`
event that it writes after every response: the windows of the account, each with `resets_at`. The one that was hit is
the one that resets within the printed minute. An ephemeral turn has no rollout file; for it, only the
minute is known.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from wakeful.core.time.instants import MINUTE, SECOND, Instant
from wakeful.integrations.agents.presets.preset import Reading
from wakeful.integrations.agents.printed import at, objects, text_at

_TAIL: Final = 256 * 1024
"""How much of the end of a rollout file is read. The events of the last response are its last lines."""


def stored_reset(reading: Reading, env: Mapping[str, str]) -> Instant | None:
    """The end of the window that resets within the printed minute; None if no rollout file has it."""
    if reading.reset_at is None or reading.session_id is None:
        return None
    for resets_at in _resets(reading.session_id, env):
        if reading.reset_at - MINUTE <= resets_at < reading.reset_at:
            return resets_at
    return None


def _resets(session_id: str, env: Mapping[str, str]) -> Iterator[Instant]:
    """The resets of all windows, as the last response of the session gave them."""
    folder = Path(env.get("CODEX_HOME") or Path(env.get("HOME") or Path.home()) / ".codex")
    for file in (folder / "sessions").glob(f"*/*/*/rollout-*-{session_id}.jsonl"):
        limits = _last_limits(_tail(file))
        for window in limits.values() if isinstance(limits, dict) else ():
            resets_at = at(window, "resets_at")
            if isinstance(resets_at, int):
                yield resets_at * SECOND


def _last_limits(text: str) -> Any:
    for event in reversed(objects(text)):
        if text_at(event, "payload", "type") == "token_count":
            return at(event, "payload", "rate_limits")
    return None


def _tail(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            opened.seek(max(0, opened.seek(0, os.SEEK_END) - _TAIL))
            return opened.read(_TAIL).decode("utf-8", "replace")
    except OSError:
        return ""
