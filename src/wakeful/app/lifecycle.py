"""The lifecycle of an app: configure, start over its store, reconfigure while running, stop."""

import asyncio
import signal
import socket
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeAlias, Unpack

from wakeful.app import bootstrap
from wakeful.app.bus import Bus
from wakeful.app.delivery import Delivering, MakeChannels
from wakeful.app.features import plug_heartbeat, plug_workflows
from wakeful.app.heartbeat_settings import Heartbeat
from wakeful.app.incident_text import explained
from wakeful.app.money import Budgets, plug_money
from wakeful.app.run_endings import RunEndings
from wakeful.app.runtime_config import Changes, RuntimeConfig, changed
from wakeful.app.values import MakeListener, MakeService, MakeSink, New, Watched
from wakeful.core.delivery.alert_rules import AlertTerms
from wakeful.core.delivery.incidents import Incident
from wakeful.core.delivery.retries import DeliveryLimits
from wakeful.core.refusals import NotStarted
from wakeful.core.run.effects import ChatDecision
from wakeful.core.schedule.exclude import Exclude
from wakeful.core.self_scheduling.limits import SelfSchedulingTerms
from wakeful.core.time.instants import Duration, Instant
from wakeful.core.time.timing_builders import as_datetime, as_duration
from wakeful.engine.clock import SystemClock
from wakeful.engine.limits import Limits
from wakeful.features.delivery.incident_watch import IncidentText
from wakeful.features.heartbeat.feature import HeartbeatFeature
from wakeful.features.money.feature import Money
from wakeful.features.schedules.restored_store import Forgo, adopt_copy
from wakeful.features.schedules.rules import AgentLane, Terms
from wakeful.features.workflows.feature import Workflows
from wakeful.integrations.actions.registry import CallRegistry
from wakeful.integrations.agents.call import CallAgent
from wakeful.integrations.calendars.files import CalendarFiles
from wakeful.observe.following import Following
from wakeful.observe.relay import Relay
from wakeful.observe.tracing import Tracing
from wakeful.ports.action import Withholds
from wakeful.ports.agent import Agent, Toolbox
from wakeful.ports.clock import Clock, Moment
from wakeful.ports.handlers import BackgroundService, FeatureHooks, OnSettings
from wakeful.ports.live import Live
from wakeful.ports.store import Store, Tx

OpenStore: TypeAlias = Callable[[str], Awaitable[bootstrap.Opened]]
Assemble: TypeAlias = Callable[[Store, Clock, bootstrap.Setup], Awaitable[bootstrap.Parts]]


