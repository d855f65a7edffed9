"""Views of schedules and runs: values for Python, one JSON shape for everything else."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from wakeful.core.money.spending import Spending, cost_json
from wakeful.core.run.runs import ERRORS, Attempt, Outcome, Run, RungName, Trigger
from wakeful.core.run.usage import Priced, complete
from wakeful.core.schedule.actions import Prompt
from wakeful.core.schedule.cadence import Cadence
from wakeful.core.schedule.definition import Definition
from wakeful.core.schedule.definition_json import decode_definition, definition_to_json
from wakeful.core.schedule.health import Health, health_of
from wakeful.core.self_scheduling.proposals import Lineage, Ownership, Proposal
from wakeful.core.time.instants import DAY, SECOND, Instant, format_instant, format_optional
from wakeful.core.time.timing import Once, next_after
from wakeful.core.time.timing_words import describe
from wakeful.features.schedules.compiled import Broken, Compiled, read_stored
from wakeful.features.schedules.rules import Terms
from wakeful.ports.backfills import BackfilledRun
from wakeful.ports.cancels import CancelRequest
from wakeful.ports.outbox import Delivery, Purpose, public_id
from wakeful.ports.store import RunGlance, Schedule

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
encode: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
"""JSON as it is sent: without spaces; NaN and infinity are errors."""
TEXTS_KEPT: Final = 4_096
"""How many definitions are kept as JSON."""
VIEWS_KEPT: Final = 2_048
"""How many views are kept. With its rows and its text, one takes 2.5 kB, and more with a long prompt."""
GLANCE_MAX: Final = 200
"""How many characters of an error the summary of a run shows."""
GLANCES_KEPT: Final = 8_192
"""How many summaries are kept, at about 1 kB each: a timeline has up to 6,000."""


def as_datetime(at: Instant | None) -> datetime | None:
    """The instant as an aware datetime, exact to the millisecond."""
    return None if at is None else _EPOCH + timedelta(milliseconds=at)


@dataclass(frozen=True, slots=True)
class AttemptView:
    """One attempt at a run."""

    attempt: int
    started_at: datetime | None
    ended_at: datetime | None
    outcome: str
    rung: RungName | None
    error: str | None
    node: str | None = None  # the node that made it


@dataclass(frozen=True, slots=True)
class RunDelivery:
    """The state of a run's delivery; it never changes the run's outcome (L8)."""

    status: str  # pending, delivered, dead; suppressed: there was nothing to deliver
    id: str | None = None
    channel: str | None = None
    to: str | None = None
    attempts: int = 0
    error: str | None = None  # for suppressed: the reason
    ended_at: datetime | None = None
    purpose: Purpose = "message"  # note: a notice that there is no reply

    def to_json(self) -> dict[str, Any]:
        if self.status == "suppressed":
            return {"status": self.status, "reason": self.error}
        return {
            "status": self.status,
            "id": self.id,
            "channel": self.channel,
            "to": self.to,
            "attempts": self.attempts,
            "lastError": self.error,
            "endedAt": as_text(self.ended_at),
        }


@dataclass(frozen=True, slots=True)
class RunView:
    """One ledger row."""

    run_id: int
    slug: str
    planned_at: datetime
    planned_until: datetime | None
    count: int
    due_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    attempt: int
    attempts: tuple[AttemptView, ...]
    trigger: Trigger
    outcome: Outcome
    reason: str | None
    rung: RungName | None
    error: str | None
    next_attempt_at: datetime | None
    blocked_by: int | None
    output: str | None
    stderr: str | None
    reply: str | None
    usage: dict[str, Any] | None
    session_id: str | None
    is_stuck: bool
    ladder: tuple[tuple[str, datetime], ...] = ()  # when each rung of the current attempt was reached
    reasons: tuple[str, ...] = ()  # of a turn: everything that requested it
    refused_tools: tuple[str, ...] = ()  # tools that the agent was not allowed to use
    delivery: RunDelivery | None = None  # the first one; None if no delivery was requested
    deliveries: tuple[RunDelivery, ...] = ()  # one for each addressee
    cancel_requested_at: datetime | None = None
    node: str | None = None  # the node that runs it, or ran it last
    run_on: tuple[str, ...] = ()  # the labels of which a node needs one
    replay_of: int | None = None  # the run whose instant it runs once more

    @property
    def cost(self) -> float | None:
        """Its cost in US dollars; None if unknown."""
        return None if self.usage is None else self.usage["cost"]

    @property
    def priced(self) -> Priced:
        """Where the cost comes from."""
        return "unknown" if self.usage is None else self.usage["priced"]

    def to_json(self) -> dict[str, Any]:
        """The JSON shape of a run."""
        out: dict[str, Any] = {
            "runId": str(self.run_id),
            "slug": self.slug,
            "plannedAt": as_text(self.planned_at),
            "dueAt": as_text(self.due_at),
            "startedAt": as_text(self.started_at),
            "endedAt": as_text(self.ended_at),
            "attempt": self.attempt,
            "attempts": [_attempt_json(attempt) for attempt in self.attempts],
            "trigger": self.trigger,
            "outcome": self.outcome,
            "reason": self.reason,
            "rung": self.rung,
            "error": self.error,
            "nextAttemptAt": as_text(self.next_attempt_at),
            "sessionId": self.session_id,
            "usage": self.usage,
            "cost": self.cost,
            "priced": self.priced,
            "node": self.node,
        }
        if self.count > 1:
            out |= {"count": self.count, "plannedUntil": as_text(self.planned_until)}
        optional = {"reply": self.reply, "output": self.output, "stderr": self.stderr}
        out |= {name: value for name, value in optional.items() if value is not None}
        if self.delivery is not None:
            out["delivery"] = self.delivery.to_json()
        if self.deliveries:
            out["deliveries"] = [{**delivery.to_json(), "purpose": delivery.purpose} for delivery in self.deliveries]
        if self.blocked_by is not None:
            out["blockedBy"] = str(self.blocked_by)
        if self.is_stuck:
            out["stuck"] = True
        if self.cancel_requested_at is not None:
            out["cancelRequestedAt"] = as_text(self.cancel_requested_at)
        if self.replay_of is not None:
            out["replayOf"] = str(self.replay_of)
        if self.run_on:
            out["runOn"] = list(self.run_on)
        if self.reasons:
            out["reasons"] = list(self.reasons)
        if self.refused_tools:
            out["refusedTools"] = list(self.refused_tools)
        if self.ladder:
            out["ladder"] = {rung: as_text(at) for rung, at in self.ladder}
        return out


@dataclass(frozen=True)  # without slots: it keeps its text
class ScheduleView:
    """A schedule and its current state."""

    slug: str
    definition: Definition | None  # None: the stored one can no longer be read
    status: str
    health: Health
    status_reason: str | None
    enabled: bool
    next_run: datetime | None
    last_run: datetime | None
    last_result: str | None
    last_outcome: str | None
    last_error: str | None
    session_id: str | None
    consecutive_errors: int
    open_run_id: int | None
    created_at: datetime
    updated_at: datetime
    version: int
    stored: str
    owner: str | None = None  # the agent that owns it; None: a person
    lineage: Lineage | None = None
    approval: str | None = None
    node: str | None = None  # the node of its newest run
    cost: Mapping[str, Any] | None = None  # what it spent today and this month; None: nothing can be spent

    @property
    def is_finished(self) -> bool:
        """Whether it was a one-shot that succeeded."""
        is_once = self.definition is not None and isinstance(self.definition.timing, Once)
        return is_once and self.status == "done" and self.last_outcome == "succeeded"

    def to_json(self) -> dict[str, Any]:
        """The full definition, with the read-only fields."""
        return dict(json.loads(self.to_text()))

    def to_text(self, *, cost: Mapping[str, Any] | None = None, **more: str) -> str:
        """`to_json` as text, with another cost, and with more fields, whose values are JSON text already."""
        text = self._text if cost is None else replace(self, cost=cost)._text
        return "".join([text[:-1], *(f',"{name}":{value}' for name, value in more.items()), "}"])

    @cached_property
    def _text(self) -> str:
        """The definition's part is written once for each version."""
        if self.definition is None:
            written = _broken_text(self.stored)
        else:
            written = _definition_text(_Stored(self.stored, self.definition))
        head = {"slug": self.slug, "enabled": self.enabled}
        state = {
            "status": self.status,
            "health": self.health,
            "statusReason": self.status_reason,
            "lastRun": as_text(self.last_run),
            "lastResult": self.last_result,
            "lastOutcome": self.last_outcome,
            "lastError": self.last_error,
            "sessionId": self.session_id,
            "nextRun": as_text(self.next_run),
            "consecutiveErrors": self.consecutive_errors,
            "createdAt": as_text(self.created_at),
            "updatedAt": as_text(self.updated_at),
            "version": self.version,
            "owner": self.owner,
            "lineage": None if self.lineage is None else lineage_json(self.lineage),
            "approval": self.approval,
            "cost": self.cost,
            "node": self.node,
        }
        return f"{encode(head)[:-1]},{written[1:-1]},{encode(state)[1:]}"


