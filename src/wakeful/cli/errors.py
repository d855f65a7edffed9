"""Why a command ends without success, and with which exit code."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

FAILED: Final = 1
USAGE: Final = 2
NO_DAEMON: Final = 3

Fault = tuple[str, str]
"""A field (or an option), and what is wrong with it and how to put it right."""


class Ended(Exception):
    """The command cannot do what was asked; `str()` is what the user is told, `faults` one line each."""

    code = FAILED

    def __init__(self, message: str, faults: Sequence[Fault] = (), *, hint: str | None = None) -> None:
        super().__init__(message)
        self.faults: tuple[Fault, ...] = tuple(faults)
        self.hint = hint


class Misused(Ended):
    """What was typed cannot be meant: the user corrects it."""

    code = USAGE


class NoDaemon(Ended):
    """Nobody is there to ask."""

    code = NO_DAEMON


def no_daemon(home: Path, what: str = "") -> NoDaemon:
    """No daemon runs for this home; the cure is to start one."""
    because = f", {what}" if what else ""
    return NoDaemon(f"no daemon is running for {home}{because}", hint=f"start one: {start_command(home)}")


def start_command(home: Path) -> str:
    """What to type to start the daemon of this home."""
    import shlex

    is_usual = home == Path.home() / ".wakeful"
    return "wakeful up" if is_usual else f"wakeful --home {shlex.quote(str(home))} up"
