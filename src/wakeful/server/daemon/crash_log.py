"""Log a line however the process ends.

A clean stop and an uncaught error are logged as they happen. An interpreter crash (a segmentation fault, an abort) is
written by `faulthandler` into `crash.log` in the home. A killed process, or a machine that lost power, can write
nothing: then the lock file still names the process. The next start reports both.
"""

from __future__ import annotations

import faulthandler
import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from wakeful.server.daemon.home import DaemonRefused

if TYPE_CHECKING:
    from wakeful.server.daemon.home import Holder

log = logging.getLogger("wakeful.server.daemon")

CRASH_NAME: Final = "crash.log"
KEPT_NAME: Final = "crash.log.1"
READ_MAX: Final = 4_096


@contextmanager
def crash_logging(home: Path) -> Iterator[None]:
    """Write interpreter crashes into the home, and uncaught errors into the log."""
    file = os.open(home / CRASH_NAME, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    hook, threading.excepthook = threading.excepthook, _of_thread
    faulthandler.enable(file)
    try:
        yield
        log.info("stopped")
    except DaemonRefused:
        raise  # shown to the user who started it
    except BaseException as error:
        log.critical("the daemon is stopping because of %s: %s", type(error).__name__, error, exc_info=error)
        raise
    finally:
        faulthandler.disable()
        threading.excepthook = hook
        is_empty = os.fstat(file).st_size == 0
        os.close(file)
        if is_empty:
            with suppress(OSError):
                (home / CRASH_NAME).unlink()


def take_crash(home: Path) -> str | None:
    """The crash log of the previous process, moved aside so that it is reported once; None if it did not crash."""
    path = home / CRASH_NAME
    try:
        with path.open("rb") as file:
            said = file.read(READ_MAX).decode(errors="replace").strip()
        if not said:
            return None
        path.replace(home / KEPT_NAME)
    except OSError:
        return None
    return said.splitlines()[0]


def report_end(home: Path, before: Holder | None, crash: str | None) -> None:
    """Log how the previous process ended, if it could not log that itself."""
    if crash is not None:
        log.error("the previous daemon crashed: %s (details in %s)", crash, home / KEPT_NAME)
    elif before is not None:
        log.warning(
            "the previous daemon (%s) did not shut down cleanly: it was killed, or the machine went down",
            before.in_words(),
        )


def _of_thread(args: threading.ExceptHookArgs) -> None:
    name = "a thread" if args.thread is None else f"thread {args.thread.name}"
    log.critical("%s ended by %s", name, args.exc_type.__name__, exc_info=args.exc_value)
