"""Results and endings: how an attempt ended. What follows from it is decided in `settlement`.

A `Result` is what the action saw. An `Ending` is that, or what befell the run from outside: its node was lost, a gate
dropped it, or something stuck was at last seen to end. A `session_id` in a result is the session the schedule goes on
with; None leaves it as it is.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias

from wakeful.core.run.effects import Effect
from wakeful.core.run.runs import RungName
from wakeful.core.run.usage import Usage, added, usage_of
from wakeful.core.time.instants import Instant

SAID: Final = ("reply", "output", "error")


@dataclass(frozen=True, slots=True)
class Done:
    """The target did it, as far as `rung` proves."""

    rung: RungName = "finished"
    reply: str | None = None
    output: str | None = None
    usage: Usage | None = None
    session_id: str | None = None
    effects: tuple[Effect, ...] = ()
    carries: object = None  # what the keeper of this kind of run settles it with
    refused: tuple[str, ...] = ()  # tools that the agent was not allowed to use


@dataclass(frozen=True, slots=True)
class HandedOver:
    """Another part of ours accepted it (a system event waits for its turn), and will say how it ended."""

    effects: tuple[Effect, ...] = ()


@dataclass(frozen=True, slots=True)
class Failed:
    """The attempt ended in error. `permanent` errors are not retried."""

    error: str
    permanent: bool = False
    rung: RungName | None = None
    output: str | None = None
    session_id: str | None = None
    usage: Usage | None = None
    refused: tuple[str, ...] = ()  # tools that the agent was not allowed to use
    raised: tuple[str, ...] = ()  # what a call raised: the name of its type, and of all it inherits from


@dataclass(frozen=True, slots=True)
class Busy:
    """The target is occupied: wait, and do not count it as an error."""

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
    """The deadline passed and the end of the attempt is proven."""

    error: str
    output: str | None = None


@dataclass(frozen=True, slots=True)
class Unproven:
    """The deadline passed and the attempt could not be ended: nobody knows what it still does."""

    error: str


@dataclass(frozen=True, slots=True)
class Unconfirmed:
    """The target accepted, and then gave no sign that it did anything."""

    error: str
    session_id: str | None = None


@dataclass(frozen=True, slots=True)
class Interrupted:
    """We ended the attempt ourselves, at shutdown."""

    error: str


@dataclass(frozen=True, slots=True)
class Lost:
    """The node that held the run died or froze. `is_over = False`: what it had started could not be ended.

    `is_reached = False`: the target was asked, and never got it."""

    reason: str
    error: str
    is_over: bool = True
    is_reached: bool = True


@dataclass(frozen=True, slots=True)
class Forgotten:
    """Nobody can find out any more how the run ended, and nothing of it is left."""

    reason: str
    error: str


@dataclass(frozen=True, slots=True)
class Dropped:
    """The run is given up before its next attempt: a gate, a pause or a removal decided so."""

    reason: str


@dataclass(frozen=True, slots=True)
class StuckRunEnded:
    """A stuck run was at last seen to end. `is_seen = False`: nobody is left who could see it."""

    is_seen: bool = True


Result: TypeAlias = Done | HandedOver | Failed | Busy | Throttled | TimedOut | Unproven | Unconfirmed | Interrupted
Ending: TypeAlias = Result | Lost | Forgotten | Dropped | StuckRunEnded


_DONE: Final = Done()


def session_of(ending: Ending) -> str | None:
    """The session to go on with, whatever became of the attempt; None: as before."""
    match ending:
        case Done() | Failed() | Busy() | Throttled() | Unconfirmed():
            return ending.session_id
        case _:
            return None


def kept_of(
    ending: Ending, *, earlier: str | None = None, is_late: bool = False, suppressed: str | None = None
) -> str | None:
    """What is kept of it on the run, as JSON; also why nothing of it is delivered, if somebody asked for it.

    `earlier` is what was kept before: what earlier attempts used counts for the run. `is_late`: the run had closed
    already, and this is late word of the same attempt."""
    if suppressed is None and ending == _DONE and earlier is None:  # most endings, on the path of every run
        return None
    kept: dict[str, Any] = {
        "reply": getattr(ending, "reply", None),
        "output": getattr(ending, "output", None),
        "usage": usage_of(getattr(ending, "usage", None)),
        "sessionId": session_of(ending),
        "refusedTools": list(getattr(ending, "refused", ())) or None,
        "suppressed": suppressed,
    }
    if all(value is None for value in kept.values()):
        return None
    before = _used(earlier)
    kept["usage"] = (kept["usage"] or before) if is_late else added(before, kept["usage"])
    return json.dumps({name: value for name, value in kept.items() if value is not None}, ensure_ascii=False)


def kept_while_waiting(ending: Ending, *, earlier: str | None = None) -> str | None:
    """What is kept of an attempt while its run goes on: what all attempts so far used."""
    used = added(_used(earlier), usage_of(getattr(ending, "usage", None)))
    return None if used is None else json.dumps({"usage": used})


def _used(kept: str | None) -> Usage | None:
    known = {} if kept is None else json.loads(kept)
    return usage_of(known.get("usage"))


def masked(ending: Ending, redact: Callable[[str], str]) -> Ending:
    """The ending with secrets taken out of what the target said: reply, output, error, refused tools."""
    said: dict[str, Any] = {name: text for name in SAID if (text := getattr(ending, name, None)) is not None}
    clean: dict[str, Any] = {name: redact(text) for name, text in said.items()}
    refused = getattr(ending, "refused", ())
    if refused:  # the name of a tool, or a whole command line
        said["refused"], clean["refused"] = refused, tuple(map(redact, refused))
    return ending if clean == said else replace(ending, **clean)
