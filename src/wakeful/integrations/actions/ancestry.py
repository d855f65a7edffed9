"""Which process a process descends from: who is at the other end of a Unix socket.

On Linux the chain of parents is read, so that a process stays recognisable in a session of its own (`setsid`). What
lost its parent still has the session of the run that started it, or the run's token in its environment. Elsewhere only
the session is known.
"""

import os
import sys
from pathlib import Path
from typing import Final, NamedTuple

from wakeful.core.run.resources import is_lack
from wakeful.integrations.actions.environment import RUN_TOKEN
from wakeful.integrations.actions.process_table import parent_and_session

DEPTH_MAX: Final = 1_000
TRIES: Final = 3  # an ancestor may end while its children are looked at: they get another parent
ENVIRONMENT_MAX: Final = 4_194_304
_PROC: Final = Path("/proc")


class Ancestry(NamedTuple):
    """What a process descends from."""

    leaders: frozenset[int]  # the process, its ancestors, and the leaders of their sessions
    tokens: frozenset[str]  # the tokens of runs that they were started with
    is_started_by_us: bool  # whether this process is one of the ancestors


def ancestry_of(pid: int) -> Ancestry | None:
    """What this process descends from; None if it cannot be seen, because it has ended, is in another namespace, or we
    have no descriptor left to look."""
    try:
        return _ancestry_of(pid)
    except OSError:
        return None


def _ancestry_of(pid: int) -> Ancestry | None:
    if sys.platform != "linux":
        return _by_session(pid)
    for _ in range(TRIES):
        found = _by_parents(pid)
        if found is not None:
            return found
    return None


def _by_parents(pid: int) -> Ancestry | None:
    own = os.getpid()
    leaders: set[int] = set()
    tokens: set[str] = set()
    current = pid
    for _ in range(DEPTH_MAX):
        known = parent_and_session(current)
        if known is None and current != pid and _exists(current):  # of another user, and hidden: none of ours
            return Ancestry(frozenset(leaders), frozenset(tokens), is_started_by_us=False)
        if known is None:
            return None
        parent, session = known
        leaders |= {current, session} - {0}
        if (token := _token_of(current)) is not None:
            tokens.add(token)
        if parent == own or parent <= 1:
            return Ancestry(frozenset(leaders), frozenset(tokens), parent == own)
        current = parent
    return None


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _by_session(pid: int) -> Ancestry | None:
    try:
        session = os.getsid(pid)
    except OSError:
        return None
    return Ancestry(frozenset({session} - {os.getsid(0)}), frozenset(), is_started_by_us=False)


def _token_of(pid: int) -> str | None:
    """The token of a run in the environment that this process was started with."""
    try:
        with (_PROC / str(pid) / "environ").open("rb") as file:
            variables = file.read(ENVIRONMENT_MAX).split(b"\0")
    except OSError as error:
        if is_lack(error):
            raise
        return None  # of another user
    name = f"{RUN_TOKEN}=".encode()
    given = next((variable for variable in variables if variable.startswith(name)), None)
    return None if given is None else given[len(name) :].decode("utf-8", "replace")
