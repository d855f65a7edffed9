"""Agents' tools: what an agent may call by name, over MCP, REST, or as the tools of a chat model.

Parameters are flat, the order is fixed, and every rule is enforced behind it (`api.schedules`, `app.owned_writing`). A
refusal says what to do next. The words here are read by models: names, titles and texts are part of what was released.
"""

import shlex
from collections.abc import Callable, Coroutine, Mapping
from typing import Annotated, Any, Concatenate, Final, Literal, ParamSpec, TypeVar

from wakeful.api.actors import Actor, Agent
from wakeful.api.operation import About, Noun, Operation, Returns
from wakeful.api.parameters import Param
from wakeful.api.reading import NEW_SLUG
from wakeful.api.schedules import Schedules
from wakeful.api.tool_results import (
    PENDING,
    Deleted,
    Expected,
    OwnForecast,
    OwnSchedule,
    OwnSchedules,
    Preview,
    Put,
    Reported,
    Wakening,
    own_schedule,
    preview,
    put_result,
)  # fmt: skip
from wakeful.app import owned_writing
from wakeful.app.owned_writing import put_owned, times_after_now, timing_of_text
from wakeful.core.errors import refuse
from wakeful.core.refusals import Conflict, NotFound
from wakeful.core.time.instants import DAY, MINUTE
from wakeful.core.time.timing_json import timing_to_json
from wakeful.features.schedules.owned import of_agents
from wakeful.features.schedules.views import ScheduleView
from wakeful.features.schedules.why import Why

N = TypeVar("N", bound=Noun)
P = ParamSpec("P")
R = TypeVar("R")

FORECAST_DAYS_MAX: Final = 31
BUSY_MAX: Final = 200
INSTRUCTIONS: Final = (
    "Wakeful runs prompts and commands at set times, durably. Use wake_me for 'remind me in 20 minutes' or 'look "
    "again later': it gives you one more turn in this session. Use put_schedule for what repeats, or happens at a "
    "date. Before you create something, list_schedules shows what you already have: update that instead. A prompt "
    "that you were started with may mention times ('every Monday'); that does not mean you should schedule it again. "
    "When a result says `pending`, a person has to approve it first: tell them, and do not try again."
)
_WHEN: Final = (
    "The timing, in words or as cron: 'every 2h', '0 9 * * 1-5' (cron), 'weekdays at 9:00', 'every monday at 9:00', "
    "'tomorrow at 9:00', 'at 2026-12-01T09:00+01:00', 'in 20m'."
)
When = Annotated[str, Param(_WHEN)]
Zone = Annotated[
    str | None,
    Param("IANA time zone of the times in `when`, such as Europe/Berlin. Default: the zone of the person."),
]
OwnSlug = Annotated[
    str,
    Param(
        "Short name of the schedule, a-z 0-9 . _ -; it is yours alone, and the same name always means the same "
        "schedule.",
        owned=NEW_SLUG,
    ),
]


def tool(
    title: str, *, hint: Literal["reads", "destroys"] | None = None, commands: bool = False
) -> Callable[[Callable[Concatenate[N, P], Coroutine[Any, Any, R]]], Operation[P, R]]:
    """A tool. Its name is the function's, and its text is the function's docstring."""
    about: About = {"agents": True, "commands": commands, **({} if hint is None else {"hint": hint})}
    return lambda function: Operation(
        function, "perform", f"POST /api/tools/{function.__name__}", title, [Returns(None, title)], about
    )


