"""Assembling a system from its store, clock, actions, handlers and features."""

import json
import os
import secrets
import socket
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Final, TypeVar

from wakeful.app.bootstrap.parts import FeatureContext, Parts, Setup
from wakeful.core.run.effects import Effect, Prove, Replan
from wakeful.core.schedule.actions import Call, Command, Dispatch, Http, Prompt
from wakeful.core.schedule.pre_check import CheckSpec
from wakeful.core.time.instants import Instant
from wakeful.engine.engine import Engine
from wakeful.engine.membership import Identity
from wakeful.features.schedules.alarms import ScheduleAlarms
from wakeful.features.schedules.backfilling import BackfillAlarms
from wakeful.features.schedules.commands import prove, prove_late
from wakeful.features.schedules.compiled import KIND, Compilations
from wakeful.features.schedules.jobs import Jobs
from wakeful.features.schedules.remote_callables import remote_callables_gate
from wakeful.features.schedules.resets import Resets
from wakeful.features.schedules.runs import ScheduleRuns
from wakeful.integrations.actions.call import CallAction
from wakeful.integrations.actions.checking import CheckAction
from wakeful.integrations.actions.command import CommandAction
from wakeful.integrations.actions.dispatch import DispatchAction
from wakeful.integrations.actions.http import HttpAction
from wakeful.integrations.actions.processes import SystemOrphans
from wakeful.integrations.agents.receipted import Receipted
from wakeful.integrations.agents.receipts import Receipt, Receipts
from wakeful.integrations.agents.turn import TurnAction
from wakeful.integrations.system.run_tokens import RunTokens
from wakeful.observe.eventing_store import EventingStore, Guarded
from wakeful.ports.action import Action, Fire, Orphans
from wakeful.ports.clock import Clock
from wakeful.ports.handlers import Applier, EngineHooks, NoAccounts
from wakeful.ports.live import Live
from wakeful.ports.store import STORE_ID, Store, Tx

T = TypeVar("T")

RECEIPT_SECRET: Final = "receipt_secret"  # noqa: S105 - the name it is kept under


async def assemble(store: Store, clock: Clock, setup: Setup) -> Parts:
    """Assemble a system over an open store, with this process's actions and agents."""
    actions: dict[type[Any], Action] = {
        Call: CallAction(setup.registry),
        Command: CommandAction(),
        Http: HttpAction(clock, setup.listener),
    }
    assembled: list[Parts] = []

    async def late(run_id: int, receipt: Receipt) -> None:
        """A final receipt of a run that was closed before it arrived."""
        if receipt.is_final and assembled:
            hooks, now = assembled[0].hooks, clock.read().now
            proof = receipt.result()
            await assembled[0].store.write(lambda tx: prove_late(tx, run_id, proof, hooks=hooks, now=now))

    secret = await store.write(_receipt_secret)
    receipts = Receipts(secret, setup.receipts_at, late=late)
    actions[Dispatch] = DispatchAction(clock, None if setup.receipts_at is None else receipts)
    if setup.receipts_at is not None:
        actions[Http] = HttpAction(clock, setup.listener, receipts)
        actions[Command] = Receipted(actions[Command], receipts)
    identity = Identity(setup.name or socket.gethostname(), socket.gethostname(), os.getpid())
    if setup.agents is not None:
        actions[Prompt] = TurnAction(
            setup.agents(clock, setup.registry),
            clock,
            sessions=partial(_session_of, store),
            receipts=receipts,
            begun_elsewhere=partial(_begun_elsewhere, store, identity.name),
            toolbox=setup.toolbox,
        )
    tokens = RunTokens(secret, setup.api_at, setup.home)
    parts = await assemble_with(
        store, clock, setup, actions, SystemOrphans(), identity, receipts=receipts, run_tokens=tokens
    )
    assembled.append(parts)
    return parts