class AppLifecycle:
    """Configures, starts and stops an app. The other parts of the Python API inherit from it."""

    def __init__(
        self,
        store: str | Path = "wakeful.db",
        *,
        timezone: str = "local",
        concurrency_max: int = 64,
        shutdown_grace: str = "30s",
        every_min: str = "10s",
        agent_interval_min: str = "60m",
        ledger_days: int = 90,
        standby: bool = False,
        agent_lane: AgentLane = "serial",
        exclude: Exclude | Mapping[str, Any] | None = None,
        labels: Sequence[str] = (),
        tick: bool = True,
        name: str | None = None,
        clock: Clock | None = None,
        agents: bootstrap.Agents | None = None,
        receipts_at: str | None = None,
        api_at: str | None = None,
        withholds: Withholds | None = None,
        home: str | None = None,
        sink: MakeSink | None = None,
        stream: Watched | None = None,
        listener: MakeListener | None = None,
        redact: Callable[[str], str] | None = None,
        background: MakeService | None = None,
        features: Sequence[bootstrap.MakeFeature] = (),
        workflow_modules: Sequence[str] = (),
        workflow_folder: Path | None = None,
        heartbeat: Heartbeat | HeartbeatFeature | None = None,
        channels: MakeChannels | None = None,
        delivery: DeliveryLimits | None = None,
        alerts: AlertTerms | None = None,
        budgets: Budgets | Money | None = None,
        self_scheduling: SelfSchedulingTerms | None = None,
        otel: str | None = None,
    ) -> None:
        given = Changes(
            timezone=timezone,
            concurrency_max=concurrency_max,
            shutdown_grace=shutdown_grace,
            every_min=every_min,
            agent_interval_min=agent_interval_min,
            ledger_days=ledger_days,
            standby=standby,
            agent_lane=agent_lane,
            exclude=exclude,
            labels=labels,
        )
        calendars = CalendarFiles(Path(home or "."))
        config = changed(RuntimeConfig(Limits(), Terms(calendars=calendars)), given)
        self._registry = CallRegistry()
        self._setup = bootstrap.Setup(
            registry=self._registry,
            limits=config.limits,
            terms=config.terms,
            name=name,
            agents=agents,
            features=features,
            receipts_at=receipts_at,
            api_at=api_at,
            home=home,
            withholds=withholds,
            redact=redact,
        )
        self._url = str(store)
        self._make_sink = sink
        self._watched = stream
        self._make_listener = listener
        self._make_services = [] if background is None else [background]
        self._services: list[BackgroundService] = []
        self._side_tasks: set[asyncio.Task[None]] = set()
        self._workflows = Workflows(modules=workflow_modules, folder=workflow_folder)
        self._heartbeat = heartbeat.feature() if isinstance(heartbeat, Heartbeat) else heartbeat or HeartbeatFeature()
        self._has_heartbeat = heartbeat is not None
        self._money = budgets.feature() if isinstance(budgets, Budgets) else budgets or Money()
        self._own_agents: dict[str, str] = {}  # agents that are functions: their name in the registry, by agent
        self._tracing = Tracing(otel, name or socket.gethostname(), redact)
        self._delivering = Delivering(
            channels,
            delivery or DeliveryLimits(),
            alerts or AlertTerms(),
            explain=self._explain,
            ack_token=lambda: self._heartbeat.terms.ack.token,
            shared=lambda: self._money.terms.shared,
            is_traced=lambda: self._tracing.is_on,
        )
        self._self_scheduling = Live(self_scheduling or SelfSchedulingTerms())
        self._bus = Bus()
        self._run_endings = RunEndings()
        self._ticks = tick
        self._has_own_clock = clock is not None
        self._clock: Clock = clock or SystemClock()
        self._declared: list[New] = []
        self._parts: bootstrap.Parts | None = None
        self._ending: bootstrap.Parts | None = None  # set during the grace period of a shutdown

    # Tests on a virtual clock replace these.
    _open_store: OpenStore = staticmethod(bootstrap.open_store)
    _assemble: Assemble = staticmethod(bootstrap.assemble)

    @contextmanager
    def moved_to(self, clock: Clock, open_store: OpenStore, assemble: Assemble) -> Iterator[None]:
        """Start on another clock, store and actions inside this context. Only channels and workflow handlers that are
        functions of this program are used, and nothing is traced. For tests on a virtual clock."""
        before, endpoint = (self._clock, self._has_own_clock), self._tracing.endpoint
        self._clock, self._has_own_clock = clock, True
        self._open_store, self._assemble = open_store, assemble
        self._tracing.endpoint = None
        try:
            with self._delivering.own_channels_only(), self._workflows.python_only():
                yield
        finally:
            self._clock, self._has_own_clock = before
            self._tracing.endpoint = endpoint
            del self._open_store, self._assemble

    async def start(self) -> None:
        """Open the store, write the declared jobs, and start ticking (or wait for the clock)."""
        if self._parts is not None:
            return
        store, clock, poll = await self._open_store(self._url)
        if not self._has_own_clock:
            self._clock = clock
        try:
            self._parts = parts = await self._assemble(store, self._clock, self._complete_setup(store, poll))
            self._money.on_change = lambda: parts.engine.publish_terms(self._delivering.terms_hash)
            self._money.on_change()
            await bootstrap.replan_if_zones_changed(parts, bootstrap.zone_rules())
            also: list[Forgo] = [partial(self._heartbeat.forgo, apply=parts.apply), self._workflows.forgo]

            async def adopt(now: Instant) -> None:
                await adopt_copy(parts.store, parts.hooks, parts.compilations, now=now, also=also)

            await adopt(self._clock.read().now)
            parts.engine.adopt = adopt
            await self._write_declared()
            await self._tracing.begin(parts.store, self._bus.fan_out)
            added = [make(parts) for make in self._make_services]
            for service in (self._tracing, *parts.services, *added, *self._reporter(store)):
                self._services.append(service)
                await service.start()
            if self._ticks:
                await parts.engine.start()
        except BaseException:
            self._parts = None
            await self._stop_services()
            await self._delivering.close()
            await store.close()
            raise

    @property
    def terms(self) -> Terms:
        """What applies to all schedules now."""
        return self._open.terms.value

    def add_service(self, make: MakeService) -> None:
        """Run this service alongside the app, from the app's next start on."""
        self._make_services.append(make)

    async def stop(self) -> None:
        """Stop claiming, let runs finish within their grace period, record the rest, close the store."""
        parts, self._parts = self._parts, None
        if parts is None:
            return
        for side_task in self._side_tasks:
            side_task.cancel()
        self._ending = parts
        try:
            await parts.engine.stop()
            await self._stop_services()
            for action in parts.hooks.actions.values():
                await action.close()
            await self._delivering.close()
        finally:
            self._ending = None
            await parts.store.close()

    async def change(self, **changes: Unpack[Changes]) -> None:
        """Change the configuration while running: given values take effect immediately, except for runs in progress."""
        config = changed(RuntimeConfig(self._setup.limits, self._setup.terms), changes)
        self._setup = replace(self._setup, limits=config.limits, terms=config.terms)
        if self._parts is not None:
            await bootstrap.change(self._parts, *config)

    def change_agents(self, agents: bootstrap.Agents) -> None:
        """Use these agents from now on; a turn in progress finishes with its agent."""
        self._setup = replace(self._setup, agents=agents)
        make = self._all_agents()
        if self._parts is not None and make is not None:
            bootstrap.change_agents(self._parts, make(self._clock, self._registry))

    async def change_otel(self, endpoint: str | None) -> None:
        """Send traces to this OTLP/HTTP collector from now on; None: to none."""
        await self._tracing.change(endpoint)

    def _complete_setup(self, store: Store, poll: Duration | None) -> bootstrap.Setup:
        # The sink first: it also makes the listener.
        sink = self._bus.sink(None if self._make_sink is None else self._make_sink(store, self._clock))
        return replace(
            self._setup,
            limits=replace(self._setup.limits, poll=poll),
            agents=self._all_agents(),
            features=self._all_features(),
            toolbox=self._toolbox(),
            self_scheduling=self._self_scheduling,
            sink=sink,
            traceparent=self._tracing.traceparent,
            listener=None if self._make_listener is None else self._make_listener(),
        )

    def _all_agents(self) -> bootstrap.Agents | None:
        """The given agents, and those that are functions of this program."""
        given, own = self._setup.agents, dict(self._own_agents)
        if not own:
            return given

        def make(clock: Clock, registry: CallRegistry) -> Mapping[str, Agent]:
            described = {} if given is None else given(clock, registry)
            return {**described, **{name: CallAgent(target, registry) for name, target in own.items()}}

        return make

    def _all_features(self) -> Sequence[bootstrap.MakeFeature]:
        has_agents = self._setup.agents is not None or bool(self._own_agents)  # without agents there is no heartbeat
        return (
            self._delivering.plug,  # first: channels exist before anything that uses them starts
            partial(plug_money, self._money),
            *([self._plug_heartbeat] if self._has_heartbeat or has_agents else []),
            *self._setup.features,
            self._plug_approvals,
            partial(plug_workflows, self._workflows),
        )

    async def _plug_heartbeat(self, context: bootstrap.FeatureContext) -> FeatureHooks:
        return await plug_heartbeat(self._heartbeat, context, budget_note=self._money.used_up)

    async def _plug_approvals(self, context: bootstrap.FeatureContext) -> FeatureHooks:
        """Plug in decisions by chat on agents' proposals."""
        return FeatureHooks(appliers={ChatDecision: self.apply_chat_decision})

    def apply_chat_decision(self, tx: Tx, answer: ChatDecision, now: Instant) -> None:
        """Handle a person's decision on a proposal."""
        raise NotImplementedError

    def _toolbox(self) -> Toolbox | None:
        """The tools that chat models may call."""
        return None

    def _explain(self, tx: Tx, incident: Incident, now: Instant) -> IncidentText:
        """The text of an incident for people."""
        terms, days = self._open.terms.value, self._setup.limits.ledger_days
        return explained(tx, incident, now, terms=terms, ledger_days=days, heartbeat=self._heartbeat.terms)

    def _reporter(self, store: Store) -> list[BackgroundService]:
        """Passes events to other processes on this store, and their events to this process's live stream."""
        relay = Relay(store, self._clock, self._bus.fan_out)
        stream = None if self._watched is None else self._watched()
        if stream is None:
            return [relay]
        return [Following(store, self._clock, stream, self._bus.fan_out, relay.name), relay]

    def _begin(self, side_task: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine in the background; it is cancelled when the app stops."""
        task = asyncio.create_task(side_task)
        self._side_tasks.add(task)
        task.add_done_callback(self._side_tasks.discard)

    async def _stop_services(self) -> None:
        while self._services:
            await self._services.pop().stop()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    def run(self) -> None:
        """Start, and run until SIGINT or SIGTERM."""
        asyncio.run(self._run_until_signal())

    async def _run_until_signal(self) -> None:
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, ended.set)
        async with self:
            await ended.wait()

    @property
    def address(self) -> str:
        """The store: a path, or a URL with its password."""
        return self._url

    @property
    def is_ticking(self) -> bool:
        """Whether this process holds the clock."""
        return self._parts is not None and self._parts.engine.is_ticking

    @property
    def is_started(self) -> bool:
        """Whether it accepts commands and queries."""
        return self._parts is not None

    @property
    def on_settings(self) -> Sequence[OnSettings]:
        """Features to notify when settings change."""
        return self._open.on_settings

    @property
    def store(self) -> Store:
        """The open store, for edges that keep their own data."""
        return (self._ending or self._open).store

    @property
    def now(self) -> datetime:
        """The time of its clock, in UTC. Use it instead of `datetime.now` in code tested on a virtual clock."""
        return as_datetime(self._clock.read().now)

    def moment(self) -> Moment:
        """The time of its clock in milliseconds, with the monotonic time."""
        return self._clock.read()

    async def run_of_token(self, token: str) -> int | None:
        """The run that a run token belongs to, while that attempt is running."""
        tokens = (self._ending or self._open).run_tokens
        known = None if tokens is None else tokens.read(token)
        if known is None:
            return None
        run_id, fence = known
        run = (await self.store.read(lambda tx: tx.runs.lock([run_id]))).get(run_id)
        is_current = run is not None and run.outcome == "running" and run.fence == fence
        return run_id if is_current else None

    async def sleep(self, duration: str | timedelta | Duration) -> None:
        """Sleep on its clock: a string such as `90s`, a timedelta, or milliseconds."""
        await self._clock.sleep(duration if isinstance(duration, int) else as_duration(duration, "duration"))

    @property
    def _open(self) -> bootstrap.Parts:
        if self._parts is None:
            raise NotStarted
        return self._parts

    async def _write_declared(self) -> None:
        """Write the schedules that were declared before the start."""
        raise NotImplementedError
