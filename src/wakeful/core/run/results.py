"""Results and endings: how an attempt ended. `settlement` decides what follows from it.

A `Result` is what the action observed. An `Ending` is that, or what happened to the run from outside: its node was
lost, a gate dropped it, or a stuck run was finally seen to end. `session_id` in a result is the session the schedule
continues with; None leaves it unchanged.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias

from wakeful.core.run.effects import Effect
from wakeful.core.run.runs import RungName
from wakeful.core.run.usage import Usage, added, usage_of
from wakeful.core.time.instants import Instant

SINCE: Final = "resourcesSince"
"""In what is stored of a run that waits for resources: when it was refused them first."""

SAID: Final = ("reply", "output", "stderr", "error")


@dataclass(frozen=True, slots=True)
class Done:
    """The target did the work, as far as `rung` proves."""

    rung: RungName = "finished"
    reply: str | None = None
    output: str | None = None
    usage: Usage | None = None
    session_id: str | None = None
    effects: tuple[Effect, ...] = ()
    carries: object = None  # data for the keeper of this kind of run, used when settling
    refused: tuple[str, ...] = ()  # tools that the agent was not allowed to use
    stderr: str | None = None  # of a command


DONE: Final = Done()
"""The work is done, and there is nothing to report."""


@dataclass(frozen=True, slots=True)
class HandedOver:
    """Another component accepted it (for example, a system event waits for its turn) and will report how it ended."""

    effects: tuple[Effect, ...] = ()


@dataclass(frozen=True, slots=True)
class Failed:
    """The attempt ended in error. `permanent` errors are not retried. `is_refused`: the target rejected the request
    and did no work, so it cost nothing."""

    error: str
    permanent: bool = False
    rung: RungName | None = None
    output: str | None = None
    session_id: str | None = None
    usage: Usage | None = None
    refused: tuple[str, ...] = ()  # tools that the agent was not allowed to use
    raised: tuple[str, ...] = ()  # the exception of a call: the names of its type and of all base types
    stderr: str | None = None  # of a command
    is_refused: bool = False
    tries_max: int | None = None  # of workflow handlers: how often in a row it is tried again; None: without limit


@dataclass(frozen=True, slots=True)
class NotBegun:
    """The system had no descriptors, memory, processes or disk space left, and nothing of the attempt began."""

    error: str
    at: Instant
    others_began_at: Instant | None = None  # when an attempt of another run last began in this process


@dataclass(frozen=True, slots=True)
class Busy:
    """The target is busy: wait, and do not count it as an error."""

    error: str
    session_id: str | None = None


@dataclass(frozen=True, slots=True)
class Throttled:
    """The target asked us to come back later. `quota`: a limit is used up, and `until` is when it resets."""

    error: str
    until: Instant
    session_id: str | None = None
    reason: Literal["throttled", "quota"] = "throttled"
    output: str | None = None
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class TimedOut:
    """The deadline passed, and the attempt is proven to have ended."""

    error: str
    output: str | None = None


@dataclass(frozen=True, slots=True)
class Unproven:
    """The deadline passed and the attempt could not be ended: it may still be working."""

    error: str


@dataclass(frozen=True, slots=True)
class Unconfirmed:
    """The target accepted the request, and then nothing proved that it did the work."""

    error: str
    session_id: str | None = None
    usage: Usage | None = None
    output: str | None = None
    refused: tuple[str, ...] = ()  # tools that the agent was not allowed to use


@dataclass(frozen=True, slots=True)
class Interrupted:
    """This process ended the attempt, at shutdown."""

    error: str


@dataclass(frozen=True, slots=True)
class Lost:
    """The node that held the run died or froze, or the worker it was handed over to. `is_over = False`: what it had
    started could not be ended.

    `is_reached = False`: the target was asked, and never received it. `is_ended`: the process it had started is
    gone."""

    reason: str
    error: str
    is_over: bool = True
    is_reached: bool = True
    is_ended: bool = False


@dataclass(frozen=True, slots=True)
class Forgotten:
    """The result of the run can no longer be determined, and nothing of it is left."""

    reason: str
    error: str


@dataclass(frozen=True, slots=True)
class Dropped:
    """The run is given up before its next attempt, by a gate, a pause or a removal."""

    reason: str
    error: str | None = None  # why, in words
    outcome: Literal["skipped", "missed"] = "skipped"


@dataclass(frozen=True, slots=True)
class Cancelled:
    """A person cancelled the run. `is_proven = False`: its target did not confirm that it stopped; `is_stuck`: part
    of it still runs here and could not be ended; `is_sent`: the target has it from an earlier attempt, however far
    this one got."""

    is_proven: bool = True
    is_stuck: bool = False
    is_sent: bool = False


@dataclass(frozen=True, slots=True)
class StuckRunEnded:
    """A stuck run was finally seen to end. `is_seen = False`: no process is left that could observe it."""

    is_seen: bool = True


Result: TypeAlias = (
    Done | HandedOver | Failed | NotBegun | Busy | Throttled | TimedOut | Unproven | Unconfirmed | Interrupted | Lost
)
Ending: TypeAlias = Result | Forgotten | Dropped | Cancelled | StuckRunEnded


def session_of(ending: Ending) -> str | None:
    """The session to continue with, however the attempt ended; None if unchanged."""
    match ending:
        case Done() | Failed() | Busy() | Throttled() | Unconfirmed():
            return ending.session_id
        case _:
            return None


def kept_of(
    ending: Ending, *, earlier: str | None = None, is_late: bool = False, suppressed: str | None = None
) -> str | None:
    """What is stored of the ending on the run, as JSON, including why a requested delivery is suppressed.

    `earlier` is what was stored before: usage of earlier attempts counts for the run. `is_late`: the run was closed
    already, and this is a late result of the same attempt."""
    if suppressed is None and ending == DONE and earlier is None:  # the common case, on the hot path
        return None
    kept: dict[str, Any] = {
        "reply": getattr(ending, "reply", None),
        "output": getattr(ending, "output", None),
        "stderr": getattr(ending, "stderr", None),
        "usage": usage_of(getattr(ending, "usage", None)),
        "sessionId": session_of(ending),
        "refusedTools": list(getattr(ending, "refused", ())) or None,
        "suppressed": suppressed,
    }
    if all(value is None for value in kept.values()):
        return None
    kept["check"] = _checked(earlier)
    before = _used(earlier)
    kept["usage"] = (kept["usage"] or before) if is_late else added(before, kept["usage"])
    return json.dumps({name: value for name, value in kept.items() if value is not None}, ensure_ascii=False)


def kept_while_waiting(ending: Ending, *, earlier: str | None = None) -> str | None:
    """What is stored of an attempt while its run continues: the usage of all attempts so far."""
    kept = {
        "usage": added(_used(earlier), usage_of(getattr(ending, "usage", None))),
        "check": _checked(earlier),
        SINCE: lacking_since(earlier, ending) if isinstance(ending, NotBegun) else None,
    }
    known = {name: value for name, value in kept.items() if value is not None}
    is_over = earlier is not None and SINCE in json.loads(earlier)  # an attempt began: the next wait is another one
    return json.dumps(known, ensure_ascii=False) if known or is_over else None


def _checked(kept: str | None) -> str | None:
    """What the check before the turn found: later attempts get it too."""
    known = {} if kept is None else json.loads(kept)
    output = known.get("check")
    return output if isinstance(output, str) else None


def lacking_since(kept: str | None, refused: NotBegun) -> Instant:
    """When the run was refused resources for the first time since its last attempt."""
    since = ({} if kept is None else json.loads(kept)).get(SINCE)
    return since if isinstance(since, int) else refused.at


def _used(kept: str | None) -> Usage | None:
    known = {} if kept is None else json.loads(kept)
    return usage_of(known.get("usage"))


def masked(ending: Ending, redact: Callable[[str], str]) -> Ending:
    """The ending with secrets masked in everything the target returned: reply, output, error, refused tools."""
    texts: dict[str, Any] = {name: text for name in SAID if (text := getattr(ending, name, None)) is not None}
    clean: dict[str, Any] = {name: redact(text) for name, text in texts.items()}
    refused = getattr(ending, "refused", ())
    if refused:  # tool names or whole command lines
        texts["refused"], clean["refused"] = refused, tuple(map(redact, refused))
    return ending if clean == texts else replace(ending, **clean)
