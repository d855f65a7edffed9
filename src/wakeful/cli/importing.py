"""`wakeful import KIND [PATH]`: take schedules over from another scheduler."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import click

from wakeful.cli import times
from wakeful.cli.errors import Ended, Misused, NoDaemon, start_command
from wakeful.cli.invocation import Invocation, command, end
from wakeful.cli.render import json_out, note, say

KINDS: Final = (
    "crontab", "systemd", "at", "launchd", "openclaw", "hermes", "claude", "claude-code", "codex", "apscheduler",
    "celery-beat", "airflow", "github-actions", "n8n", "home-assistant", "kubernetes", "caco", "openalice", "glm-tray",
)  # fmt: skip
IMPORT_TIMEOUT: Final = 600.0
_DONE: Final = {"create": "created", "update": "updated"}


@command("import")
@click.argument("kind", type=click.Choice(KINDS))
@click.argument("path", required=False, type=click.Path(path_type=Path))
@click.option(
    "--apply", "is_applied", is_flag=True, help="Write the schedules; without this option nothing is changed."
)
@click.option("--adopt", is_flag=True, help="Leave the job where it is; Wakeful only starts it.")
@click.option("--only", metavar="SLUG", multiple=True, help="Import only this entry. Repeatable.")
@click.option("--except", "leaving", metavar="SLUG", multiple=True, help="Do not import this entry. Repeatable.")
@click.option("--disable-source", is_flag=True, help="With --apply: switch off the source without losing a run.")
def import_command(
    invocation: Invocation,
    kind: str,
    path: Path | None,
    is_applied: bool,
    adopt: bool,
    only: tuple[str, ...],
    leaving: tuple[str, ...],
    disable_source: bool,
) -> None:
    """Import schedules from crontab, systemd, OpenClaw and others.

    Shows what each entry would become: its timing in words, its next times in both systems, and what is not carried
    over. PATH is a file or folder; without it, the usual locations are read. Importing again changes nothing unless the
    source has changed. Without --apply, no daemon is needed.
    """
    body: dict[str, Any] = {"kind": kind, "only": list(only) or None, "except": list(leaving) or None}
    body |= {} if path is None else {"path": str(path.absolute())}
    query = {"apply": is_applied or None, "adopt": adopt or None, "disableSource": disable_source or None}
    try:
        daemon = invocation.daemon(what="and --apply needs one" if is_applied else "")
        plan = daemon.ask("POST", "/api/import", query=query, body=body, timeout=IMPORT_TIMEOUT).body
    except NoDaemon as missing:
        if is_applied:
            raise
        plan = _dry_plan(invocation, missing, body, query)
    if invocation.is_json:
        json_out(plan)
    else:
        _show(plan, is_applied, disable_source)
    if plan["entries"] and all(entry["action"] == "refused" for entry in plan["entries"]):
        end()


def _dry_plan(
    invocation: Invocation, missing: NoDaemon, body: Mapping[str, Any], query: Mapping[str, Any]
) -> Mapping[str, Any]:
    """The plan by the settings and the store of this home."""
    import asyncio

    from wakeful.app.bootstrap import StoreRefused
    from wakeful.cli.stored import is_free
    from wakeful.config import SettingsRefused, load
    from wakeful.core.errors import Invalid
    from wakeful.integrations.imports.entries import SourceRefused
    from wakeful.server.daemon.dry_import import ImportQuestion, dry_import

    if not is_free(invocation.home):
        raise missing  # starting, or not responding
    question = ImportQuestion(
        body["kind"],
        Path(body["path"]) if "path" in body else None,
        None if body["only"] is None else tuple(body["only"]),
        tuple(body["except"] or ()),
        is_adopting=bool(query["adopt"]),
        is_handover=bool(query["disableSource"]),
    )
    try:
        plan = asyncio.run(dry_import(invocation.home, load(invocation.home), question))
    except SourceRefused as refused:
        raise Misused("not accepted", [("path", str(refused))]) from None
    except Invalid as invalid:
        raise Misused("not accepted", [(error.field, error.message) for error in invalid.errors]) from None
    except SettingsRefused as refused:
        raise Ended(f"the settings cannot be read: {refused}", hint="correct them: wakeful check FILE") from None
    except StoreRefused as refused:
        raise Ended(f"the store cannot be read: {refused}", hint=missing.hint) from None
    note(f"wakeful: no daemon is running; planned with the settings of {invocation.home}, and this shell's PATH")
    note(f"  to import, start one: {start_command(invocation.home)}")
    return plan


def _show(plan: Mapping[str, Any], is_applied: bool, is_handover: bool) -> None:
    if not plan["entries"]:
        say(f"{plan['kind']}: nothing found to import")
        return
    for entry in plan["entries"]:
        _show_entry(entry, is_applied)
    counts: dict[str, int] = {}
    for entry in plan["entries"]:
        counts[entry["action"]] = counts.get(entry["action"], 0) + 1
    say(", ".join(f"{count} {_DONE.get(action, action) if is_applied else action}" for action, count in counts.items()))
    handover = plan["handover"]
    if handover is not None:
        say(f"handover at {_at(handover['handAt'])}: until then the source runs them, from then on Wakeful does")
    elif not is_applied:
        note("  nothing was changed; write the schedules with --apply")
    elif any(entry["action"] in _DONE for entry in plan["entries"]):
        note("  the source still runs these too: switch it off there, or import with --apply --disable-source")


def _show_entry(entry: Mapping[str, Any], is_applied: bool) -> None:
    where = f"{entry['place']}:{entry['line']}" if entry["line"] else entry["place"]
    action = _DONE.get(entry["action"], entry["action"]) if is_applied else entry["action"]
    say(f"{action}  {entry['slug'] or ''}  ({where})".replace("    ", "  "))
    say(f"    {entry['source']}")
    if entry["description"]:
        say(f"    {entry['description']}")
    for label, name in (("there", "sourceNext"), ("here ", "next")):
        if entry[name]:
            say(f"    next {label}: {', '.join(_at(at) for at in entry[name])}")
    if entry["draft"]:
        say(f"    a draft, created disabled: {entry['draft']}")
    explained = {text.partition(" (")[0]: text for text in entry["notes"]}
    for text in entry["notes"]:
        if text.partition(" (")[0] not in entry["notCarried"]:
            say(f"    differs: {text}")
    if entry["notCarried"]:
        say(f"    not carried over: {', '.join(explained.get(name, name) for name in entry['notCarried'])}")
    if entry["reason"]:
        say(f"    {entry['reason']}")


def _at(text: str) -> str:
    return times.wall(times.parse(text))
