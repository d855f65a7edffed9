"""Views of schedules, and runs in short form: values for Python, one JSON shape for everything else."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, NamedTuple, cast

from wakeful.core.delivery.incidents import BY_HAND
from wakeful.core.description import Field, Object
from wakeful.core.money.spending import ScheduleCost, Spending, cost_json
from wakeful.core.returned import INTERNAL, At, RunId, Slug, kind_of, returned
from wakeful.core.returned import as_text as time_text
from wakeful.core.run.resources import RESOURCES
from wakeful.core.run.runs import ERRORS, Outcome, Run, Trigger
from wakeful.core.schedule.actions import Prompt
from wakeful.core.schedule.cadence import Cadence
from wakeful.core.schedule.definition import Definition
from wakeful.core.schedule.definition_json import decode_definition, definition_to_json
from wakeful.core.schedule.health import Health, health_of, is_disabled_by_errors
from wakeful.core.self_scheduling.proposals import Lineage, Ownership, Proposal
from wakeful.core.time.instants import Instant, format_instant
from wakeful.core.time.timing import Once
from wakeful.core.time.timing_builders import as_datetime
from wakeful.core.time.timing_words import describe
from wakeful.features.schedules.compiled import Broken, Compiled, read_stored
from wakeful.features.schedules.rules import Terms
from wakeful.features.schedules.upcoming import NONE, first_start
from wakeful.ports.plans import Beginning
from wakeful.ports.store import NewSchedule, RunGlance, Schedule

encode: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
"""JSON as it is sent: without spaces; NaN and infinity are errors."""
TEXTS_KEPT: Final = 4_096
"""How many definitions are kept as JSON."""
VIEWS_KEPT: Final = 2_048
"""How many views are kept. With its rows and its text, one takes 2.5 kB, and more with a long prompt."""
Status = Literal["idle", "running", "waiting", "paused", "disabled", "invalid", "done"]
Approval = Literal["pending", "approved", "rejected"]
GLANCE_MAX: Final = 200
"""How many characters of an error the summary of a run shows."""
GLANCES_KEPT: Final = 8_192
"""How many summaries are kept, at about 1 kB each: a timeline has up to 6,000."""


def as_text(at: datetime | None) -> str | None:
    """The JSON form of the time."""
    return None if at is None else time_text(at)


@dataclass(frozen=True, kw_only=True)  # without slots: it keeps its text
class ScheduleView:
    """A schedule: definition and state."""

    slug: Slug
    definition: Annotated[Definition | None, INTERNAL]  # None: the stored one can no longer be read
    enabled: bool
    status: Status
    health: Health
    status_reason: str | None
    last_run: datetime | None
    last_result: Literal["success", "error"] | None
    last_outcome: Annotated[Outcome | None, "outcome of its last run or last attempt"]
    last_error: str | None
    session_id: str | None
    next_run: datetime | None
    consecutive_errors: int
    open_run_id: Annotated[int | None, INTERNAL]
    created_at: datetime
    updated_at: datetime
    version: int
    stored: Annotated[str, INTERNAL]
    owner: Annotated[str | None, "the agent that owns it; null: a person"]
    lineage: Annotated[Lineage | None, "the run that made it, if an agent did"]
    approval: Annotated[Approval | None, "the approval of an agent's schedule; null if none is needed"]
    node: Annotated[str | None, "the node of its newest run"]
    cost: Annotated[ScheduleCost | None, "null if its runs cost nothing that is known here"]
    failed_by_hand: Annotated[bool, INTERNAL]  # its last manual run failed, and nothing else is wrong

    @property
    def is_finished(self) -> bool:
        """Whether it was a one-shot that succeeded."""
        is_once = self.definition is not None and isinstance(self.definition.timing, Once)
        return is_once and self.status == "done" and self.last_outcome == "succeeded"

    def to_json(self) -> dict[str, Any]:
        """The full definition, with the read-only fields."""
        return dict(json.loads(self.to_text()))

    def to_text(self, more: Mapping[str, str] = MappingProxyType({})) -> str:
        """`to_json` as text, with more fields, whose values are JSON text already."""
        return "".join([self._text[:-1], *(f',"{name}":{value}' for name, value in more.items()), "}"])

    @cached_property
    def _text(self) -> str:
        """The definition's part is written once for each version."""
        if self.definition is None:
            written = _broken_text(self.stored)
        else:
            written = _definition_text(_Stored(self.stored, self.definition))
        head = {"slug": self.slug, "enabled": self.enabled}
        return f"{encode(head)[:-1]},{written[1:-1]},{encode(STATE.write(self))[1:]}"


