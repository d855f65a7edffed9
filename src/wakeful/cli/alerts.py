"""List alerts and acknowledge them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import click

from wakeful.cli import times
from wakeful.cli.client import schedule_path
from wakeful.cli.invocation import Invocation, command
from wakeful.cli.render import json_out, note, say

LIMIT: Final = 50


@command("alerts")
@click.argument("action", type=click.Choice(("ack",)), required=False)
@click.argument("which", metavar="[SLUG|ID]", required=False)
@click.option("--open", "is_open", is_flag=True, help="Show only open alerts.")
@click.option(
    "--limit",
    type=click.IntRange(1, 1_000),
    default=LIMIT,
    show_default=True,
    help="Show at most this many closed alerts.",
)
def alerts_command(invocation: Invocation, action: str | None, which: str | None, is_open: bool, limit: int) -> None:
    """List open and recent alerts; `ack SLUG` (or an id) closes one without a recovery message."""
    if action == "ack":
        _acknowledge(invocation, which)
        return
    alerts = invocation.daemon().get("/api/alerts", limit=limit, open="true" if is_open else "false")["alerts"]
    if invocation.is_json:
        json_out({"alerts": alerts})
    elif not alerts:
        note("no alerts")
    else:
        _list(alerts)


def _acknowledge(invocation: Invocation, which: str | None) -> None:
    if which is None:
        raise click.UsageError("name the schedule or the alert id; `wakeful alerts` lists them")
    path = f"/api/alerts/{which}/acknowledge" if which.isdecimal() else schedule_path(which, "/acknowledge")
    answer = invocation.daemon().ask("POST", path, body={}).body
    if invocation.is_json:
        json_out(answer)
    else:
        say(f"{which} is acknowledged")


def _list(alerts: list[Mapping[str, Any]]) -> None:
    from wakeful.cli.tables import Column, table

    since = times.now()
    columns = [
        Column("ID"),
        Column("STATE", is_state=True),
        Column("SINCE"),
        Column("ENDED", drop=1),
        Column("TIMES", drop=2),
        Column("ABOUT", least=10),
        Column("WHAT", least=20),
    ]
    table(columns, [_row(alert, since) for alert in alerts])


def _row(alert: Mapping[str, Any], since: Any) -> list[str]:
    ended = times.parse(alert["endedAt"])
    return [
        alert["id"],
        "open" if ended is None else "over",
        times.relative(times.parse(alert["openedAt"]), since),
        times.NONE if ended is None else times.relative(ended, since),
        str(alert["times"]),
        alert["slug"] or alert["incident"],
        alert["text"],
    ]
