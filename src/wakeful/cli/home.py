"""The home folder, and the daemon that holds its lock."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from wakeful.cli.errors import Ended, NoDaemon
from wakeful.server.daemon.home import holder_of

# The address for a daemon that listens on all interfaces.
_EVERYWHERE: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - nothing is bound to it


@dataclass(frozen=True, slots=True)
class Running:
    """A running daemon: its process, start time and address."""

    pid: int
    started_at: int
    host: str
    port: int

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"


def running(home: Path) -> Running | None:
    """The daemon that holds this home; None if there is none. One that is still starting raises `NoDaemon`."""
    holder = holder_of(home)
    if holder is None:
        return None
    if holder.address is None:
        raise NoDaemon(f"the daemon (process {holder.pid}) is starting", hint="try again in a moment")
    parts = urlsplit(holder.address)
    host = parts.hostname or "127.0.0.1"
    return Running(holder.pid, holder.started_at, _EVERYWHERE.get(host, host), parts.port or 80)


def make_home(home: Path) -> None:
    """Create the folder, readable only by its owner; an existing one is not changed."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)


def database_of(home: Path) -> Path:
    """The SQLite file of this home; refused if the store is PostgreSQL."""
    url = _store_of_daemon(home) or store_of_settings(home)
    if url.startswith(("postgresql:", "postgres:")):
        raise Ended("the store of this home is PostgreSQL", hint="back it up with pg_dump")
    return home / url.removeprefix("sqlite:///")


def _store_of_daemon(home: Path) -> str | None:
    """The store of a running daemon: an option of `up` overrides the settings."""
    from wakeful.cli.client import find

    try:
        url = find(home).get("/api/config")["settings"]["store"]["url"]
    except (Ended, KeyError, TypeError):  # the daemon need not respond for its file to be copied
        return None
    return url if isinstance(url, str) and ":" in url else None  # a masked URL is of no use


def store_of_settings(home: Path, *, hint: str | None = None) -> str:
    from wakeful.config import SettingsRefused, load

    try:
        return load(home).settings.store.url.reveal()
    except SettingsRefused as refused:
        raise Ended(str(refused), hint=hint) from refused
