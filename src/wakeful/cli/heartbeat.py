"""The heartbeat: request a turn, show its state, list the queued events."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, Final

import click

from wakeful.cli import times
from wakeful.cli.invocation import Invocation, command
from wakeful.cli.render import json_out, note

REASONS: Final = ("cron", "message", "manual", "hook")
RECEIPT_VARIABLE: Final = "WAKEFUL_RECEIPT_URL"
_RECEIPT: Final = re.compile(r"/api/runs/([0-9]+)/receipt\?token=([A-Za-z0-9_-]+)")


@command("wake")
@click.option(
    "--reason", type=click.Choice(REASONS), default="manual", show_default=True, help="The reason for the wake."
)
@click.option("--text", metavar="TEXT", help="Text for the agent.")
@click.option("--key", metavar="CONTEXT", help="A newer event with the same key replaces the older one.")
def wake_command(invocation: Invocation, reason: str, text: str | None, key: str | None) -> None:
    """Request a heartbeat turn."""
    body: dict[str, Any] = {"reason": reason, "text": text, "contextKey": key, **_asking_run()}
    given = {name: value for name, value in body.items() if value is not None}
    answer = invocation.daemon().ask("POST", "/api/wake", body=given).body
    if invocation.is_json:
        json_out(answer)
    elif answer["coalesced"]:
        click.echo("merged into a turn that was already requested; see it with: wakeful heartbeat")
    else:
        click.echo("turn requested; see it with: wakeful heartbeat")
    if not invocation.is_json and (evicted := answer.get("evicted")):
        click.echo(f"{len(evicted)} older event was dropped because the queue is full", err=True)


@command("heartbeat")
def heartbeat_command(invocation: Invocation) -> None:
    """Show the heartbeat and its last turns."""
    answer = invocation.daemon().get("/api/heartbeat")
    if invocation.is_json:
        json_out(answer)
        return
    from wakeful.cli.tables import facts

    facts(_facts(answer))
    if answer["lastTurns"]:
        click.echo()
        _turns(answer["lastTurns"])


@command("events")
def events_command(invocation: Invocation) -> None:
    """List the system events queued for the next turn, oldest first."""
    answer = invocation.daemon().get("/api/system-events")
    if invocation.is_json:
        json_out(answer)
        return
    if not answer["events"]:
        note("no events are queued for the next turn")
        return
    from wakeful.cli.tables import Column, table

    columns = [
        Column("ID"),
        Column("RAISED"),
        Column("SOURCE", least=8),
        Column("KEY", least=8, drop=1),
        Column("TEXT"),
    ]
    since = times.now()
    rows = [
        [
            event["id"],
            times.relative(times.parse(event["at"]), since),
            event["source"],
            event["contextKey"] or "",
            event["text"],
        ]
        for event in answer["events"]
    ]
    table(columns, rows)


def _asking_run() -> dict[str, str]:
    """The run id from the receipt address that an agent's turn passes to its commands, if any."""
    match = _RECEIPT.search(os.environ.get(RECEIPT_VARIABLE, ""))
    return {} if match is None else {"runId": match[1], "token": match[2]}


def _facts(answer: Mapping[str, Any]) -> list[tuple[str, object]]:
    since = times.now()
    budget = answer["budget"]
    used = f"{budget['turnsInLastHour']} of {budget['turnsPerHourMax']} turns in the last hour"
    if budget["heldUntil"]:
        used += f"; limit reached, waits until {times.when(budget['heldUntil'], since)}"
    hours = answer["activeHours"]
    pending = ", ".join(wake["reason"] for wake in answer["pending"]) or times.NONE
    return [
        ("status", _status(answer, since)),
        ("agent", answer["agent"]),
        ("every", answer["every"]),
        ("active hours", times.NONE if hours is None else f"{hours['start']} to {hours['end']}, {hours['timezone']}"),
        ("next beat", times.when(answer["nextBeat"], since)),
        ("invocation for", pending),
        ("next turn", times.when(answer["nextTurn"], since)),
        ("budget", used),
        ("events", answer["events"]),
        ("last error", answer["lastError"] or times.NONE),
    ]


def _status(answer: Mapping[str, Any], since: Any) -> str:
    if not answer["enabled"]:
        return f"{answer['status']} (beats are off; wakes still work)"
    if answer["pausedAt"] is None:
        return str(answer["status"])
    ends = times.when(answer["resumeAt"], since) if answer["resumeAt"] else "you run: wakeful resume heartbeat"
    paused = f"paused until {ends}; wakes still work"
    return paused if answer["status"] == "paused" else f"{answer['status']}, {paused}"


def _turns(turns: list[dict[str, Any]]) -> None:
    from wakeful.cli.runs import outcome_of
    from wakeful.cli.tables import Column, table

    since = times.now()
    columns = [Column("RUN"), Column("PASSED"), Column("WOKEN BY", least=8), Column("OUTCOME", least=11, is_state=True)]
    rows = [
        [run["runId"], _ago(run, since), ", ".join(run.get("reasons", ())) or times.NONE, outcome_of(run)]
        for run in turns
    ]
    table(columns, rows)


def _ago(run: Mapping[str, Any], since: Any) -> str:
    return times.relative(times.parse(run["plannedAt"]), since)
