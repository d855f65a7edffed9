"""Verify a database or a backup, without a daemon and without writing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wakeful.cli.client import refuse_agents
from wakeful.cli.errors import FAILED, Ended
from wakeful.cli.home import database_of
from wakeful.cli.invocation import Invocation, command, end
from wakeful.cli.render import json_out, note, say

if TYPE_CHECKING:
    from wakeful.drill.ledger import Verdict
    from wakeful.stores.sqlite.verifying import Fault


@command("verify")
@click.argument("file", metavar="[FILE]", required=False, type=click.Path(path_type=Path))
def verify_command(invocation: Invocation, file: Path | None) -> None:
    """Verify the database, or a backup: pages, log, identity, references, and the laws on the ledger.

    Nothing is written. The daemon may be running. The exit code is 1 if something is wrong.
    """
    refuse_agents(invocation.home)
    path = database_of(invocation.home) if file is None else file
    verified = verify(path, invocation.home)
    if invocation.is_json:
        json_out({"file": str(path), "intact": not verified["faults"], **verified})
    elif not verified["faults"]:
        say(f"{path} is intact: {in_words(verified)}")
    else:
        tell_faults(path, verified["faults"])
        note(f"wakeful: {path} is not intact ({_counted(len(verified['faults']), 'fault')})")
        note("  restore a backup: wakeful restore FILE")
    if verified["faults"]:
        end(FAILED)


def verify(path: Path, home: Path) -> dict[str, Any]:
    """Check a file, and its rows if they can be read."""
    from wakeful.drill.verifying import verify_rows
    from wakeful.ports.store import StoreUnavailable
    from wakeful.stores.sqlite.looking import looking
    from wakeful.stores.sqlite.migrate import DatabaseRefused
    from wakeful.stores.sqlite.verifying import Fault, verify_file

    try:
        found = verify_file(path)
        faults, ledger = found.faults, None
        if found.is_readable:
            try:
                with looking(path) as tx:
                    rows = verify_rows(tx, ledger_days=_ledger_days(home))
                faults, ledger = [*faults, *rows.faults], rows.ledger
            except DatabaseRefused as refused:
                faults = [*faults, Fault("file", str(refused))]
    except FileNotFoundError as error:
        raise Ended(f"there is no database at {path}", hint="name a file, or choose another --home") from error
    except (OSError, StoreUnavailable) as error:
        raise Ended(f"{path} cannot be read: {error}", hint="check its permissions, or try again") from error
    return {
        "store": None if found.identity is None else found.identity.store_id,
        "mark": None if found.identity is None else found.identity.mark,
        **_figures(ledger),
        "faults": [_shown(fault) for fault in faults],
    }


def in_words(verified: dict[str, Any]) -> str:
    """Which store it is, and how much is in it."""
    counted = ", ".join(_counted(verified[what], what[:-1]) for what in ("schedules", "rows"))
    return f"store {verified['store']}, {counted} for {_counted(verified['instants'], 'planned time')}"


def tell_faults(path: Path, faults: list[dict[str, str]]) -> None:
    """One line each."""
    for fault in faults:
        note(f"{path}: {fault['check']}: {fault['problem']}")


def _figures(ledger: Verdict | None) -> dict[str, int | None]:
    if ledger is None:
        return {"schedules": None, "rows": None, "instants": None}
    return {"schedules": ledger.schedules, "rows": ledger.runs, "instants": ledger.instants}


def _shown(fault: Fault) -> dict[str, str]:
    return {"check": fault.check, "problem": fault.problem}


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"


def _ledger_days(home: Path) -> int:
    """How long rows are kept in this home."""
    from wakeful.config import Settings, SettingsRefused, load

    try:
        return load(home).settings.limits.ledger_days
    except SettingsRefused:
        return Settings().limits.ledger_days
