"""`replay` and `backfill`: past instants, run on request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from wakeful.cli.client import schedule_path
from wakeful.cli.invocation import Invocation, command
from wakeful.cli.render import json_out, note, plural, say
from wakeful.cli.slugs import optional_slug_argument, slug_argument


@command("replay")
@optional_slug_argument
@click.option("--missed", is_flag=True, help="Run missed instants; needs --since.")
@click.option("--since", metavar="T", help="Start of the period: a time, or how long ago, such as 2d.")
@click.option("--apply", "is_applied", is_flag=True, help="Run them; without this option they are only counted.")
def replay_command(invocation: Invocation, slug: str | None, missed: bool, since: str | None, is_applied: bool) -> None:
    """Run missed instants of one schedule, or of all, one after another. Without --apply, only count them.

    To repeat a single run, use: wakeful runs replay ID.
    """
    from wakeful.cli.time_options import ago

    if not missed or since is None:
        raise click.UsageError("write: wakeful replay --missed --since 2d [SLUG] [--apply]")
    body = {"since": ago(since, "--since"), "slug": slug}
    query = {} if is_applied else {"dryRun": "true"}
    _tell(invocation, invocation.daemon().ask("POST", "/api/replay", query=query, body=body).body, is_applied)


@command("backfill")
@slug_argument
@click.option("--from", "since", metavar="T", help="Start of the period: a time, or how long ago, such as 30d.")
@click.option("--until", metavar="T", help="End of the period: a time, or how long ago; default: now.")
@click.option("--apply", "is_applied", is_flag=True, help="Run them; without this option they are only counted.")
@click.option("--stop", "is_stopped", is_flag=True, help="Stop this schedule's backfills; a run in progress finishes.")
def backfill_command(
    invocation: Invocation, slug: str, since: str | None, until: str | None, is_applied: bool, is_stopped: bool
) -> None:
    """Run a schedule's past instants that have not succeeded, one after another. Without --apply, only count them.

    Regular instants take precedence.
    """
    from wakeful.cli.time_options import ago

    path = schedule_path(slug, "/backfill")
    if is_stopped:
        left = invocation.daemon().ask("DELETE", path).body["left"]
        if invocation.is_json:
            json_out({"left": left})
        else:
            say(f"stopped; {plural(left, 'instant')} will not run")
        return
    if since is None:
        raise click.UsageError("write: wakeful backfill SLUG --from 30d [--until T] [--apply], or --stop")
    body = {"from": ago(since, "--from"), "until": None if until is None else ago(until, "--until")}
    query = {} if is_applied else {"dryRun": "true"}
    _tell(invocation, invocation.daemon().ask("POST", path, query=query, body=body).body, is_applied)


def _tell(invocation: Invocation, answer: Mapping[str, Any], is_applied: bool) -> None:
    if invocation.is_json:
        json_out(answer)
        return
    for slug, count in answer["bySlug"].items():
        say(f"{slug}: {count}")
    total = answer["instants"]
    many = plural(total, "instant")
    if is_applied:
        say(f"{many} will run, one after another{_price(answer)}")
    else:
        say(f"{many} would run{_price(answer)}")
        if total:
            note("nothing was started; to start them, add --apply")


def _price(answer: Mapping[str, Any]) -> str:
    """What the runs may cost, if anything."""
    if not answer["instants"] or answer["estimate"] == 0:
        return ""
    return "; what they will cost is unknown" if answer["estimate"] is None else f"; about ${answer['estimate']:.2f}"
