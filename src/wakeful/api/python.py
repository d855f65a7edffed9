"""Wakeful for Python programs: a scheduler in this process over one store."""

import builtins
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, Unpack, cast

from wakeful.api.actors import Actor
from wakeful.api.health import Writable
from wakeful.api.ledger import Ledger
from wakeful.api.money import Money
from wakeful.api.old_names import OldNames
from wakeful.api.old_process import OldProcess
from wakeful.api.old_receipts import OldReceipts
from wakeful.api.old_schedules import OldSchedules
from wakeful.api.old_self_scheduling import OldSelfScheduling
from wakeful.api.people import People
from wakeful.api.schedules import Schedules
from wakeful.api.system import System
from wakeful.api.tools import toolbox
from wakeful.api.turns import Turns
from wakeful.api.verbs import Verbs
from wakeful.api.workflows import Workflows
from wakeful.app.action_forms import ON_DUE, register, warn_of_replaced_default
from wakeful.app.agents import Programs
from wakeful.app.costs import Costs
from wakeful.app.forecasting import Forecasting
from wakeful.app.lifecycle import ApiParts
from wakeful.app.merging import definition_options
from wakeful.app.options import Host, Options
from wakeful.app.queries import AppQueries
from wakeful.app.runs import Runs
from wakeful.app.schedule_options import JOB_NAMES, JobOptions, python_names, refuse_unknown
from wakeful.app.timing_forms import GivenTiming, timing_of
from wakeful.app.values import Declared
from wakeful.core.errors import refuse
from wakeful.core.refusals import NotFound
from wakeful.core.run.runs import Outcome
from wakeful.core.schedule.actions import Call
from wakeful.features.heartbeat.commands import Given
from wakeful.features.heartbeat.rules import HEARTBEAT
from wakeful.features.schedules import queries
from wakeful.features.schedules.run_views import RunView
from wakeful.features.schedules.views import ScheduleView, Status
from wakeful.features.schedules.why import Why
from wakeful.features.workflows.python import Workflow
from wakeful.integrations.channels.program import DeliverFunction
from wakeful.observe.stream import Handler

if TYPE_CHECKING:
    from wakeful.api.importing import Importer
    from wakeful.api.slots import Slots

PAGE: Final = 500

Filter: TypeAlias = str | Mapping[str, Any] | Callable[[ScheduleView], object]
F = TypeVar("F", bound=Callable[..., Any])


def _name_of(function: Callable[..., Any]) -> str:
    """The slug of a job that is given none."""
    name = getattr(function, "__name__", None)  # a partial and an object have none
    if not isinstance(name, str):
        what = type(function).__name__
        refuse("slug", f"a {what} has no name; give the job a slug, like app.job(every('2h'), 'report')")
    return name.lower()


