"""`wakeful import KIND [PATH]`: take schedules over from another scheduler."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from wakeful.cli import times
from wakeful.cli.caller import only_people
from wakeful.cli.errors import Ended, Misused, NoDaemon, start_command
from wakeful.cli.invocation import Invocation, command, end, invocation_of
from wakeful.cli.render import json_out, note, say
from wakeful.cli.settings_file import write_setting

if TYPE_CHECKING:
    from wakeful.cli.client import Daemon

KINDS: Final = (
    "crontab", "systemd", "at", "launchd", "openclaw", "hermes", "claude", "claude-code", "codex", "apscheduler",
    "celery-beat", "airflow", "github-actions", "n8n", "home-assistant", "kubernetes", "caco", "openalice", "glm-tray",
)  # fmt: skip
IMPORT_TIMEOUT: Final = 600.0
READ_WITHIN: Final = 20.0
"""Seconds until the daemon has read its changed settings."""
LOOK: Final = 0.1
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
@click.option(
    "--agent-interval-min",
    "interval",
    metavar="DUR",
    help="Plan with this limits.agent_interval_min; with --apply, write it into wakeful.toml first.",
)
@click.option("--disable-source", is_flag=True, help="With --apply: switch off the source without losing a run.")
def import_command(
    invocation: Invocation,
    kind: str,
    path: Path | None,
    is_applied: bool,
    adopt: bool,
    only: tuple[str, ...],
    leaving: tuple[str, ...],
    interval: str | None,
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
    least = None if interval is None else _checked_interval(interval)
    try:
        daemon = invocation.daemon(what="and --apply needs one" if is_applied else "")
        if least is not None and is_applied:
            _lower_limit(invocation, daemon, least)
        if least is not None and not is_applied:
            plan = _dry_plan(invocation, body, query, least)
        else:
            plan = daemon.ask("POST", "/api/import", query=query, body=body, timeout=IMPORT_TIMEOUT).body
    except NoDaemon as missing:
        if is_applied or not _is_free(invocation.home):
            raise
        plan = _dry_plan(invocation, body, query, least, hint=missing.hint)
        note(f"wakeful: no daemon is running; planned with the settings of {invocation.home}, and this shell's PATH")
        note(f"  to import, start one: {start_command(invocation.home)}")
    if invocation.is_json:
        json_out(plan)
    else:
        _show(plan, is_applied, disable_source)
    if plan["entries"] and all(entry["action"] == "refused" for entry in plan["entries"]):
        end()


def _checked_interval(text: str) -> str:
    from wakeful.core.errors import Invalid
    from wakeful.core.time.instants import format_duration, parse_duration

    try:
        return format_duration(parse_duration(text))
    except Invalid as invalid:
        fault = ("--agent-interval-min", "; ".join(error.message for error in invalid.errors))
        raise Misused("not accepted", [fault]) from None


def _is_free(home: Path) -> bool:
    """Whether no daemon holds this home, not even one that is starting or does not respond."""
    from wakeful.server.daemon.home import holder_of

    return holder_of(home) is None


def _lower_limit(invocation: Invocation, daemon: Daemon, least: str) -> None:
    """Write the limit into the settings, and wait until the daemon has read them."""
    only_people(invocation.home, "change the settings")
    write_setting(invocation.home / "wakeful.toml", "limits", "agent_interval_min", least)
    give_up_at = time.monotonic() + READ_WITHIN
    while daemon.get("/api/config")["settings"]["limits"]["agent_interval_min"] != least:
        if time.monotonic() > give_up_at:
            raise Ended("the daemon has not read the changed wakeful.toml", hint="see why: wakeful doctor")
        time.sleep(LOOK)
    note(f"  wakeful.toml: limits.agent_interval_min is {least} now")


def _dry_plan(
    invocation: Invocation,
    body: Mapping[str, Any],
    query: Mapping[str, Any],
    least: str | None,
    *,
    hint: str | None = None,
) -> Mapping[str, Any]:
    """The plan by the settings and the store of this home, as this process reads them."""
    import asyncio

    from wakeful.app.bootstrap import StoreRefused
    from wakeful.config import SettingsRefused, load
    from wakeful.core.errors import Invalid
    from wakeful.integrations.imports.entries import SourceRefused
    from wakeful.server.daemon.dry_import import ImportQuestion, dry_import

    question = ImportQuestion(
        body["kind"],
        Path(body["path"]) if "path" in body else None,
        None if body["only"] is None else tuple(body["only"]),
        tuple(body["except"] or ()),
        is_adopting=bool(query["adopt"]),
        is_handover=bool(query["disableSource"]),
    )
    try:
        loaded = load(invocation.home, options={"limits.agent_interval_min": least})
        return asyncio.run(dry_import(invocation.home, loaded, question))
    except SourceRefused as refused:
        raise Misused("not accepted", [("path", str(refused))]) from None
    except Invalid as invalid:
        raise Misused("not accepted", [(error.field, error.message) for error in invalid.errors]) from None
    except SettingsRefused as refused:
        raise Ended(f"the settings cannot be read: {refused}", hint="correct them: wakeful check FILE") from None
    except StoreRefused as refused:
        raise Ended(f"the store cannot be read: {refused}", hint=hint) from None


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
    for limit in plan["limits"]:
        count = f"{limit['refused']} {'entry runs' if limit['refused'] == 1 else 'entries run'}"
        say(
            f"{count} more often than {limit['setting']} allows: add --agent-interval-min {limit['needed']} to lower it"
        )
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
    for line in (entry["settings"] or "").splitlines():
        say(f"      {line}")


def _at(text: str) -> str:
    return times.wall(times.parse(text))
