"""The interfaces between the engine and the features.

The engine knows alarms, runs, lanes, leases and time. What a schedule is, how a turn is prepared, what an error means:
the features implement that behind these protocols. The composition root connects them.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeAlias

from wakeful.core.errors import FieldError
from wakeful.core.run.effects import Effect
from wakeful.core.run.results import Ending
from wakeful.core.run.runs import Run, RunKind
from wakeful.core.run.settlement import Settlement
from wakeful.core.schedule.definition import Definition, DeliverTo
from wakeful.core.schedule.gates import Decision, Defer, Leave, Skip
from wakeful.core.schedule.policies import OnCrash
from wakeful.core.schedule.upcoming import Upcoming
from wakeful.core.time.instants import Duration, Instant
from wakeful.ports.action import Action, EndOrphan, Fire, RunAccess, Withholds
from wakeful.ports.chores import Chore
from wakeful.ports.claims import Batch, Claim
from wakeful.ports.store import Tx


class Job(NamedTuple):
    """What to perform for a claimed run."""

    spec: object  # an `ActionSpec`, or the spec of a feature's own action
    fire: Fire
    timeout: Duration
    on_crash: OnCrash


class Due(NamedTuple):
    """A run that its instant just created: not in the ledger yet, it may still be claimed or wait."""

    run: Run  # outcome "waiting"; the engine decides whether it starts immediately
    rests: bool = False  # it waits for something other than time (queued behind another run)


Note: TypeAlias = Callable[[Tx], None]
"""The result of a side task, to be written to the store."""


class SideTask(NamedTuple):
    """Work outside the ledger that an alarm requests: the next attempt of a delivery, a quota poll.

    The handler claims it in the tick's transaction by moving its alarm to the time the claim expires (`timeout` and a
    little more after now), so that it rings again whatever happens to this process. It is performed after the commit;
    its result is written in a separate transaction, which has to check whether the claim is still valid."""

    name: str  # for the log: "delivery 17"
    perform: Callable[[], Awaitable[Note | None]]
    timeout: Duration


class RingResult(NamedTuple):
    """The result of ringing one kind of alarm."""

    due: Sequence[Due]
    rang: int  # how many alarms were handled; fewer than requested means none is left
    side_tasks: Sequence[SideTask] = ()
    # Kinds whose due alarms were left as they are, because this node already runs enough of their side tasks: they are
    # checked again when one of those ends, and do not keep the engine awake until then.
    full: Sequence[str] = ()
    effects: Sequence[Effect] = ()  # applied in the tick's transaction
    again_at: Instant | None = None  # when to check what was left as it is, at the latest
    plain: Sequence[Batch] = ()  # instants to which no gate applies, and for which there is capacity


class Settled(NamedTuple):
    """How one run is settled, and the effects."""

    settlement: Settlement
    effects: tuple[Effect, ...] = ()
    result: str | None = None  # JSON stored on the run: reply, output, usage
    agent: str | None = None  # the agent that was asked, and may have cost something
    joins: Run | None = None  # the row before it, extended by its instant: the run's own row is removed


class RunAgent(NamedTuple):
    """The agent in whose name the programs of a run call Wakeful."""

    name: str | None  # None: the default agent
    reply_to: DeliverTo | tuple[DeliverTo, ...] | None = None  # where the reply of the run goes
    depth: int = 0  # how deep the chain of agents is that made what it runs; 0: a person made it
    is_turn: bool = True  # False: the run of a command

    @property
    def is_agents(self) -> bool:
        """Whether an agent decides what its programs do. If not, it is the run of a person's command."""
        return self.is_turn or self.depth > 0


PERSONS_COMMAND: Final = RunAgent(None, is_turn=False)


class AlarmHandler(Protocol):
    """Rings the alarms of one kind, inside the tick's transaction.

    Every handled alarm must be moved or removed: one that stays would ring again immediately, in an endless loop,
    unless the result says that its kind is `full`."""

    @property
    def kind(self) -> str:
        """The kind of alarm it rings."""
        ...

    @property
    def brings_runs(self) -> bool:
        """Whether ringing may create runs. If so, it is delayed while there is no capacity for them."""
        ...

    def ring(self, tx: Tx, *, now: Instant, due_by: Instant, limit: int, late_max: int, gap_reason: str) -> RingResult:
        """Handle at most `limit` alarms due by `due_by`; `gap_reason` says why instants were missed. If some are due
        within the grace, at most `late_max` of those handled are older (`engine.fairness`); kinds of which few are due
        need not tell them apart."""
        ...

    def turn_back(self, tx: Tx, *, now: Instant, after_id: int, limit: int) -> int | None:
        """The clock went back: plan again what was planned beyond now, at most `limit` after an id.

        Returns how far it got, None if nothing is left."""
        ...

    def recover(self, tx: Tx, *, now: Instant) -> None:
        """This process starts to tick, and no other can: side tasks that were in progress have no owner and are due
        now."""
        ...


