"""What the composition root hands out: a system put together, and the ground a feature is plugged in on."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from wakeful.core.run.effects import Effect, EffectKind
from wakeful.core.schedule.definition import Definition
from wakeful.core.time.instants import Instant
from wakeful.engine.engine import Engine
from wakeful.features.schedules.alarms import ScheduleAlarms
from wakeful.features.schedules.checks import Checked, ScheduleLimits, check
from wakeful.features.schedules.compiled import Compilations
from wakeful.features.schedules.rules import Terms
from wakeful.integrations.agents.receipts import Receipts
from wakeful.integrations.system.run_tokens import RunTokens
from wakeful.ports.action import Action
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
from wakeful.ports.store import Store, Tx


@dataclass(frozen=True, slots=True)
class Parts:
    """A system put together."""

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
    besides: tuple[BackgroundService, ...] = ()
    checks: tuple[DefinitionCheck, ...] = ()
    on_settings: tuple[OnSettings, ...] = ()
    ahead: tuple[UpcomingSource, ...] = ()
    whys: Mapping[str, Explain] = field(default_factory=dict)

    @property
    def schedule_limits(self) -> ScheduleLimits:
        """As they are now."""
        return self.terms.value.limits

    @property
    def default_zone(self) -> str:
        """The zone of what is written without one, as it is now."""
        return self.terms.value.default_zone

    def check(self, definition: Definition, *, now: Instant) -> Checked:
        """What a person wrote, against everything that holds here; raises `Invalid`."""
        return check(
            definition,
            self.schedule_limits,
            self.hooks.actions,
            self.applied,
            now=now,
            default_zone=self.default_zone,
            also=self.checks,
        )


@dataclass(frozen=True, slots=True)
class FeatureContext:
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
    publish_terms: Callable[[str], None] = lambda _: None  # says by which settings this node works, as a hash
    node: str | None = None  # the name of this node

    @property
    def default_zone(self) -> str:
        return self.terms.value.default_zone


MakeFeature: TypeAlias = Callable[[FeatureContext], Awaitable[FeatureHooks]]
"""Plugs a feature in, once the store is open. What it adds rings from the first tick on."""
