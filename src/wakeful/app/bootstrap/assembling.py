"""Store, clock, actions, keepers, handlers and features, plugged together."""

import os
import secrets
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar

from wakeful.app.bootstrap.parts import FeatureContext, MakeFeature, Parts
from wakeful.app.bootstrap.zones import resolve_zone
from wakeful.core.run.effects import Alert, Effect, Prove, Replan
from wakeful.core.schedule.actions import Call, Command, Http, Prompt
from wakeful.core.time.instants import Instant
from wakeful.engine.engine import Engine, Identity
from wakeful.engine.limits import Limits
from wakeful.features.heartbeat.feature import HeartbeatFeature
from wakeful.features.schedules.alarms import KIND, ScheduleAlarms
from wakeful.features.schedules.checks import ScheduleLimits
from wakeful.features.schedules.commands import prove, prove_late
from wakeful.features.schedules.compiled import Compilations
from wakeful.features.schedules.remote_callables import leave_to_others
from wakeful.features.schedules.resets import Resets
from wakeful.features.schedules.rules import AgentLane, Terms
from wakeful.features.schedules.runs import ScheduleRuns
from wakeful.integrations.actions.call import CallAction, CallRegistry
from wakeful.integrations.actions.command import CommandAction
from wakeful.integrations.actions.http import HttpAction
from wakeful.integrations.actions.processes import SystemOrphans
from wakeful.integrations.agents.receipted import Receipted
from wakeful.integrations.agents.receipts import Receipt, Receipts
from wakeful.integrations.agents.turn import TurnAction
from wakeful.integrations.system.run_tokens import RunTokens
from wakeful.observe.eventing_store import EventingStore, Guarded
from wakeful.ports.action import Action, Fire, Orphans, Withholds
from wakeful.ports.agent import Agent
from wakeful.ports.clock import Clock
from wakeful.ports.exchange import ExchangeListener
from wakeful.ports.handlers import Applier, EngineHooks, FeatureHooks, Gate
from wakeful.ports.live import Live
from wakeful.ports.sink import Sink
from wakeful.ports.store import STORE_ID, Store, Tx

T = TypeVar("T")

# Makes the agents of this process, once its clock and its callables are known.
Agents: TypeAlias = Callable[[Clock, CallRegistry], Mapping[str, Agent]]

Replace: TypeAlias = Callable[[Mapping[type[Any], Action]], Mapping[type[Any], Action]]
"""The actions of this process and its features, some of them exchanged for others."""