class RunKeeper(Protocol):
    """Handles the runs of one kind, inside the engine's transactions. Results are in the order of the arguments."""

    @property
    def kind(self) -> RunKind: ...

    @property
    def admits_without_locks(self) -> bool:
        """Whether `admit` only reads, so that it may be called after lanes were locked."""
        ...

    def lock(self, tx: Tx, runs: Sequence[Run]) -> Any:
        """Lock the owners of these runs, before the runs themselves are locked; the result is passed to `settle`."""
        ...

    def admit(self, tx: Tx, runs: Sequence[Run], *, now: Instant) -> Sequence[Job | Defer | Skip | Leave | str]:
        """What to perform for each due run if it may start now; a string says why it cannot be performed."""
        ...

    def jobs(self, tx: Tx, runs: Sequence[Run]) -> list[Job | str]:
        """What these runs perform, without the gates of `admit`: runs whose node died."""
        ...

    def settle(self, tx: Tx, locked: Any, ended: Sequence[tuple[Run, Ending]], *, now: Instant) -> list[Settled]:
        """Decide how each run is settled, and advance its owner (its cadence)."""
        ...

    def agent_of(self, tx: Tx, run: Run) -> RunAgent:
        """The agent in whose name the programs of this run call Wakeful."""
        ...


Applier: TypeAlias = Callable[[Tx, Any, Instant], None]
Appliers: TypeAlias = Mapping[type[Any], Applier]
Gate: TypeAlias = Callable[[Tx, Run, Instant], Decision]


DefinitionCheck: TypeAlias = Callable[[Definition], Sequence[FieldError]]
"""The errors a feature finds in a definition that is about to be written."""

StoredCheck: TypeAlias = Callable[[Tx, Definition], Sequence[FieldError]]
"""Like `DefinitionCheck`, but checked against the store in the transaction that writes a new or changed definition."""


class BackgroundService(Protocol):
    """A service that runs in the background: it starts before the first tick, and stops after the last."""

    async def start(self) -> None: ...

    async def stop(self) -> None: ...


OnSettings: TypeAlias = Callable[[Any, Any], Awaitable[None] | None]
"""Called with the complete old and new `Settings` when a person changed some; it applies its own part.

(A port cannot import their type: it is a lower layer.)"""


class UpcomingSource(Protocol):
    """What a feature is going to start, besides the runs that are already waiting."""

    def __call__(self, tx: Tx, *, now: Instant, until: Instant, limit: int) -> list[Upcoming]:
        """The earliest items until `until`, at most `limit`."""
        ...


class Explain(Protocol):
    """Explains in one sentence the state of something in a feature, with the facts behind it."""

    def __call__(self, tx: Tx, name: str, *, at: Instant | None, now: Instant) -> tuple[str, Mapping[str, Any]]:
        """Its current state (without `at`), or what happened or will happen at a time. Raises `NotFound`."""
        ...


class TickGap(NamedTuple):
    """A period in which no node ticked, detected by the first that ticks again."""

    began_at: Instant  # the last tick
    ended_at: Instant
    cause: Literal["outage", "suspended", "down"]  # down: the last node was stopped cleanly


OnSilence: TypeAlias = Callable[[Tx, TickGap], None]
"""Called in the transaction that detects the gap."""

Forgo: TypeAlias = Callable[[Tx, Instant], int]
"""Makes a feature give up what it had planned since the backup that this store is; returns how many instants."""


Prune: TypeAlias = Callable[[Tx, Instant, int], int]
"""Deletes at most so many rows that a feature keeps no longer; returns how many. Called each time after the ledger was
pruned, in the same transaction, by a clock that can be trusted."""


class Booked(NamedTuple):
    """An attempt that ended, and how it is settled."""

    run: Run
    ending: Ending
    settled: Settled


