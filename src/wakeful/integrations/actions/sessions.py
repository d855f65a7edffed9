"""Ending a session: a leader and all that came of it.

Everything we start leads its own session, so the session is what is ended: it also holds what moved to a process
group of its own (`timeout`, the jobs of an interactive shell). A program that makes a session of its own has said that
it wants to outlive us, and is left alone.

A zombie has ended: it only waits for its parent, which may be a container's first process that never looks.
"""

import os
import signal
from contextlib import suppress
from typing import Final

from wakeful.core.time.instants import SECOND, Duration
from wakeful.integrations.actions.deadline import Deadline, pause
from wakeful.integrations.actions.process_table import Member, session_members
from wakeful.integrations.system.threads import in_thread

END_GRACE: Final[Duration] = 5 * SECOND
"""How long what we end may take to end by itself."""

KILL_PATIENCE: Final[Duration] = 5 * SECOND
"""How long the system may take to clear away what was killed; longer means it hangs inside the kernel."""

_POLL_FIRST: Final[Duration] = 5
_POLL_LAST: Final[Duration] = 200


async def end_session(leader: int, grace: Duration) -> bool:
    """Ask the session to end, then kill it; True when nothing of it lives."""
    if await _signal_until_gone(leader, signal.SIGTERM, grace):
        return True
    return await _signal_until_gone(leader, signal.SIGKILL, KILL_PATIENCE)


async def is_session_gone(leader: int) -> bool:
    """Whether nothing of the session lives."""
    return not await in_thread(lambda: session_members(leader), name="session")


def group_exists(leader: int) -> bool:
    """Whether anything, a zombie included, is in the leader's group: the cheap question before the thorough one."""
    try:
        os.killpg(leader, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


async def _signal_until_gone(leader: int, number: signal.Signals, duration: Duration) -> bool:
    patience, wait, is_asked = Deadline(duration), _POLL_FIRST, False
    while members := await in_thread(lambda: session_members(leader), name="session"):
        # Killed again each time, because one that was being forked may have slipped through; asked only once.
        if not is_asked or number is signal.SIGKILL:
            _signal(members, number)
        is_asked = True
        if patience.is_over:
            return False
        await pause(wait)
        wait = min(wait * 2, _POLL_LAST)
    return True


def _signal(members: list[Member], number: signal.Signals) -> None:
    for group in {member.group for member in members} - {0, 1, os.getpgrp()}:
        with suppress(ProcessLookupError, PermissionError):  # what it did not reach is still there when we look again
            os.killpg(group, number)
