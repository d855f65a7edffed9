"""`wakeful import KIND [PATH]`: take schedules over from another scheduler."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import click

from wakeful.cli import times
from wakeful.cli.invocation import Invocation, command, end, invocation_of
from wakeful.cli.render import json_out, note, say

KINDS: Final = (
    "crontab", "systemd", "openclaw", "hermes", "claude", "codex", "caco", "openalice", "glm-tray", "kubernetes",
)  # fmt: skip
IMPORT_TIMEOUT: Final = 600.0
_DONE: Final = {"create": "created", "update": "updated"}


class _Kind(click.Choice[str]):
    """One of our kinds, or one of a plugin, which only the daemon knows."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        is_ours = value in self.choices or not _has_plugins(ctx)
        return super().convert(value, param, ctx) if is_ours else value


def _has_plugins(ctx: click.Context | None) -> bool:
    """Whether the settings of the home name plugins."""
    from wakeful.config import SettingsRefused, load

    try:
        return ctx is not None and bool(load(invocation_of(ctx).home).settings.plugins)
    except SettingsRefused:
        return False


@command("import")
@click.argument("kind", type=_Kind(KINDS))
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
    source has changed.
    """
    body: dict[str, Any] = {"kind": kind, "only": list(only) or None, "except": list(leaving) or None}
    body |= {} if path is None else {"path": str(path.absolute())}
    query = {"apply": is_applied or None, "adopt": adopt or None, "disableSource": disable_source or None}
    plan = invocation.daemon().ask("POST", "/api/import", query=query, body=body, timeout=IMPORT_TIMEOUT).body
    if invocation.is_json:
        json_out(plan)
    else:
        _show(plan, is_applied, disable_source)
    if plan["entries"] and all(entry["action"] == "refused" for entry in plan["entries"]):
        end()


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
    if entry["notCarried"]:
        say(f"    not carried over: {', '.join(_explained(entry))}")
    if entry["reason"]:
        say(f"    {entry['reason']}")


def _at(text: str) -> str:
    return times.wall(times.parse(text))


def _explained(entry: Mapping[str, Any]) -> list[str]:
    notes = {text.partition(" (")[0]: text for text in entry["notes"]}
    return [notes.get(name, name) for name in entry["notCarried"]]
