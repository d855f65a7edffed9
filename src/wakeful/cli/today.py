"""What needs a person now, with the command to use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from wakeful.cli import times
from wakeful.cli.costs import unpriced
from wakeful.cli.invocation import Invocation, command
from wakeful.cli.render import json_out, note, plural, say
from wakeful.core.attention_commands import command_for

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
    for words in (times.localised(item.get("cure") or ""), command_for(item)):
        if words:
            paragraph(words, label="    ")
