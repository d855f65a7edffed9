"""What agents' tools return."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Final

from wakeful.app.owned_writing import AgentWritten
from wakeful.core.money.spending import MonthlyCost
from wakeful.core.returned import At, Named, RunId
from wakeful.core.self_scheduling.proposals import Lineage
from wakeful.core.time.instants import SECOND, Instant, format_instant
from wakeful.core.time.timing import Timing
from wakeful.core.time.timing_words import describe
from wakeful.core.time.zones import segment_at
from wakeful.features.schedules.views import ScheduleView

PENDING: Final = (
    "a person has to approve this before anything runs; tell them so (they decide with: wakeful approvals), "
    "and do not propose it again"
)


@dataclass(frozen=True, slots=True)
class ShownTime:
    """A time as the person's clock shows it, and in UTC."""

    local: str
    utc: At


@dataclass(frozen=True, slots=True)
class Preview:
    """How a time text is understood, and its next times."""

    understood: str
    timezone: str
    next_times: Annotated[list[ShownTime], Named("next")]


@dataclass(frozen=True, slots=True)
class Put:
    """A schedule that was created, changed, left as it was, or proposed."""

    status: str
    slug: str
    understood: str
    timezone: str
    next_times: Annotated[list[ShownTime], Named("next")]
    expires_at: At | None
    per_month: MonthlyCost | None = None
    proposal: str | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class OwnSchedule:
    """One of an agent's schedules or proposals."""

    slug: str
    status: str
    status_reason: str | None
    when: str | None
    prompt: str | None
    command: list[str] | None
    next_run: datetime | None
    last_run: datetime | None
    last_outcome: str | None
    last_error: str | None
    approval: str | None
    expires_at: At | None
    lineage: Lineage | None


@dataclass(frozen=True, slots=True)
class OwnSchedules:
    """All schedules of an agent, and how many more it may have."""

    schedules: list[OwnSchedule]
    left: int


@dataclass(frozen=True, slots=True)
class Deleted:
    """A schedule that was removed, or a proposal that was withdrawn."""

    status: str
    slug: str


@dataclass(frozen=True, slots=True)
class Wakening:
    """One more turn at a later time."""

    status: str
    slug: str
    understood: str
    timezone: str
    next_times: Annotated[list[ShownTime], Named("next")]
    turn: str
    message: str | None = None


@dataclass(frozen=True, slots=True)
class Reported:
    """What a report led to."""

    status: str
    run_id: RunId


@dataclass(frozen=True, slots=True)
class Expected:
    """What to expect of one schedule."""

    slug: str
    runs: int
    cost: float | None


@dataclass(frozen=True, slots=True)
class OwnForecast:
    """What to expect of an agent's schedules, and when people's work is planned."""

    days: int
    schedules: list[Expected]
    runs: int
    cost: float | None
    busy: list[At]


def preview(timing: Timing, times: Sequence[Instant], *, default_zone: str) -> Preview:
    """A timing in words, with these next times."""
    zone: str = getattr(timing, "timezone", None) or default_zone
    return Preview(describe(timing), zone, [shown_time(at, zone) for at in times])


def put_result(written: AgentWritten, seen: Preview, per_month: MonthlyCost | None) -> Put:
    """The result of a write."""
    view, proposal = written.view, None
    message = None
    if written.is_copy:
        message = f"you already have this under the name {view.slug}; nothing was created"
    elif written.proposal is not None:
        proposal, message = written.proposal.proposal_id, PENDING
    return Put(
        status=written.result,
        slug=view.slug,
        understood=seen.understood,
        timezone=seen.timezone,
        next_times=seen.next_times,
        expires_at=_ends(view),
        per_month=per_month,
        proposal=proposal,
        message=message,
    )


def own_schedule(view: ScheduleView, status: str | None = None) -> OwnSchedule:
    """A schedule as its agent sees it."""
    written: dict[str, Any] = view.to_json()
    return OwnSchedule(
        slug=view.slug,
        status=status or ("pending" if view.approval == "pending" else view.status),
        status_reason=view.status_reason,
        when=written.get("description"),
        prompt=written.get("prompt"),
        command=(written.get("command") or {}).get("argv"),
        next_run=view.next_run,
        last_run=view.last_run,
        last_outcome=view.last_outcome,
        last_error=view.last_error,
        approval=view.approval,
        expires_at=_ends(view),
        lineage=view.lineage,
    )


def shown_time(at: Instant, zone: str) -> ShownTime:
    """An instant as the clock of this zone shows it."""
    offset = segment_at(zone, at // SECOND).offset * SECOND
    wall = format_instant(at + offset)
    return ShownTime(f"{wall[:10]} {wall[11:16]} ({zone})", at)


def _ends(view: ScheduleView) -> Instant | None:
    return None if view.definition is None else view.definition.expires_at
