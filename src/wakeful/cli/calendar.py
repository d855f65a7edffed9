"""`wakeful calendar`: the address of the calendar feed."""

from __future__ import annotations

import click

from wakeful.cli.invocation import Invocation, command
from wakeful.cli.render import json_out, note, say


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
