"""What will fire."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

import click

from wakeful.cli import times
from wakeful.cli.client import Daemon, schedule_path
from wakeful.cli.invocation import Invocation, command
from wakeful.cli.render import json_out, note
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
    help="How far to look.",
)
@click.option("--limit", type=click.IntRange(1, ASKED_MAX), default=SHOWN, show_default=True, help="At most this many.")
def next_command(asked: Invocation, slug: str | None, days: float, limit: int) -> None:
    """Show what will fire, in order, in your zone; of one schedule, or of all."""
    until = times.now() + timedelta(days=days)
    daemon = asked.daemon(what="so nothing will fire")
    if slug is None:
        _all(asked, daemon, until.isoformat(timespec="milliseconds")[:23] + "Z", days, limit)
    else:
        _one(asked, daemon, slug, until, days, limit)


def _all(asked: Invocation, daemon: Daemon, until: str, days: float, limit: int) -> None:
    answer = daemon.get("/api/upcoming", until=until, limit=limit)
    fires: list[dict[str, Any]] = answer["upcoming"]
    if asked.is_json:
        json_out(answer)
        return
    if not fires:
        note(f"nothing fires within {days:g} days")
        return
    from wakeful.cli.tables import Column, table

    since = times.now()
    rows = []
    for fire in fires:
        at = times.parse(fire["dueAt"])
        rows.append([times.wall(at), times.relative(at, since), fire["slug"]])
    table([Column("TIME"), Column("LEFT"), Column("SLUG", least=10)], rows)
    if answer.get("isCut"):
        note(f"only the first {len(fires)}; see more with --limit")


def _one(asked: Invocation, daemon: Daemon, slug: str, until: Any, days: float, limit: int) -> None:
    path = schedule_path(slug)
    planned = daemon.get(f"{path}/next", count=limit)["times"]
    found = [text for text in planned if (at := times.parse(text)) is not None and at <= until]
    if asked.is_json:
        json_out({"slug": slug, "times": found})
        return
    view = daemon.get(path)
    if view["status"] in ("paused", "disabled", "invalid", "done"):
        reason = f" ({view['statusReason']})" if view.get("statusReason") else ""
        note(f"{slug} is {view['status']}{reason}: of these times nothing will start")
    if not found:
        note(f"{slug} does not fire within {days:g} days")
        return
    from wakeful.cli.timetable import show_times

    show_times(found, view.get("schedule", {}))
    if len(found) == limit:
        note(f"only the first {limit}; see more with --limit")
