"""The seams between the engine and the features.

The engine knows alarms, runs, lanes, leases and time. What a schedule is, how a turn is prepared, what an error means:
that is a feature's business, reached through these protocols. The composition root maps them.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

from wakeful.core.actions import ActionSpec
from wakeful.core.effects import Effect
from wakeful.core.gates import Decision
from wakeful.core.instants import Duration, Instant
from wakeful.core.results import Result
from wakeful.core.runs import Run, RunKind
from wakeful.core.settlement import Settlement
from wakeful.ports.action import Fire
from wakeful.ports.store import Tx


class Job(NamedTuple):
    """What to perform for a claimed run."""

    spec: ActionSpec
    fire: Fire
    timeout: Duration


class Due(NamedTuple):
    """A run that its instant has just brought forth: not yet in the ledger, it may still be claimed or made to wait."""

    run: Run  # outcome "waiting"; the engine decides whether it starts at once
    rests: bool = False  # it waits for something other than time (it is queued behind another run)


class Rung(NamedTuple):
    """What ringing one kind of alarm brought forth."""

    due: Sequence[Due]
    rang: int  # how many alarms were handled; fewer than asked for means none is left


class Settled(NamedTuple):
    """What becomes of one run, and what follows from it."""

    settlement: Settlement
    effects: tuple[Effect, ...] = ()
    result: str | None = None  # JSON kept on the run: reply, output, usage


class AlarmHandler(Protocol):
    """Rings the alarms of one kind, inside the tick's transaction."""

    def ring(self, tx: Tx, *, now: Instant, limit: int, gap_reason: str) -> Rung: ...


class RunKeeper(Protocol):
    """Looks after the runs of one kind, inside the engine's transactions. Sequences are answered in order."""

    @property
    def kind(self) -> RunKind: ...

    def admit(self, tx: Tx, runs: Sequence[Run], *, now: Instant) -> list[Decision]:
        """Whether each may start now."""
        ...

    def jobs(self, tx: Tx, runs: Sequence[Run]) -> list[Job | str]:
        """What to perform for each; a text says why it cannot be performed."""
        ...

    def settle(self, tx: Tx, ended: Sequence[tuple[Run, Result]], *, now: Instant) -> list[Settled]:
        """Decide what becomes of each attempt that ended, and move what the run belongs to (its cadence) on."""
        ...

    def lose(self, tx: Tx, lost: Sequence[Run], *, now: Instant, reason: str, error: str) -> list[Settled]:
        """The same for runs whose node died under them."""
        ...

    def drop(self, tx: Tx, dropped: Sequence[tuple[Run, str]], *, now: Instant) -> list[Settled]:
        """The same for runs a gate skipped, with its reason."""
        ...

    def unstick(self, tx: Tx, freed: Sequence[Run], *, now: Instant) -> list[Settled]:
        """The same for stuck runs whose end is now proven."""
        ...


Applier: TypeAlias = Callable[[Tx, Any, Instant], None]
Appliers: TypeAlias = Mapping[type[Any], Applier]
Gate: TypeAlias = Callable[[Tx, Run, Instant], Decision]
