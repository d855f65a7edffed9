"""The lifecycle of an app: configure, start over its store, reconfigure while running, stop."""

import asyncio
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias, Unpack, cast

from wakeful.app import bootstrap
from wakeful.app.bus import Bus
from wakeful.app.chat_decisions import decide_by_chat
from wakeful.app.delivery import DeliveryFeature
from wakeful.app.features import plug_heartbeat, plug_workflows
from wakeful.app.heartbeat_settings import Heartbeat
from wakeful.app.incident_text import explained
from wakeful.app.money import Budgets, plug_money
from wakeful.app.options import Host, Options, refuse_unknown
from wakeful.app.run_endings import RunEndings
from wakeful.app.runtime_config import Changes, RuntimeConfig, changed
from wakeful.app.values import Declared, MakeService
from wakeful.core.delivery.alert_rules import AlertTerms
from wakeful.core.delivery.incidents import Incident
from wakeful.core.delivery.retries import DeliveryLimits
from wakeful.core.refusals import Conflict, NotStarted
from wakeful.core.run.effects import Alert, ChatDecision
from wakeful.core.self_scheduling.limits import SelfSchedulingTerms
from wakeful.core.time.instants import Duration, Instant
from wakeful.core.time.timing_builders import as_datetime, as_duration
from wakeful.engine.clock import SystemClock
from wakeful.engine.limits import Limits
from wakeful.features.delivery.incident_watch import IncidentText
from wakeful.features.heartbeat.feature import HeartbeatFeature
from wakeful.features.money.feature import Money
from wakeful.features.schedules.health import Finding
from wakeful.features.schedules.restored_store import take_found_older
from wakeful.features.schedules.rules import Terms
from wakeful.features.workflows.feature import Workflows
from wakeful.features.workflows.python import WorkflowCommands
from wakeful.integrations.actions.registry import CallRegistry
from wakeful.integrations.agents.call import CallAgent
from wakeful.integrations.calendars.files import CalendarFiles
from wakeful.observe.following import Following
from wakeful.observe.relay import Relay
from wakeful.observe.tracing import Tracing
from wakeful.ports.agent import Agent, Toolbox
from wakeful.ports.clock import Clock, Moment
from wakeful.ports.handlers import BackgroundService, FeatureHooks
from wakeful.ports.live import Live
from wakeful.ports.store import Store, Tx

if TYPE_CHECKING:
    from wakeful.features.quota.feature import Quota

OpenStore: TypeAlias = Callable[[str], Awaitable[bootstrap.Opened]]
Assemble: TypeAlias = Callable[[Store, Clock, bootstrap.Setup], Awaitable[bootstrap.Parts]]


