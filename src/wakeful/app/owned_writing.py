"""What agents write: schedules of their own, and one more turn in the session they call from."""

import logging
import secrets
from collections.abc import Collection, Mapping
from datetime import tzinfo
from typing import Any, Final, NamedTuple

from wakeful.app.definitions import Definitions
from wakeful.core.errors import FieldError, Invalid, refuse
from wakeful.core.run.effects import Deliver
from wakeful.core.schedule.definition import ending
from wakeful.core.schedule.definition_json import decode_definition
from wakeful.core.self_scheduling.proposals import OwnedKind, Proposal
from wakeful.core.self_scheduling.slugs import owned_slug
from wakeful.core.time.instants import Instant
from wakeful.core.time.timing import Once, Timing, next_n, resolve, without_days
from wakeful.core.time.timing_builders import as_zone
from wakeful.core.time.timing_json import timing_to_json
from wakeful.core.time.when import read_when
from wakeful.features.schedules import owned, queries
from wakeful.features.schedules.approvals import asking
from wakeful.features.schedules.checks import Checked
from wakeful.features.schedules.owned import Actor, Written
from wakeful.features.schedules.rules import Terms
from wakeful.features.schedules.views import ScheduleView, view_proposal
from wakeful.ports.store import Tx

log = logging.getLogger("wakeful.approvals")

TIMES_SHOWN: Final = 5
ALLOWED: Final = (
    "slug", "schedule", "prompt", "agent", "command", "deliver", "timeout", "expiresAt", "sessionConfig", "exclude",
)  # fmt: skip
"""The fields of a definition that an agent may write."""
TEXT_MAX: Final = 20_000
_NOT_YOURS: Final = f"an agent may not set it; leave it out. It may set {', '.join(ALLOWED[1:])}"
_IGNORED: Final = frozenset({
    "status", "statusReason", "lastRun", "lastResult", "lastError", "sessionId", "nextRun", "consecutiveErrors",
    "createdAt", "updatedAt", "version", "next", "description", "health", "lastOutcome", "owner", "lineage", "approval",
})  # fmt: skip


class AgentWritten(NamedTuple):
    """The result of an agent's write: the outcome, the schedule or proposal, and its next times."""

    result: owned.Result
    view: ScheduleView
    proposal: Proposal | None
    is_copy: bool
    next_times: tuple[Instant, ...]
    timing: Timing


def timing_of_text(app: Definitions, text: object, timezone: str | tzinfo | None = None) -> Timing:
    """A `when` text, completed as of now."""
    now, zone = app._moment().now, app._open.conditions.default_zone
    named = None if timezone is None else as_zone(timezone, "timezone")
    timing = read_when(text, now=now, default_zone=zone, timezone=named, field="when")
    return resolve(timing, now=now, default_zone=zone)


def times_after_now(app: Definitions, timing: Timing) -> tuple[Instant, ...]:
    """The next five times of a timing that are not on excluded days."""
    return next_n(without_days(timing, app._terms.excluded_in(timing)), app._moment().now, TIMES_SHOWN)


async def put_owned(
    app: Definitions, actor: Actor, slug: str, definition: Any, *, note: str | None = None
) -> AgentWritten:
    """Write a schedule of an agent, by its full slug, or propose it."""
    checked = _read_owned(app, actor, slug, definition)
    given = {name for name, value in definition.items() if value is not None}
    return await _put(app, actor, checked, note=_note(note), kind="schedule", given=given)


async def wake_me(app: Definitions, actor: Actor, when: str, text: object) -> AgentWritten:
    """Schedule one turn of the calling agent, in the session it calls from."""
    if not isinstance(text, str) or not text.strip():
        refuse("text", "is empty; write the text you want to get at that time")
    timing = timing_of_text(app, when)
    if not isinstance(timing, Once):
        refuse("after", f"'{when}' is not one point in time; write for example 20m, or use put_schedule")
    slug = owned_slug(actor.agent, f"wake-{secrets.token_hex(4)}")
    definition = {
        "schedule": timing_to_json(timing),
        "prompt": text,
        "agent": actor.agent,
        **_deliver_json(app, actor),
    }
    checked = app._read(slug, _bounded(definition), app._moment().now)
    return await _put(app, actor, _with_end(app, checked), note=None, kind="wake", given=())


