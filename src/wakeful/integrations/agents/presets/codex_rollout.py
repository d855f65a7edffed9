"""What Codex stores about the usage limits of its account.

Codex prints the minute of a reset ("try again at 8:19 AM") and nothing about its windows. Both are in the session's
rollout file, in the `token_count` event that it writes after every response: each window with the share that is used
and `resets_at`. The window that was hit is the one that resets within the printed minute. An ephemeral turn has no
rollout file; for it, only the minute is known.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from wakeful.core.slot.slot import EXHAUSTED_FROM
from wakeful.core.slot.windows import UsageWindow, window_name
from wakeful.core.time.instants import MINUTE
from wakeful.integrations.agents.presets.preset import Reading, instant_of, percentage_of
from wakeful.integrations.agents.printed import at, objects, text_at

_TAIL: Final = 256 * 1024
"""How much of the end of a rollout file is read. The events of the last response are its last lines."""


def read_stored(reading: Reading, env: Mapping[str, str]) -> Reading:
    """The reading with the windows of the session's last response, and the exact reset of the one that was hit."""
    if reading.session_id is None:
        return reading
    windows = tuple(_windows(reading.session_id, env))
    resets = [window.reset_at for window in windows if window.reset_at is not None]
    printed = reading.reset_at
    exact = next((reset for reset in resets if printed is not None and printed - MINUTE <= reset < printed), printed)
    return replace(reading, windows=windows, reset_at=exact)


def _windows(session_id: str, env: Mapping[str, str]) -> Iterator[UsageWindow]:
    folder = Path(env.get("CODEX_HOME") or Path(env.get("HOME") or Path.home()) / ".codex")
    for file in (folder / "sessions").glob(f"*/*/*/rollout-*-{session_id}.jsonl"):
        limits = _last_limits(_tail(file))
        for window in limits.values() if isinstance(limits, dict) else ():
            resets_at, minutes = instant_of(at(window, "resets_at")), at(window, "window_minutes")
            if resets_at is None:
                continue
            used = percentage_of(at(window, "used_percent"))
            length = minutes * MINUTE if isinstance(minutes, int) and minutes > 0 else None
            yield UsageWindow(window_name(length), used, resets_at, length, (used or 0.0) >= EXHAUSTED_FROM)


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
