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
from wakeful.core.policies import OnCrash
from wakeful.core.results import Ending
from wakeful.core.runs import Run, RunKind
from wakeful.core.settlement import Settlement
from wakeful.ports.action import Action, Fire, Orphans
from wakeful.ports.store import Tx


class Job(NamedTuple):
    """What to perform for a claimed run."""

    spec: ActionSpec
    fire: Fire
    timeout: Duration
    on_crash: OnCrash


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

    def ring(self, tx: Tx, *, now: Instant, due_by: Instant, limit: int, gap_reason: str) -> Rung:
        """Handle at most `limit` alarms due by `due_by`; `gap_reason` names why instants went by unseen."""
        ...

    def turn_back(self, tx: Tx, *, now: Instant, after_id: int, limit: int) -> int | None:
        """The clock came back: plan anew what was planned beyond now, at most `limit` after an id.

        Answers how far it got, None when nothing was left."""
        ...


class RunKeeper(Protocol):
    """Looks after the runs of one kind, inside the engine's transactions. Sequences are answered in order."""

    @property
    def kind(self) -> RunKind: ...

    def lock(self, tx: Tx, runs: Sequence[Run]) -> Any:
        """Hold what these runs belong to, before the runs themselves are held; handed back to `settle`."""
        ...

    def admit(self, tx: Tx, runs: Sequence[Run], *, now: Instant) -> list[Decision]:
        """Whether each may start now."""
        ...

    def jobs(self, tx: Tx, runs: Sequence[Run]) -> list[Job | str]:
        """What to perform for each; a text says why it cannot be performed."""
        ...

    def settle(self, tx: Tx, locked: Any, ended: Sequence[tuple[Run, Ending]], *, now: Instant) -> list[Settled]:
        """Decide what becomes of each, and move what the run belongs to (its cadence) on."""
        ...


Applier: TypeAlias = Callable[[Tx, Any, Instant], None]
Appliers: TypeAlias = Mapping[type[Any], Applier]
Gate: TypeAlias = Callable[[Tx, Run, Instant], Decision]


class Seams(NamedTuple):
    """Everything the composition root plugs into the engine."""

    alarms: Sequence[AlarmHandler]
    keepers: Mapping[RunKind, RunKeeper]
    actions: Mapping[type[Any], Action]
    appliers: Appliers
    orphans: Orphans
