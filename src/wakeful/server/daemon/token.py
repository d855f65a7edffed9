"""The home folder's own token: random, made at the first start, readable by its owner only."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Final

from wakeful.server.daemon.refusal import DaemonRefused

TOKEN_NAME: Final = "token"  # noqa: S105 - the name of a file
TOKEN_MAX: Final = 1_000


def own_token(home: Path) -> str:
    """The token in the home folder; a new one if there is none."""
    file = home / TOKEN_NAME
    try:
        return read_token(home) or _make(file)
    except OSError as error:
        raise DaemonRefused(f"{file} cannot be used ({error.strerror}); let its owner read and write it") from error


def read_token(home: Path) -> str | None:
    """The token, if the file is there and holds one."""
    try:
        handle = os.open(home / TOKEN_NAME, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    with os.fdopen(handle, "rb") as opened:
        if os.fstat(handle).st_mode & 0o077:
            os.fchmod(handle, 0o600)
        return opened.read(TOKEN_MAX).decode("ascii", "replace").strip() or None


def _make(file: Path) -> str:
    """Written beside it and moved into place, so that a crash leaves no half of it."""
    token = secrets.token_urlsafe(32)
    beside = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "w", encoding="ascii") as opened:
        opened.write(f"{token}\n")
        opened.flush()
        os.fsync(handle)
    beside.replace(file)
    return token
