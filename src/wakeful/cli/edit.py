"""Change a schedule with options, or edit the whole definition in an editor."""

from __future__ import annotations

import json
from typing import Any

import click

from wakeful.cli.add import TIMES_SHOWN, tell, warn
from wakeful.cli.client import Answer, Daemon, Refused, schedule_path
from wakeful.cli.definition_options import definition_of, definition_options, in_options
from wakeful.cli.errors import Ended, Misused
from wakeful.cli.invocation import Invocation, command
from wakeful.cli.render import json_out, note
from wakeful.cli.slugs import slug_argument

CHANGED_MEANWHILE = 412


@command("edit")
@slug_argument
@definition_options
def edit_command(invocation: Invocation, slug: str, **given: Any) -> None:
    """Change fields of a schedule, or edit its definition in an editor.

    Fields that are not given keep their values. Without options the definition is opened in VISUAL or EDITOR; changes
    made elsewhere in the meantime are not overwritten.
    """
    changes = definition_of(given, is_edit=True)
    daemon = invocation.daemon(what="so the schedule cannot be changed")
    path = schedule_path(slug)
    try:
        answer = daemon.ask("PATCH", path, body=changes) if changes else _in_editor(daemon, path, slug)
    except Misused as misused:
        misused.faults = tuple(in_options(misused.faults, given))
        raise
    if answer is None:
        note(f"{slug} is unchanged")
        return
    upcoming = daemon.get(f"{path}/next", count=TIMES_SHOWN)["times"]
    if invocation.is_json:
        json_out({**answer.body, "next": upcoming})
    else:
        tell(answer.body, upcoming, "updated")
    warn(daemon, answer)


def _in_editor(daemon: Daemon, path: str, slug: str) -> Answer | None:
    """Open the definition in the editor; None if nothing was changed."""
    before = daemon.ask("GET", path)
    written = _definition_of(before.body)
    text = json.dumps(written, indent=2, ensure_ascii=False) + "\n"
    edited = _edited(text, slug)
    if edited is None or edited == text:
        return None
    try:
        changed = json.loads(edited)
    except ValueError as error:
        raise Misused("not accepted", [("", f"the edited text is not JSON ({error}); nothing was changed")]) from error
    try:
        return daemon.ask("PUT", path, body=changed, headers={"If-Match": before.tag} if before.tag else None)
    except Refused as refused:
        if refused.status == CHANGED_MEANWHILE:
            raise Ended(
                f"{slug} was changed elsewhere in the meantime; nothing was written",
                hint=f"start again from the current version: wakeful edit {slug}",
            ) from refused
        raise


def _edited(text: str, slug: str) -> str | None:
    try:
        return click.edit(text, extension=f".{slug}.json", require_save=True)
    except click.ClickException as error:
        raise Ended(f"the editor failed: {error.message}", hint="set EDITOR to another one, or use options") from error


def _definition_of(view: dict[str, Any]) -> dict[str, Any]:
    from wakeful.core.schedule.definition_json import WRITTEN

    return {name: view[name] for name in WRITTEN if name in view}
