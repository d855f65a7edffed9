"""Apply edits of definition files: through the ordinary commands, recorded in the same transaction."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from wakeful.core.errors import FieldError, Invalid
from wakeful.core.fields import check_plain, shown
from wakeful.core.refusals import Conflict
from wakeful.core.schedule.actions import Prompt
from wakeful.core.schedule.definition_json import definition_from_json
from wakeful.core.time.instants import Instant, parse_instant
from wakeful.features.schedules import commands
from wakeful.features.schedules.checks import FIELD_OF_ACTION, Checked
from wakeful.features.schedules.commands import Put
from wakeful.ports.handlers import EngineHooks
from wakeful.ports.store import Tx
from wakeful.server.mirror.known import Known, KnownText, recall, remember
from wakeful.server.mirror.texts import DEFINITION, LAST_RUN, Which

SESSION_ID_MAX: Final = 1_000


class LastRunEdit(NamedTuple):
    """The meaningful changes in an edited last-run file."""

    written: KnownText
    is_session_changed: bool
    session_id: str | None
    is_forced: bool


class Taken(NamedTuple):
    """The result of an edited last-run file."""

    run_id: int | None = None  # the forced run
    refusal: str | None = None  # why no run was started


def definition_of(value: Any, slug: str, before: Sequence[KnownText], which: Which, *, default_zone: str) -> Any:
    """The edited definition; raises `Invalid` if it is invalid or not allowed as a file."""
    if isinstance(value, Mapping) and any(text.said.get("enabled") is value.get("enabled") for text in before):
        # An unchanged `enabled` is our own text, not a request: correcting a prompt must not end a pause.
        value = {name: inner for name, inner in value.items() if name != "enabled"}
    definition = definition_from_json(value, default_zone=default_zone, slug=slug)
    if which == "agent" and not isinstance(definition.action, Prompt):
        field = FIELD_OF_ACTION[type(definition.action)]
        cure = 'write a prompt, or set mirror = "all" under [schedules]'
        raise Invalid(FieldError(field, f"only agent schedules are kept as files; {cure}"))
    return definition


def take_definition(tx: Tx, checked: Checked, *, digest: str, enabled: Any, hooks: EngineHooks, now: Instant) -> Put:
    """Write the definition like any other edit."""
    fate = commands.put_many(tx, [checked], hooks=hooks, now=now)[0]
    if isinstance(fate, Invalid):
        raise fate
    note_definition(tx, fate.slug, digest, enabled)
    return fate


def note_definition(tx: Tx, slug: str, digest: str, enabled: Any) -> None:
    """Record that this file was read, so that it is not taken for an edit again."""
    _note(tx, slug, DEFINITION, KnownText(digest, {"enabled": enabled}))


def last_run_of(value: Any, digest: str, before: Sequence[KnownText], *, now: Instant) -> LastRunEdit:
    """The changes of `nextRun` and `sessionId`; all other fields are read-only."""
    if not isinstance(value, Mapping):
        raise Invalid(FieldError("", "a last run is a JSON object; write {…}"))
    check_plain(value)
    next_run = value.get("nextRun")
    next_at = None if next_run is None else _instant(next_run)
    is_session_changed = "sessionId" in value and not _was_said(before, "sessionId", value["sessionId"])
    session_id = _session_id(value["sessionId"]) if is_session_changed else None
    # A file not written by us may come from elsewhere: a next run in the past means that it is overdue.
    is_forced = next_at is not None and next_at <= now and next_at not in _planned(before)
    said = {"nextRun": next_run, "sessionId": value.get("sessionId")}
    return LastRunEdit(KnownText(digest, said), is_session_changed, session_id, is_forced)


def take_last_run(tx: Tx, slug: str, edit: LastRunEdit, *, now: Instant) -> Taken:
    """Adopt the session, force the run. One edit forces one run: it is recorded in the same transaction."""
    if edit.is_session_changed:
        commands.adopt_session(tx, slug, edit.session_id)
    taken = Taken()
    if edit.is_forced:
        try:
            taken = Taken(run_id=commands.force_once(tx, slug, now=now))
        except Conflict as refused:
            taken = Taken(refusal=str(refused))
    _note(tx, slug, LAST_RUN, edit.written)
    return taken


def _note(tx: Tx, slug: str, name: Literal["definition.json", "last-run.json"], written: KnownText) -> None:
    known: Known = recall(tx, [slug])[slug]
    remember(tx, {slug: {**known, name: (written,)}})


def _was_said(before: Sequence[KnownText], name: str, value: Any) -> bool:
    return any(text.said.get(name) == value for text in before)


def _planned(before: Sequence[KnownText]) -> set[Instant]:
    """The next runs written so far: another notation of the same time is not a change."""
    return {_instant(text.said["nextRun"]) for text in before if text.said.get("nextRun") is not None}


def _instant(value: Any) -> Instant:
    if not isinstance(value, str):
        raise Invalid(FieldError("nextRun", f"{shown(value)} is not a time; write it like 2026-01-30T09:00:00Z"))
    return parse_instant(value, field="nextRun")


def _session_id(value: Any) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not value.strip() or len(value) > SESSION_ID_MAX or not value.isprintable():
        cure = f"write the id that the agent gave (1 to {SESSION_ID_MAX} characters), or null for a new session"
        raise Invalid(FieldError("sessionId", f"{shown(value)} is not a session id; {cure}"))
    return value
