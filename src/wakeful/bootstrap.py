"""The composition root: everything is made and plugged together here, and nowhere else."""

import os
import secrets
import socket
import zoneinfo
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

import tzlocal

from wakeful.actions.call import CallAction, CallRegistry
from wakeful.actions.command import CommandAction
from wakeful.actions.http import HttpAction
from wakeful.actions.processes import SystemOrphans
from wakeful.agents.receipts import Receipt, Receipts
from wakeful.agents.turn import TurnAction
from wakeful.core.actions import Call, Command, Http, Prompt
from wakeful.core.effects import Alert, Effect, EffectKind, Prove, Replan
from wakeful.core.instants import Duration, Instant
from wakeful.engine.clock import SystemClock
from wakeful.engine.engine import Engine, Identity
from wakeful.engine.lifting import unpark
from wakeful.engine.limits import Limits
from wakeful.features.heartbeat.feature import HeartbeatFeature
from wakeful.features.schedules.alarms import KIND, ScheduleAlarms
from wakeful.features.schedules.checks import ScheduleLimits
from wakeful.features.schedules.commands import prove, prove_late
from wakeful.features.schedules.compiled import Compilations
from wakeful.features.schedules.elsewhere import leave_to_others
from wakeful.features.schedules.resets import Resets
from wakeful.features.schedules.runs import ScheduleRuns
from wakeful.features.schedules.terms import AgentLane, Terms
from wakeful.ports.action import Action, Fire, Orphans
from wakeful.ports.agent import Agent
from wakeful.ports.clock import Clock
from wakeful.ports.exchange import ExchangeListener
from wakeful.ports.handlers import Applier, Beside, DefinitionCheck, Gate, OnSettings, Plug, Seams
from wakeful.ports.live import Live
from wakeful.ports.sink import Sink
from wakeful.ports.store import STORE_ID, Store, Tx
from wakeful.stores.sqlite.store import SqliteStore
from wakeful.telemetry.told_store import Guarded, ToldStore

T = TypeVar("T")

# Makes the agents of this process, once its clock and its callables are known.
Agents: TypeAlias = Callable[[Clock, CallRegistry], Mapping[str, Agent]]

RECEIPT_SECRET: Final = "receipt_secret"  # noqa: S105 - the name it is kept under
ZONE_RULES: Final = "zone_rules"
STEP: Final = 500
# Looking into the file costs a system call; the server notifies, and its notes only have to be picked up.
POLL_FILE: Final[Duration] = 500
POLL_SERVER: Final[Duration] = 100


@dataclass(frozen=True, slots=True)
class Parts:
    """A system put together."""

    store: Store
    clock: Clock
    seams: Seams
    engine: Engine
    alarms: ScheduleAlarms
    compilations: Compilations
    terms: Live[Terms]
    applied: frozenset[EffectKind]
    receipts: Receipts | None
    apply: Callable[[Tx, Effect, Instant], bool]
    besides: tuple[Beside, ...] = ()
    checks: tuple[DefinitionCheck, ...] = ()
    on_settings: tuple[OnSettings, ...] = ()

    @property
    def schedule_limits(self) -> ScheduleLimits:
        """As they are now."""
        return self.terms.value.limits

    @property
    def default_zone(self) -> str:
        """The zone of what is written without one, as it is now."""
        return self.terms.value.default_zone


@dataclass(frozen=True, slots=True)
class Ground:
    """What a feature stands on when it is plugged in."""

    store: Store  # tells of every commit made through it
    clock: Clock
    store_id: str  # idempotency keys carry it
    compilations: Compilations
    schedule_alarms: ScheduleAlarms
    actions: Mapping[type[Any], Action]
    receipts: Receipts | None
    terms: Live[Terms]  # what holds for all schedules now
    ring_bell: Callable[[], None]  # something was written that may be due now
    apply: Callable[[Tx, Effect, Instant], bool]  # by whichever feature does; False: none
    listener: ExchangeListener | None = None  # hears of requests to others

    @property
    def default_zone(self) -> str:
        return self.terms.value.default_zone


MakeFeature: TypeAlias = Callable[[Ground], Awaitable[Plug]]
"""Plugs a feature in, once the store is open. What it adds rings from the first tick on."""


class Opened(NamedTuple):
    """A store, and the clock that those who share it agree on."""

    store: Store
    clock: Clock
    poll: Duration  # how often to look whether another process wrote


async def open_store(url: str) -> Opened:
    """The store an address names: a file path, sqlite:///PATH, or postgresql://…"""
    if url.startswith(("postgresql://", "postgres://")):
        return await _open_postgres(url)
    path = url.removeprefix("sqlite:///") if url.startswith("sqlite:") else url
    if "://" in path:
        raise ValueError(f"{url!r} is not a store; give the path of a file, sqlite:///PATH, or postgresql://…")
    return Opened(await SqliteStore.open(Path(path)), SystemClock(), POLL_FILE)