RECEIPT_SECRET: Final = "receipt_secret"  # noqa: S105 - the name it is kept under


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
    api_at: str | None = None,
    home: str | None = None,
    withholds: Withholds | None = None,
    features: Sequence[MakeFeature] = (),
    standby: bool = False,
    agent_lane: AgentLane = "serial",
    listener: ExchangeListener | None = None,
    redact: Callable[[str], str] | None = None,
    replaced: Replace | None = None,
) -> Parts:
    """Plug the kernel together over an open store. A sink hears of whatever is committed through it, a listener of
    every request that leaves for someone outside.

    `receipts_at` is the address under which agents and commands can post receipts, if anybody listens there; `api_at`
    the one under which programs on this machine reach the API, and `home` the daemon's home folder. `replaced`
    exchanges actions for others."""
    actions: dict[type[Any], Action] = {
        Call: CallAction(registry),
        Command: CommandAction(),
        Http: HttpAction(clock, listener),
    }
    assembled: list[Parts] = []

    async def late(run_id: int, receipt: Receipt) -> None:
        """A final word on a run nobody waits for any more."""
        if receipt.is_final and assembled:
            hooks, now = assembled[0].hooks, clock.read().now
            proof = receipt.result()
            await assembled[0].store.write(lambda tx: prove_late(tx, run_id, proof, hooks=hooks, now=now))

    secret = await store.write(_receipt_secret)
    receipts = Receipts(secret, receipts_at, late=late)
    if receipts_at is not None:
        actions[Command] = Receipted(actions[Command], receipts)
    identity = Identity(name or socket.gethostname(), socket.gethostname(), os.getpid())
    if agents is not None:
        actions[Prompt] = TurnAction(
            agents(clock, registry),
            clock,
            sessions=partial(_session_of, store),
            receipts=receipts,
            begun_elsewhere=partial(_begun_elsewhere, store, identity.name),
        )
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
        redact=redact,
        run_tokens=RunTokens(secret, api_at, home),
        withholds=withholds,
        replaced=replaced,
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
    run_tokens: RunTokens | None = None,
    withholds: Withholds | None = None,
    features: Sequence[MakeFeature] = (),
    on_alert: Callable[[Alert], None] | None = None,
    standby: bool = False,
    agent_lane: AgentLane = "serial",
    listener: ExchangeListener | None = None,
    redact: Callable[[str], str] | None = None,
    replaced: Replace | None = None,
) -> Parts:
    """The same with chosen actions: what the simulator and the tests use."""
    if sink is not None:
        sink = Guarded(sink)
        sink.begin(store)
        store = EventingStore(store, sink, clock)
    store_id = await store.write(_identify)
    terms = Live(Terms(schedule_limits, default_zone, standby, agent_lane))
    compilations = Compilations()
    alarms = ScheduleAlarms(compilations, terms)
    engines: list[Engine] = []

    def ring_bell() -> None:
        for engine in engines:
            engine.ring_bell()

    def publish_terms(terms: str) -> None:
        for engine in engines:
            engine.publish_terms(terms)

    appliers: dict[type[Any], Applier] = {Replan: Resets(compilations).apply}

    def apply(tx: Tx, effect: Effect, now: Instant) -> bool:
        applier = appliers.get(type(effect))
        if applier is not None:
            applier(tx, effect, now)
        return applier is not None

    context = FeatureContext(
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
        publish_terms,
        identity.name,
    )
    plugs = [await make(context) for make in features]
    appliers |= _merged([appliers, *(plug.appliers for plug in plugs)])
    keeper = ScheduleRuns(
        compilations,
        store_id=store_id,
        gates=[*_left_to_others(store, actions, compilations), *(gate for plug in plugs for gate in plug.gates)],
        receipt_url=receipts.url if receipts else None,
        node=identity.name,
    )
    performed = {**actions, **_merged(plug.actions for plug in plugs)}
    hooks = EngineHooks(
        alarms=[alarms, *(handler for plug in plugs for handler in plug.alarms)],
        keepers={KIND: keeper} | {one.kind: one for plug in plugs for one in plug.keepers},
        actions=performed if replaced is None else replaced(performed),
        appliers=appliers,
        orphans=orphans,
        redact=redact,
        stored_checks=[check for plug in plugs for check in plug.stored_checks],
        on_silence=[listener for plug in plugs for listener in plug.on_silence],
        is_lifted=lambda lane: terms.value.is_lifted(lane),  # noqa: PLW0108 - the terms of then, not those of now
        withholds=withholds,
        **({} if run_tokens is None else {"run_access": run_tokens.access}),
    )
    appliers[Prove] = partial(prove, hooks=hooks)
    engine = Engine(store, clock, hooks, identity, limits, on_alert=on_alert, sink=sink)
    engines.append(engine)
    return Parts(
        store=store,
        clock=clock,
        hooks=hooks,
        engine=engine,
        alarms=alarms,
        compilations=compilations,
        terms=terms,
        applied=frozenset(hooks.appliers),
        receipts=receipts,
        run_tokens=run_tokens,
        apply=apply,
        besides=tuple(beside for plug in plugs for beside in plug.besides),
        checks=tuple(check for plug in plugs for check in plug.checks),
        on_settings=tuple(listener for plug in plugs for listener in plug.on_settings),
        ahead=tuple(source for plug in plugs for source in plug.ahead),
        whys={prefix: explain for plug in plugs for prefix, explain in plug.whys.items()},
    )


def plugged(heartbeat: HeartbeatFeature) -> MakeFeature:
    """The heartbeat, to be plugged in."""

    async def make(context: FeatureContext) -> FeatureHooks:
        return await heartbeat.plug(
            store=context.store,
            clock=context.clock,
            store_id=context.store_id,
            actions=context.actions,
            receipt_url=(lambda _: None) if context.receipts is None else context.receipts.url,
            ring_bell=context.ring_bell,
            apply=context.apply,
            node=context.node,
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


async def _session_of(store: Store, fire: Fire) -> str | None:
    """The session a schedule's agent goes on with."""
    cadences = await store.read(lambda tx: tx.cadences.lock([fire.schedule_id]))
    return cadences[fire.schedule_id].session_id if fire.schedule_id in cadences else None


async def _begun_elsewhere(store: Store, node: str, fire: Fire) -> str | None:
    """The other node that began the session of a schedule; None if it is this one or unknown."""
    cadences = await store.read(lambda tx: tx.cadences.lock([fire.schedule_id]))
    found = cadences[fire.schedule_id].session_node if fire.schedule_id in cadences else None
    return None if found == node else found


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
