"""The errors that end a command, each with its exit code."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

FAILED: Final = 1
USAGE: Final = 2
NO_DAEMON: Final = 3

Fault = tuple[str, str]
"""A field (or an option), and what is wrong with it and how to fix it."""


class Ended(Exception):
    """The command failed; `str()` is the message to print, `faults` adds one line each."""

    code = FAILED
    is_unknown = False
    """Whether what was asked for does not exist."""

    def __init__(
        self, message: str, faults: Sequence[Fault] = (), *, hint: str | None = None, code: int | None = None
    ) -> None:
        super().__init__(message)
        self.code = self.code if code is None else code
        self.faults: tuple[Fault, ...] = tuple(faults)
        self.hint = hint


class Misused(Ended):
    """A usage error: the user must correct the command line."""

    code = USAGE


class NoDaemon(Ended):
    """No daemon is running."""

    code = NO_DAEMON


def no_daemon(home: Path, what: str = "") -> NoDaemon:
    """No daemon is running for this home; the hint says how to start one."""
    because = f", {what}" if what else ""
    return NoDaemon(f"no daemon is running for {home}{because}", hint=f"start one: {start_command(home)}")


def start_command(home: Path) -> str:
    """The command that starts the daemon of this home."""
    import shlex

    is_usual = home == Path.home() / ".wakeful"
    return "wakeful up" if is_usual else f"wakeful --home {shlex.quote(str(home))} up"