async def _open_postgres(url: str) -> Opened:
    try:
        from wakeful.stores.postgres.store import PostgresStore
    except ImportError as error:
        raise ValueError("PostgreSQL needs its driver; install it with pip install 'wakeful[postgres]'") from error
    store = await PostgresStore.open(url)
    return Opened(store, store.clock, POLL_SERVER)


async def assemble(
    store: Store,
    clock: Clock,
    *,
    registry: CallRegistry,
    limits: Limits,
    schedule_limits: ScheduleLimits,
    timezone: str,
    name: str | None = None,
    sink: Sink | None = None,
    agents: Agents | None = None,
    receipts_at: str | None = None,
    features: Sequence[MakeFeature] = (),
    standby: bool = False,
    agent_lane: AgentLane = "serial",
    listener: ExchangeListener | None = None,
) -> Parts:
    """Plug the kernel together over an open store. A sink hears of whatever is committed through it, a listener of
    every request that leaves for someone outside.

    `receipts_at` is the address under which agents and commands can post receipts, if anybody listens there."""
    actions: dict[type[Any], Action] = {
        Call: CallAction(registry),
        Command: CommandAction(),
        Http: HttpAction(clock, listener),
    }
    assembled: list[Parts] = []

    async def late(run_id: int, receipt: Receipt) -> None:
        """A final word on a run nobody waits for any more."""
        if receipt.is_final and assembled:
            seams, now = assembled[0].seams, clock.read().now
            proof = receipt.result()
            await assembled[0].store.write(lambda tx: prove_late(tx, run_id, proof, seams=seams, now=now))

    receipts = Receipts(await store.write(_receipt_secret), receipts_at, late=late)
    if agents is not None:
        actions[Prompt] = TurnAction(
            agents(clock, registry), clock, sessions=partial(_session_of, store), receipts=receipts
        )
    identity = Identity(name or socket.gethostname(), socket.gethostname(), os.getpid())
    parts = await assemble_with(
        store,
        clock,
        actions,
        SystemOrphans(),
        identity,
        limits,
        schedule_limits,
        resolve_zone(timezone),
        sink=sink,
        receipts=receipts,
        features=features,
        standby=standby,
        agent_lane=agent_lane,
        listener=listener,
    )
    assembled.append(parts)
    return parts


async def assemble_with(
    store: Store,
    clock: Clock,
    actions: Mapping[type[Any], Action],
    orphans: Orphans,
    identity: Identity,
    limits: Limits,
    schedule_limits: ScheduleLimits,
    default_zone: str,
    *,
    sink: Sink | None = None,
    receipts: Receipts | None = None,
    features: Sequence[MakeFeature] = (),
    on_alert: Callable[[Alert], None] | None = None,
    standby: bool = False,
    agent_lane: AgentLane = "serial",
    listener: ExchangeListener | None = None,
) -> Parts:
    """The same with chosen actions: what the simulator and the tests use."""
    if sink is not None:
        sink = Guarded(sink)
        sink.begin(store)
        store = ToldStore(store, sink, clock)
    store_id = await store.write(_identify)
    terms = Live(Terms(schedule_limits, default_zone, standby, agent_lane))
    compilations = Compilations()
    alarms = ScheduleAlarms(compilations, terms)
    engines: list[Engine] = []

    def ring_bell() -> None:
        for engine in engines:
            engine.ring_bell()

    appliers: dict[type[Any], Applier] = {Replan: Resets(compilations).apply}

    def apply(tx: Tx, effect: Effect, now: Instant) -> bool:
        applier = appliers.get(type(effect))
        if applier is not None:
            applier(tx, effect, now)
        return applier is not None

    ground = Ground(
        store,
        clock,
        store_id,
        compilations,
        alarms,
        actions,
        receipts,
        terms,
        ring_bell,
        apply,
        listener,
    )
    plugs = [await make(ground) for make in features]
    appliers |= _merged([appliers, *(plug.appliers for plug in plugs)])
    keeper = ScheduleRuns(
        compilations,
        store_id=store_id,
        gates=[*_left_to_others(store, actions, compilations), *(gate for plug in plugs for gate in plug.gates)],
        receipt_url=receipts.url if receipts else None,
    )
    seams = Seams(
        alarms=[alarms, *(handler for plug in plugs for handler in plug.alarms)],
        keepers={KIND: keeper} | {one.kind: one for plug in plugs for one in plug.keepers},
        actions={**actions, **_merged(plug.actions for plug in plugs)},
        appliers=appliers,
        orphans=orphans,
        is_lifted=lambda lane: terms.value.is_lifted(lane),  # noqa: PLW0108 - the terms of then, not those of now
    )
    appliers[Prove] = partial(prove, seams=seams)
    engine = Engine(store, clock, seams, identity, limits, on_alert=on_alert, sink=sink)
    engines.append(engine)
    return Parts(
        store=store,
        clock=clock,
        seams=seams,
        engine=engine,
        alarms=alarms,
        compilations=compilations,
        terms=terms,
        applied=frozenset(seams.appliers),
        receipts=receipts,
        apply=apply,
        besides=tuple(beside for plug in plugs for beside in plug.besides),
        checks=tuple(check for plug in plugs for check in plug.checks),
        on_settings=tuple(listener for plug in plugs for listener in plug.on_settings),
    )


