"""A simulation ends with the process that asked for it, even if that process is killed."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

LOOK_EVERY: Final = 1.0
"""Seconds."""


@contextmanager
def ending_with_parent() -> Iterator[None]:
    """End this process soon after its parent has died. A child that is forked in it does this again: timers are not
    inherited. The timer stops at the end, because an interpreter that shuts down no longer handles its signal."""
    parent = os.getppid()

    def look(*_: object) -> None:
        if os.getppid() != parent:
            os._exit(1)

    signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, LOOK_EVERY, LOOK_EVERY)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
