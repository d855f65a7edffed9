"""What the composition root takes and returns: the setup, the assembled parts, and a feature's context."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from wakeful.core.run.effects import Alert, Effect, EffectKind
from wakeful.core.run.runs import Run
from wakeful.core.self_scheduling.limits import SelfSchedulingTerms
from wakeful.core.time.instants import Instant
from wakeful.engine.engine import Engine
from wakeful.engine.limits import Limits
from wakeful.engine.membership import Identity
from wakeful.features.schedules.alarms import ScheduleAlarms
from wakeful.features.schedules.checks import Conditions
from wakeful.features.schedules.commands import prove_late
from wakeful.features.schedules.compiled import Compilations
from wakeful.features.schedules.rules import Terms
from wakeful.integrations.actions.receipts import Receipt, Receipts
from wakeful.integrations.actions.registry import CallRegistry
from wakeful.integrations.system.run_tokens import RunTokens
from wakeful.ports.action import Action, Withholds
from wakeful.ports.agent import Agent, Toolbox
from wakeful.ports.clock import Clock
from wakeful.ports.exchange import ExchangeListener
from wakeful.ports.handlers import (
    BackgroundService,
    DefinitionCheck,
    EngineHooks,
    Explain,
    FeatureHooks,
    OnSettings,
    UpcomingSource,
)
from wakeful.ports.live import Live
from wakeful.ports.sink import Sink
from wakeful.ports.store import Store, Tx

Agents: TypeAlias = Callable[[Clock, CallRegistry], Mapping[str, Agent]]
"""Creates the agents of this process, once its clock and its callables are known."""

Replace: TypeAlias = Callable[[Mapping[type[Any], Action]], Mapping[type[Any], Action]]
"""Returns the actions of this process, with some of them replaced; in a simulation, also those of its features."""

MakeTraceparent: TypeAlias = Callable[[str, Run], str | None]
"""The `traceparent` of an attempt that is being claimed, by the id of the store and the row; None: not traced."""


@dataclass(frozen=True, slots=True)
class Setup:
    """How a system is assembled over its store and clock."""

    registry: CallRegistry = field(default_factory=CallRegistry)
    limits: Limits = field(default_factory=Limits)
    terms: Terms = field(default_factory=Terms)
    name: str | None = None  # of this node; default: the host name
    agents: Agents | None = None
    features: Sequence["MakeFeature"] = ()
    receipts_at: str | None = None  # the address where agents and commands post receipts
    api_at: str | None = None  # the address where programs on this machine reach the API
    home: str | None = None  # the daemon's home folder
    withholds: Withholds | None = None
    redact: Callable[[str], str] | None = None
    sink: Sink | None = None  # gets everything that is committed
    listener: ExchangeListener | None = None  # gets every request that leaves this process
    on_alert: Callable[[Alert], None] | None = None
    replaced: Replace | None = None
    wrap_store: Callable[[Store], Store] | None = None  # wraps what everything writes through, to inject faults
    traceparent: MakeTraceparent | None = None
    toolbox: Toolbox | None = None  # what chat models may call
    self_scheduling: Live[SelfSchedulingTerms] = field(default_factory=lambda: Live(SelfSchedulingTerms()))


@dataclass(frozen=True, slots=True)
class Parts:
    """An assembled system."""

    store: Store
    clock: Clock
    hooks: EngineHooks
    engine: Engine
    alarms: ScheduleAlarms
    compilations: Compilations
    terms: Live[Terms]
    applied: frozenset[EffectKind]
    receipts: Receipts | None
    run_tokens: RunTokens | None
    apply: Callable[[Tx, Effect, Instant], bool]
    adopt: Callable[[Instant], Awaitable[object]]  # repairs a store that is a copy or was rolled back
    services: tuple[BackgroundService, ...] = ()
    checks: tuple[DefinitionCheck, ...] = ()
    on_settings: tuple[OnSettings, ...] = ()
    upcoming: tuple[UpcomingSource, ...] = ()
    whys: Mapping[str, Explain] = field(default_factory=dict)
    self_scheduling: Live[SelfSchedulingTerms] = field(default_factory=lambda: Live(SelfSchedulingTerms()))

    @property
    def conditions(self) -> Conditions:
        """What definitions are checked against now."""
        terms = self.terms.value
        return Conditions(
            terms.limits,
            terms.default_zone,
            self.hooks.actions,
            self.applied,
            self.checks,
            terms.excluded,
            terms.calendar_fault,
        )

    async def prove_late(self, run_id: int, receipt: Receipt) -> None:
        """Correct a run that was closed without proof, if this receipt is final."""
        if receipt.is_final:
            now, proof = self.clock.read().now, receipt.result()
            await self.store.write(lambda tx: prove_late(tx, run_id, proof, hooks=self.hooks, now=now))


@dataclass(frozen=True, slots=True)
class FeatureContext:
    """What a feature is given when it is plugged in."""

    store: Store  # reports every commit made through it
    clock: Clock
    store_id: str  # idempotency keys carry it
    compilations: Compilations
    actions: Mapping[type[Any], Action]
    receipts: Receipts | None
    terms: Live[Terms]  # the current terms of all schedules
    identity: Identity  # this process, as it appears among the nodes
    ring_bell: Callable[[], None]  # something was written that may be due now
    apply: Callable[[Tx, Effect, Instant], bool]  # by the feature that handles it; False: none does
    listener: ExchangeListener | None = None  # gets every request that leaves this process
    publish_terms: Callable[[str], None] = lambda _: None  # publishes a hash of this node's settings
    node: str | None = None  # the name of this node


MakeFeature: TypeAlias = Callable[[FeatureContext], Awaitable[FeatureHooks]]
"""Plugs a feature in, once the store is open and before the first tick."""
