"""What needs a person now, with the command to use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from wakeful.cli import times
from wakeful.cli.costs import unpriced
from wakeful.cli.invocation import Invocation, command
from wakeful.cli.render import json_out, note, plural, say

_MARKS: Final = {"bad": "✗", "warn": "!", "note": "·"}


@command("today")
def today_command(invocation: Invocation) -> None:
    """Show what needs attention, worst first, with a command to fix each problem; what is running; and what is next."""
    today = invocation.daemon().get("/api/today")
    if invocation.is_json:
        json_out(today)
        return
    for item in today["attention"]:
        _tell(item)
    if not today["attention"]:
        say("nothing needs attention")
    since = times.now()
    for run in today["running"]:
        note(f"running  {run['slug']}, run {run['runId']}, started {times.when(run['startedAt'], since)}")
    for fire in today["upcoming"][:3]:
        frees_at = fire.get("budgetFreesAt")
        skipped = f", skipped: a budget is used up until {times.when(frees_at, since)}" if frees_at else ""
        note(f"next     {fire['slug']} {times.when(fire['dueAt'], since)}{skipped}")
    cost = today["cost"]
    unknown = f", and {plural(cost['unknown'], 'run')} of unknown cost" if cost["unknown"] else ""
    note(f"cost     ${cost['cost']:.2f} today{unknown}")
    unpriced(cost)


def _tell(item: Mapping[str, Any]) -> None:
    from wakeful.cli.tables import paragraph

    paragraph(
        f"{item['title']} ({item['kind']}): {times.localised(item['sentence'])}", label=f"{_MARKS[item['level']]} "
    )
    for words in (times.localised(item.get("cure") or ""), _command(item)):
        if words:
            paragraph(words, label="    ")


def _command(item: Mapping[str, Any]) -> str | None:
    """The command that acts on an item."""
    slug, agent = item.get("slug"), item.get("agent")
    match item["kind"], item.get("status"):
        case "failing", "invalid":
            return f"wakeful edit {slug}"
        case ("failing", "disabled") | ("paused", _) if not item.get("byHand"):
            return f"wakeful resume {slug}"
        case "failing", status if status == "done" or item.get("byHand"):
            return f"wakeful run {slug}, or wakeful alerts ack {slug}"
        case "failing" | "late", _:
            return f"wakeful why {slug}, then wakeful run {slug}"
        case "stuck", _:
            return f"wakeful runs show {item['runId']}"
        case "deadLetter" | "delivery", _:
            return f"wakeful outbox retry {item['deliveryId']}"
        case "approval", _:
            return f"wakeful approvals, then wakeful approvals approve {item['approvalId']}"
        case "agent", _:
            return f"wakeful agents test {agent}"
        case "budget" | "brake", _:
            return "wakeful budget"
        case "incident", _:
            return f"wakeful alerts ack {item['alertId']}"
    return None