class _Stored:
    """A stored text, and the definition that was read from it."""

    __slots__ = ("definition", "text")

    def __init__(self, text: str, definition: Definition) -> None:
        self.text = text
        self.definition = definition

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Stored) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)


@lru_cache(maxsize=TEXTS_KEPT)
def _definition_text(stored: _Stored) -> str:
    """The fields of a view that change only with the definition."""
    definition = stored.definition
    written = definition_to_json(definition, full=True) | {"description": describe(definition.timing)}
    return _after_enabled(written)


def _broken_text(stored: str) -> str:
    return _after_enabled(json.loads(stored) | {"description": None})


def _after_enabled(written: dict[str, Any]) -> str:
    """Whether it is enabled is state: pausing and resuming do not change the definition. Only the slug precedes it."""
    return encode({name: value for name, value in written.items() if name not in ("slug", "enabled")})


def lineage_json(lineage: Lineage) -> dict[str, Any]:
    """The JSON shape of a lineage."""
    run_id = None if lineage.run_id is None else str(lineage.run_id)
    return {"runId": run_id, "slug": lineage.slug, "depth": lineage.depth}


def view_proposal(proposal: Proposal) -> ScheduleView:
    """The view of a schedule that waits for a person: nothing is planned yet."""
    asked_at = _EPOCH + timedelta(milliseconds=proposal.asked_at)
    return ScheduleView(
        slug=proposal.slug,
        definition=decode_definition(proposal.definition),
        status="waiting",
        health="waiting",
        status_reason=f"waiting for approval: wakeful approvals approve {proposal.proposal_id}",
        enabled=True,
        next_run=None,
        last_run=None,
        last_result=None,
        last_outcome=None,
        last_error=None,
        session_id=None,
        consecutive_errors=0,
        open_run_id=None,
        created_at=asked_at,
        updated_at=asked_at,
        version=0,
        stored=proposal.definition,
        owner=proposal.owner,
        lineage=proposal.lineage,
        approval="pending",
    )


