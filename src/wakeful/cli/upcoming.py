"""`wakeful next`: what will fire; `wakeful calendar`: the address of its calendar feed."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

import click

from wakeful.cli import times
from wakeful.cli.client import Daemon, owner_path, schedule_path
from wakeful.cli.invocation import Invocation, command
from wakeful.cli.render import json_out, note, say
from wakeful.cli.slugs import optional_slug_argument

SHOWN: Final = 50
ASKED_MAX: Final = 1000


@command("next")
@optional_slug_argument
@click.option(
    "--days",
    metavar="DAYS",
    type=click.FloatRange(min=0, min_open=True, max=3653),
    default=7,
    show_default=True,
    help="How far ahead to look.",
)
@click.option(
    "--limit", type=click.IntRange(1, ASKED_MAX), default=SHOWN, show_default=True, help="Show at most this many."
)
def next_command(invocation: Invocation, slug: str | None, days: float, limit: int) -> None:
    """List upcoming runs in order, in your time zone, for one schedule or all.

    Includes schedules, retries, heartbeats, workflow producers, wakeAts and quota slot wakes.
    SLUG may also be heartbeat, slot:NAME or workflow:ID.
    """
    until = times.now() + timedelta(days=days)
    daemon = invocation.daemon(what="so nothing will fire")
    is_listed = slug is None or slug == "heartbeat" or ":" in slug
    if is_listed:
        _all(invocation, daemon, until.isoformat(timespec="milliseconds")[:23] + "Z", days, limit, slug)
    elif slug is not None:
        _one(invocation, daemon, slug, until, days, limit)


def _all(invocation: Invocation, daemon: Daemon, until: str, days: float, limit: int, owner: str | None) -> None:
    if owner is not None:
        daemon.get(owner_path(owner, "/why"))  # raises if it does not exist
    answer = daemon.get("/api/upcoming", until=until, limit=limit if owner is None else ASKED_MAX)
    fires: list[dict[str, Any]] = answer["upcoming"]
    if owner is not None:
        fires = [fire for fire in fires if fire["slug"] == owner][:limit]
        answer = {**answer, "upcoming": fires}
    if invocation.is_json:
        json_out(answer)
        return
    if not fires:
        note(f"nothing {'' if owner is None else f'of {owner} '}fires within {days:g} days")
        return
    from wakeful.cli.tables import Column, table

    since = times.now()
    rows = []
    for fire in fires:
        at = times.parse(fire["dueAt"])
        rows.append([times.wall(at), times.relative(at, since), fire["slug"], _what(fire)])
    table([Column("TIME"), Column("LEFT"), Column("SLUG", least=10), Column("WHAT", drop=1)], rows)
    if answer.get("isCut"):
        note(f"only the first {len(fires)} are shown; raise --limit")


def _what(fire: Mapping[str, Any]) -> str:
    """The kind of fire, unless it is an ordinary instant of a schedule."""
    kind = "" if fire["kind"] == "schedule" else fire["kind"]
    return f"{kind} {fire['handler']}" if fire.get("handler") else kind


def _one(invocation: Invocation, daemon: Daemon, slug: str, until: Any, days: float, limit: int) -> None:
    path = schedule_path(slug)
    planned = daemon.get(f"{path}/next", count=limit)["times"]
    instants = [text for text in planned if (at := times.parse(text)) is not None and at <= until]
    if invocation.is_json:
        json_out({"slug": slug, "times": instants})
        return
    view = daemon.get(path)
    reason = f" ({view['statusReason']})" if view.get("statusReason") else ""
    if view["status"] in ("paused", "disabled", "invalid", "done") and view.get("nextRun") is None:
        note(f"{slug} is {view['status']}{reason}: nothing will start at these times")
    elif view["status"] == "paused":
        note(f"{slug} is paused{reason}: nothing starts before {times.wall(times.parse(view['nextRun']))}")
    if not instants:
        note(f"{slug} does not fire within {days:g} days")
        return
    from wakeful.cli.timetable import show_times

    show_times(instants, view.get("schedule", {}))
    if len(instants) == limit:
        note(f"only the first {limit} are shown; raise --limit")


@command("calendar")
@click.option("--renew", is_flag=True, help="Create a new key; the old URL stops working immediately.")
def calendar_command(invocation: Invocation, renew: bool) -> None:
    """Print the URL of a calendar feed of upcoming runs. The key in it gives access to this feed only."""
    daemon = invocation.daemon()
    feed = {"key": None} if renew else daemon.ask("GET", "/api/calendar/key").body
    if feed["key"] is None:
        feed = daemon.ask("POST", "/api/calendar/key").body
    if invocation.is_json:
        json_out(feed)
        return
    say(str(feed["url"]))
    if renew:
        note("calendar programs that used the old address need this one")
