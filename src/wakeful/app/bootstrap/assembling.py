"""Assembling a system from its store, clock, actions, handlers and features."""

import json
import os
import secrets
import socket
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from wakeful.app.bootstrap.effect_appliers import EffectAppliers, merged
from wakeful.app.bootstrap.parts import FeatureContext, Parts, Setup
from wakeful.core.run.effects import Prove, Replan
from wakeful.core.schedule.actions import Call, Command, Dispatch, Http, Prompt
from wakeful.core.schedule.pre_check import CheckSpec
from wakeful.engine.chores import ChoreAlarms
from wakeful.engine.engine import Engine
from wakeful.engine.membership import Identity
from wakeful.engine.this_node import ThisNode
from wakeful.features.schedules.alarms import ScheduleAlarms
from wakeful.features.schedules.backfilling import BackfillAlarms
from wakeful.features.schedules.commands import prove
from wakeful.features.schedules.compiled import KIND, Compilations
from wakeful.features.schedules.jobs import Jobs
from wakeful.features.schedules.remote_callables import remote_callables_gate
from wakeful.features.schedules.resets import Resets
from wakeful.features.schedules.restored_store import adopt_copy
from wakeful.features.schedules.runs import ScheduleRuns
from wakeful.integrations.actions.call import CallAction
from wakeful.integrations.actions.checking import CheckAction
from wakeful.integrations.actions.command import CommandAction
from wakeful.integrations.actions.dispatch import DispatchAction
from wakeful.integrations.actions.http import HttpAction
from wakeful.integrations.actions.processes import end_orphan
from wakeful.integrations.actions.receipted import Receipted
from wakeful.integrations.actions.receipts import Receipts
from wakeful.integrations.agents.turn import TurnAction
from wakeful.integrations.system.run_tokens import RunTokens
from wakeful.observe.eventing_store import EventingStore, Guarded
from wakeful.observe.fan_out import FanOut
from wakeful.ports.action import Action, EndOrphan, Fire
from wakeful.ports.clock import Clock
from wakeful.ports.handlers import AlarmHandler, EngineHooks, FeatureHooks, NoAccounts
from wakeful.ports.live import Live
from wakeful.ports.meta import Meta
from wakeful.ports.ownerships import Ownerships
from wakeful.ports.sink import Sink
from wakeful.ports.store import STORE_ID, Store, Tx

RECEIPT_SECRET: Final = "receipt_secret"  # noqa: S105 - the name it is kept under


async def assemble(store: Store, clock: Clock, setup: Setup) -> Parts:
    """Assemble a system over an open store, with this process's actions and agents."""
    secret = await store.write(_receipt_secret)
    receipts = Receipts(secret, setup.receipts_at)
    tokens = RunTokens(secret, setup.api_at, setup.home)
    identity = Identity(setup.name or socket.gethostname(), socket.gethostname(), os.getpid())
    actions = _actions(store, clock, setup, receipts, identity)
    if setup.replaced is not None:  # before anything is built on them, such as checks; those are replaced afterwards
        actions = setup.replaced(actions)
    return await assemble_with(store, clock, setup, actions, end_orphan, identity, receipts=receipts, run_tokens=tokens)


def _actions(
    store: Store, clock: Clock, setup: Setup, receipts: Receipts, identity: Identity
) -> Mapping[type[Any], Action]:
    """What this process performs: calls, commands, requests, and the turns of its agents."""
    listens = setup.receipts_at is not None
    posted = receipts if listens else None
    command = CommandAction()
    actions: dict[type[Any], Action] = {
        Call: CallAction(setup.registry),
        Command: Receipted(command, receipts) if listens else command,
        Http: HttpAction(clock, setup.listener, posted),
        Dispatch: DispatchAction(clock, posted),
    }
    if setup.agents is None:
        return actions
    turns = TurnAction(
        setup.agents(clock, setup.registry),
        clock,
        sessions=partial(_session_of, store),
        receipts=receipts,
        begun_elsewhere=partial(_begun_elsewhere, store, identity.name),
        toolbox=setup.toolbox,
    )
    return {**actions, Prompt: turns}


