"""Which process may tick: a lock on a file next to the database.

The kernel releases it when the holder's process ends, however it ends, so holding it proves that no earlier holder is
alive. Child processes do not inherit it. Two stores in one process exclude each other as well.
"""

import fcntl
import json
import os
import socket
from pathlib import Path
from typing import Final

from wakeful.core.time.instants import format_instant
from wakeful.ports.store import StoreUnavailable

# Checking who holds the clock locks the file for a moment, so taking it is tried again instead of failing.
TRIES: Final = 5


class ClockHold:
    """The lock on `<database>.clock`."""

    def __init__(self, database: Path) -> None:
        self._path = database.with_name(database.name + ".clock")
        self._file: int | None = None

    def hold(self) -> bool:
        """Try to take the lock; True if this process holds it now."""
        if self._file is not None:
            return True
        file = self._open(os.O_RDWR | os.O_CREAT)
        for _ in range(TRIES):
            if self._lock(file, fcntl.LOCK_EX):
                self._file = file
                os.ftruncate(file, 0)
                os.pwrite(file, json.dumps({"pid": os.getpid(), "host": socket.gethostname()}).encode(), 0)
                return True
        os.close(file)
        return False

    def release(self) -> None:
        """Release the lock; closing the file unlocks it."""
        if self._file is not None:
            os.ftruncate(self._file, 0)
            os.close(self._file)
            self._file = None

    def holder(self) -> str | None:
        """A description of the holder; None if there is none."""
        try:
            file = self._open(os.O_RDONLY)
        except FileNotFoundError:
            return None
        try:
            if self._lock(file, fcntl.LOCK_SH):
                return None
            return _in_words(os.pread(file, 4096, 0), os.fstat(file).st_mtime_ns // 1_000_000)
        finally:
            os.close(file)

    def _open(self, flags: int) -> int:
        try:
            return os.open(self._path, flags | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise StoreUnavailable(f"{self._path} cannot be opened ({error}); check its permissions") from error

    def _lock(self, file: int, how: int) -> bool:
        try:
            fcntl.flock(file, how | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as error:
            os.close(file)
            raise StoreUnavailable(f"{self._path} cannot be locked ({error}); use a local disk") from error
        return True


def _in_words(written: bytes, written_at: int) -> str:
    since = format_instant(written_at)
    try:
        holder = json.loads(written)
        return f"process {holder['pid']} on {holder['host']} since {since}"
    except (ValueError, KeyError, TypeError):
        return f"an unidentified process, since {since}"
