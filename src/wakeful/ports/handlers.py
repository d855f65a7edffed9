"""The seams between the engine and the features.

The engine knows alarms, runs, lanes, leases and time. What a schedule is, how a turn is prepared, what an error means:
that is a feature's business, reached through these protocols. The composition root maps them.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

from wakeful.core.errors import FieldError
from wakeful.core.run.effects import Effect
from wakeful.core.run.results import Ending
from wakeful.core.run.runs import Run, RunKind
from wakeful.core.run.settlement import Settlement
from wakeful.core.schedule.definition import Definition
from wakeful.core.schedule.gates import Decision
from wakeful.core.schedule.policies import OnCrash
from wakeful.core.schedule.upcoming import Upcoming
from wakeful.core.time.instants import Duration, Instant
from wakeful.ports.action import Action, Fire, Orphans, RunAccess, Withholds
from wakeful.ports.store import Tx


class Job(NamedTuple):
    """What to perform for a claimed run."""

    spec: object  # an `ActionSpec`, or what a feature's own action performs
    fire: Fire
    timeout: Duration
    on_crash: OnCrash


class Due(NamedTuple):
    """A run that its instant has just brought forth: not yet in the ledger, it may still be claimed or made to wait."""

    run: Run  # outcome "waiting"; the engine decides whether it starts at once
    rests: bool = False  # it waits for something other than time (it is queued behind another run)


Note: TypeAlias = Callable[[Tx], None]
"""What is to be written about an errand that was run."""


class SideTask(NamedTuple):
    """Work outside the ledger that an alarm asks for: a delivery's next attempt, a quota poll.

    The handler claims it in the tick's transaction by moving its alarm to where the claim runs out (`timeout` and a
    little more after now), so that whatever becomes of this process it rings again. It is performed after the commit;
    what it answers is written in a transaction of its own, which has to look whether the claim still stands."""

    name: str  # for the log: "delivery 17"
    perform: Callable[[], Awaitable[Note | None]]
    timeout: Duration


class RingResult(NamedTuple):
    """What ringing one kind of alarm brought forth."""

    due: Sequence[Due]
    rang: int  # how many alarms were handled; fewer than asked for means none is left
    side_tasks: Sequence[SideTask] = ()
    # Kinds of which alarms that are due were left as they are, because this node has enough of their errands under way:
    # they are looked at again when one of those ends, and do not keep the engine awake until then.
    full: Sequence[str] = ()
    effects: Sequence[Effect] = ()  # applied in the tick's transaction
    again_at: Instant | None = None  # when to look at what was left as it is, at the latest


class Settled(NamedTuple):
    """What becomes of one run, and what follows from it."""

    settlement: Settlement
    effects: tuple[Effect, ...] = ()
    result: str | None = None  # JSON kept on the run: reply, output, usage


class AlarmHandler(Protocol):
    """Rings the alarms of one kind, inside the tick's transaction.

    Every alarm that was handled is moved or removed: one left where it is would ring again at once, without end, unless
    the answer says that its kind is `full`."""

    @property
    def kind(self) -> str:
        """The kind of alarm it rings."""
        ...

    @property
    def is_always_asked(self) -> bool:
        """Whether it is asked at every tick, and not only when one of its alarms is due."""
        ...

    @property
    def brings_runs(self) -> bool:
        """Whether ringing may bring runs forth: then it is held back while there is no room for them."""
        ...

    def ring(self, tx: Tx, *, now: Instant, due_by: Instant, limit: int, gap_reason: str) -> RingResult:
        """Handle at most `limit` alarms due by `due_by`; `gap_reason` names why instants went by unseen."""
        ...

    def turn_back(self, tx: Tx, *, now: Instant, after_id: int, limit: int) -> int | None:
        """The clock came back: plan anew what was planned beyond now, at most `limit` after an id.

        Answers how far it got, None when nothing was left."""
        ...

    def recover(self, tx: Tx, *, now: Instant) -> None:
        """This process begins to tick, and no other can: errands that were under way are nobody's, and due now."""
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


DefinitionCheck: TypeAlias = Callable[[Definition], Sequence[FieldError]]
"""What a feature has against a definition that is about to be written."""

StoredCheck: TypeAlias = Callable[[Tx, Definition], Sequence[FieldError]]
"""The same by what is in the store, asked in the transaction that writes a new or changed definition."""


class BackgroundService(Protocol):
    """Something that lives beside the clock: it starts before the first tick, and stops after the last."""

    async def start(self) -> None: ...

    async def stop(self) -> None: ...


OnSettings: TypeAlias = Callable[[Any, Any], Awaitable[None] | None]
"""Told of the old and the new `settings.Settings`, whole, when a person changed some: it takes over what is its own.

(A port cannot name their type: it lies below them.)"""


class UpcomingSource(Protocol):
    """What a feature is going to start, besides the runs that wait already."""

    def __call__(self, tx: Tx, *, now: Instant, until: Instant, limit: int) -> list[Upcoming]:
        """At most `limit` until a time, the earliest ones."""
        ...


class Explain(Protocol):
    """Says in one sentence of cause why something of a feature stands as it does, and the facts it rests on."""

    def __call__(self, tx: Tx, name: str, *, at: Instant | None, now: Instant) -> tuple[str, Mapping[str, Any]]:
        """How it stands (`at` left out), or what became, or will become, of a time. Raises `NotFound`."""
        ...


class TickGap(NamedTuple):
    """A stretch in which no node ticked, noticed by the first that ticks again."""

    began_at: Instant  # the last tick
    ended_at: Instant
    cause: Literal["outage", "suspended", "down"]  # down: the last node was stopped in an orderly way


OnSilence: TypeAlias = Callable[[Tx, TickGap], None]
"""Told in the transaction that notices it."""


class FeatureHooks(NamedTuple):
    """What one feature plugs into the kernel. Features never import one another: they meet here."""

    alarms: Sequence[AlarmHandler] = ()
    keepers: Sequence[RunKeeper] = ()
    actions: Mapping[type[Any], Action] = MappingProxyType({})
    appliers: Appliers = MappingProxyType({})
    gates: Sequence[Gate] = ()  # asked before a schedule's run starts
    besides: Sequence[BackgroundService] = ()
    checks: Sequence[DefinitionCheck] = ()
    stored_checks: Sequence[StoredCheck] = ()
    on_settings: Sequence[OnSettings] = ()  # told in order, after the kernel
    ahead: Sequence[UpcomingSource] = ()
    whys: Mapping[str, Explain] = MappingProxyType({})  # by what stands before the colon: `slot` of `slot:main`
    on_silence: Sequence[OnSilence] = ()


class EngineHooks(NamedTuple):
    """Everything the composition root plugs into the engine."""

    alarms: Sequence[AlarmHandler]
    keepers: Mapping[RunKind, RunKeeper]
    actions: Mapping[type[Any], Action]
    appliers: Appliers
    orphans: Orphans
    redact: Callable[[str], str] | None = None  # takes secrets out of whatever a target said, before it is kept
    is_lifted: Callable[[str], bool] = lambda _: False  # whether a lane holds nobody back at the moment
    stored_checks: Sequence[StoredCheck] = ()  # of definitions that are new or changed
    on_silence: Sequence[OnSilence] = ()
    run_access: Callable[[int, int], RunAccess | None] = lambda _run_id, _fence: None  # for programs that runs start
    withholds: Withholds | None = None  # which variables those programs do not get
