"""Wakeful for Python programs: schedules in one file, rung by this process."""

import asyncio
import builtins
import secrets
import signal
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeVar, Unpack

from wakeful import bootstrap
from wakeful.actions.registry import CallRegistry
from wakeful.app.beating import Beating
from wakeful.app.bus import Bus
from wakeful.app.conduct import Changes, Conduct, changed
from wakeful.app.delivering import Delivering, MakeChannels
from wakeful.app.merging import json_names
from wakeful.app.performing import ON_DUE, action_of, register
from wakeful.app.plugging import plug_workflows
from wakeful.app.values import Guard, MakeBeside, MakeListener, MakeSink, New, Written
from wakeful.app.writing import Writing, held
from wakeful.channels.program import DeliverFunction
from wakeful.core.actions import Call
from wakeful.core.delivery import DeliveryLimits
from wakeful.core.instants import Instant, parse_duration
from wakeful.core.refusals import Conflict
from wakeful.core.runs import Outcome, Run
from wakeful.core.timing import Timing
from wakeful.core.timing_builders import as_instant
from wakeful.engine.clock import SystemClock
from wakeful.engine.limits import Limits
from wakeful.features.delivery.views import DeliveryView
from wakeful.features.heartbeat.feature import HeartbeatFeature
from wakeful.features.heartbeat.queries import HeartbeatView
from wakeful.features.heartbeat.terms import HEARTBEAT
from wakeful.features.schedules import commands, queries, timeline
from wakeful.features.schedules.adopting import adopt_copy
from wakeful.features.schedules.health import Finding, Health, health, is_writable
from wakeful.features.schedules.queries import Ahead, Choice, Page, Pulse, Stats
from wakeful.features.schedules.terms import AgentLane, Terms
from wakeful.features.schedules.views import RunView, ScheduleView, as_datetime
from wakeful.features.schedules.why import Why, why
from wakeful.features.workflows.feature import Workflows
from wakeful.features.workflows.python import Workflow
from wakeful.ports.clock import Clock, Moment
from wakeful.ports.handlers import Beside, OnSettings
from wakeful.ports.store import Store, SystemEvent, Tx
from wakeful.telemetry.stream import Handler

F = TypeVar("F", bound=Callable[..., Any])

PAGE: Final = 500
WAIT_STEP: Final = 20
NOT_STARTED: Final = "not started; use `async with app:` or `await app.start()` first"


