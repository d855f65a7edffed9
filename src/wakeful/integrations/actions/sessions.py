"""Ends a session: a leader and all its descendants.

Every process we start leads its own session, so the session is ended: it also contains processes that moved to another
process group (`timeout`, jobs of an interactive shell). A program that creates its own session wants to outlive us, and
is left alone.

A zombie counts as ended: it only waits for its parent, which may be a container's init process that never reaps.
"""

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeVar

from wakeful.core.run.resources import is_lack
from wakeful.core.time.instants import SECOND, Duration
from wakeful.integrations.actions.cancellation import Deadline, pause
from wakeful.integrations.actions.process_table import Member, session_members
from wakeful.integrations.system.threads import in_thread

T = TypeVar("T")

END_GRACE: Final[Duration] = 4 * SECOND
"""How long a process may take to exit after SIGTERM. A cancelled run must have ended after 5 s."""

KILL_PATIENCE: Final[Duration] = 5 * SECOND
"""How long a killed process may take to disappear; longer means that it hangs in the kernel."""

_POLL_FIRST: Final[Duration] = 5
_POLL_LAST: Final[Duration] = 200


async def end_session(leader: int, grace: Duration) -> bool:
    """Terminate the session, then kill it; True when no process is left."""
    if await _signal_until_gone(leader, signal.SIGTERM, grace):
        return True
    return await _signal_until_gone(leader, signal.SIGKILL, KILL_PATIENCE)


async def is_session_gone(leader: int) -> bool:
    """Whether no process of the session is left."""
    return not await listed(lambda: session_members(leader), name="session")


async def listed(look: Callable[[], T], *, name: str) -> T:
    """What the system says about processes, asked in a thread. Without descriptors it does not say anything, which
    proves nothing about them: ask again until it does."""
    while True:
        try:
            return await in_thread(look, name=name)
        except OSError as error:
            if not is_lack(error):
                raise
        await pause(_POLL_LAST)


def group_exists(leader: int) -> bool:
    """Whether the leader's group has any member, zombies included: a cheap check before the thorough one."""
    try:
        os.killpg(leader, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


async def _signal_until_gone(leader: int, number: signal.Signals, duration: Duration) -> bool:
    patience, wait, is_asked = Deadline(duration), _POLL_FIRST, False
    while members := await listed(lambda: session_members(leader), name="session"):
        # SIGKILL is repeated, because a process being forked may be missed; SIGTERM is sent once.
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
        with suppress(ProcessLookupError, PermissionError):  # a missed process is found in the next round
            os.killpg(group, number)