class _Moment(NamedTuple):
    """What a view shows that depends on the time and the terms, not only on the stored rows."""

    health: Health
    next_at: Instant | None
    cost: tuple[tuple[str, Any], ...] | None


class _Rows(NamedTuple):
    """The stored rows behind a view."""

    schedule: Schedule
    cadence: Cadence
    open_run: Run | None
    ownership: Ownership | None
    node: str | None


def view_schedule(
    schedule: Schedule,
    cadence: Cadence,
    compiled: Compiled | None,
    open_run: Run | None,
    rings_at: Instant | None,
    *,
    now: Instant,
    terms: Terms,
    ownership: Ownership | None = None,
    node: str | None = None,
    spending: Spending | None = None,
) -> ScheduleView:
    """The view of a schedule: the same object as before if nothing has changed. `compiled` is given if it was just
    written."""
    known = compiled or read_stored(schedule.schedule_id, schedule.version, schedule.definition)
    rows = _Rows(schedule, cadence, open_run, ownership, node)
    cost = cost_json(spending, now) if spending is not None or _is_prompt(known) else None
    moment = _Moment(
        health_of(cadence, open_run, rings_at, is_broken=isinstance(known, Broken), now=now),
        _next_at(rows, known, rings_at, terms),
        None if cost is None else tuple(cost.items()),
    )
    return _kept_view(rows, moment) if compiled is None and isinstance(known, Compiled) else _view(rows, moment, known)


@lru_cache(maxsize=VIEWS_KEPT)
def _kept_view(rows: _Rows, moment: _Moment) -> ScheduleView:
    """A page shows the same schedules again and again, and most have not changed."""
    schedule = rows.schedule
    return _view(rows, moment, read_stored(schedule.schedule_id, schedule.version, schedule.definition))


def _view(rows: _Rows, moment: _Moment, compiled: Compiled | Broken) -> ScheduleView:
    schedule, cadence, open_run, ownership, node = rows
    status = _status(cadence, compiled, open_run)
    reason = cadence.state_reason
    if status == "paused" and cadence.resume_at is not None:
        reason = f"until {format_instant(cadence.resume_at)}"
    if status == "waiting" and open_run is not None:
        reason = open_run.reason
    if open_run is not None and open_run.stuck:
        reason = f"stuck: run {open_run.run_id} could not be stopped"
    last_run_at, last_outcome, last_error = _last(cadence, open_run)
    return ScheduleView(
        slug=schedule.slug,
        definition=compiled.definition if isinstance(compiled, Compiled) else None,
        status=status,
        health=moment.health,
        status_reason=compiled.reason if isinstance(compiled, Broken) else reason,
        enabled=cadence.state not in ("disabled", "done"),
        next_run=as_datetime(moment.next_at),
        last_run=as_datetime(last_run_at),
        last_result=_last_result(last_outcome),
        last_outcome=last_outcome,
        last_error=last_error,
        session_id=cadence.session_id,
        consecutive_errors=cadence.consecutive_errors,
        open_run_id=cadence.open_run_id,
        created_at=_EPOCH + timedelta(milliseconds=schedule.created_at),
        updated_at=_EPOCH + timedelta(milliseconds=schedule.updated_at),
        version=schedule.version,
        stored=schedule.definition,
        node=node,
        owner=None if ownership is None else ownership.owner,
        lineage=None if ownership is None else ownership.lineage,
        approval=None if ownership is None else ownership.approval,
        cost=None if moment.cost is None else dict(moment.cost),
    )


