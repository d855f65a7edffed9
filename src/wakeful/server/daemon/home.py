"""A daemon's home folder, its lock, and the lock file that names the process.

Both the folder and the file are locked. The file's lock shows others whether a daemon runs, and its content which one.
But the file can be removed, and then a second one could be created and locked: the folder's lock prevents that.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from wakeful.core.time.instants import Instant, format_instant

LOCK_NAME: Final = "wakeful.lock"
SOCKET_NAME: Final = "wakeful.sock"
LOCK_MAX: Final = 4_096
LOCK_TRIES: Final = 100
LOCK_TRIES_UNNAMED: Final = 20
STORE_REFUSED: Final = 4
"""The exit code of a daemon whose store was refused; service managers do not restart it."""
LOCK_PAUSE: Final = 0.05
"""Seconds between two tries to lock a home whose daemon is dead. If it was killed while it started a program, the
forked process has its locks until it executes that program. And looking for a daemon locks the file for a moment."""


class DaemonRefused(Exception):
    """The daemon cannot start; the text says why and what to do."""


class StoreRefused(DaemonRefused):
    """The store is missing, damaged, or not the one that was there: starting again would not help."""


class HomeHeld(DaemonRefused):
    """Another daemon holds this home."""

    def __init__(self, home: Path, holder: Holder | None) -> None:
        who = "another process" if holder is None else holder.in_words()
        super().__init__(f"{home} is in use by {who}; stop it first, or choose another home with --home")
        self.home = home
        self.holder = holder


@dataclass(frozen=True, slots=True)
class Holder:
    """The daemon of a home, according to its lock file. `address` is None until it listens."""

    pid: int
    host: str
    started_at: Instant
    address: str | None

    def in_words(self) -> str:
        at = "" if self.address is None else f", at {self.address}"
        return f"process {self.pid} on {self.host} since {format_instant(self.started_at)}{at}"


def holder_of(home: Path) -> Holder | None:
    """The daemon that holds this home; None if there is none."""
    try:
        file = os.open(home / LOCK_NAME, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return None
    except BlockingIOError:
        return _read_holder(os.pread(file, LOCK_MAX, 0))
    finally:
        os.close(file)


def cannot_start(path: Path, error: OSError) -> str:
    """Why the daemon cannot start, and what helps."""
    cure = {
        errno.ENOSPC: "free some disk space",
        errno.EDQUOT: "free some of your disk quota",
        errno.EROFS: "mount it writable, or choose another --home",
        errno.EMFILE: "raise the limit of open files: ulimit -n",
        errno.ENFILE: "the whole system has no open files left: end other programs",
    }.get(error.errno or 0, "make it readable and writable for its owner")
    return f"{error.filename or path} cannot be written or opened ({error.strerror or error}); {cure}"


def make_home(home: Path) -> None:
    """Create the folder, readable only by its owner."""
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        if home.stat().st_mode & 0o077:
            home.chmod(0o700)
    except OSError as error:
        raise DaemonRefused(f"the home folder {home} cannot be created ({error.strerror}); choose another") from error


@contextmanager
def held(home: Path) -> Iterator[Lock]:
    """Lock the home for this process; the system releases it when the process ends, however it ends."""
    folder = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _take_folder(home, folder)
        with _file_held(home) as lock:
            yield lock
    finally:
        os.close(folder)


class Lock:
    """The held lock file. If it is removed, `keep` creates it again."""

    def __init__(self, home: Path, file: int) -> None:
        self._home = home
        self._file = file
        self.before = _read_holder(os.pread(file, LOCK_MAX, 0))
        """The previous daemon, if it did not shut down cleanly."""

    def tell(self, address: str | None) -> None:
        """Write who holds the home, and where it listens."""
        try:
            write_holder(self._file, address)
        except OSError as error:
            raise DaemonRefused(cannot_start(self._home / LOCK_NAME, error)) from error

    def keep(self) -> bool:
        """Create the file again if it was removed or replaced; returns whether it was."""
        path = self._home / LOCK_NAME
        with suppress(OSError):
            if os.path.samestat(path.stat(), os.fstat(self._file)):
                return False
        draft = path.with_suffix(".new")
        file = _opened(draft)
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.pwrite(file, os.pread(self._file, LOCK_MAX, 0), 0)
        draft.replace(path)
        os.close(self._file)
        self._file = file
        return True

    def release(self) -> None:
        """Empty the file, which marks a clean shutdown."""
        os.ftruncate(self._file, 0)
        os.close(self._file)


@contextmanager
def _file_held(home: Path) -> Iterator[Lock]:
    file = _opened(home / LOCK_NAME)
    try:
        _take_file(home, file)
        lock = Lock(home, file)
    except BaseException:
        os.close(file)
        raise
    lock.tell(None)
    try:
        yield lock
    finally:
        lock.release()


def _opened(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise DaemonRefused(f"{path} cannot be opened ({error.strerror}); check its owner") from error


def _take_folder(home: Path, folder: int) -> None:
    # On a file system whose folders cannot be locked, the file's lock is enough.
    with suppress(OSError):
        _take(home, folder)


def _take_file(home: Path, file: int) -> None:
    try:
        _take(home, file)
    except OSError as error:
        raise DaemonRefused(f"{home / LOCK_NAME} cannot be locked ({error.strerror}); use a local disk") from error


def _take(home: Path, file: int) -> None:
    """Lock the file or folder; a lock that belongs to no running daemon is awaited."""
    unnamed = 0
    for _ in range(LOCK_TRIES):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            holder = holder_of(home)
            unnamed += holder is None
            if unnamed > LOCK_TRIES_UNNAMED or (holder is not None and _is_running(holder)):
                raise HomeHeld(home, holder) from None
            time.sleep(LOCK_PAUSE)
    raise HomeHeld(home, holder_of(home))


def _is_running(holder: Holder) -> bool:
    """Whether the process is alive, as far as this machine can tell."""
    from wakeful.integrations.actions.process_table import is_alive

    return holder.host != socket.gethostname() or is_alive(holder.pid)


def write_holder(file: int, address: str | None) -> None:
    known = _read_holder(os.pread(file, LOCK_MAX, 0))
    started_at = known.started_at if known is not None and known.pid == os.getpid() and address else _now()
    written = {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "address": address,
        "startedAt": format_instant(started_at),
    }
    text = json.dumps(written).encode()
    os.pwrite(file, text, 0)
    os.ftruncate(file, len(text))


def _read_holder(written: bytes) -> Holder | None:
    from wakeful.core.time.instants import parse_instant

    try:
        data: dict[str, Any] = json.loads(written)
        return Holder(int(data["pid"]), str(data["host"]), parse_instant(data["startedAt"]), data.get("address"))
    except (ValueError, KeyError, TypeError):
        return None


def _now() -> Instant:
    from wakeful.engine.clock import SystemClock

    return SystemClock().read().now
