"""The action port: performs what a schedule does."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

from wakeful.core.errors import FieldError
from wakeful.core.run.results import Failed, Result
from wakeful.core.run.runs import Run, RungName, Trigger
from wakeful.core.time.instants import Instant

Withholds: TypeAlias = Callable[[str], bool]
"""Whether a variable of the daemon's environment is withheld from the programs it starts."""


class RunAccess(NamedTuple):
    """How a program started by a run reaches the daemon: the address, the identity, and the home folder."""

    url: str
    token: str
    home: str | None


class Fire(NamedTuple):
    """One attempt of one run, as the target sees it."""

    run_id: int
    schedule_id: int
    slug: str
    planned_at: Instant
    due_at: Instant
    trigger: Trigger
    attempt: int
    idempotency_key: str
    receipt_url: str | None = None
    access: RunAccess | None = None  # how its program reaches the daemon
    withholds: Withholds | None = None  # which of the daemon's variables its program does not get
    cost_max: float | None = None  # in US dollars, for programs that enforce it
    traceparent: str | None = None  # of this attempt, if runs are traced (`core.run.traces`)

    @classmethod
    def of(cls, run: Run, slug: str, key: str, receipt_url: str | None = None) -> "Fire":
        """The next attempt of a run."""
        attempt = run.attempt + 1
        return cls(
            run.run_id, run.schedule_id, slug, run.planned_at, run.due_at, run.trigger, attempt, key, receipt_url
        )


class Process(NamedTuple):
    """An operating-system process that an attempt started, so that another node incarnation can end it."""

    host: str
    pid: int  # leader of its own process group
    started: str  # the start time reported by the system, so that a reused pid is not mistaken for it


class Ladder(Protocol):
    """Where an action reports how far it got."""

    async def climb(self, rung: RungName, *, process: Process | None = None) -> None:
        """Record the rung durably before returning. Raises `FencedOff` if the run is no longer ours."""
        ...


DEADLINE: Final = "deadline"
"""The cancellation message when an attempt's time is up."""

SHUTDOWN: Final = "shutdown"
"""The cancellation message at shutdown. An action whose target keeps working, and can be asked later, raises
`FencedOff`: the run stays open, and the next node asks."""


class FencedOff(Exception):
    """The run was taken from this node; stop immediately, no further report counts."""


class CannotBegin(Exception):
    """Raised by an action when the system has no descriptors, memory, processes or disk space left and nothing of the
    attempt has begun, whatever rung was recorded before: the run waits, and this is not an attempt."""


class StillRunning(Exception):
    """Raised by an action that was cancelled and could not end what it started.

    `ended` is resolved when the remaining work is finally seen to end, or cancelled if that can no longer be seen.
    """

    def __init__(self, message: str, ended: "asyncio.Future[None]") -> None:
        super().__init__(message)
        self.ended = ended


class Detached(asyncio.CancelledError):
    """Raised in place of `CancelledError` by an action that could only close its connection: whether the target stopped
    is not known."""


CANCELLED_ITSELF: Final = Failed("CancelledError: it cancelled itself")
"""The attempt was cancelled, and not by the engine."""


class Action(Protocol):
    """Performs one kind of action.

    The engine cancels `perform` when the deadline passes or at shutdown. The action then ends what it started, and lets
    `CancelledError` propagate only when that end is proven; otherwise it raises `StillRunning`.
    """

    def proves(self, spec: Any) -> RungName:
        """The highest rung its target can prove."""
        ...

    @property
    def is_local(self) -> bool:
        """Whether it starts in this process together with the claim, so that no separate `sent` is recorded."""
        ...

    def check(self, spec: Any) -> str | FieldError | None:
        """What is wrong with the spec on this machine, and the cure; None if nothing. A `FieldError` if the field
        belongs to something other than the action."""
        ...

    async def perform(self, spec: Any, fire: Fire, ladder: Ladder) -> Result: ...

    async def close(self) -> None: ...


DirectCall: TypeAlias = Callable[[Callable[[], Fire]], Coroutine[Any, Any, Result]]
"""Calls an async function of this process; its argument returns the fire, for a function that takes it."""


@runtime_checkable
class Direct(Protocol):
    """A local action some of whose specs need no preparation, and nothing but `started` recorded."""

    def direct(self, spec: Any) -> DirectCall | None:
        """How to perform it where `started` is recorded already; None: only by `perform`. It raises like `perform`."""
        ...


@dataclass(frozen=True, slots=True)
class StillWorking:
    """The target is still working: ask again later."""


@dataclass(frozen=True, slots=True)
class NeverReceived:
    """The target never received it, so a new attempt repeats nothing."""


Told: TypeAlias = Result | StillWorking | NeverReceived | None
"""What a target reports about an attempt that a crash interrupted; None if it cannot tell."""


@runtime_checkable
class Inquirable(Protocol):
    """An action whose targets can report, after a crash, the result of an attempt (DESIGN: crash, by rung)."""

    async def ask(self, spec: Any, fire: Fire) -> Told:
        """May be slow: the engine sets a time limit and does not wait for it."""
        ...


OrphanFate: TypeAlias = Literal["gone", "remains", "elsewhere"]


EndOrphan: TypeAlias = Callable[[Process], Awaitable[OrphanFate]]
"""Ends a process left behind by a dead incarnation, if it is still the same one. Returns whether it is gone, remains,
or is on another machine."""