def _next_at(rows: _Rows, compiled: Compiled | Broken, rings_at: Instant | None, terms: Terms) -> Instant | None:
    """When it starts next."""
    if rows.cadence.state == "paused":
        return _after_pause(rows.cadence, compiled, terms)
    waiting = rows.open_run if rows.open_run is not None and rows.open_run.outcome == "waiting" else None
    # Instants before the retry of a waiting run are skipped or queued behind it.
    if waiting is not None and waiting.next_attempt_at is not None:
        return waiting.next_attempt_at
    return _next_start(rows.cadence, compiled, rings_at, terms)


def _is_prompt(compiled: Compiled | Broken) -> bool:
    return isinstance(compiled, Compiled) and isinstance(compiled.model.action, Prompt)


def _next_start(
    cadence: Cadence, compiled: Compiled | Broken, rings_at: Instant | None, terms: Terms
) -> Instant | None:
    """When its alarm is due; or, if that instant is on an excluded day, the first instant that is not."""
    at = cadence.next_at
    if rings_at is None or at is None or isinstance(compiled, Broken) or not terms.excludes(compiled.model, at):
        return rings_at
    following = next_after(terms.starting(compiled.rules.timing, compiled.model), at)
    return None if following is None else max(following + compiled.rules.offset, cadence.backoff_until or 0)


def _after_pause(cadence: Cadence, compiled: Compiled | Broken, terms: Terms) -> Instant | None:
    """The first instant after the pause that starts, if the pause has an end."""
    if cadence.resume_at is None or isinstance(compiled, Broken):
        return None
    return next_after(terms.starting(compiled.rules.timing, compiled.model), cadence.resume_at)


def view_delivery(delivery: Delivery, store_id: str) -> RunDelivery:
    """The view of a run's delivery."""
    return RunDelivery(
        delivery.status,
        public_id(store_id, delivery),
        delivery.channel,
        delivery.recipient,
        delivery.attempts,
        delivery.last_error,
        as_datetime(delivery.ended_at),
        delivery.purpose,
    )


def view_run(
    run: Run,
    slug: str,
    attempts: Sequence[Attempt],
    deliveries: Sequence[RunDelivery] = (),
    cancel: CancelRequest | None = None,
    backfilled: BackfilledRun | None = None,
    nodes: Mapping[int, str] = MappingProxyType({}),
) -> RunView:
    """A ledger row with its attempts, the current one last."""
    kept = json.loads(run.result) if run.result else {}
    earlier = tuple(
        AttemptView(
            a.attempt,
            as_datetime(a.claimed_at),
            as_datetime(a.ended_at),
            a.outcome,
            a.rung,
            a.error,
            nodes.get(a.owner or 0),
        )
        for a in attempts
        if a.attempt != run.attempt or run.outcome == "waiting"
    )
    current: tuple[AttemptView, ...] = ()
    node = nodes.get(run.owner or 0)
    if run.attempt and run.outcome != "waiting":
        error = None if run.outcome == "running" else run.error  # the row's error is from an earlier attempt
        started_at, ended_at = as_datetime(run.claimed_at), as_datetime(run.ended_at)
        current = (AttemptView(run.attempt, started_at, ended_at, run.outcome, run.rung, error, node),)
    return RunView(
        run_id=run.run_id,
        slug=slug,
        planned_at=_EPOCH + timedelta(milliseconds=run.planned_at),
        planned_until=as_datetime(run.planned_until),
        count=run.instants,
        due_at=_EPOCH + timedelta(milliseconds=run.due_at),
        started_at=as_datetime(run.started_at),
        ended_at=as_datetime(run.ended_at),
        attempt=run.attempt,
        attempts=earlier + current,
        trigger=run.trigger,
        outcome=run.outcome,
        reason=run.reason,
        rung=run.rung,
        error=run.error,
        next_attempt_at=as_datetime(run.next_attempt_at),
        blocked_by=run.blocked_by,
        output=kept.get("output"),
        stderr=kept.get("stderr"),
        reply=kept.get("reply"),
        usage=complete(kept.get("usage")),
        session_id=kept.get("sessionId"),
        is_stuck=bool(run.stuck),
        delivery=_first(deliveries, kept.get("suppressed")),
        deliveries=tuple(deliveries),
        ladder=tuple(
            (rung, _EPOCH + timedelta(milliseconds=at))
            for rung, at in (json.loads(run.ladder) if run.ladder else {}).items()
        ),
        reasons=_reasons(run),
        refused_tools=tuple(kept.get("refusedTools", ())),
        cancel_requested_at=None if cancel is None else as_datetime(cancel.requested_at),
        node=node or (earlier[-1].node if earlier else None),
        run_on=tuple((run.run_on or "").split()),
        replay_of=None if backfilled is None else backfilled.replay_of,
    )