async def change(parts: Parts, limits: Limits, terms: Terms) -> None:
    """Work by other limits and terms from now on. What is under way goes on as it began."""
    before, parts.terms.value = parts.terms.value, terms
    parts.engine.change_limits(
        concurrency_max=limits.concurrency_max, shutdown_grace=limits.shutdown_grace, ledger_days=limits.ledger_days
    )
    after_id: int | None = None
    while terms.agent_lane == "parallel" != before.agent_lane:
        after_id = await parts.store.write(partial(unpark, is_lifted=terms.is_lifted, before_id=after_id, limit=STEP))
        if after_id is None:
            break
    parts.engine.ring_bell()


def change_agents(parts: Parts, agents: Mapping[str, Agent]) -> None:
    """Ask these agents from now on; turns under way end with the one they began with."""
    turns = parts.seams.actions.get(Prompt)
    if not isinstance(turns, TurnAction):
        raise RuntimeError("nothing here performs prompts; give agents at the start")
    turns.replace_agents(agents)


def plugged(heartbeat: HeartbeatFeature) -> MakeFeature:
    """The heartbeat, to be plugged in."""

    async def make(ground: Ground) -> Plug:
        return await heartbeat.plug(
            store=ground.store,
            clock=ground.clock,
            store_id=ground.store_id,
            actions=ground.actions,
            receipt_url=(lambda _: None) if ground.receipts is None else ground.receipts.url,
            ring_bell=ground.ring_bell,
            apply=ground.apply,
        )

    return make


def _left_to_others(store: Store, actions: Mapping[type[Any], Action], compilations: Compilations) -> list[Gate]:
    """What nodes that share their store leave to one another."""
    calls = actions.get(Call)
    if store.is_exclusive or not isinstance(calls, CallAction):
        return []
    return [leave_to_others(compilations, calls.is_here)]


def _merged(maps: Iterable[Mapping[type[Any], T]]) -> dict[type[Any], T]:
    """One map of several; two features that claim the same key are a mistake in the composition."""
    merged: dict[type[Any], T] = {}
    for one in maps:
        if twice := merged.keys() & one.keys():
            raise ValueError(f"two features plug in {', '.join(sorted(key.__name__ for key in twice))}")
        merged |= one
    return merged


async def replan_if_zones_changed(parts: Parts, rules: str) -> bool:
    """Plan zoned schedules anew when the machine's time-zone rules are not those they were planned by."""
    known = await parts.store.read(lambda tx: tx.meta.get(ZONE_RULES))
    if known == rules:
        return False
    after_id: int | None = 0
    while known is not None and after_id is not None:
        start = after_id
        after_id = await parts.store.write(
            lambda tx, start=start: parts.alarms.replan_zoned(tx, after_id=start, limit=STEP)  # type: ignore[misc]
        )
    await parts.store.write(lambda tx: tx.meta.set(ZONE_RULES, rules))
    return known is not None


def resolve_zone(timezone: str) -> str:
    """`local` is the system's zone, by name."""
    return tzlocal.get_localzone_name() if timezone == "local" else timezone


def zone_rules() -> str:
    """Which edition of the time-zone rules this process reads."""
    for folder in zoneinfo.TZPATH:
        listing = Path(folder) / "tzdata.zi"
        if listing.is_file():
            with listing.open(encoding="utf-8") as lines:
                return f"system {lines.readline().strip('# ').strip()}"
    return f"package {version('tzdata')}"


async def _session_of(store: Store, fire: Fire) -> str | None:
    """The session a schedule's agent goes on with."""
    cadences = await store.read(lambda tx: tx.cadences.lock([fire.schedule_id]))
    return cadences[fire.schedule_id].session_id if fire.schedule_id in cadences else None


def _receipt_secret(tx: Tx) -> bytes:
    """What receipts are signed with, made once: nodes that share the store take one another's."""
    known = tx.meta.get(RECEIPT_SECRET)
    if known is None:
        known = secrets.token_hex(32)
        tx.meta.set(RECEIPT_SECRET, known)
    return bytes.fromhex(known)


def _identify(tx: Tx) -> str:
    """The store's own name, made once: idempotency keys carry it, so that two stores never share one."""
    known = tx.meta.get(STORE_ID)
    if known is None:
        known = secrets.token_hex(6)
        tx.meta.set(STORE_ID, known)
    return known