class Wakeful:
    """A durable scheduler over one store.

    `store` is the path of a SQLite file, or a `postgresql://…` address. Several processes may open the same file: one
    of them ticks, the others add and read, and when it ends another takes over. On PostgreSQL all of them tick.
    `tick=False` keeps this process from ever ticking.
    """

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
        tick: bool = True,
        name: str | None = None,
        clock: Clock | None = None,
        agents: bootstrap.Agents | None = None,
        receipts_at: str | None = None,
        sink: MakeSink | None = None,
        listener: MakeListener | None = None,
        beside: MakeBeside | None = None,
        features: Sequence[bootstrap.MakeFeature] = (),
        workflow_modules: Sequence[str] = (),
        heartbeat: HeartbeatFeature | None = None,
        channels: MakeChannels | None = None,
        delivery: DeliveryLimits | None = None,
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
        )
        self._url = str(store)
        self._conduct = changed(Conduct(Limits(), Terms()), given)
        self._agents = agents
        self._receipts_at = receipts_at
        self._make_sink = sink
        self._make_listener = listener
        self._make_beside = beside
        self._besides: list[Beside] = []
        self._workflows = Workflows(modules=workflow_modules)
        self._heartbeat = heartbeat or HeartbeatFeature()
        has_heartbeat = heartbeat is not None or agents is not None  # who cannot ask an agent has no use for it
        self._delivering = Delivering(channels, delivery or DeliveryLimits())
        self._bus = Bus()
        self._features: tuple[bootstrap.MakeFeature, ...] = (
            self._delivering.plug,  # first: channels are there before anything that uses them starts
            *([bootstrap.plugged(self._heartbeat)] if has_heartbeat else []),
            *features,
            partial(plug_workflows, self._workflows),
        )
        self._ticks = tick
        self._name = name
        self._has_own_clock = clock is not None
        self._clock: Clock = clock or SystemClock()
        self._registry = CallRegistry()
        self._declared: list[New] = []
        self._parts: bootstrap.Parts | None = None
        self._ending: bootstrap.Parts | None = None  # while runs under way get their grace
        self._written_by: Writing | None = None
        self._beating: Beating | None = None

    # --- declaring ---------------------------------------------------------------------------------------------------

    def job(
        self, timing: Timing, slug: str | None = None, *, args: Mapping[str, Any] | None = None, **options: Any
    ) -> Callable[[F], F]:
        """Decorate a function to be called at these times. The slug is its name unless given.

        The schedule is written when the app starts; an identical one is left as it is, so starting again is harmless.
        """

        def declare(function: F) -> F:
            name = slug or function.__name__.lower()
            target = register(self._registry, function, name)
            self._declared.append(New(name, timing, Call(target, args or {}), json_names(options)))
            return function

        return declare

    def on_due(self, handler: F) -> F:
        """Set the function that is called for schedules added without an action of their own."""
        self._registry.register(ON_DUE, handler)
        return handler

    def workflow(self, name: str) -> Workflow:
        """A workflow: declare its producers and consumers before the start; publish, run and ask after it."""
        return self._workflows.declare(name)

    @property
    def workflows(self) -> Workflows:
        """All workflows: deploy, list, resolve."""
        return self._workflows

    def register_channel(self, name: str, to: str | None, deliver: DeliverFunction) -> Callable[[], None]:
        """Add a way to a person: `deliver(text)` is called with each text; what it raises is tried again later.

        Answers how to take it away. Texts are queued durably and may come twice: give `deliver` a second argument to
        get the letter, whose `delivery_id` stays the same."""
        return self._delivering.register(name, to, deliver)

    def on(self, handler: Handler) -> Callable[[], None]:
        """Call it with every event, after the commit; answers how to stop. One that raises is dropped."""
        return self._bus.on(handler, None, self._clock)

    def on_stream(self, name: str, handler: Handler) -> Callable[[], None]:
        """Call it with the events of one stream (`runs`, `schedules`, `deliveries`, …); answers how to stop."""
        return self._bus.on(handler, name, self._clock)

    # --- life --------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Open the store, write the declared jobs, and begin to tick (or wait for the clock)."""
        if self._parts is not None:
            return
        store, clock, poll = await bootstrap.open_store(self._url)
        if not self._has_own_clock:
            self._clock = clock
        try:
            self._parts = parts = await bootstrap.assemble(
                store,
                self._clock,
                registry=self._registry,
                limits=replace(self._conduct.limits, poll=poll),
                schedule_limits=self._conduct.terms.limits,
                timezone=self._conduct.terms.default_zone,
                name=self._name,
                agents=self._agents,
                receipts_at=self._receipts_at,
                # The sink first: whoever listens to exchanges is made with it.
                sink=self._bus.sink(None if self._make_sink is None else self._make_sink(store, self._clock)),
                listener=None if self._make_listener is None else self._make_listener(),
                features=self._features,
                standby=self._conduct.terms.is_standby,
                agent_lane=self._conduct.terms.agent_lane,
            )
            self._written_by = Writing(parts)
            self._beating = Beating(parts, self._heartbeat)
            await bootstrap.replan_if_zones_changed(parts, bootstrap.zone_rules())
            also = [partial(self._heartbeat.forgo, apply=parts.apply)]
            await adopt_copy(parts.store, parts.seams, parts.compilations, now=self._clock.read().now, also=also)
            await self.add_many(self._declared)
            for beside in (*parts.besides, *([] if self._make_beside is None else [self._make_beside(parts)])):
                self._besides.append(beside)
                await beside.start()
            if self._ticks:
                await parts.engine.start()
        except BaseException:
            self._parts = None
            await self._stop_besides()
            await self._delivering.close()
            await store.close()
            raise

    async def stop(self) -> None:
        """Stop claiming, let runs end within their grace, record what is left, close the store."""
        parts, self._parts = self._parts, None
        if parts is None:
            return
        self._ending = parts
        try:
            await parts.engine.stop()
            await self._stop_besides()
            for action in parts.seams.actions.values():
                await action.close()
            await self._delivering.close()
        finally:
            self._ending = None
            await parts.store.close()

    async def change(self, **changes: Unpack[Changes]) -> None:
        """Change how it behaves while it runs: what is given, at once; what is under way goes on as it began."""
        self._conduct = changed(self._conduct, changes)
        if self._parts is not None:
            await bootstrap.change(self._parts, *self._conduct)

    def change_agents(self, agents: bootstrap.Agents) -> None:
        """Ask these agents from now on; a turn under way ends with the one it began with."""
        self._agents = agents
        if self._parts is not None:
            bootstrap.change_agents(self._parts, agents(self._clock, self._registry))

    async def _stop_besides(self) -> None:
        while self._besides:
            await self._besides.pop().stop()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    def run(self) -> None:
        """Start, and go on until SIGINT or SIGTERM."""
        asyncio.run(self._run_until_signal())

    async def _run_until_signal(self) -> None:
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, ended.set)
        async with self:
            await ended.wait()

    @property
    def is_ticking(self) -> bool:
        """Whether this process holds the clock."""
        return self._parts is not None and self._parts.engine.is_ticking

    @property
    def is_started(self) -> bool:
        """Whether it is open for commands and questions."""
        return self._parts is not None

    @property
    def on_settings(self) -> Sequence[OnSettings]:
        """Features that live by settings, to be told when those change."""
        return self._open.on_settings

    @property
    def store(self) -> Store:
        """The store it is open on, for edges that keep something of their own."""
        return (self._ending or self._open).store

    def moment(self) -> Moment:
        """What its clock says."""
        return self._clock.read()

    # --- schedules ---------------------------------------------------------------------------------------------------

    async def add(
        self,
        slug: str | None,
        timing: Timing,
        *,
        call: str | Callable[..., Any] | None = None,
        command: Sequence[str] | Mapping[str, Any] | None = None,
        http: str | Mapping[str, Any] | None = None,
        prompt: str | None = None,
        event: str | Mapping[str, Any] | None = None,
        args: Mapping[str, Any] | None = None,
        isolate: str | None = None,
        **options: Any,
    ) -> str:
        """Add a schedule, or update the one of that slug, keeping where it stands; answers the slug.

        Exactly one of call, command, http, prompt and event says what to do; with none of them the `on_due` handler is
        called. Options are those of a definition in snake_case: catch_up, max_lateness, overlap, timeout, on_crash,
        retry, max_consecutive_errors, active_hours, stagger, lane, enabled and so on.
        """
        given = {"call": call, "command": command, "http": http, "prompt": prompt, "event": event}
        name = slug if slug is not None else f"job-{secrets.token_hex(4)}"
        what = {kind: value for kind, value in given.items() if value is not None}
        action = action_of(self._registry, name, what, args, isolate, options)
        await self._writing.add(New(name, timing, action, json_names(options)))
        return name

    async def add_many(self, schedules: Sequence[New]) -> builtins.list[str]:
        """Add or update many schedules; all are checked before any is written."""
        await self._writing.add_many(schedules)
        return [new.slug for new in schedules]

    async def put(self, slug: str, definition: Mapping[str, Any]) -> commands.Put:
        """Write a definition in its JSON shape."""
        return await self._writing.put(slug, definition)

    async def write(
        self, slug: str, definition: Any, *, guard: Guard | None = None, is_rehearsal: bool = False
    ) -> Written:
        """Write a definition in its JSON shape and read it back, in one transaction; a rehearsal leaves no trace."""
        return await self._writing.write(slug, definition, guard, is_rehearsal)

    async def patch(
        self, slug: str, changes: Mapping[str, Any], *, guard: Guard | None = None, is_rehearsal: bool = False
    ) -> Written:
        """Merge changes into a definition (RFC 7396, by its JSON names) and read it back, in one transaction."""
        return await self._writing.patch(slug, changes, guard, is_rehearsal)

    async def update(self, slug: str, *, if_version: int | None = None, **changes: Any) -> None:
        """Change some of a definition, by its JSON names in snake_case; None takes a field back to what is usual."""
        await self._writing.update(slug, if_version, changes)

    async def remove(self, slug: str, *, guard: Guard | None = None) -> None:
        """Take a schedule away; a run under way ends, and the ledger stays."""

        def remove(tx: Tx, now: Instant) -> None:
            if guard is not None:
                guard(held(tx, slug))
            commands.remove(tx, slug, seams=self._open.seams, now=now)

        await self._writing.command(remove)

    async def pause(self, slug: str, until: datetime | str | None = None) -> None:
        """Let nothing of it start until resumed, or until a time."""
        ends = None if until is None else as_instant(until, "until")
        await self._writing.command(
            lambda tx, now: commands.pause(tx, slug, seams=self._open.seams, now=now, until=ends)
        )

    async def resume(self, slug: str) -> None:
        """Let a paused or disabled schedule go on from now; its row of errors begins anew."""
        await self._writing.command(lambda tx, now: commands.resume_schedule(tx, slug, now=now))

    async def run_now(self, slug: str, *, wait: bool = False, within: str = "60s") -> RunView:
        """One attempt at once, without touching the cadence; with `wait`, answers when it has ended."""
        run_id = await self._writing.command(lambda tx, now: commands.run_now(tx, slug, now=now))
        if wait:
            return await self.wait_for(run_id, within=within)
        return await self.get_run(run_id)

    async def wait_for(self, run_id: int, *, within: str = "60s") -> RunView:
        """The run, when it has ended; not ended `within` that time, a Conflict says how far it is."""
        give_up = self._clock.read().monotonic + parse_duration(within, "within")
        while True:
            run = await self.get_run(run_id)
            if run.outcome not in ("running", "waiting"):
                return run
            if self._clock.read().monotonic >= give_up:
                raise Conflict(f"run {run_id} is still {run.outcome} after {within}")
            await self._clock.sleep(WAIT_STEP)

    async def receive(
        self, run_id: int, token: str, rung: str, *, text: Any = None, usage: Any = None, error: Any = None
    ) -> str:
        """Take a receipt that an agent or a command posted: taken, late, again, or forged."""
        receipts = (self._ending or self._open).receipts  # a run that gets its grace may be waiting for just this
        if receipts is None:
            return "forged"
        return await receipts.post(run_id, token, rung, text, usage, error)

    # --- the heartbeat -----------------------------------------------------------------------------------------------

    async def request_wake(
        self,
        reason: str = "manual",
        text: str | None = None,
        context_key: str | None = None,
        *,
        source: str | None = None,
        run: tuple[int, str] | None = None,
    ) -> bool:
        """Ask for a turn of the heartbeat, and tell the agent why; answers whether one was asked for already.

        Requests within 250 ms become one turn. `text` becomes a system event, in place of an earlier one of the same
        `context_key`. A turn that asks through its tools gives its `run`: id and token."""
        return await self._beats.request_wake(reason, text=text, context_key=context_key, source=source, run=run)

    async def heartbeat(self) -> tuple[HeartbeatView, builtins.list[RunView]]:
        """How the heartbeat stands, with its last turns."""
        return await self._beats.standing()

    async def system_events(self) -> builtins.list[SystemEvent]:
        """What waits to be told in the next turn."""
        return await self._beats.events()

    # --- people ------------------------------------------------------------------------------------------------------

    @property
    def delivering(self) -> Delivering:
        """The outbox, the channels and the inbox."""
        return self._delivering

    async def deliver(self, text: str, *, channel: str | None = None, to: str | None = None) -> DeliveryView:
        """Say something to a person: by this channel, else where they were last heard of, else the first there is."""
        return await self._delivering.send(text, channel=channel, to=to)

    async def touch(self, channel: str, to: str | None = None) -> None:
        """A person was heard of there: what has no channel of its own goes there from now on."""
        await self._delivering.touch(channel, to)

    # --- questions ---------------------------------------------------------------------------------------------------

    async def get(self, slug: str) -> ScheduleView:
        """One schedule as it stands."""
        return await self._open.store.read(lambda tx: queries.get(tx, slug))

    async def list(
        self, *, status: str | None = None, contains: str | None = None, limit: int | None = None
    ) -> builtins.list[ScheduleView]:
        """Schedules in slug order, of one status or with a text in their slug."""
        found = [view async for view in self._iterate(contains) if status is None or view.status == status]
        return found if limit is None else found[:limit]

    async def search(self, choice: Choice, *, recent: int = 0) -> tuple[Page, dict[str, builtins.list[Run]]]:
        """A page of schedules, and by slug the newest rows of the ledger of each; costs the same among any number."""

        def look(tx: Tx) -> tuple[Page, dict[str, builtins.list[Run]]]:
            page = queries.chosen(tx, choice)
            return page, timeline.latest(tx, page.schedules, limit=recent) if recent else {}

        return await self._open.store.read(look)

    async def timeline(
        self, choice: Choice, *, since: Instant, until: Instant
    ) -> tuple[builtins.list[timeline.Row], str | None]:
        """A page of schedules between two times, and the slug after which to go on."""
        now = self._clock.read().now

        def look(tx: Tx) -> tuple[builtins.list[timeline.Row], str | None]:
            page = queries.chosen(tx, choice)
            return timeline.rows(tx, page.schedules, now=now, since=since, until=until), page.next

        return await self._open.store.read(look)

    async def upcoming(self, until: Instant, *, limit: int = 100) -> Ahead:
        """What all schedules are going to start until a time, in order."""
        now = self._clock.read().now
        return await self._open.store.read(lambda tx: queries.upcoming(tx, now=now, until=until, limit=limit))

    async def pulse(self) -> Pulse:
        """Who ticks, and what hangs."""
        return await self._open.store.read(queries.pulse)

    async def health(self) -> Health:
        """Whether the clock is alive, and what is amiss with it; cheap enough to be asked often."""
        now = self._clock.read().now
        return await self._open.store.read(lambda tx: health(tx, now=now, with_schedules=False))

    async def is_writable(self) -> Finding:
        """Whether the store can be written, tried out."""
        return await is_writable(self._open.store, self._clock)

    async def runs(
        self,
        slug: str | None = None,
        *,
        limit: int = 100,
        before_id: int | None = None,
        outcome: Outcome | None = None,
    ) -> builtins.list[RunView]:
        """Rows of the ledger, newest first."""
        return await self._open.store.read(
            lambda tx: queries.runs(tx, slug, limit=limit, before_id=before_id, outcome=outcome)
        )

    async def get_run(self, run_id: int) -> RunView:
        """One row of the ledger."""
        return await self._open.store.read(lambda tx: queries.run(tx, run_id))

    async def stats(self, slug: str, *, since: datetime | str | None = None) -> Stats:
        """Counts, success rate, durations and streak of a schedule."""
        start: Instant = 0 if since is None else as_instant(since, "since")
        return await self._open.store.read(lambda tx: queries.stats(tx, slug, since=start))

    async def why(self, slug: str, *, at: datetime | str | None = None) -> Why:
        """Why it stands as it does, or what became or will become of an instant: one sentence, and the facts."""
        parts, now = self._open, self._clock.read().now
        asked = None if at is None else as_instant(at, "at")
        if slug == HEARTBEAT:
            return await self._beats.why(asked)
        terms, days = parts.terms.value, self._conduct.limits.ledger_days
        return await parts.store.read(lambda tx: why(tx, slug, at=asked, now=now, terms=terms, ledger_days=days))

    async def next_times(
        self, slug: str, count: int = 5, *, after: datetime | str | None = None
    ) -> builtins.list[datetime]:
        """The next planned instants, strictly after a time (now, if left out)."""
        start = self._clock.read().now if after is None else as_instant(after, "after")
        instants = await self._open.store.read(lambda tx: queries.next_times(tx, slug, after=start, count=count))
        return [at for at in map(as_datetime, instants) if at is not None]

    # --- inside ------------------------------------------------------------------------------------------------------

    @property
    def _open(self) -> bootstrap.Parts:
        if self._parts is None:
            raise RuntimeError(NOT_STARTED)
        return self._parts

    @property
    def _writing(self) -> Writing:
        if self._parts is None or self._written_by is None:
            raise RuntimeError(NOT_STARTED)
        return self._written_by

    @property
    def _beats(self) -> Beating:
        if self._parts is None or self._beating is None:
            raise RuntimeError(NOT_STARTED)
        return self._beating

    async def _iterate(self, contains: str | None) -> AsyncIterator[ScheduleView]:
        after: str | None = None
        while True:
            page = await self._open.store.read(partial(queries.page, after=after, limit=PAGE, contains=contains))
            for view in page:
                yield view
            if len(page) < PAGE:
                return
            after = page[-1].slug