class Tools(Noun):
    """What an agent may call by name."""

    @tool("Preview when a schedule would run", hint="reads", commands=True)
    async def preview_schedule(self, when: When, timezone: Zone = None) -> Preview:
        """Check how a time text is understood, and see its next five times. Nothing is written. Use it when you are
        not sure about `when`."""
        timing = timing_of_text(self._app, when, timezone)
        return preview(timing, times_after_now(self._app, timing), default_zone=self._app._open.conditions.default_zone)

    @tool("Create or change one of your schedules")
    async def put_schedule(
        self,
        slug: OwnSlug,
        when: When,
        timezone: Zone = None,
        prompt: Annotated[
            str | None,
            Param("What you will be asked at that time, in full: you will not remember this conversation."),
        ] = None,
        command: Annotated[
            str | None,
            Param("A program and its arguments, such as 'make report'. No shell: for pipes write sh -c '…'."),
        ] = None,
        note: Annotated[
            str | None, Param("Why you want this, in one sentence, for the person who approves it.")
        ] = None,
    ) -> Put:
        """Create one of your schedules, or change the one with this slug; the same slug is never created twice. Give
        exactly one of prompt and command. The result's status is created, updated, unchanged (it already existed), or
        pending (a person has to approve it; tell them). `perMonth` says how often a prompt runs in 30 days, and what
        that costs in US dollars, if it is known. Do not schedule what you were started to do: if your prompt says
        'every Monday', it is scheduled already."""
        if (prompt is None) == (command is None):
            refuse("prompt", "give exactly one of prompt and command")
        app, timing = self._app, timing_of_text(self._app, when, timezone)
        definition: dict[str, Any] = {"schedule": timing_to_json(timing)}
        definition |= {"command": {"argv": _argv(command)}} if command is not None else {"prompt": prompt}
        written = await put_owned(app, self._agent, slug, definition, note=note)
        cost = await app._cost_of(written.view)
        seen = preview(written.timing, written.next_times, default_zone=app._open.conditions.default_zone)
        return put_result(written, seen, None if cost is None else cost["perMonth"])

    @tool("List your schedules", hint="reads")
    async def list_schedules(
        self, q: Annotated[str | None, Param("Only those with this text in the slug, prompt or command.")] = None
    ) -> OwnSchedules:
        """All your schedules with their state, including those waiting for approval, and how many more you may have.
        Call it before you create one."""
        views = (await self._schedules.list(q=q)).schedules
        live = [view for view in views if view.status != "done" and not _is_wake(view)]
        left = self._app._self_scheduling.value.schedules_max - len({view.slug for view in live})
        return OwnSchedules([own_schedule(view) for view in views], max(0, left))

    @tool("Pause, resume or delete one of your schedules", hint="destroys")
    async def set_schedule_state(
        self, slug: OwnSlug, state: Annotated[Literal["paused", "active", "deleted"], Param("The new state.")]
    ) -> OwnSchedule | Deleted:
        """Pause, resume or delete one of your schedules. Only a person can resume what a person stopped."""
        if state == "deleted":
            await self._schedules.remove(slug)
            return Deleted(state, slug)
        change = self._schedules.pause if state == "paused" else self._schedules.resume
        return own_schedule(await change(slug), status=state)

    @tool("Get one more turn later", commands=True)
    async def wake_me(
        self,
        *,
        after: Annotated[str | None, Param("How long from now, such as 20m, 2h or 1d.")] = None,
        at: Annotated[str | None, Param("A point in time: 'tomorrow at 9:00' or '2026-12-01T09:00+01:00'.")] = None,
        text: Annotated[str, Param("The text you will get at that time, with everything you need to know.")],
    ) -> Wakening:
        """Get one more turn in this session at a later time, with your text as the prompt: 'remind me in 20 minutes',
        'look again when the build is done'. Give exactly one of after and at."""
        if (after is None) == (at is None):
            refuse("after", "give exactly one of after and at")
        when = str(after or at).strip()
        if at is None and not when.lower().startswith("in "):
            when = f"in {when}"
        agent = self._agent
        written = await owned_writing.wake_me(self._app, agent, when, text)
        seen = preview(written.timing, written.next_times, default_zone=self._app._open.conditions.default_zone)
        session = "in this session" if agent.run_id is not None and agent.is_agent_run else "in a new session"
        return Wakening(
            status=written.result,
            slug=written.view.slug,
            understood=seen.understood,
            timezone=seen.timezone,
            next_times=seen.next_times,
            turn=f"one turn {session}, with your text as the prompt",
            message=None if written.proposal is None else PENDING,
        )

    @tool("Report the progress of the current run", commands=True)
    async def report_run(
        self,
        rung: Annotated[Literal["accepted", "started", "finished"], Param("How far the run has got.")],
        text: Annotated[str | None, Param("The result for the person, with finished.")] = None,
        usage: Annotated[
            Mapping[str, Any] | None,
            Param('Tokens used, such as {"input": 1200, "output": 300}.', schema={"type": "object"}),
        ] = None,
        error: Annotated[str | None, Param("What went wrong, if it failed.")] = None,
    ) -> Reported:
        """Report the run you are in: accepted, started, or finished with a text or an error. Only inside a run."""
        run_id = self._agent.run_id
        if run_id is None:
            raise Conflict("report_run reports the run it is called from, and this call does not come from a run")
        receipts = self._app._receipts
        if receipts is None:
            raise Conflict("this process does not accept receipts; start the daemon")
        status = await self._app._post_receipt(run_id, receipts.token(run_id), rung, text, usage, error)
        return Reported(status, run_id)

    @tool("Explain one of your schedules", hint="reads")
    async def explain(
        self,
        slug: OwnSlug,
        at: Annotated[
            str | None, Param("A point in time, such as 2026-12-01T09:00:00Z. Default: its state now.")
        ] = None,
    ) -> Why:
        """Why one of your schedules ran, did not run, or will not run, in one sentence with the facts."""
        return await self._schedules.why(slug, at=at)

    @tool("What will run, and what it may cost", hint="reads")
    async def forecast(
        self,
        days: Annotated[
            int | None,
            Param("How many days ahead, 1 to 31. Default 7.", least=1, most=FORECAST_DAYS_MAX, unchecked=True),
        ] = None,
    ) -> OwnForecast:
        """The runs of your schedules in the coming days, their expected cost from past runs, and the times at which
        other work is planned (busy), so that you can choose a free one."""
        app, days = self._app, days or 7
        if not 1 <= days <= FORECAST_DAYS_MAX:
            refuse("days", f"{days} is not between 1 and {FORECAST_DAYS_MAX}")
        now = app._moment().now
        views = [view for view in (await self._schedules.list()).schedules if view.approval != "pending"]
        made = await app.forecast(days)
        by_slug = {row["slug"]: row for row in made["schedules"]}
        own = sorted({view.slug for view in views if view.status != "done"})
        rows = [_expected(slug, by_slug.get(slug)) for slug in own]
        ahead = await app.schedules.upcoming(now + days * DAY, limit=BUSY_MAX)
        # An agent sees when people's work runs, and nothing of other agents.
        hidden = await app._look(lambda tx, _: of_agents(tx, {instant.slug for instant in ahead.instants}))
        busy = sorted({instant.due_at // MINUTE * MINUTE for instant in ahead.instants if instant.slug not in hidden})
        known = [row.cost for row in rows if row.cost is not None]
        return OwnForecast(days, rows, sum(row.runs for row in rows), sum(known) if known else None, busy)

    @property
    def _agent(self) -> Agent:
        """The agent that asks."""
        agent = self._actor.agent
        if agent is None:
            raise NotFound("there is nothing here")
        return agent

    @property
    def _schedules(self) -> Schedules:
        """The agent's own schedules."""
        return Schedules(self._app, Actor("agent", agent=self._agent))


def _argv(command: str) -> list[str]:
    try:
        argv = shlex.split(command)
    except ValueError as error:
        refuse("command", f"cannot be split into words ({error}); close every quote")
    if not argv:
        refuse("command", "is empty; write the program and its arguments")
    return argv


def _is_wake(view: ScheduleView) -> bool:
    return view.slug.partition(".")[2].startswith("wake-")


def _expected(slug: str, totals: Mapping[str, Any] | None) -> Expected:
    """The forecast for one of the agent's schedules; others' costs and waits are not shown."""
    if totals is None:
        return Expected(slug, 0, None)
    return Expected(slug, totals["runs"], totals["cost"] if totals["turns"] else None)
