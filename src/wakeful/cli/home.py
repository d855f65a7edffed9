"""The home folder, and who holds it.

The daemon holds a lock on a file in its home for as long as it lives, and has written into it where it answers. The
kernel lets go of the lock when the process ends, however it ends: what an old file says is believed only while the lock
is held.
"""

from __future__ import annotations

import fcntl
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from wakeful.cli.faults import Ended

LOCK_NAME: Final = "daemon.lock"
LOCK_MAX: Final = 65_536


@dataclass(frozen=True, slots=True)
class Running:
    """A daemon that is alive: its process, and where it answers."""

    pid: int
    host: str
    port: int
    told: dict[str, Any]

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"


def running(home: Path) -> Running | None:
    """The daemon that holds this home; None if nobody does."""
    try:
        file = os.open(home / LOCK_NAME, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        if not _is_held(file):
            return None
        return _read(os.pread(file, LOCK_MAX, 0))
    finally:
        os.close(file)


def make_home(home: Path) -> None:
    """Make the folder, readable by its owner only; one that exists is left as it is."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)


def _is_held(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def _read(written: bytes) -> Running | None:
    try:
        told = json.loads(written)
        return Running(int(told["pid"]), str(told["host"]), int(told["port"]), told)
    except (ValueError, KeyError, TypeError):  # it is starting: the lock is taken before the address is known
        return None


def database_of(home: Path) -> Path:
    """The file in which the daemon of this home keeps everything; refused if it keeps it elsewhere."""
    found = running(home)
    url = found.told.get("store") if found is not None else None
    if not isinstance(url, str):
        from wakeful.settings import SettingsRefused, load

        try:
            url = load(home).settings.store.url.reveal()
        except SettingsRefused as refused:
            raise Ended(str(refused)) from refused
    if url.startswith(("postgresql:", "postgres:")):
        raise Ended("everything is kept in PostgreSQL", hint="copy it with PostgreSQL's own tool: pg_dump")
    return home / url.removeprefix("sqlite:///")
