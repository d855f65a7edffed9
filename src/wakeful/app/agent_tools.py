"""Agents' tools: names, parameters and descriptions, and what each does.

One catalogue serves every entry point: MCP over stdio and HTTP, and the tools of chat models. Parameters are flat, the
order is fixed, and every rule is enforced behind it (`app.self_scheduling`). A refusal says what to do next."""

import json
import shlex
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from wakeful.core.errors import Invalid, refuse
from wakeful.core.refusals import Conflict, NotFound
from wakeful.core.time.instants import DAY, MINUTE, SECOND, Instant, format_instant, format_optional
from wakeful.core.time.timing import Timing
from wakeful.core.time.timing_json import timing_to_json
from wakeful.core.time.timing_words import describe
from wakeful.core.time.zones import segment_at
from wakeful.features.schedules.owned import Actor
from wakeful.features.schedules.views import ScheduleView, as_text, lineage_json
from wakeful.features.schedules.why_owned import without_figures
from wakeful.ports.action import Fire
from wakeful.ports.agent import ToolSpec

if TYPE_CHECKING:
    from wakeful.app.facade import Wakeful

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
_ZONE: Final = "IANA time zone of the times in `when`, such as Europe/Berlin. Default: the zone of the person."
_SLUG: Final = (
    "Short name of the schedule, a-z 0-9 . _ -; it is yours alone, and the same name always means the same schedule."
)