def _first(deliveries: Sequence[RunDelivery], suppressed: str | None) -> RunDelivery | None:
    """The reply itself before any notice about it."""
    if suppressed is not None:
        return RunDelivery("suppressed", error=suppressed)
    replies = [delivery for delivery in deliveries if delivery.purpose == "message"]
    return next(iter(replies or deliveries), None)


@lru_cache(maxsize=GLANCES_KEPT)
def glance_text(run: RunGlance) -> str:
    """The summary of a run for charts, as JSON; the full run is at /api/runs/{id}. A run that has ended is shown many
    times and hardly ever changes."""
    out: dict[str, Any] = {
        "runId": str(run.run_id),
        "plannedAt": format_instant(run.planned_at),
        "startedAt": format_optional(run.started_at),
        "endedAt": format_optional(run.ended_at),
        "trigger": run.trigger,
        "outcome": run.outcome,
        "reason": run.reason,
        "error": None if run.error is None or run.outcome == "running" else run.error[:GLANCE_MAX],
    }
    if run.instants > 1:
        until = run.planned_at if run.planned_until is None else run.planned_until
        out |= {"count": run.instants, "plannedUntil": format_instant(until)}
    return encode(out)


def glances_text(runs: Iterable[RunGlance]) -> str:
    """Summaries of runs as a JSON array."""
    return f"[{','.join(map(glance_text, runs))}]"


def _reasons(run: Run) -> tuple[str, ...]:
    """What requested a turn. Other runs carry a definition, or nothing."""
    if run.schedule_id > 0 or run.definition is None:
        return ()
    kept = json.loads(run.definition)
    return tuple(kept.get("reasons", ())) if isinstance(kept, dict) else ()


def _status(cadence: Cadence, compiled: Compiled | Broken, open_run: Run | None) -> str:
    if isinstance(compiled, Broken) or cadence.state == "invalid":
        return "invalid"
    if open_run is not None and (open_run.outcome == "running" or open_run.stuck):
        return "running"
    if cadence.state != "active":
        return cadence.state
    return "idle" if open_run is None else "waiting"


def _last(cadence: Cadence, open_run: Run | None) -> tuple[Instant | None, Outcome | None, str | None]:
    """Time, outcome and error of the last attempt, even while its run waits for the next one."""
    is_tried = open_run is not None and open_run.outcome == "waiting" and open_run.error is not None
    if open_run is not None and is_tried and open_run.reason != "quota":  # an exhausted limit is not an error
        # A busy target did nothing: shown as an error, but not as a run.
        began_at = cadence.last_run_at if open_run.reason == "busy" else open_run.started_at
        return began_at, "failed", open_run.error
    return cadence.last_run_at, cadence.last_outcome, cadence.last_error


def _last_result(outcome: Outcome | None) -> str | None:
    """The result in the words that 0.1 clients expect; a cancelled run is neither."""
    if outcome is None or outcome == "cancelled":
        return None
    return "error" if outcome in ERRORS else "success"


def as_text(at: datetime | None) -> str | None:
    """The JSON form of the instant."""
    if at is None:
        return None
    since = at - _EPOCH
    return format_instant(since.days * DAY + since.seconds * SECOND + (since.microseconds + 500) // 1000)


def _attempt_json(attempt: AttemptView) -> dict[str, Any]:
    return {
        "attempt": attempt.attempt,
        "startedAt": as_text(attempt.started_at),
        "endedAt": as_text(attempt.ended_at),
        "outcome": attempt.outcome,
        "rung": attempt.rung,
        "error": attempt.error,
        "node": attempt.node,
    }
