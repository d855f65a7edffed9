"""`wakeful slots`: list, show and manage quota slots."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import click

from wakeful.cli import times
from wakeful.cli.errors import FAILED
from wakeful.cli.invocation import HomeCommandGroup, Invocation, end
from wakeful.cli.render import json_out, note, say
from wakeful.cli.slot_definition import add_command, edit_command
from wakeful.cli.slot_details import show, slot_path, tell, tell_trouble

OPEN: Final = ("running", "waiting")
POLLED: Final = 35.0
CONFIRMED: Final = 10.0
"""How long to wait for a wake: the poll right after it usually confirms it."""
LOOK_EVERY: Final = 0.1
_name = click.argument("name", metavar="NAME")


class _SlotsGroup(HomeCommandGroup):
    """`wakeful slots NAME` shows a slot: anything that is not a subcommand is a name."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            return "show", self.commands["show"], args
        return super().resolve_command(ctx, args)


@click.command("slots", cls=_SlotsGroup)
def slots_command(invocation: Invocation) -> None:
    """List the quota slots, show one (slots NAME), or manage one."""
    slots = invocation.daemon().get("/api/slots")["slots"]
    if invocation.is_json:
        json_out({"slots": slots})
        return
    if not slots:
        note("no quota slots")
        note("  add one: wakeful slots add main --key-env GLM_KEY; or define it under [slots.main] in wakeful.toml")
        return
    _list(slots)


slots_command.add_command(add_command)
slots_command.add_command(edit_command)


@slots_command.subcommand("show")
@_name
def show_command(invocation: Invocation, name: str) -> None:
    """Show one slot: its window, limits, calls, tokens and tools."""
    slot = invocation.daemon().get(slot_path(name))
    json_out(slot) if invocation.is_json else show(slot)


@slots_command.subcommand("wake")
@_name
def wake_command(invocation: Invocation, name: str) -> None:
    """Send a wake now and wait briefly for confirmation."""
    daemon = invocation.daemon()
    run_id = daemon.ask("POST", slot_path(name, "/wake"), body={}).body["runId"]
    run = _until(lambda: daemon.get(f"/api/runs/{run_id}"), lambda run: run["outcome"] not in OPEN, within=CONFIRMED)
    if invocation.is_json:
        json_out(run)
    elif run["outcome"] == "succeeded":
        say(f"{name} woken and confirmed, run {run_id}")
    elif run["outcome"] in OPEN and run.get("error"):
        say(f"{name} not woken yet, run {run_id}; the wake is retried automatically: wakeful why slot:{name}")
        note(f"  {run['error']}")
    elif run["outcome"] in OPEN:
        say(f"{name} woken, not confirmed yet, run {run_id}; the quota is polled every minute: wakeful slots")
    else:
        say(f"{name} not woken: {run['outcome']}, run {run_id}")
        note(f"  {run.get('error') or run.get('reason') or ''}")
    if run["outcome"] not in ("succeeded", *OPEN):
        end(FAILED)


@slots_command.subcommand("poll")
@_name
def poll_command(invocation: Invocation, name: str) -> None:
    """Read the quota now."""
    daemon = invocation.daemon()
    before = daemon.ask("POST", slot_path(name, "/poll"), body={}).body
    slot = _until(lambda: daemon.get(slot_path(name)), lambda slot: slot["lastPoll"] != before["lastPoll"], POLLED)
    tell(invocation, slot)
    if slot["quotaErrors"] or slot["unreachableSince"]:
        end(FAILED)


@slots_command.subcommand("resume")
@_name
def resume_command(invocation: Invocation, name: str) -> None:
    """Resume a slot that was disabled after errors."""
    tell(invocation, invocation.daemon().ask("POST", slot_path(name, "/resume"), body={}).body)


@slots_command.subcommand("rm")
@_name
def rm_command(invocation: Invocation, name: str) -> None:
    """Remove a slot from the store; its past runs are kept."""
    invocation.daemon().ask("DELETE", slot_path(name))
    json_out({"name": name, "isRemoved": True}) if invocation.is_json else say(f"{name} removed")


def _list(slots: list[dict[str, Any]]) -> None:
    from wakeful.cli.tables import Column, table

    since = times.now()
    columns = [
        Column("SLOT", least=8),
        Column("STATUS", is_state=True),
        Column("USED"),
        Column("RESET"),
        Column("WAKE"),
        Column("POLL", drop=2),
        Column("ERRORS", drop=1),
    ]
    table(columns, [_row(slot, since) for slot in slots])
    for slot in slots:
        tell_trouble(slot)


def _row(slot: Mapping[str, Any], since: Any) -> list[str]:
    used = times.NONE if slot["percentage"] is None else f"{slot['percentage']:g} %"
    return [
        slot["name"],
        slot["status"],
        used,
        times.relative(times.parse(slot["nextResetTime"]), since),
        times.relative(times.parse(slot["nextWake"]), since),
        times.relative(times.parse(slot["nextPoll"]), since),
        f"{slot['quotaErrors']}/{slot['wakeErrors']}",
    ]


def _until(look: Callable[[], Any], is_there: Callable[[Any], bool], within: float) -> Any:
    """Poll until there is a result or the wait is over."""
    begun = time.monotonic()  # a stopwatch: how long a person waits
    while True:
        state = look()
        if is_there(state) or time.monotonic() - begun > within:
            return state
        time.sleep(LOOK_EVERY)
