"""Agents' proposals: list, show, approve, reject."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from wakeful.cli import times
from wakeful.cli.errors import Ended
from wakeful.cli.invocation import Invocation, command
from wakeful.cli.render import json_out, note, say


@command("approvals")
@click.argument("action", type=click.Choice(("approve", "reject", "show")), required=False)
@click.argument("proposal", metavar="[ID]", required=False)
def approvals_command(invocation: Invocation, action: str | None, proposal: str | None) -> None:
    """List what agents want to schedule; approve or reject one by its id."""
    if action is not None and proposal is None:
        raise click.UsageError(f"name the proposal: wakeful approvals {action} ID; `wakeful approvals` lists them")
    daemon = invocation.daemon()
    if action in ("approve", "reject"):
        _decide(invocation, action, str(proposal))
        return
    proposals = daemon.get("/api/approvals")["approvals"]
    if action == "show":
        proposals = [item for item in proposals if item["id"] == proposal]
        if not proposals:
            raise Ended(
                f"no proposal with the id {proposal} is waiting for approval", hint="see all: wakeful approvals"
            )
    if invocation.is_json:
        json_out({"approvals": proposals})
    elif not proposals:
        note("nothing is waiting for approval")
    else:
        for item in proposals:
            _show(item)


def _decide(invocation: Invocation, action: str, proposal: str) -> None:
    if not (proposal.isascii() and proposal.isalnum()):
        raise Ended(f"no proposal with the id {proposal!r} is waiting for approval", hint="see all: wakeful approvals")
    decided = invocation.daemon().ask("POST", f"/api/approvals/{proposal}", body={"decision": action}).body
    if invocation.is_json:
        json_out(decided)
        return
    say(f"{decided['slug']} {decided['status']}")
    if decided["missed"]:
        say("Its time passed while it waited, so it will not run.")


def _show(item: Mapping[str, Any]) -> None:
    from wakeful.features.schedules.approval_texts import Change, action_lines, change_lines, visible

    now = times.now()
    change = {"create": "a new schedule", "edit": "a change", "run": "one run of it"}[item["change"]]
    asked = times.relative(times.parse(item["askedAt"]), now)
    say(f"{item['id']}  {item['slug']}: {change} by {item['owner']}, {asked}")
    say(f"  when    {item['understood']}")
    if item["next"]:
        say(f"  next    {times.relative(times.parse(item['next'][0]), now)}")
    changes = [Change(change["field"], change["old"], change["new"]) for change in item["changes"]]
    lines = [*action_lines(item["definition"]), *change_lines(changes, is_new=item["change"] == "create")]
    say("\n".join(f"  {line}" for text in lines for line in text.split("\n")))
    if item["note"]:
        say("  note")
        say("\n".join(f"    {line}" for line in visible(item["note"]).split("\n")))
    if item["lineage"]["runId"]:
        say(f"  from    run {item['lineage']['runId']} of {item['lineage']['slug']}, depth {item['lineage']['depth']}")
    if item["estimate"] is not None:
        say(f"  cost    about ${item['estimate']:.2f} in 30 days")
    say(f"  decide  wakeful approvals approve {item['id']}   or reject {item['id']}")