Arguments: TypeAlias = Mapping[str, Any]
Perform: TypeAlias = Callable[["Wakeful", Actor, Arguments], Awaitable[dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool returns: a JSON object, or a refusal."""

    content: dict[str, Any]
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class AgentTool:
    """One tool."""

    name: str
    title: str
    says: str
    properties: Mapping[str, Mapping[str, Any]]
    required: tuple[str, ...]
    perform: Perform
    is_read_only: bool = False
    is_destructive: bool = False

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of its parameters."""
        return {
            "type": "object",
            "properties": dict(self.properties),
            "required": list(self.required),
            "additionalProperties": False,
        }


async def call_tool(app: "Wakeful", actor: Actor, name: str, arguments: Any) -> ToolResult:
    """Perform a tool for an agent; a refusal is returned as an error for the agent to read."""
    tool = TOOLS.get(name)
    try:
        if tool is None:
            raise NotFound(f"there is no tool {name[:80]!r}; the tools are {', '.join(TOOLS)}")
        if not isinstance(arguments, Mapping):
            refuse("arguments", "are not a JSON object; write {…}")
        _check(tool, arguments)
        return ToolResult(await tool.perform(app, actor, arguments))
    except Invalid as invalid:
        errors = [{"field": error.field, "message": error.message} for error in invalid.errors]
        return ToolResult({"error": str(invalid), "errors": errors}, is_error=True)
    except (Conflict, NotFound) as refused:
        content = {"error": str(refused)}
        limit = getattr(refused, "limit", None)
        return ToolResult(content | ({} if limit is None else {"limit": limit}), is_error=True)


class AgentToolbox:
    """The tools for models that are called through a chat endpoint; see `ports.agent.Toolbox`."""

    def __init__(self, app: "Wakeful") -> None:
        self._app = app

    @property
    def tools(self) -> list[ToolSpec]:
        return [ToolSpec(tool.name, tool.says, tool.schema) for tool in TOOLS.values()]

    async def call(self, fire: Fire, name: str, arguments: Any) -> str:
        actor = await self._app.actor_of_run(fire.run_id)
        result = await call_tool(self._app, actor, name, arguments)
        return json.dumps(result.content, ensure_ascii=False)


def _check(tool: AgentTool, arguments: Arguments) -> None:
    """Refuse unknown, missing and wrongly typed parameters by name."""
    for name, value in arguments.items():
        if name not in tool.properties:
            refuse(str(name)[:80], f"is not a parameter of {tool.name}; it has {', '.join(tool.properties) or 'none'}")
        kind = tool.properties[name].get("type")
        if value is None and name not in tool.required:
            continue
        is_right = isinstance(value, _TYPES[kind]) and not (kind in ("integer", "number") and isinstance(value, bool))
        if not is_right:
            refuse(name, f"is not {_TYPE_WORDS[kind]}")
        allowed = tool.properties[name].get("enum")
        if allowed and value not in allowed:
            refuse(name, f"{value!r} is not one of {', '.join(allowed)}")
    for name in tool.required:
        if arguments.get(name) is None:
            refuse(name, f"is missing; {tool.name} needs it")


_TYPES: Final[Mapping[Any, Any]] = {"string": str, "integer": int, "object": Mapping, "array": list}
_TYPE_WORDS: Final[Mapping[Any, str]] = {
    "string": "a text",
    "integer": "a whole number",
    "object": "an object",
    "array": "a list",
}


# --- the eight --------------------------------------------------------------------------------------------------------


async def _preview(app: "Wakeful", actor: Actor, given: Arguments) -> dict[str, Any]:
    timing = app.read_when(given["when"], given.get("timezone"))
    return _timing_json(app, timing, app.times_after_now(timing))


async def _put(app: "Wakeful", actor: Actor, given: Arguments) -> dict[str, Any]:
    prompt, command = given.get("prompt"), given.get("command")
    if (prompt is None) == (command is None):
        refuse("prompt", "give exactly one of prompt and command")
    timing = app.read_when(given["when"], given.get("timezone"))
    definition: dict[str, Any] = {"schedule": timing_to_json(timing)}
    definition |= {"prompt": prompt} if prompt is not None else {"command": {"argv": _argv(command)}}
    written = await app.put_as_agent(actor, given["slug"], definition, note=given.get("note"))
    shown: dict[str, Any] = {
        "status": written.result,
        "slug": written.view.slug,
        **_timing_json(app, written.timing, written.next_times),
        "expiresAt": _ends(written.view),
    }
    cost = await app.cost_of(written.view)
    if cost is not None:
        shown["perMonth"] = cost["perMonth"]
    if written.is_copy:
        shown["message"] = f"you already have this under the name {written.view.slug}; nothing was created"
    elif written.proposal is not None:
        shown |= {"proposal": written.proposal.proposal_id, "message": _PENDING}
    return shown


def _argv(command: Any) -> list[str]:
    try:
        argv = shlex.split(command)
    except ValueError as error:
        refuse("command", f"cannot be split into words ({error}); close every quote")
    if not argv:
        refuse("command", "is empty; write the program and its arguments")
    return argv


_PENDING: Final = (
    "a person has to approve this before anything runs; tell them so (they decide with: wakeful approvals), "
    "and do not propose it again"
)


async def _list(app: "Wakeful", actor: Actor, given: Arguments) -> dict[str, Any]:
    views = await app.list_as_agent(actor, given.get("q"))
    terms = app.self_scheduling
    live = [view for view in views if view.status != "done" and not _is_wake(view)]
    left = max(0, terms.schedules_max - len({view.slug for view in live}))
    return {"schedules": [_view_json(app, view) for view in views], "left": left}


def _is_wake(view: ScheduleView) -> bool:
    return view.slug.partition(".")[2].startswith("wake-")


async def _set_state(app: "Wakeful", actor: Actor, given: Arguments) -> dict[str, Any]:
    slug, state = given["slug"], given["state"]
    if state == "deleted":
        return {"status": "deleted", "slug": await app.remove_as_agent(actor, slug)}
    view = await (app.pause_as_agent(actor, slug) if state == "paused" else app.resume_as_agent(actor, slug))
    return {**_view_json(app, view), "status": state}


async def _wake_me(app: "Wakeful", actor: Actor, given: Arguments) -> dict[str, Any]:
    after, at = given.get("after"), given.get("at")
    if (after is None) == (at is None):
        refuse("after", "give exactly one of after and at")
    text = str(after or at).strip()
    when = text if at is not None or text.lower().startswith("in ") else f"in {text}"
    written = await app.wake_me(actor, when, given["text"])
    session = "in this session" if actor.run_id is not None and actor.is_agent_run else "in a new session"
    shown = {
        "status": written.result,
        "slug": written.view.slug,
        **_timing_json(app, written.timing, written.next_times),
        "turn": f"one turn {session}, with your text as the prompt",
    }
    return shown | ({} if written.proposal is None else {"message": _PENDING})


async def _report(app: "Wakeful", actor: Actor, given: Arguments) -> dict[str, Any]:
    if actor.run_id is None:
        raise Conflict("report_run reports the run it is called from, and this call does not come from a run")
    fate = await app.report_run(
        actor.run_id, given["rung"], text=given.get("text"), usage=given.get("usage"), error=given.get("error")
    )
    return {"status": fate, "runId": str(actor.run_id)}


async def explain(app: "Wakeful", actor: Actor, slug: object, at: str | None) -> dict[str, Any]:
    """Why one of the agent's schedules ran or did not, without anything that belongs to others."""
    view = await app.get_as_agent(actor, slug)
    return without_figures((await app.why(view.slug, at=at, viewer=actor.agent)).to_json())


async def _explain(app: "Wakeful", actor: Actor, given: Arguments) -> dict[str, Any]:
    return await explain(app, actor, given["slug"], given.get("at"))


async def _forecast(app: "Wakeful", actor: Actor, given: Arguments) -> dict[str, Any]:
    days = given.get("days") or 7
    if not 1 <= days <= FORECAST_DAYS_MAX:
        refuse("days", f"{days} is not between 1 and {FORECAST_DAYS_MAX}")
    now = app.moment().now
    views = [view for view in await app.list_as_agent(actor) if view.approval != "pending"]
    own = {view.slug for view in views if view.status != "done"}
    made = await app.forecast(days)
    by_slug = {row["slug"]: row for row in made["schedules"] if row["slug"] in own}
    rows = [_forecast_row(slug, by_slug.get(slug)) for slug in sorted(own)]
    ahead = await app.upcoming(now + days * DAY, limit=BUSY_MAX)
    # An agent sees when people's work runs, and nothing of other agents.
    hidden = await app.owned_by_agents({instant.slug for instant in ahead.instants})
    busy = sorted({instant.due_at // MINUTE * MINUTE for instant in ahead.instants if instant.slug not in hidden})
    known = [row["cost"] for row in rows if row["cost"] is not None]
    return {
        "days": days,
        "schedules": rows,
        "runs": sum(row["runs"] for row in rows),
        "cost": sum(known) if known else None,
        "busy": [format_instant(at) for at in busy],
    }


def _forecast_row(slug: str, totals: Mapping[str, Any] | None) -> dict[str, Any]:
    """The forecast for one of the agent's schedules; others' costs and waits are not shown."""
    if totals is None:
        return {"slug": slug, "runs": 0, "cost": None}
    return {"slug": slug, "runs": totals["runs"], "cost": totals["cost"] if totals["turns"] else None}


# --- shapes -----------------------------------------------------------------------------------------------------------


def _timing_json(app: "Wakeful", timing: Timing, times: tuple[Instant, ...]) -> dict[str, Any]:
    zone = getattr(timing, "timezone", None) or app.default_zone
    return {"understood": describe(timing), "timezone": zone, "next": [_time_json(at, zone) for at in times]}


def _time_json(at: Instant, zone: str) -> dict[str, str]:
    """A time as the person's clock shows it, and in UTC."""
    offset = segment_at(zone, at // SECOND).offset * SECOND
    wall = format_instant(at + offset)
    return {"local": f"{wall[:10]} {wall[11:16]} ({zone})", "utc": format_instant(at)}


def _view_json(app: "Wakeful", view: ScheduleView) -> dict[str, Any]:
    written = view.to_json()
    return {
        "slug": view.slug,
        "status": "pending" if view.approval == "pending" else view.status,
        "statusReason": view.status_reason,
        "when": written.get("description"),
        "prompt": written.get("prompt"),
        "command": (written.get("command") or {}).get("argv"),
        "nextRun": as_text(view.next_run),
        "lastRun": as_text(view.last_run),
        "lastOutcome": view.last_outcome,
        "lastError": without_figures(view.last_error),
        "approval": view.approval,
        "expiresAt": _ends(view),
        "lineage": None if view.lineage is None else lineage_json(view.lineage),
    }


def _ends(view: ScheduleView) -> str | None:
    at = None if view.definition is None else view.definition.expires_at
    return format_optional(at)


def _text(says: str, **more: Any) -> dict[str, Any]:
    return {"type": "string", "description": says, **more}


_ALL: Final = (
    AgentTool(
        "preview_schedule",
        "Preview when a schedule would run",
        "Check how a time text is understood, and see its next five times. Nothing is written. Use it when you are not "
        "sure about `when`.",
        {"when": _text(_WHEN), "timezone": _text(_ZONE)},
        ("when",),
        _preview,
        is_read_only=True,
    ),
    AgentTool(
        "put_schedule",
        "Create or change one of your schedules",
        "Create one of your schedules, or change the one with this slug; the same slug is never created twice. Give "
        "exactly one of prompt and command. The result's status is created, updated, unchanged (it already existed), "
        "or pending (a person has to approve it; tell them). `perMonth` says how often a prompt runs in 30 days, and "
        "what that costs in US dollars, if it is known. Do not schedule what you were started to do: if your "
        "prompt says 'every Monday', it is scheduled already.",
        {
            "slug": _text(_SLUG),
            "when": _text(_WHEN),
            "timezone": _text(_ZONE),
            "prompt": _text("What you will be asked at that time, in full: you will not remember this conversation."),
            "command": _text(
                "A program and its arguments, such as 'make report'. No shell: for pipes write sh -c '…'."
            ),
            "note": _text("Why you want this, in one sentence, for the person who approves it."),
        },
        ("slug", "when"),
        _put,
    ),
    AgentTool(
        "list_schedules",
        "List your schedules",
        "All your schedules with their state, including those waiting for approval, and how many more you may have. "
        "Call it before you create one.",
        {"q": _text("Only those with this text in the slug, prompt or command.")},
        (),
        _list,
        is_read_only=True,
    ),
    AgentTool(
        "set_schedule_state",
        "Pause, resume or delete one of your schedules",
        "Pause, resume or delete one of your schedules. Only a person can resume what a person stopped.",
        {"slug": _text(_SLUG), "state": _text("The new state.", enum=["paused", "active", "deleted"])},
        ("slug", "state"),
        _set_state,
        is_destructive=True,
    ),
    AgentTool(
        "wake_me",
        "Get one more turn later",
        "Get one more turn in this session at a later time, with your text as the prompt: 'remind me in 20 minutes', "
        "'look again when the build is done'. Give exactly one of after and at.",
        {
            "after": _text("How long from now, such as 20m, 2h or 1d."),
            "at": _text("A point in time: 'tomorrow at 9:00' or '2026-12-01T09:00+01:00'."),
            "text": _text("The text you will get at that time, with everything you need to know."),
        },
        ("text",),
        _wake_me,
    ),
    AgentTool(
        "report_run",
        "Report the progress of the current run",
        "Report the run you are in: accepted, started, or finished with a text or an error. Only inside a run.",
        {
            "rung": _text("How far the run has got.", enum=["accepted", "started", "finished"]),
            "text": _text("The result for the person, with finished."),
            "usage": {"type": "object", "description": 'Tokens used, such as {"input": 1200, "output": 300}.'},
            "error": _text("What went wrong, if it failed."),
        },
        ("rung",),
        _report,
    ),
    AgentTool(
        "explain",
        "Explain one of your schedules",
        "Why one of your schedules ran, did not run, or will not run, in one sentence with the facts.",
        {"slug": _text(_SLUG), "at": _text("A point in time, such as 2026-12-01T09:00:00Z. Default: its state now.")},
        ("slug",),
        _explain,
        is_read_only=True,
    ),
    AgentTool(
        "forecast",
        "What will run, and what it may cost",
        "The runs of your schedules in the coming days, their expected cost from past runs, and the times at which "
        "other work is planned (busy), so that you can choose a free one.",
        {
            "days": {
                "type": "integer",
                "description": "How many days ahead, 1 to 31. Default 7.",
                "minimum": 1,
                "maximum": 31,
            }
        },
        (),
        _forecast,
        is_read_only=True,
    ),
)
TOOLS: Final[Mapping[str, AgentTool]] = {tool.name: tool for tool in _ALL}
"""The tools by name, in their fixed order."""
