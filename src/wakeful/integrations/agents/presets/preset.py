"""Presets: what is known about a command-line agent: how it is started, and what its output means.

A preset is data and two functions. `launch` turns a request into a command line; `read` turns the output into a
`Reading`. Both are pure, so tests can use recorded output of the real programs. The prompt goes over stdin if the
program allows it; otherwise it follows `--`, so that it cannot be taken for an option.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, TypeAlias

from wakeful.core.run.usage import Usage
from wakeful.core.slot.windows import UsageWindow
from wakeful.core.time.instants import SECOND, Instant
from wakeful.integrations.agents.arrivals import Arrivals


class Ask(NamedTuple):
    """A request for one turn."""

    program: str
    prompt: str
    session_id: str | None = None  # the session to continue; None: start a new one
    new_session_id: str | None = None  # for programs that let the caller name the session; None: keep none
    model: str | None = None
    permissions: str | None = None
    args: tuple[str, ...] = ()
    cost_max: float | None = None  # in US dollars
    folder: str = "."  # where a preset may keep what its program does not keep itself
    tools_url: str | None = None  # our MCP endpoint, which the program may use with the run's token


TOOLS: Final = "wakeful"
"""The name of our MCP server in the settings of programs."""
TOKEN_VARIABLE: Final = "WAKEFUL_RUN_TOKEN"  # noqa: S105 - the name of a variable


class Launch(NamedTuple):
    """A command line with its environment and input."""

    argv: tuple[str, ...]
    stdin: str | None = None
    env: Mapping[str, str] = {}


class Printed(NamedTuple):
    """What a program printed, and how it ended; stdout and stderr are never mixed."""

    stdout: str
    stderr: str
    code: int | None  # None: lost; negative: the signal that ended it
    stdout_arrived: Arrivals = Arrivals()
    stderr_arrived: Arrivals = Arrivals()


class ReadMoment(NamedTuple):
    """When the output was read, and the zone in which programs on this machine print times of day."""

    at: Instant
    zone: str = "UTC"


ReadingKind: TypeAlias = Literal["answered", "failed", "limited", "lost"]


@dataclass(frozen=True, slots=True)
class Reading:
    """What the output of one turn means.

    `answered` requires evidence of an answer. `limited`: a usage limit is reached until `reset_at`. `lost`: the
    program no longer knows the session."""

    kind: ReadingKind
    text: str | None = None  # the reply, or the program's error message
    status: int | None = None  # the HTTP status behind a failure, if it is known
    session_id: str | None = None
    usage: Usage | None = None  # of this turn
    totals: Usage | None = None  # of the whole session so far, for programs that report nothing else
    refused: tuple[str, ...] = ()  # tools it did not run for lack of permission
    reset_at: Instant | None = None
    windows: tuple[UsageWindow, ...] = ()  # of the account, as far as the program reports them


Read: TypeAlias = Callable[[Printed, ReadMoment], Reading]
ReadStored: TypeAlias = Callable[[Reading, Mapping[str, str]], Reading]
"""Completes a reading from what the program stores on disk, given its environment: its windows, and the reset of a
limit to the second. May block."""

Prepare: TypeAlias = Callable[[Ask, Mapping[str, str]], Mapping[str, str]]
"""Writes what a program must find on disk before it starts; given its environment. Returns variables. May block."""


@dataclass(frozen=True, slots=True)
class Preset:
    """One command-line agent."""

    name: str
    program: str
    launch: Callable[[Ask], Launch]
    read: Read
    login: str  # how to log in: the cure for a 401
    pass_env: tuple[str, ...]  # variables with secrets that its program needs
    permissions: tuple[str, ...] = ()  # the values its own flag takes; empty: it has none
    takes_other_permissions: bool = True  # an unknown value is passed on, for newer versions
    resumes: bool = True
    names_sessions: bool = False  # the caller chooses the session's id
    history: str = ""  # our file for its sessions, in `Ask.folder`: with {session}
    reports_usage: bool = True
    documented_only: bool = False  # written from its documentation, never run
    read_stored: ReadStored | None = None  # for programs that store more about limits than they print
    prepare: Prepare | None = None  # for programs that take our MCP server only from a file
    env: Mapping[str, str] = field(default_factory=dict)  # defaults for running headless; the daemon's own values win


_PERCENTAGE_MAX: Final = 1_000.0
_SECONDS_MAX: Final = 10**11  # the year 5138


def percentage_of(value: object, *, times: float = 1.0) -> float | None:
    """The percentage of a usage window that a program reports, if it is plausible."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    share = value * times
    return round(share, 2) if 0 <= share <= _PERCENTAGE_MAX else None


def instant_of(value: object) -> Instant | None:
    """Seconds since 1970 as an instant."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < _SECONDS_MAX:
        return None
    return value * SECOND
