"""An entry of another scheduler, as a reader returns it: when it runs by the rules of its source, what it does, and
what is not carried over."""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, NoReturn, Protocol, TypeAlias

from wakeful.core.time.instants import Instant
from wakeful.integrations.actions.environment import is_secret_variable

FILE_MAX: Final = 8 * 1024 * 1024
"""Bytes of one file."""
LINE_MAX: Final = 64 * 1024
"""Characters of one line."""
ENTRIES_MAX: Final = 2_000
MASK: Final = "***"

SourceTimes: TypeAlias = Callable[[Instant, int], Sequence[Instant]]
"""The next times of an entry after an instant, by the rules of its source."""


class SourceRefused(Exception):
    """A whole source is refused: the file, the line if there is one, and the reason. Nothing in it is imported."""

    def __init__(self, place: str, reason: str, line: int | None = None) -> None:
        where = place if line is None else f"{place}, line {line}"
        super().__init__(f"{where}: {reason}" if where else reason)
        self.place, self.line, self.reason = place, line, reason


class EntryRefused(Exception):
    """One entry cannot be imported: the reason."""


def refuse(reason: str) -> NoReturn:
    """Refuse the current entry."""
    raise EntryRefused(reason)


@dataclass(frozen=True, slots=True)
class Context:
    """What reading depends on besides the files."""

    now: Instant
    zone: str  # the zone of the machine
    user: str = ""  # who the daemon runs as
    user_home: Path = Path("/")
    environ: Mapping[str, str] = field(default_factory=dict)
    users: frozenset[str] = frozenset({"root"})  # of this machine
    is_debian_cron: bool = False  # its cron ignores CRON_TZ
    channels: frozenset[str] = frozenset()
    agents: frozenset[str] = frozenset()
    is_adopting: bool = False


@dataclass(frozen=True, slots=True)
class SourceFile:
    """Text to read, and where it is from. `path` is None for pasted text."""

    place: str
    text: str
    path: Path | None = None
    problem: str | None = None  # why it could not be read


@dataclass(frozen=True, slots=True)
class Off:
    """How an entry is switched off in its source: JSON for the `Switch` of its kind."""

    kind: str
    what: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of another scheduler."""

    place: str  # the file or system it is from
    ref: str  # its identity in the source
    source: str  # its own text, without secrets
    name: str  # what to call it
    line: int | None = None
    schedule: Mapping[str, Any] = field(default_factory=dict)
    action: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    times: SourceTimes | None = None
    not_carried: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()  # what means something else here, a sentence each
    last_run: Instant | None = None
    is_paused: bool = False
    session: str | None = None
    refused: str | None = None
    is_skipped: bool = False  # not the user's job; reported, and left alone
    settings: str | None = None  # lines for wakeful.toml
    draft: str | None = None  # what a person has to do before it can run; it is created disabled
    off: Off | None = None
    by_hand: str = "switch it off there"  # what to do without an `off`
    key: str | None = None  # a slot's secret, which goes into a private file
    becomes: Literal["schedule", "slot", "delivery"] = "schedule"


class Reader(Protocol):
    """Reads one kind of source."""

    def __call__(self, files: Sequence[SourceFile], context: Context) -> list[Entry]: ...


_SECRETS: Final = (
    (re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{6,}"), r"\1 ***"),
    (re.compile(r"(?i)(--?(?:password|passwd|token|secret|api[-_]?key)[= ])('[^']*'|\"[^\"]*\"|\S+)"), r"\1***"),
    (re.compile(r"(://[^/\s:@]*):[^/\s@]+@"), r"\1:***@"),
    (re.compile(r"\b(sk-|ghp_|xox[bap]-|glpat-)[A-Za-z0-9_-]{6,}"), r"\1***"),
)
_SECRET_FIELD: Final = re.compile(
    r"(?i)(token|secret|passwd|auth|authorization|x?-?api[-_]?key|.*(apikey|token|secret))"
)
_NO_SECRETS: Final = frozenset({"acktoken", "ack_token", "ack-token"})
"""A text in replies that says that there is nothing to report."""
_ASSIGNED: Final = re.compile(r"\b([A-Za-z_][A-Za-z0-9_]*)(\s*[=:]\s*)('[^']*'|\"[^\"]*\"|[^\s;'\"]+)")


def masked(text: str) -> str:
    """The text without secrets, as far as they can be recognised."""

    def hide(match: re.Match[str]) -> str:
        is_scheme = match[3].lower() in ("bearer", "basic")
        return f"{match[1]}{match[2]}{MASK}" if is_secret_name(match[1]) and not is_scheme else match[0]

    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    return _ASSIGNED.sub(hide, text)


def masked_json(value: Any, name: str = "") -> Any:
    """A JSON value without secrets."""
    match value:
        case Mapping():
            return {key: masked_json(inner, str(key)) for key, inner in value.items()}
        case list() | tuple():
            return [masked_json(inner) for inner in value]
        case str() if name and is_secret_name(name):
            return MASK
        case str():
            return masked(value)
        case _:
            return value


def is_secret_name(name: str) -> bool:
    """Whether a variable or a field of this name holds a secret."""
    if name.lower() in _NO_SECRETS:
        return False
    return is_secret_variable(name.upper()) or _SECRET_FIELD.fullmatch(name) is not None


def split_environment(variables: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """The variables that may be stored, and the names of those that are secrets."""
    plain = {name: value for name, value in variables.items() if not is_secret_name(name)}
    return plain, sorted(variables.keys() - plain.keys())


def user_names() -> frozenset[str]:
    """The users of this machine."""
    import pwd

    return frozenset({"root", *(entry.pw_name for entry in pwd.getpwall())})


def user_name() -> str:
    """The user this process runs as."""
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())
