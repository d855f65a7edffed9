"""List the channels, test one, or add a Telegram bot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

import click

from wakeful.cli import times
from wakeful.cli.caller import only_people
from wakeful.cli.errors import Ended, Misused
from wakeful.cli.invocation import Invocation, end, group
from wakeful.cli.render import json_out, note, say

TEST_WITHIN: Final = 90.0
"""Seconds; the daemon itself waits one minute."""


@group("channels")
def channels_command(invocation: Invocation) -> None:
    """List the channels in the order in which they are tried, and where a person was last active."""
    answer = invocation.daemon().get("/api/channels")
    if invocation.is_json:
        json_out(answer)
        return
    from wakeful.cli.tables import Column, table

    columns = [Column("NAME"), Column("TYPE"), Column("TO", least=8, drop=1), Column("FROM", drop=2), Column("PENDING")]
    columns += [Column("DEAD"), Column("TROUBLE", least=12)]
    rows = [
        [
            channel["name"],
            channel["type"],
            channel["to"] or "",
            channel["source"],
            channel["pending"],
            channel["dead"],
            _trouble(channel),
        ]
        for channel in answer["channels"]
    ]
    table(columns, rows)
    for finding in (finding for channel in answer["channels"] for finding in channel["findings"]):
        note(f"{finding['sentence']}; {finding['cure']}")
    last = answer["last"]
    if last is not None:
        to = "" if last["to"] is None else f", {last['to']}"
        note(f"last interaction: {last['channel']}{to}, {times.relative(times.parse(last['at']), times.now())}")


@channels_command.subcommand("test")
@click.argument("name")
@click.option("--to", metavar="RECIPIENT", help="The recipient; default: the one in the settings.")
def test_command(invocation: Invocation, name: str, to: str | None) -> None:
    """Send a test message through a channel and report whether it was delivered.

    Exit code 0 if it was delivered, 1 with the reason otherwise.
    """
    body = {} if to is None else {"to": to}
    path = f"/api/channels/{quote(name, safe='')}/test"
    answer = invocation.daemon().ask("POST", path, body=body, timeout=TEST_WITHIN).body
    is_delivered = answer["status"] == "delivered"
    if invocation.is_json:
        json_out(answer)
    elif is_delivered:
        whom = "" if answer["to"] is None else f" to {answer['to']}"
        say(f"{name}: a test message was delivered{whom}")
    else:
        raise Ended(f"{name}: the test message was not delivered: {answer['error']}", hint=answer["cure"])
    if not is_delivered:
        end()


@channels_command.subcommand("add")
@click.argument("kind", metavar="telegram")
@click.argument("name")
@click.option("--token-file", metavar="FILE", help="Read the bot token from this file (- for standard input).")
@click.option("--chat", metavar="ID", help="The chat to send to; default: the next chat that sends the bot a message.")
@click.option("--inbound", is_flag=True, help="Also receive: a message from that chat gives the agent a turn.")
@click.option(
    "--wait", metavar="DUR", default="5m", show_default=True, help="How long to wait for a message to the bot."
)
@click.option("--base-url", metavar="URL", default="https://api.telegram.org", help="Base URL of the Bot API.")
def add_command(invocation: Invocation, kind: str, name: str, **given: Any) -> None:
    """Add a Telegram bot: check its token, store it privately, find the chat id, write the settings.

    The token is prompted for without echo, or read from standard input if that is not a terminal.
    """
    if kind != "telegram":
        raise Misused(
            f"{kind!r} cannot be added by a command (only telegram can); write [channels.{name}] into wakeful.toml"
        )
    from wakeful.cli.channel_telegram import add

    only_people(invocation.home, "add a channel")
    add(invocation, name, **given)


def _trouble(channel: Mapping[str, Any]) -> str:
    if channel["incident"]:
        return str(channel["incident"])
    return "" if not channel["findings"] else f"inbound: {len(channel['findings'])}, see below"
