"""The home folder's own token: random, created at the first start, readable only by its owner."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Final

from wakeful.server.daemon.home import DaemonRefused, cannot_start

TOKEN_NAME: Final = "token"  # noqa: S105 - the name of a file
TOKEN_MAX: Final = 1_000


def own_token(home: Path) -> str:
    """The token in the home folder; created if missing."""
    file = home / TOKEN_NAME
    try:
        return read_token(home) or _make(file)
    except OSError as error:
        raise DaemonRefused(cannot_start(file, error)) from error


def read_token(home: Path) -> str | None:
    """The token, or None if the file is missing or empty."""
    try:
        handle = os.open(home / TOKEN_NAME, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    with os.fdopen(handle, "rb") as opened:
        if os.fstat(handle).st_mode & 0o077:
            os.fchmod(handle, 0o600)
        return opened.read(TOKEN_MAX).decode("ascii", "replace").strip() or None


def _make(file: Path) -> str:
    """Write to a temporary file and rename, so that a crash leaves no partial file."""
    token = secrets.token_urlsafe(32)
    temporary = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "w", encoding="ascii") as opened:
        opened.write(f"{token}\n")
        opened.flush()
        os.fsync(handle)
    temporary.replace(file)
    return token