class Wakeful(
    Verbs, OldNames, OldProcess, OldSchedules, OldSelfScheduling, OldReceipts, Forecasting, Runs, AppQueries, Costs
):
    """A durable scheduler over one store.

    `store` is the path of a SQLite file, or a `postgresql://…` address. Several processes may open the same file: one
    of them ticks, the others add and read, and when it ends another takes over. On PostgreSQL all of them tick.
    `tick=False` keeps this process from ever ticking.
    """

    # Inheritance gives users one flat list of methods, while each noun has its own file.

    def __init__(
        self, store: str | Path = "wakeful.db", *, host: Host | None = None, **options: Unpack[Options]
    ) -> None:
        api = ApiParts(self._write_declared, lambda: self.workflows, toolbox(self))
        super().__init__(store, host or Host(), options, api)

    @cached_property
    def schedules(self) -> Schedules:
        """Schedules."""
        return Schedules(self)

    @cached_property
    def ledger(self) -> Ledger:
        """Runs."""
        return Ledger(self)

    @cached_property
    def workflows(self) -> Workflows:
        """All workflows: deploy, list, run, resolve."""
        return Workflows(self)

    @cached_property
    def slots(self) -> "Slots":
        """Quota slots."""
        from wakeful.api.slots import Slots  # loads the settings, which programs without a daemon do not need

        return Slots(self)

    @cached_property
    def people(self) -> People:
        """Deliveries, channels, the inbox, alerts, approvals, and what needs attention."""
        return People(self)

    @cached_property
    def money(self) -> Money:
        """Costs and budgets."""
        return Money(self)

    @cached_property
    def _writable(self) -> Writable:
        return Writable(lambda: self._moment().monotonic, self._is_writable)

    @cached_property
    def _importer(self) -> "Importer":
        from wakeful.api.importing import Importer  # few programs import

        return Importer(self)

    @cached_property
    def turns(self) -> Turns:
        """Agents and the heartbeat."""
        return Turns(self)

    @cached_property
    def _programs(self) -> Programs:
        return Programs()

    @cached_property
    def system(self) -> System:
        """The process and its store."""
        return System(self)

    def job(self, timing: GivenTiming, slug: str | None = None, **options: Unpack[JobOptions]) -> Callable[[F], F]:
        """Decorate a function to be called at these times, given as a timing or as text (`"weekdays at 9:00"`). The
        slug is its name unless given.

        The schedule is written when the app starts; an identical one is left unchanged, so starting again is harmless.
        Text is read again then: `"in 20m"` counts from the start.
        """
        timing_of(timing, now=self._clock.read().now, default_zone=self._setup.terms.default_zone)
        refuse_unknown(options, JOB_NAMES)
        args = options.pop("args", None) or {}
        with python_names(options):
            fields = definition_options(options)

        def declare(function: F) -> F:
            name = slug or _name_of(function)
            target = register(self._registry, function, name)
            warn_of_replaced_default(function, args)
            self._declared.append(Declared(name, timing, Call(target, args), fields))
            return function

        return declare

    def on_due(self, handler: F) -> F:
        """Set the function that is called for schedules without their own action."""
        self._registry.register(ON_DUE, handler)
        warn_of_replaced_default(handler, {})
        return handler

    def agent(self, name: str = "default") -> Callable[[F], F]:
        """Decorate a function to be an agent, called by its `prompt` schedules and its heartbeat.

        It is called with `prompt`, and with the fire, `session_id` and `model` if it accepts them; it returns the reply
        as text, or None if there is nothing to report. Register it before the start."""
        if not isinstance(name, str):
            refuse("agent", "a function is not a name; write it as @app.agent(), with parentheses")

        def declare(function: F) -> F:
            self._own_agents[name] = register(self._registry, function, name)
            return function

        return declare

    def workflow(self, name: str) -> Workflow:
        """A workflow: declare its producers and consumers before the start; publish, run and query it afterwards."""
        return self._workflows.declare(name)

    def register_channel(self, name: str, to: str | None, deliver: DeliverFunction) -> Callable[[], None]:
        """Add a channel: `deliver(text)` is called with each text; if it raises, the delivery is retried later.

        Returns a function that removes it. Messages are queued durably and may arrive twice: give `deliver` a second
        argument to get the letter, whose `delivery_id` stays the same."""
        return self._delivery.register(name, to, deliver)

    def on(self, handler: Handler) -> Callable[[], None]:
        """Call a function with every event after the commit; returns unsubscribe. A function that raises is dropped."""
        return self._bus.on(handler, None, self._clock)

    def on_stream(self, name: str, handler: Handler) -> Callable[[], None]:
        """Call a function with the events of one stream (`runs`, `schedules`, `deliveries`, …); returns unsubscribe."""
        return self._bus.on(handler, name, self._clock)

    # --- schedules ----------------------------------------------------------------------------------------------------

    async def list(
        self,
        filter: Filter | None = None,
        *,
        status: str | None = None,
        contains: str | None = None,
        limit: int | None = None,
    ) -> builtins.list[ScheduleView]:
        """Schedules in slug order, optionally only those with a status or with a string in their slug. A filter is such
        a string, a mapping of these keywords, or a function that says whether to include a schedule."""
        if isinstance(filter, Mapping):
            return await self.list(**{"status": status, "contains": contains, "limit": limit, **filter})
        text = filter if isinstance(filter, str) else contains
        views: builtins.list[ScheduleView] = []
        cursor: str | None = None
        while True:
            page = await self.schedules.list(status=cast(Status, status), q=text, limit=PAGE, cursor=cursor)
            views += [
                view
                for view in page.schedules
                if view.version  # without proposals, which are no schedules yet
                and (text or "") in view.slug
                and (not callable(filter) or filter(view))
            ]
            cursor = page.next
            if cursor is None or (limit is not None and len(views) >= limit):
                return views[:limit]

    async def pause(self, slug: str, until: datetime | str | None = None) -> None:
        """Start nothing until the schedule is resumed, or until `until`. `heartbeat`: no beats; a wake still causes a
        turn."""
        if slug == HEARTBEAT:
            await self.turns.pause_heartbeat(until=until)
        else:
            await self.schedules.pause(slug, until=until)

    async def resume(self, slug: str) -> None:
        """Resume a paused or disabled schedule, or `heartbeat`, from now on; its error count is reset."""
        if slug == HEARTBEAT:
            await self.turns.resume_heartbeat()
        else:
            await self.schedules.resume(slug)

    async def why(self, slug: str, *, at: datetime | str | None = None, viewer: str | None = None) -> Why:
        """Explain the current state, or what happened or will happen at an instant: one sentence, and the facts. A
        `viewer` is an agent, which is not told the names of what it does not own."""
        return await self._look(lambda tx, now: self._why_in(tx, slug, at=at, viewer=viewer, now=now))

    async def find(self, slug: str) -> ScheduleView | None:
        """The schedule with that slug; None if there is none, where `get` raises `NotFound`."""
        try:
            return await self.schedules.get(slug)
        except NotFound:
            return None

    # --- runs ---------------------------------------------------------------------------------------------------------

    async def run_now(self, slug: str, *, wait: bool = False, within: str | timedelta = "60s") -> RunView:
        """Run once now, without changing the cadence; with `wait`, returns when the run has ended."""
        run_id = (await self.schedules.run(slug)).run_id
        if wait:
            return await self.wait_for(run_id, within=within)
        return await self._look(lambda tx, _: queries.run(tx, run_id))

    async def runs(
        self,
        slug: str | None = None,
        *,
        limit: int = 100,
        before_id: int | None = None,
        outcome: Outcome | None = None,
    ) -> builtins.list[RunView]:
        """Rows of the ledger, newest first."""
        return (await self.ledger.list(slug=slug, limit=limit, cursor=before_id, outcome=outcome)).runs

    async def cancel(self, run_id: int, *, by: str = "") -> RunView:
        """Cancel a run that is running or waiting. Raises `Conflict` if it has ended.

        A running run ends shortly afterwards: use `wait_for`. `by` is recorded as who asked."""
        return await Ledger(self, Actor(name=by)).cancel(run_id)

    async def replay(self, run_id: int) -> RunView:
        """Run a finished run's instant once more, outside the plan."""
        return cast(RunView, await self.ledger.replay(run_id))

    async def backfill(
        self, slug: str, since: datetime | str, until: datetime | str, *, apply: bool = False, by: str = ""
    ) -> int:
        """Run the past instants in [since, until] that have not succeeded, one after another; returns how many. Without
        `apply` nothing runs."""
        return (await Ledger(self, Actor(name=by)).backfill(slug, since, until, dry_run=not apply)).instants

    async def request_wake(
        self, reason: Given = "manual", text: str | None = None, context_key: str | None = None
    ) -> bool:
        """Request a heartbeat turn, and tell the agent why; returns whether it was merged into one already requested.

        Requests within 250 ms become one turn. `text` becomes a system event, replacing an earlier one with the same
        `context_key`."""
        return (await self.turns.wake(reason, text, None if text is None else context_key)).is_coalesced
