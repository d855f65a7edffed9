"""The outbox (deliveries) and the inbox."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

import click

from wakeful.cli import times
from wakeful.cli.invocation import Invocation, command
from wakeful.cli.render import json_out, note

OUTBOX_ACTIONS: Final = ("show", "retry", "discard")
INBOX_ACTIONS: Final = ("read", "unread", "rm")
STATUSES: Final = ("pending", "delivered", "dead")
LIMIT: Final = 50


@command("outbox")
@click.argument("action", type=click.Choice(OUTBOX_ACTIONS), required=False)
@click.argument("delivery_id", metavar="[ID]", required=False)
@click.option("--status", type=click.Choice(STATUSES), help="Show only this status.")
@click.option(
    "--limit", type=click.IntRange(1, 1_000), default=LIMIT, show_default=True, help="Show at most this many."
)
def outbox_command(
    invocation: Invocation, action: str | None, delivery_id: str | None, status: str | None, limit: int
) -> None:
    """List the deliveries, newest first; show one, retry it now, or discard it."""
    if action is None:
        _list_outbox(invocation, status, limit)
        return
    path = f"/api/deliveries/{_id(action, delivery_id)}"
    if action == "discard":
        invocation.daemon().ask("DELETE", path)
        if invocation.is_json:
            json_out({"discarded": delivery_id})
        else:
            click.echo(f"{delivery_id} is discarded")
        return
    answer = (
        invocation.daemon().ask("POST", f"{path}/retry").body if action == "retry" else invocation.daemon().get(path)
    )
    if invocation.is_json:
        json_out(answer)
    elif action == "retry":
        click.echo(f"{answer['id']} will be retried now; see it with: wakeful outbox show {answer['id']}")
    else:
        _show(answer)


@command("inbox")
@click.argument("action", type=click.Choice(INBOX_ACTIONS), required=False)
@click.argument("item_id", metavar="[ID]", required=False)
@click.option("--unread", is_flag=True, help="Show only unread items.")
@click.option(
    "--limit", type=click.IntRange(1, 1_000), default=LIMIT, show_default=True, help="Show at most this many."
)
def inbox_command(invocation: Invocation, action: str | None, item_id: str | None, unread: bool, limit: int) -> None:
    """Read the inbox, newest first; mark an item as read, or remove it."""
    if action is not None:
        path = f"/api/inbox/{_id(action, item_id)}"
        if action == "rm":
            invocation.daemon().ask("DELETE", path)
        else:
            invocation.daemon().ask("POST", f"{path}/read", body={"read": action == "read"})
        if invocation.is_json:
            json_out({action: item_id})
        else:
            click.echo(f"{item_id} is {'removed' if action == 'rm' else action}")
        return
    answer = invocation.daemon().get("/api/inbox", unread="true" if unread else "false", limit=limit)
    if invocation.is_json:
        json_out(answer)
    elif not answer["items"]:
        note("the inbox is empty" if not unread else "no unread items")
    else:
        _items(answer["items"])


def _id(action: str, given: str | None) -> str:
    if given is None:
        raise click.UsageError(f"{action} needs an ID; the list shows the ids")
    return quote(given, safe="")


def _list_outbox(invocation: Invocation, status: str | None, limit: int) -> None:
    query = {"limit": limit} if status is None else {"limit": limit, "status": status}
    answer = invocation.daemon().get("/api/deliveries", **query)
    if invocation.is_json:
        json_out(answer)
        return
    if not answer["deliveries"]:
        note("no deliveries yet" if status is None else f"no deliveries are {status}")
        return
    from wakeful.cli.tables import Column, table

    columns = [
        Column("ID"),
        Column("QUEUED"),
        Column("STATUS", is_state=True),
        Column("CHANNEL", least=8),
        Column("TO", least=6, drop=2),
        Column("TRIES", drop=3),
        Column("TEXT", least=12),
        Column("ERROR", least=12, drop=1),
    ]
    since = times.now()
    table(columns, [_row(delivery, since) for delivery in answer["deliveries"]])


def _row(delivery: Mapping[str, Any], since: Any) -> Sequence[object]:
    return [
        delivery["id"],
        times.relative(times.parse(delivery["enqueuedAt"]), since),
        delivery["status"],
        delivery["channel"],
        delivery["to"] or "",
        delivery["attempts"],
        delivery["text"],
        delivery["lastError"] or "",
    ]


def _show(delivery: Mapping[str, Any]) -> None:
    from wakeful.cli.tables import facts

    names = {
        "id": "id",
        "status": "status",
        "channel": "channel",
        "to": "to",
        "attempts": "attempts",
        "lastError": "error",
        "enqueuedAt": "queued",
        "nextAttemptAt": "next attempt",
        "endedAt": "ended",
        "slug": "of",
        "runId": "run",
        "text": "text",
    }
    since = times.now()
    shown = {name: times.when(value, since) if name.endswith("At") else value for name, value in delivery.items()}
    facts([(said, shown[name]) for name, said in names.items() if delivery[name] is not None])


def _items(items: Sequence[Mapping[str, Any]]) -> None:
    from wakeful.cli.tables import paragraph

    since = times.now()
    for number, item in enumerate(items):
        if number:
            click.echo()
        mark = " " if item["readAt"] else "*"
        of = "" if item["slug"] is None else f"  {item['slug']}"
        click.echo(f"{mark} {item['id']}  {times.relative(times.parse(item['at']), since)}{of}")
        paragraph(item["text"], label="    ")