class Accounts(Protocol):
    """Tracks spending: what attempts cost, and whether budgets allow another one."""

    def priced(self, tx: Tx, ended: Sequence[tuple[Run, Ending]]) -> list[tuple[Run, Ending]]:
        """The endings with their costs, where these follow from the settings. Locks nothing."""
        ...

    def reserve(
        self, tx: Tx, claims: Sequence[tuple[Run, Job | Ending]], *, now: Instant
    ) -> dict[int, Job | Defer | Skip]:
        """The last step of a claim: reserve what these attempts may cost; a claim that is settled without an attempt
        costs nothing. Returns, by run id, those that cannot start now, and jobs that changed."""
        ...

    def book(self, tx: Tx, ended: Sequence[Booked], *, now: Instant) -> tuple[Effect, ...]:
        """Free the reservations of attempts that ended, and book what they cost."""
        ...


class NoAccounts:
    """Nothing costs anything."""

    def priced(self, tx: Tx, ended: Sequence[tuple[Run, Ending]]) -> list[tuple[Run, Ending]]:
        return list(ended)

    def reserve(
        self, tx: Tx, claims: Sequence[tuple[Run, Job | Ending]], *, now: Instant
    ) -> dict[int, Job | Defer | Skip]:
        return {}

    def book(self, tx: Tx, ended: Sequence[Booked], *, now: Instant) -> tuple[Effect, ...]:
        return ()


class FeatureHooks(NamedTuple):
    """What one feature plugs into the kernel. Features never import each other: they are connected here."""

    alarms: Sequence[AlarmHandler] = ()
    chores: Sequence[Chore[Any]] = ()
    keepers: Sequence[RunKeeper] = ()
    actions: Mapping[type[Any], Action] = MappingProxyType({})
    appliers: Appliers = MappingProxyType({})
    gates: Sequence[Gate] = ()  # checked before a run of a schedule starts; with one of these no schedule is plain
    field_gates: Sequence[Gate] = ()  # the same for fields of a definition that make it not plain, such as `slot`
    services: Sequence[BackgroundService] = ()
    checks: Sequence[DefinitionCheck] = ()
    stored_checks: Sequence[StoredCheck] = ()
    on_settings: Sequence[OnSettings] = ()  # called in order, after the kernel
    upcoming: Sequence[UpcomingSource] = ()
    whys: Mapping[str, Explain] = MappingProxyType({})  # by the part before the colon: `slot` of `slot:main`
    on_silence: Sequence[OnSilence] = ()
    forgo: Sequence[Forgo] = ()
    prunes: Sequence[Prune] = ()
    accounts: Accounts | None = None


class Alike(NamedTuple):
    """Runs that end alike, as plain successes (`core.schedule.plain`), and what is their own."""

    claims: Sequence[Claim] = ()
    results: Mapping[int, str] = MappingProxyType({})  # what is stored of them, by run id
    effects: Sequence[tuple[int, Effect]] = ()  # with the ids of their runs


class DecideAlike(Protocol):
    """Decides which endings are equal, so that they can be settled together."""

    def __call__(self, tx: Tx, claims: Sequence[Claim], said: Mapping[int, Ending]) -> Alike:
        """Of plain successes, those of plain definitions. `said` are the endings that are more than done, by run id,
        with their costs and without secrets. Locks nothing."""
        ...


class EngineHooks(NamedTuple):
    """Everything the composition root plugs into the engine."""

    alarms: Sequence[AlarmHandler]
    keepers: Mapping[RunKind, RunKeeper]
    actions: Mapping[type[Any], Action]
    appliers: Appliers
    end_orphan: EndOrphan
    redact: Callable[[str], str] | None = None  # masks secrets in everything a target returned, before it is stored
    is_lifted: Callable[[str], bool] = lambda _: False  # whether a lane is currently not enforced
    stored_checks: Sequence[StoredCheck] = ()  # for new or changed definitions
    on_silence: Sequence[OnSilence] = ()
    prunes: Sequence[Prune] = ()
    run_access: Callable[[int, int], RunAccess | None] = lambda _run_id, _fence: None  # for programs that runs start
    withholds: Withholds | None = None  # which variables those programs do not get
    traceparent: Callable[[Run], str | None] | None = None  # of an attempt that is being claimed
    alike: DecideAlike = lambda _tx, _claims, _said: Alike()
    accounts: Accounts = NoAccounts()