STATE: Final = returned(ScheduleView, name="Schedule").only(without=("slug", "enabled"))
"""What is written after the definition."""


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A ledger row in short form."""

    run_id: RunId
    planned_at: At
    started_at: At | None
    ended_at: At | None
    trigger: Trigger
    outcome: Outcome
    reason: str | None
    error: Annotated[str | None, "first 200 characters"]
    count: Annotated[int, "number of instants that the row covers, if more than one"] = 1
    planned_until: At | None = None


SUMMARY: Final = returned(RunSummary)
SCHEDULE: Final = Object(
    "Schedule",
    "A schedule: definition and state.",
    [
        *returned(ScheduleView, name="Schedule").fields,
        Field(kind_of(str | None), "when it runs, in words", name="description"),
        Field(kind_of(list[At]), "with dryRun: the next five times", name="next", default=(), omitted=()),
        Field(kind_of(list[RunSummary]), "with recent: the latest ledger rows", name="recent", default=(), omitted=()),
    ],
    ScheduleView,
)


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


LINEAGE: Final = returned(Lineage)


def view_proposal(proposal: Proposal) -> ScheduleView:
    """The view of a schedule that waits for a person: nothing is planned yet."""
    asked_at = as_datetime(proposal.asked_at)
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
        node=None,
        cost=None,
        failed_by_hand=False,
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
    is_parked: bool = False,
    ran: frozenset[Instant] = NONE,
) -> ScheduleView:
    """The view of a schedule: the same object as before if nothing has changed. `compiled` is given if it was just
    written. `is_parked`: its open run waits behind a lane; `ran` are instants ahead that already ran."""
    known = compiled or read_stored(schedule.schedule_id, schedule.version, schedule.definition)
    rows = _Rows(schedule, cadence, open_run, ownership, node)
    cost = cost_json(spending, now) if spending is not None or _is_prompt(known) else None
    moment = _Moment(
        health_of(cadence, open_run, rings_at, is_broken=isinstance(known, Broken), now=now),
        None
        if isinstance(known, Broken)
        else first_start(schedule, cadence, known, None if is_parked else open_run, ran=ran, now=now, terms=terms),
        None if cost is None else tuple(cost.items()),
    )
    return _kept_view(rows, moment) if compiled is None and isinstance(known, Compiled) else _view(rows, moment, known)


def view_new(row: NewSchedule, beginning: Beginning, compiled: Compiled, *, now: Instant, terms: Terms) -> ScheduleView:
    """The view of a schedule that this transaction has created: nothing of it has run, and no agent owns it."""
    schedule_id, at = compiled.schedule_id, row.created_at
    schedule = Schedule(schedule_id, row.slug, row.definition, compiled.version, row.is_zoned, at, at, None)
    cadence = beginning.cadence._replace(schedule_id=schedule_id)
    return view_schedule(schedule, cadence, compiled, None, beginning.due_at, now=now, terms=terms)


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
        created_at=as_datetime(schedule.created_at),
        updated_at=as_datetime(schedule.updated_at),
        version=schedule.version,
        stored=schedule.definition,
        node=node,
        owner=None if ownership is None else ownership.owner,
        lineage=None if ownership is None else ownership.lineage,
        approval=None if ownership is None else ownership.approval,
        cost=None if moment.cost is None else cast(ScheduleCost, dict(moment.cost)),
        failed_by_hand=cadence.trouble >= BY_HAND and not is_disabled_by_errors(cadence) and status != "invalid",
    )


def _is_prompt(compiled: Compiled | Broken) -> bool:
    return isinstance(compiled, Compiled) and isinstance(compiled.model.action, Prompt)


@lru_cache(maxsize=GLANCES_KEPT)
def glance_text(run: RunGlance) -> str:
    """The summary of a run for charts, as JSON; the full run is at /api/runs/{id}. A run that has ended is shown many
    times and hardly ever changes."""
    return encode(
        SUMMARY.write(
            RunSummary(
                run.run_id,
                run.planned_at,
                run.started_at,
                run.ended_at,
                run.trigger,
                run.outcome,
                run.reason,
                None if run.error is None or run.outcome == "running" else run.error[:GLANCE_MAX],
                *(() if run.instants == 1 else (run.instants, run.planned_until or run.planned_at)),
            )
        )
    )


def glances_text(runs: Iterable[RunGlance]) -> str:
    """Summaries of runs as a JSON array."""
    return f"[{','.join(map(glance_text, runs))}]"


NOT_ERRORS: Final = frozenset({"quota", RESOURCES})
"""What a run waits for without having failed."""


def _status(cadence: Cadence, compiled: Compiled | Broken, open_run: Run | None) -> Status:
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
    if open_run is not None and is_tried and open_run.reason not in NOT_ERRORS:
        # A busy target did nothing: shown as an error, but not as a run.
        began_at = cadence.last_run_at if open_run.reason == "busy" else open_run.started_at
        return began_at, "failed", open_run.error
    return cadence.last_run_at, cadence.last_outcome, cadence.last_error


def _last_result(outcome: Outcome | None) -> Literal["success", "error"] | None:
    """The result in the words that 0.1 clients expect; a cancelled run is neither."""
    if outcome is None or outcome == "cancelled":
        return None
    return "error" if outcome in ERRORS else "success"