async def assemble_with(
    store: Store,
    clock: Clock,
    setup: Setup,
    actions: Mapping[type[Any], Action],
    orphans: Orphans,
    identity: Identity,
    *,
    receipts: Receipts | None = None,
    run_tokens: RunTokens | None = None,
) -> Parts:
    """Assemble a system with the given actions, as simulations and tests do."""
    sink = setup.sink
    if sink is not None:
        sink = Guarded(sink)
        sink.begin(store)
        store = EventingStore(store, sink, clock)
    if setup.wrap_store is not None:
        store = setup.wrap_store(store)
    store_id = await store.write(_identify)
    terms = Live(setup.terms)
    compilations = Compilations()
    calls = actions.get(Call)
    is_here = calls.is_here if isinstance(calls, CallAction) and not store.is_exclusive else None
    engines: list[Engine] = []
    jobs = Jobs(store_id, receipts.url if receipts else None)
    alarms = ScheduleAlarms(compilations, jobs, terms, is_here, lambda: engines[0].labels)

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

    actions = {**actions, CheckSpec: CheckAction(actions)}
    context = FeatureContext(
        store,
        clock,
        store_id,
        compilations,
        actions,
        receipts,
        terms,
        ring_bell,
        apply,
        setup.listener,
        publish_terms,
        identity.name,
    )
    plugs = [await make(context) for make in setup.features]
    alarms.is_gated = any(plug.gates for plug in plugs)
    appliers |= _merged([appliers, *(plug.appliers for plug in plugs)])
    keeper = ScheduleRuns(
        compilations,
        jobs,
        gates=[
            *([] if is_here is None else [remote_callables_gate(compilations, is_here)]),
            *(gate for plug in plugs for gate in (*plug.field_gates, *plug.gates)),
        ],
        node=identity.name,
        interval=lambda: terms.value.limits.agent_interval_min,
    )
    performed = {**actions, **_merged(plug.actions for plug in plugs)}
    hooks = EngineHooks(
        alarms=[alarms, *(handler for plug in plugs for handler in plug.alarms), BackfillAlarms()],
        keepers={KIND: keeper} | {keeper.kind: keeper for plug in plugs for keeper in plug.keepers},
        actions=performed if setup.replaced is None else setup.replaced(performed),
        appliers=appliers,
        orphans=orphans,
        redact=setup.redact,
        stored_checks=[check for plug in plugs for check in plug.stored_checks],
        on_silence=[listener for plug in plugs for listener in plug.on_silence],
        is_lifted=lambda lane: terms.value.is_lifted(lane),  # noqa: PLW0108 - the terms at the time of the call
        withholds=setup.withholds,
        traceparent=None if setup.traceparent is None else partial(setup.traceparent, store_id),
        settle_plain=keeper.settle_plain,
        accounts=next((plug.accounts for plug in plugs if plug.accounts is not None), NoAccounts()),
        **({} if run_tokens is None else {"run_access": run_tokens.access}),
    )
    appliers[Prove] = partial(prove, hooks=hooks)
    engine = Engine(store, clock, hooks, identity, setup.limits, on_alert=setup.on_alert, sink=sink)
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
        services=tuple(service for plug in plugs for service in plug.services),
        checks=tuple(check for plug in plugs for check in plug.checks),
        on_settings=tuple(listener for plug in plugs for listener in plug.on_settings),
        upcoming=tuple(source for plug in plugs for source in plug.upcoming),
        self_scheduling=setup.self_scheduling,
        whys={prefix: explain for plug in plugs for prefix, explain in plug.whys.items()},
    )


def _merged(maps: Iterable[Mapping[type[Any], T]]) -> dict[type[Any], T]:
    """All maps in one; two features must not provide the same key."""
    merged: dict[type[Any], T] = {}
    for of_feature in maps:
        if twice := merged.keys() & of_feature.keys():
            raise ValueError(f"more than one feature provides {', '.join(sorted(key.__name__ for key in twice))}")
        merged |= of_feature
    return merged


async def _session_of(store: Store, fire: Fire) -> str | None:
    """The session that a schedule's agent continues."""
    return await store.read(lambda tx: _session(tx, fire.schedule_id)[0])


def _session(tx: Tx, schedule_id: int) -> tuple[str | None, str | None]:
    """The session that a schedule continues, and the node that started it. A `wake_me` continues the session of the run
    it was called from."""
    cadence = tx.cadences.lock([schedule_id]).get(schedule_id)
    if cadence is None or cadence.session_id is not None:
        return (None, None) if cadence is None else (cadence.session_id, cadence.session_node)
    owned = tx.ownerships.by_ids([schedule_id]).get(schedule_id)
    if owned is None or owned.kind != "wake" or owned.run_id is None:
        return None, cadence.session_node
    run = tx.runs.lock([owned.run_id]).get(owned.run_id)
    of_run = None if run is None else tx.cadences.lock([run.schedule_id]).get(run.schedule_id)
    kept = json.loads(run.result).get("sessionId") if run is not None and run.result else None
    session = kept or (None if of_run is None else of_run.session_id)
    return session, None if of_run is None or of_run.session_id != session else of_run.session_node


async def _begun_elsewhere(store: Store, node: str, fire: Fire) -> str | None:
    """The node that started the session of a schedule; None if it is this one or unknown."""
    owner = await store.read(lambda tx: _session(tx, fire.schedule_id)[1])
    return None if owner == node else owner


def _receipt_secret(tx: Tx) -> bytes:
    """The key that signs receipts, created once per store so that all its nodes accept them."""
    return bytes.fromhex(_drawn_once(tx, RECEIPT_SECRET, 32))


def _identify(tx: Tx) -> str:
    """The id of the store, created once. It is part of idempotency keys, so that two stores never share a key."""
    return _drawn_once(tx, STORE_ID, 6)


def _drawn_once(tx: Tx, name: str, size: int) -> str:
    known = tx.meta.get(name)
    if known is None:
        known = secrets.token_hex(size)
        tx.meta.set(name, known)
    return known
