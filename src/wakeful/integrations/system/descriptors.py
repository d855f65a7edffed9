"""The limit of open descriptors: raised for this process, and given back to its children.

Connections, the store and the pipes of children share one limit, and the usual soft limit is meant for single programs.
A child gets the limit that this process was started with: some programs close every possible descriptor at their start,
and some use `select`, which breaks above 1,024.

The limit belongs to the whole process, so the one it was started with is kept in this module. Where the limit of
another process cannot be set (`prlimit`, Linux), it is not raised either.
"""

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

WANTED: Final = 65_536

KEPT: Final = 32
"""Descriptors that children do not get."""

_PRLIMIT: Final = getattr(resource, "prlimit", None)
_given_back: list[tuple[int, int]] = []


@contextmanager
def raised_limit() -> Iterator[None]:
    """Raise the soft limit as far as it is useful and permitted, and set it back afterwards."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    soft, hard = before
    wanted = WANTED if hard == resource.RLIM_INFINITY else min(WANTED, hard)
    if _PRLIMIT is None or soft == resource.RLIM_INFINITY or soft >= wanted:
        yield
        return
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    _given_back.append(before)
    try:
        yield
    finally:
        _given_back.remove(before)
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def is_room_for_child() -> bool:
    """Whether a child may take descriptors: some are kept for the store and for the socket in the home. The system
    assigns the lowest free number, so a high one says that most are in use."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return True
    lowest = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    os.close(lowest)
    return lowest < soft - KEPT


def give_back(pid: int) -> None:
    """Set the limit of a child that has not begun its work to the one this process was started with."""
    if _given_back and _PRLIMIT is not None:
        with suppress(OSError):  # it has ended already
            _PRLIMIT(pid, resource.RLIMIT_NOFILE, _given_back[0])
