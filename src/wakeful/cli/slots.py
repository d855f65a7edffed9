"""Quota slots: how they stand, and what one can tell them to do."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import click

from wakeful.cli import times
from wakeful.cli.client import Daemon
from wakeful.cli.faults import FAILED, Ended
from wakeful.cli.invocation import Invocation, command, end
from wakeful.cli.render import json_out, note, say

OPEN: Final = ("running", "waiting")
POLLED: Final = 35.0
CONFIRMED: Final = 10.0
"""How long a wake is waited for: the reading that follows it at once usually shows it."""
LOOK_EVERY: Final = 0.1
_WHAT: Final = ("wake", "poll", "resume")


@command("slots")
@click.argument("what", required=False, metavar="[wake|poll|resume]")
@click.argument("name", required=False, metavar="[NAME]")
def slots_command(asked: Invocation, what: str | None, name: str | None) -> None:
    """List the quota slots, or wake, poll or resume one.

    `wake NAME` sends a wake now and waits a moment for its confirmation, `poll NAME` reads the quota now, `resume NAME`
    lets a slot go on that was disabled by its errors.
    """
    if what is None:
        _list(asked)
        return
    if what not in _WHAT:
        raise click.UsageError(f"{what!r} is none of {', '.join(_WHAT)}; see wakeful slots --help")
    if name is None:
        raise click.UsageError(f"name the slot: wakeful slots {what} NAME")
    daemon = asked.daemon()
    {"wake": _wake, "poll": _poll, "resume": _resume}[what](asked, daemon, name)


def slot_path(name: str, question: str = "") -> str:
    """Where a slot is; a text that no slot can have as its name is not even asked for."""
    if not name.isascii() or not all(char.isalnum() or char in "._-" for char in name):
        raise Ended(f"there is no slot {name!r}")
    return f"/api/slots/{name}{question}"


def _list(asked: Invocation) -> None:
    found = asked.daemon().get("/api/slots")["slots"]
    if asked.is_json:
        json_out({"slots": found})
        return
    if not found:
        note("no quota slots")
        note("  define one under [slots.main] in wakeful.toml")
        return
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
    table(columns, [_row(slot, since) for slot in found])
    for slot in found:
        if slot["statusReason"]:
            note(f"  {slot['statusReason']}" + (f"; {slot['cure']}" if slot["cure"] else ""))


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


def _wake(asked: Invocation, daemon: Daemon, name: str) -> None:
    run_id = daemon.ask("POST", slot_path(name, "/wake"), body={}).body["runId"]
    run = _until(lambda: daemon.get(f"/api/runs/{run_id}"), lambda run: run["outcome"] not in OPEN, within=CONFIRMED)
    if asked.is_json:
        json_out(run)
    elif run["outcome"] == "succeeded":
        say(f"{name} woken and confirmed, run {run_id}")
    elif run["outcome"] in OPEN:
        say(f"{name} woken, not confirmed yet, run {run_id}; it is looked for every minute: wakeful slots")
    else:
        say(f"{name} not woken: {run['outcome']}, run {run_id}")
        note(f"  {run.get('error') or run.get('reason') or ''}")
    if run["outcome"] not in ("succeeded", *OPEN):
        end(FAILED)


def _poll(asked: Invocation, daemon: Daemon, name: str) -> None:
    before = daemon.ask("POST", slot_path(name, "/poll"), body={}).body
    slot = _until(lambda: daemon.get(slot_path(name)), lambda slot: slot["lastPoll"] != before["lastPoll"], POLLED)
    _tell(asked, slot)
    if slot["quotaErrors"] or slot["unreachableSince"]:
        end(FAILED)


def _resume(asked: Invocation, daemon: Daemon, name: str) -> None:
    _tell(asked, daemon.ask("POST", slot_path(name, "/resume"), body={}).body)


def _tell(asked: Invocation, slot: Mapping[str, Any]) -> None:
    if asked.is_json:
        json_out(slot)
        return
    used = "" if slot["percentage"] is None else f", {slot['percentage']:g} % used"
    reset = times.parse(slot["nextResetTime"])
    ends = "" if reset is None else f", reset {times.wall(reset)} ({times.relative(reset, times.now())})"
    say(f"{slot['name']} {slot['status']}{used}{ends}")
    if slot["statusReason"]:
        note(f"  {slot['statusReason']}" + (f"; {slot['cure']}" if slot["cure"] else ""))


def _until(look: Callable[[], Any], is_there: Callable[[Any], bool], within: float) -> Any:
    """What is looked at, once it is there or nobody wants to wait any longer."""
    begun = time.monotonic()  # a stopwatch: how long a person waits
    while True:
        found = look()
        if is_there(found) or time.monotonic() - begun > within:
            return found
        time.sleep(LOOK_EVERY)