class ApiParts(NamedTuple):
    """What the API, which is above the lifecycle, gives to the parts below."""

    write_declared: Callable[[], Awaitable[None]]  # writes the schedules that were declared before the start
    workflow_operations: Callable[[], WorkflowCommands]  # what workflows declared in Python ask
    toolbox: Toolbox  # the tools that chat models may call


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """The event loop of a program that has none; None: asyncio's."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


class AppLifecycle:
    """Configures, starts and stops an app. The other parts of the Python API inherit from it."""

    def __init__(self, store: str | Path, host: Host, options: Options, api: ApiParts) -> None:
        refuse_unknown(options)
        self._url, self._host, self._api = str(store), host, api
        self._registry = CallRegistry()
        self._setup = self._setup_of(options)
        self._services: list[BackgroundService] = []
        self._make_services = [] if self._host.background is None else [self._host.background]
        self._more_findings: list[Callable[[], Iterable[Finding]]] = []  # of what runs beside the app, for its health
        self._side_tasks: set[asyncio.Task[None]] = set()
        self._plug_in(options)
        self._own_agents: dict[str, str] = {}  # agents that are functions: their name in the registry, by agent
        self._self_scheduling = Live(options.get("self_scheduling") or SelfSchedulingTerms())
        self._bus = Bus()
        self._run_endings = RunEndings()
        self._ticks = options.get("tick", True)
        clock = options.get("clock")
        self._has_own_clock = clock is not None
        self._clock: Clock = clock or SystemClock()
        self._declared: list[Declared] = []
        self._parts: bootstrap.Parts | None = None
        self._ending: bootstrap.Parts | None = None  # set during the grace period of a shutdown

    def _setup_of(self, options: Options) -> bootstrap.Setup:
        host, home = self._host, options.get("home")
        terms = Terms(calendars=CalendarFiles(Path(home or ".")))
        given = {name: value for name, value in options.items() if name in Changes.__annotations__}
        config = changed(RuntimeConfig(Limits(), terms), cast(Changes, {"timezone": "local", **given}))
        return bootstrap.Setup(
            registry=self._registry,
            limits=config.limits,
            terms=config.terms,
            name=options.get("name"),
            agents=options.get("agents"),
            features=options.get("features", ()),
            receipts_at=host.receipts_at,
            api_at=host.api_at,
            home=None if home is None else str(home),
            withholds=host.withholds,
            redact=host.redact,
        )

    def _plug_in(self, options: Options) -> None:
        """The features that every app has."""
        heartbeat, budgets = options.get("heartbeat"), options.get("budgets")
        self._workflows = Workflows(
            modules=options.get("workflow_modules", ()),
            folder=self._host.workflow_folder,
            operations=self._api.workflow_operations,
        )
        self._heartbeat = heartbeat.feature() if isinstance(heartbeat, Heartbeat) else heartbeat or HeartbeatFeature()
        self._has_heartbeat = heartbeat is not None
        self._money = budgets.feature() if isinstance(budgets, Budgets) else budgets or Money()
        node = options.get("name") or socket.gethostname()
        self._tracing = Tracing(options.get("otel"), node, self._host.redact, self._host.providers)
        self._delivery = DeliveryFeature(
            options.get("channels"),
            options.get("delivery") or DeliveryLimits(),
            options.get("alerts") or AlertTerms(),
            explain=self._explain,
            ack_token=lambda: self._heartbeat.terms.ack.token,
            shared=lambda: self._money.terms.shared,
            is_traced=lambda: self._tracing.is_on,
        )

    # Tests on a virtual clock replace these.
    _open_store: OpenStore = staticmethod(bootstrap.open_store)
    _assemble: Assemble = staticmethod(bootstrap.assemble)

    @contextmanager
    def _moved_to(self, clock: Clock, open_store: OpenStore, assemble: Assemble) -> Iterator[None]:
        """Start on another clock, store and actions inside this context. Only channels and workflow handlers that are
        functions of this program are used, and nothing is traced. For tests on a virtual clock."""
        before, endpoint = (self._clock, self._has_own_clock), self._tracing.endpoint
        self._clock, self._has_own_clock = clock, True
        self._open_store, self._assemble = open_store, assemble
        self._tracing.endpoint = None
        try:
            with self._delivery.own_channels_only(), self._workflows.python_only():
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
            await bootstrap.replan_if_zones_changed(parts, bootstrap.zone_rules())
            await bootstrap.replan_if_cron_rules_changed(parts, self._clock.read().now)
            await parts.adopt(self._clock.read().now)
            await self._api.write_declared()
            await self._tracing.begin(parts.store, self._bus.fan_out)
            added = [make(parts) for make in self._make_services]
            for service in (self._tracing, *parts.services, *added, *self._reporter(store)):
                self._services.append(service)
                await service.start()
            if self._ticks:
                await self._report_older(parts)
                await parts.engine.start()
        except BaseException:
            self._parts = None
            await self._stop_services()
            await self._delivery.close()
            await store.close()
            raise

    @asynccontextmanager
    async def _only_assembled(self) -> AsyncIterator[None]:
        """Open the store and assemble everything, but start nothing: to ask what would be accepted."""
        store, clock, poll = await self._open_store(self._url)
        if not self._has_own_clock:
            self._clock = clock
        try:
            self._parts = await self._assemble(store, self._clock, self._complete_setup(store, poll))
            yield
        finally:
            parts, self._parts = self._parts, None
            for action in () if parts is None else parts.hooks.actions.values():
                await action.close()
            await self._delivery.close()
            await store.close()

    async def _report_older(self, parts: bootstrap.Parts) -> None:
        """Report once that the database is older than the one that was here, as if a copy had been put back."""
        copied_at = await parts.store.write(take_found_older)
        if copied_at is not None:
            text = (
                f"the database is older than the one that was here: it lacks what was written after {copied_at}. Runs "
                "that were open are unknown, instants since then are missed; nothing is repeated"
            )
            parts.engine.alert(Alert("store", text), self._clock.read().now)

    @property
    def _terms(self) -> Terms:
        """What applies to all schedules now."""
        return self._open.terms.value

    def _add_service(self, make: MakeService) -> None:
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
            await self._delivery.close()
        finally:
            self._ending = None
            await parts.store.close()

    async def _change(self, **changes: Unpack[Changes]) -> None:
        """Change the configuration while running: given values take effect immediately, except for runs in progress."""
        config = changed(RuntimeConfig(self._setup.limits, self._setup.terms), changes)
        self._setup = replace(self._setup, limits=config.limits, terms=config.terms)
        if self._parts is not None:
            await bootstrap.change(self._parts, *config)

    def _change_agents(self, agents: bootstrap.Agents) -> None:
        """Use these agents from now on; a turn in progress finishes with its agent."""
        self._setup = replace(self._setup, agents=agents)
        make = self._all_agents()
        if self._parts is not None and make is not None:
            bootstrap.change_agents(self._parts, make(self._clock, self._registry))

    def _change_self_scheduling(self, terms: SelfSchedulingTerms) -> None:
        """Use other limits for agents that schedule themselves from now on."""
        self._self_scheduling.value = terms

    async def _change_otel(self, endpoint: str | None) -> None:
        """Send traces to this OTLP/HTTP collector from now on; None: to none."""
        await self._tracing.change(endpoint)

    def _complete_setup(self, store: Store, poll: Duration | None) -> bootstrap.Setup:
        # The sink first: it also makes the listener.
        sink = self._bus.sink(None if self._host.sink is None else self._host.sink(store, self._clock))
        return replace(
            self._setup,
            limits=replace(self._setup.limits, poll=poll),
            agents=self._all_agents(),
            features=self._all_features(),
            toolbox=self._api.toolbox,
            self_scheduling=self._self_scheduling,
            sink=sink,
            traceparent=self._tracing.traceparent,
            listener=None if self._host.listener is None else self._host.listener(),
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
            self._delivery.plug,  # first: channels exist before anything that uses them starts
            partial(plug_money, self._money, on_change=self._delivery.publish_terms),
            self._plug_heartbeat if self._has_heartbeat or has_agents else self._plug_no_heartbeat,
            *self._setup.features,
            self._plug_approvals,
            partial(plug_workflows, self._workflows),
        )

    async def _plug_heartbeat(self, context: bootstrap.FeatureContext) -> FeatureHooks:
        return await plug_heartbeat(self._heartbeat, context, budget_note=self._money.used_up)

    async def _plug_no_heartbeat(self, context: bootstrap.FeatureContext) -> FeatureHooks:
        """A restored store may have turns of a heartbeat that this process does not have."""
        return FeatureHooks(forgo=[partial(self._heartbeat.forgo, apply=context.apply)])

    async def _plug_approvals(self, context: bootstrap.FeatureContext) -> FeatureHooks:
        """Plug in decisions by chat on agents' proposals."""

        def decide(tx: Tx, answer: ChatDecision, now: Instant) -> None:
            decide_by_chat(tx, answer, self._open, now)

        return FeatureHooks(appliers={ChatDecision: decide})

    def _explain(self, tx: Tx, incident: Incident, now: Instant) -> IncidentText:
        """The text of an incident for people."""
        terms, days = self._open.terms.value, self._setup.limits.ledger_days
        return explained(tx, incident, now, terms=terms, ledger_days=days, heartbeat=self._heartbeat.terms)

    def _reporter(self, store: Store) -> list[BackgroundService]:
        """Passes events to other processes on this store, and their events to this process's live stream."""
        relay = Relay(store, self._clock, self._bus.fan_out)
        stream = None if self._host.stream is None else self._host.stream()
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
        """Start, and run until SIGINT or SIGTERM; on uvloop if it is installed."""
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(self._run_until_signal())

    async def _run_until_signal(self) -> None:
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, ended.set)
        async with self:
            await ended.wait()

    @property
    def _is_ticking(self) -> bool:
        """Whether this process holds the clock."""
        return self._parts is not None and self._parts.engine.is_ticking

    @property
    def _is_started(self) -> bool:
        """Whether it accepts commands and queries."""
        return self._parts is not None

    @property
    def _store(self) -> Store:
        """The open store, for edges that keep their own data."""
        return self._in_use.store

    @property
    def now(self) -> datetime:
        """The time of its clock, in UTC. Use it instead of `datetime.now` in code tested on a virtual clock."""
        return as_datetime(self._clock.read().now)

    def _moment(self) -> Moment:
        """The time of its clock in milliseconds, with the monotonic time."""
        return self._clock.read()

    async def _run_of_token(self, token: str) -> int | None:
        """The run that a run token belongs to, while that attempt is running."""
        tokens = self._in_use.run_tokens
        known = None if tokens is None else tokens.read(token)
        if known is None:
            return None
        run_id, fence = known
        run = (await self._store.read(lambda tx: tx.runs.lock([run_id]))).get(run_id)
        is_current = run is not None and run.outcome == "running" and run.fence == fence
        return run_id if is_current else None

    async def sleep(self, duration: str | timedelta | Duration) -> None:
        """Sleep on its clock: a string such as `90s`, a timedelta, or milliseconds."""
        await self._clock.sleep(duration if isinstance(duration, int) else as_duration(duration, "duration"))

    @property
    def _in_use(self) -> bootstrap.Parts:
        """The open parts, or those of a shutdown while runs end: their functions may still ask for operations."""
        return self._ending or self._open

    @property
    def _open(self) -> bootstrap.Parts:
        if self._parts is None:
            raise NotStarted
        return self._parts

    def _quota(self) -> "Quota":
        """The quota slots."""
        if self._host.quota is None:
            raise Conflict("this process has no quota slots")
        return self._host.quota()