async def assemble_with(
    store: Store,
    clock: Clock,
    setup: Setup,
    actions: Mapping[type[Any], Action],
    end_orphan: EndOrphan,
    identity: Identity,
    *,
    receipts: Receipts | None = None,
    run_tokens: RunTokens | None = None,
) -> Parts:
    """Assemble a system with the given actions, as simulations and tests do: the store, the features, the schedules,
    the engine."""
    sink = setup.sink if setup.sink is None or isinstance(setup.sink, FanOut) else Guarded(setup.sink)
    store = _reporting(store, clock, setup, sink)
    store_id = await store.write(_identify)
    terms, compilations, node, appliers = Live(setup.terms), Compilations(), ThisNode(), EffectAppliers()
    appliers.add({Replan: Resets(compilations).apply})
    context = FeatureContext(
        store=store,
        clock=clock,
        store_id=store_id,
        compilations=compilations,
        actions={**actions, CheckSpec: CheckAction(actions)},
        receipts=receipts,
        terms=terms,
        identity=identity,
        ring_bell=node.ring_bell,
        apply=appliers.apply,
        listener=setup.listener,
        publish_terms=node.publish_terms,
        node=identity.name,
    )
    plugs = [await make(context) for make in setup.features]
    for plug in plugs:
        appliers.add(plug.appliers)
    alarms, runs = _schedules(context, plugs, node)
    hooks = _hooks(context, setup, plugs, alarms, runs, appliers, end_orphan, run_tokens)
    appliers.add({Prove: partial(prove, hooks=hooks)})
    adopt = partial(adopt_copy, store, hooks, compilations, [forgo for plug in plugs for forgo in plug.forgo])
    engine = Engine(
        store, clock, hooks, identity, setup.limits, on_alert=setup.on_alert, sink=sink, node=node, adopt=adopt
    )
    return Parts(
        store=store,
        clock=clock,
        hooks=hooks,
        engine=engine,
        alarms=alarms,
        compilations=compilations,
        terms=terms,
        applied=frozenset(appliers),
        receipts=receipts,
        run_tokens=run_tokens,
        apply=appliers.apply,
        adopt=adopt,
        services=tuple(service for plug in plugs for service in plug.services),
        checks=tuple(check for plug in plugs for check in plug.checks),
        on_settings=tuple(listener for plug in plugs for listener in plug.on_settings),
        upcoming=tuple(source for plug in plugs for source in plug.upcoming),
        self_scheduling=setup.self_scheduling,
        whys={prefix: explain for plug in plugs for prefix, explain in plug.whys.items()},
    )


def _reporting(store: Store, clock: Clock, setup: Setup, sink: Sink | None) -> Store:
    """The store that everything writes through: it reports each commit to the sink."""
    if sink is not None:
        sink.begin(store)
        store = EventingStore(store, sink, clock)
    return store if setup.wrap_store is None else setup.wrap_store(store)


def _schedules(
    context: FeatureContext, plugs: Sequence[FeatureHooks], node: ThisNode
) -> tuple[ScheduleAlarms, ScheduleRuns]:
    """The alarms and runs of schedules, and what may hold their runs back."""
    compilations, terms = context.compilations, context.terms
    jobs = Jobs(context.store_id, context.receipts.url if context.receipts else None)
    calls = context.actions.get(Call)
    is_here = calls.is_here if isinstance(calls, CallAction) and not context.store.is_exclusive else None
    alarms = ScheduleAlarms(
        compilations,
        jobs,
        terms,
        is_here,
        labels=lambda: node.labels_held,
        is_gated=any(plug.gates for plug in plugs),
    )
    runs = ScheduleRuns(
        compilations,
        jobs,
        gates=[
            *([] if is_here is None else [remote_callables_gate(compilations, is_here)]),
            *(gate for plug in plugs for gate in (*plug.field_gates, *plug.gates)),
        ],
        node=context.node,
        interval=lambda: terms.value.limits.agent_interval_min,
    )
    return alarms, runs


def _hooks(
    context: FeatureContext,
    setup: Setup,
    plugs: Sequence[FeatureHooks],
    alarms: ScheduleAlarms,
    runs: ScheduleRuns,
    appliers: EffectAppliers,
    end_orphan: EndOrphan,
    run_tokens: RunTokens | None,
) -> EngineHooks:
    """What the engine calls: schedules first, then the other features."""
    performed = {**context.actions, **merged(plug.actions for plug in plugs)}
    terms = context.terms
    return EngineHooks(
        alarms=[alarms, *(handler for plug in plugs for handler in _handlers(plug, context)), BackfillAlarms()],
        keepers={KIND: runs} | {keeper.kind: keeper for plug in plugs for keeper in plug.keepers},
        actions=performed if setup.replaced is None else setup.replaced(performed),
        appliers=appliers,
        end_orphan=end_orphan,
        redact=setup.redact,
        stored_checks=[check for plug in plugs for check in plug.stored_checks],
        on_silence=[listener for plug in plugs for listener in plug.on_silence],
        prunes=[prune for plug in plugs for prune in plug.prunes],
        is_lifted=lambda lane: terms.value.is_lifted(lane),  # noqa: PLW0108 - the terms at the time of the call
        withholds=setup.withholds,
        traceparent=None if setup.traceparent is None else partial(setup.traceparent, context.store_id),
        alike=runs.alike,
        accounts=next((plug.accounts for plug in plugs if plug.accounts is not None), NoAccounts()),
        **({} if run_tokens is None else {"run_access": run_tokens.access}),
    )


def _handlers(plug: FeatureHooks, context: FeatureContext) -> list[AlarmHandler]:
    return [*plug.alarms, *(ChoreAlarms(chore, context.clock) for chore in plug.chores)]


async def _session_of(store: Store, fire: Fire) -> str | None:
    """The session that a schedule's agent continues."""
    return await store.read(lambda tx: _session(tx, fire.schedule_id)[0])


def _session(tx: Tx, schedule_id: int) -> tuple[str | None, str | None]:
    """The session that a schedule continues, and the node that started it. A `wake_me` continues the session of the run
    it was called from."""
    cadence = tx.cadences.lock([schedule_id]).get(schedule_id)
    if cadence is None or cadence.session_id is not None:
        return (None, None) if cadence is None else (cadence.session_id, cadence.session_node)
    owned = tx[Ownerships].among([schedule_id]).get(schedule_id)
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
    known = tx[Meta].value(name)
    if known is None:
        known = secrets.token_hex(size)
        tx[Meta].set(name, known)
    return known