async def _put(
    app: Definitions, actor: Actor, checked: Checked, *, note: str | None, kind: OwnedKind, given: Collection[str]
) -> AgentWritten:
    parts, terms = app._open, app._self_scheduling.value

    def write(tx: Tx, now: Instant) -> AgentWritten:
        ask = asking(terms.approvers, parts.apply, terms=app._terms, now=now)
        done = owned.put(
            tx, actor, checked, kind=kind, note=note, given=given, terms=terms, hooks=parts.hooks, ask=ask, now=now
        )
        return _read_back(tx, done, now, app._terms)

    written = await app._command(write)
    log.info("%s: %s %s (%s)", written.result, written.view.slug, f"by {actor.agent}", _from(actor))
    return written


def _read_owned(app: Definitions, actor: Actor, slug: str, definition: Any) -> Checked:
    if not isinstance(definition, Mapping):
        raise Invalid(FieldError("", "a definition is a JSON object; write {…}"))
    shown = {name: value for name, value in definition.items() if name not in _IGNORED}
    unknown = [name for name in shown if name not in ALLOWED]
    errors = [FieldError(str(name)[:80], _NOT_YOURS) for name in unknown]
    if shown.get("agent") not in (None, actor.agent) and "prompt" in shown:
        errors.append(
            FieldError("agent", f"an agent can only schedule its own turns; leave it out, or write {actor.agent!r}")
        )
    command = shown.get("command")
    if isinstance(command, Mapping) and set(command) - {"argv"}:
        errors.append(FieldError("command", "an agent may give argv only; leave the rest out"))
    session = shown.get("sessionConfig")
    if isinstance(session, Mapping) and set(session) - {"persistSession"}:
        errors.append(FieldError("sessionConfig", "an agent may set persistSession only; leave the rest out"))
    exclude = shown.get("exclude")
    if isinstance(exclude, Mapping) and set(exclude) - {"dates", "timezone"}:
        errors.append(FieldError("exclude", "an agent may give dates, but cannot name files; leave the rest out"))
    if errors:
        raise Invalid(*errors)
    written = {**shown, "slug": slug}
    if "prompt" in written:
        written["agent"] = actor.agent
        if written.get("deliver") is None:
            written |= _deliver_json(app, actor)
    return _with_end(app, app._read(slug, _bounded(written), app._moment().now))


def _with_end(app: Definitions, checked: Checked) -> Checked:
    """The definition with an end: every schedule of an agent ends."""
    if checked.definition.expires_at is not None:
        return checked
    ends = app._moment().now + app._self_scheduling.value.expires
    return checked._replace(definition=ending(checked.definition, ends))


def _deliver_json(app: Definitions, actor: Actor) -> dict[str, Any]:
    """Where a scheduled turn's reply goes: the same place as the calling turn's, else the last channel."""
    if Deliver not in app._open.applied:
        return {}
    if actor.reply_to is None:
        return {} if actor.run_id is not None else {"deliver": {"channel": "last"}}
    recipients = actor.reply_to if isinstance(actor.reply_to, tuple) else (actor.reply_to,)
    written = [
        {"channel": recipient.channel, **({} if recipient.to is None else {"to": recipient.to})}
        for recipient in recipients
    ]
    return {"deliver": written if len(written) > 1 else written[0]}


def _bounded(definition: Mapping[str, Any]) -> Mapping[str, Any]:
    """Refuse text that is too long for a person to read before they approve."""
    if isinstance(definition.get("prompt"), str) and len(definition["prompt"]) > TEXT_MAX:
        refuse("prompt", f"has {len(definition['prompt'])} characters; write at most {TEXT_MAX}")
    return definition


def _note(note: object) -> str | None:
    if note is None or note == "":
        return None
    if not isinstance(note, str) or len(note) > 1_000 or "\0" in note:
        refuse("note", "is not a short text; write at most 1000 characters")
    return note


def _read_back(tx: Tx, done: Written, now: Instant, terms: Terms) -> AgentWritten:
    view = queries.get(tx, done.slug, now=now, terms=terms) if done.proposal is None else view_proposal(done.proposal)
    definition = decode_definition(view.stored)
    times = next_n(terms.starting(definition.timing, definition), now, TIMES_SHOWN)
    return AgentWritten(done.result, view, done.proposal, done.is_copy, times, definition.timing)


def _from(actor: Actor) -> str:
    return "with its token" if actor.run_id is None else f"during run {actor.run_id}"
