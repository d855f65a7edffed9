"""`ls`, `show`, `rm`, `pause`, `resume` and `run`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final

import click

from wakeful.cli import times
from wakeful.cli.client import PAGE, Daemon, schedule_path
from wakeful.cli.errors import FAILED
from wakeful.cli.invocation import Invocation, command, end
from wakeful.cli.render import json_out, note, plural, say
from wakeful.cli.slugs import optional_slug_argument, slug_argument

IDLE: Final = "idle"  # for programs; people read the health
STATUSES: Final = (IDLE, "running", "waiting", "paused", "disabled", "invalid", "done")
HEALTHS: Final = ("ok", "failing", "late", "waiting", "off")
OPEN: Final = ("running", "waiting")
LISTED_MAX: Final = 10_000
HEARTBEAT: Final = "heartbeat"
LOOK_FIRST: Final = 0.05
LOOK_MAX: Final = 1.0


@command("ls")
@click.option("--status", type=click.Choice(STATUSES), help="Show only this status.")
@click.option("--health", type=click.Choice(HEALTHS), help="Show only schedules with this health.")
@click.option("--like", metavar="TEXT", help="Show only slugs that contain this text.")
@click.option("--limit", type=click.IntRange(1), default=LISTED_MAX, show_default=True, help="Show at most this many.")
@click.option("--all", "is_all", is_flag=True, help="Also show one-shots that have succeeded.")
@click.option("--owner", metavar="NAME", help="Show only this agent's schedules.")
def ls_command(
    invocation: Invocation,
    status: str | None,
    health: str | None,
    like: str | None,
    limit: int,
    is_all: bool,
    owner: str | None,
) -> None:
    """List the schedules, sorted by next run; one-shots that have succeeded only with --all."""
    source = invocation.source()
    chosen = {"status": status, "health": health, "q": like, "owner": owner}
    finished = None if is_all or status == "done" else False
    schedules = source.pages("/api/schedule", "schedules", limit=limit + 1, finished=finished, **chosen)
    is_cut = len(schedules) > limit
    schedules = schedules[:limit]
    if invocation.is_json:
        json_out({"schedules": schedules, "next": schedules[-1]["slug"] if is_cut else None})
        return
    is_chosen = any(value is not None for value in chosen.values())
    hidden = [] if finished is None else source.pages("/api/schedule", "schedules", limit=PAGE, finished=True, **chosen)
    if schedules:
        _list(schedules)
        if is_cut:
            note(f"only the first {limit:,} by name are shown; raise --limit, or filter with --like")
    else:
        note("no matching schedules" if is_chosen else "no schedules")
        if not is_chosen and not hidden:
            note("  add one: wakeful add hello --every 1h --command 'echo hello'")
    if hidden:
        count = f"{len(hidden)}{'' if len(hidden) < PAGE else ' or more'}"
        note(
            f"{count} one-shot{'s' * (len(hidden) > 1)} succeeded and {'are' if len(hidden) > 1 else 'is'} not listed: "
            "wakeful ls --all"
        )


@command("show")
@slug_argument
def show_command(invocation: Invocation, slug: str) -> None:
    """Show one schedule."""
    view = invocation.source().get(schedule_path(slug))
    if invocation.is_json:
        json_out(view)
    else:
        _show(view)


@command("rm")
@slug_argument
def rm_command(invocation: Invocation, slug: str) -> None:
    """Remove a schedule. A run in progress finishes; past runs are kept."""
    invocation.daemon().ask("DELETE", schedule_path(slug))
    if invocation.is_json:
        json_out({"slug": slug, "removed": True})
    else:
        say(f"{slug} removed")


@command("pause")
@optional_slug_argument
@click.option("--all", "is_all", is_flag=True, help="Pause all active schedules and the heartbeat.")
@click.option(
    "--until", metavar="T", help="Until this time: 2h, 'tomorrow 9:00', or a date and time; default: until resumed."
)
def pause_command(invocation: Invocation, slug: str | None, is_all: bool, until: str | None) -> None:
    """Pause a schedule, or all. Times during the pause are skipped, not caught up.

    SLUG may also be heartbeat: its beats pause, but a wake still starts a turn.
    """
    from wakeful.cli.time_options import ahead

    ends = None if until is None else ahead(until, "--until")
    body = {} if ends is None else {"until": ends}
    if _are_all(slug, is_all, "pause"):
        _together(invocation, "pause", body)
        return
    slug = str(slug)
    view = invocation.daemon().ask("POST", _halted_at(slug, "/pause"), body=body).body
    if invocation.is_json:
        json_out(view)
    elif ends is None:
        say(f"{slug} paused; to resume it: wakeful resume {slug}")
    else:
        at = times.parse(ends)
        say(f"{slug} paused until {times.wall(at)} ({times.relative(at, times.now())})")


@command("resume")
@optional_slug_argument
@click.option("--all", "is_all", is_flag=True, help="Resume what `pause --all` paused.")
def resume_command(invocation: Invocation, slug: str | None, is_all: bool) -> None:
    """Resume a paused or disabled schedule from now on; resets its error count.

    SLUG may also be heartbeat. `--all` resumes what `pause --all` paused, and nothing else.
    """
    if _are_all(slug, is_all, "resume"):
        _together(invocation, "resume", {})
        return
    slug = str(slug)
    view = invocation.daemon().ask("POST", _halted_at(slug, "/resume"), body={}).body
    if invocation.is_json:
        json_out(view)
    else:
        at = times.parse(view["nextBeat"] if slug == HEARTBEAT else view.get("nextRun"))
        ahead = f"; next: {times.wall(at)} ({times.relative(at, times.now())})" if at else ""
        say(f"{slug} resumed{ahead}")


def _are_all(slug: str | None, is_all: bool, verb: str) -> bool:
    if is_all is (slug is not None):
        raise click.UsageError(f"write: wakeful {verb} SLUG, or wakeful {verb} --all")
    return is_all


def _together(invocation: Invocation, verb: str, body: Mapping[str, Any]) -> None:
    answer = invocation.daemon().ask("POST", f"/api/{verb}", body=body).body
    if invocation.is_json:
        json_out(answer)
        return
    count, done = answer["count"], f"{verb}d"
    many = plural(count, "schedule")
    cure = "; to resume them: wakeful resume --all" if verb == "pause" and count else ""
    say(f"{many} {done}{cure}")


@command("run")
@slug_argument
@click.option("--wait", is_flag=True, help="Wait until the run has ended; exit code 1 if it did not succeed.")
@click.option("--timeout", metavar="DUR", help="With --wait: stop waiting after this long; the run continues.")
def run_command(invocation: Invocation, slug: str, wait: bool, timeout: str | None) -> None:
    """Run a schedule once, now: one attempt; its next times and error count do not change."""
    from wakeful.cli.time_options import duration

    limit = None if timeout is None else duration(timeout, "--timeout") / 1000
    if limit is not None and not wait:
        raise click.UsageError("--timeout needs --wait; give both or neither")
    daemon = invocation.daemon()
    started = daemon.ask("POST", schedule_path(slug, "/run"), body={}).body
    if not wait:
        if invocation.is_json:
            json_out(started)
        else:
            say(f"{slug} runs as run {started['runId']}; see how it ends: wakeful runs {slug}")
        return
    run = _ended(daemon, started["runId"], limit)
    if invocation.is_json:
        json_out(run)
    else:
        _tell_end(run)
    if run["outcome"] != "succeeded":
        end(FAILED)


def _halted_at(slug: str, question: str) -> str:
    """The API path at which a schedule, or the heartbeat, is paused and resumed."""
    return f"/api/heartbeat{question}" if slug == HEARTBEAT else schedule_path(slug, question)


def _ended(daemon: Daemon, run_id: str, limit: float | None) -> dict[str, Any]:
    """The run once it has ended, or as it is when the wait times out."""
    begun, pause = time.monotonic(), LOOK_FIRST  # a stopwatch: how long a person waits
    while True:
        run: dict[str, Any] = daemon.get(f"/api/runs/{run_id}")
        waited = time.monotonic() - begun
        if run["outcome"] not in OPEN or (limit is not None and waited >= limit):
            return run
        time.sleep(pause if limit is None else min(pause, max(0.0, limit - waited)))
        pause = min(pause * 1.5, LOOK_MAX)


def _tell_end(run: Mapping[str, Any]) -> None:
    took = times.length(times.parse(run.get("startedAt")), times.parse(run.get("endedAt")))
    outcome = f"is still {run['outcome']}" if run["outcome"] in OPEN else str(run["outcome"])
    reason = f" ({run['reason']})" if run.get("reason") else ""
    say(f"{run['slug']} {outcome}{reason}, run {run['runId']}{'' if took == times.NONE else f', took {took}'}")
    if run.get("error"):
        note(f"  {run['error']}")
    for name in ("reply", "output"):
        if run.get(name):
            say(str(run[name]).rstrip("\n"))
    if run.get("stderr"):
        note(str(run["stderr"]).rstrip("\n"))
    used = run.get("usage")
    if used is not None and used["total"] is not None:
        cost = "cost unknown" if run["cost"] is None else f"${run['cost']:.4f}"
        say(f"used {used['total']:,} tokens, {cost}")


def _list(schedules: list[dict[str, Any]]) -> None:
    from wakeful.cli.tables import Column, table

    since = times.now()
    columns = [
        Column("SLUG", least=20),
        Column("HEALTH", is_state=True),
        Column("STATUS", is_state=True, drop=1),
        Column("NEXT", drop=4),
        Column("LEFT"),
        Column("LAST", drop=3),
        Column("RESULT", drop=2),
    ]
    has_cost = any(_month(view) for view in schedules)
    if has_cost:
        columns.append(Column("COST", drop=3))
    has_nodes = len({view.get("node") for view in schedules} - {None}) > 1 or any(
        view.get("runOn") for view in schedules
    )
    if has_nodes:
        columns += [Column("NODE", drop=2), Column("RUN ON", drop=2)]
    # Schedules without a next time come last, sorted by name.
    schedules = sorted(
        schedules, key=lambda view: (view.get("nextRun") is None, view.get("nextRun") or "", view["slug"])
    )
    more = [([_cost(view)] if has_cost else []) + (_place(view) if has_nodes else []) for view in schedules]
    table(columns, [[*_row(view, since), *cells] for view, cells in zip(schedules, more, strict=True)])


def _place(view: Mapping[str, Any]) -> list[str]:
    """The node of its newest run, and the labels it needs."""
    return [view.get("node") or times.NONE, labels_text(view.get("runOn"))]


def labels_text(run_on: str | list[str] | None) -> str:
    """Labels for people."""
    return times.NONE if not run_on else run_on if isinstance(run_on, str) else " or ".join(run_on)


def _month(view: Mapping[str, Any]) -> float:
    """What a schedule has cost this month."""
    return (view.get("cost") or {}).get("month") or 0.0


def _cost(view: Mapping[str, Any]) -> str:
    from wakeful.cli.costs import dollars

    return dollars(_month(view)) if _month(view) else times.NONE


def _row(view: Mapping[str, Any], since: Any) -> list[str]:
    upcoming, last = times.parse(view.get("nextRun")), times.parse(view.get("lastRun"))
    return [
        view["slug"],
        view["health"],
        times.NONE if view["status"] == IDLE else view["status"],
        times.wall(upcoming),
        times.relative(upcoming, since),
        times.relative(last, since),
        view.get("lastOutcome") or times.NONE,
    ]


def _show(view: Mapping[str, Any]) -> None:
    from wakeful.cli.schedule_words import action, when
    from wakeful.cli.tables import facts

    since = times.now()
    kind, what = action(view)
    pairs: list[tuple[str, object]] = [
        ("schedule", view["slug"]),
        ("health", view["health"]),
        *([] if view["status"] == IDLE else [("status", _with_reason(view["status"], view.get("statusReason")))]),
        ("when", when(view)),
        (kind, what),
        ("next", _both(view.get("nextRun"), since, view.get("schedule", {}).get("timezone"))),
        ("last", _both(view.get("lastRun"), since, None)),
    ]
    if view.get("lastOutcome"):
        pairs.append(("result", view["lastOutcome"]))
    if view.get("lastError"):
        pairs.append(("error", view["lastError"]))
    cost = view.get("cost")
    if cost and (cost["month"] or cost["lastRun"] is not None):
        pairs.append(("cost", _costs(cost)))
    if view.get("consecutiveErrors"):
        pairs.append(("errors in a row", view["consecutiveErrors"]))
    pairs += [(name, _short(view[name])) for name in _SHOWN_IF_SET if view.get(name)]
    if view.get("maxLateness"):
        pairs.append(("maxLateness", _lateness(str(view["maxLateness"]))))
    pairs.append(("changed", f"{_both(view.get('updatedAt'), since, None)}, version {view.get('version')}"))
    facts(pairs)


def _lateness(limit: str) -> str:
    """A limit that was stored by an earlier version may be shorter than the grace period."""
    from wakeful.core.schedule.policies import GRACE
    from wakeful.core.time.instants import format_duration, parse_duration

    return limit if parse_duration(limit) >= GRACE else f"{limit}, which counts as {format_duration(GRACE)}"


def _costs(cost: Mapping[str, Any]) -> str:
    from wakeful.cli.costs import dollars

    last = "unknown" if cost["lastRun"] is None else dollars(cost["lastRun"])
    return f"{dollars(cost['today'])} today, {dollars(cost['month'])} this month, last run {last}"


_SHOWN_IF_SET: Final = (
    "sessionId",
    "deliver",
    "catchUp",
    "overlap",
    "timeout",
    "activeHours",
    "lane",
    "slot",
    "runOn",
    "node",
)


def _short(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {inner}" for name, inner in value.items())
    return str(value)


def _with_reason(status: str, reason: str | None) -> str:
    return f"{status} ({reason})" if reason else status


def _both(text: str | None, since: Any, zone_name: str | None) -> str:
    """A time in the user's zone, how far away it is, and in the schedule's zone if that differs."""
    at = times.parse(text)
    if at is None:
        return times.NONE
    here = f"{times.wall(at)} ({times.relative(at, since)})"
    zone = times.zone_named(zone_name)
    there = times.wall(at, zone) if zone is not None else None
    return here if there is None or there == times.wall(at) else f"{here}, {there} in {zone_name}"
