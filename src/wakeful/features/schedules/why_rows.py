"""Words for a ledger row: how its run ended, what it waits for, why instants were skipped or missed."""

from typing import Final

from wakeful.core.heartbeat.conversations import channel_of
from wakeful.core.run.resources import RESOURCES
from wakeful.core.run.runs import Run, reached_by
from wakeful.core.schedule.labels import named
from wakeful.core.schedule.lateness import LATE_REASONS
from wakeful.core.schedule.policies import GRACE
from wakeful.core.time.instants import format_duration
from wakeful.features.schedules.checks import MINIMUM_INTERVAL
from wakeful.features.schedules.compiled import AGENT_LANE, Broken
from wakeful.features.schedules.labels import NO_LABEL
from wakeful.features.schedules.why_facts import AdjacentInstant, NamedRun, WhyCase
from wakeful.features.schedules.why_times import TimeFormat, length, shorten


def _subject(case: WhyCase, times: TimeFormat) -> str:
    row = case.row
    if row is not None and row.trigger == "manual":
        return f"the manual run of {case.slug} requested at {times.full(row.planned_at)}"
    return f"the run of {case.slug} planned for {times.full(case.subject_at)}"


def ran(case: WhyCase, times: TimeFormat) -> str:
    return f"{_subject(case, times)} {_how_it_ended(case, _row(case), times)}{_lateness(case, times)}"


def _how_it_ended(case: WhyCase, row: Run, times: TimeFormat) -> str:
    took = "" if row.ended_at is None or row.started_at is None else length(row.ended_at - row.started_at)
    tries = "" if row.attempt <= 1 else f" on attempt {row.attempt}"
    error = _error(row)
    match row.outcome:
        case "succeeded":
            proven = "" if row.rung in ("finished", None) else f", proven as far as {row.rung}"
            started = "" if row.started_at is None else f" (started {times.brief(row.started_at)}, took {took})"
            return f"succeeded{tries}{started}{proven}"
        case "failed":
            why = _FAILED_WHY.get(row.reason or "", "")
            after = f" after {row.attempt} attempts" if row.attempt > 1 else ""
            return f"failed{after}{why}{_got(case)}: {error}"
        case "timedOut":
            return f"timed out after {took}{tries}{_got(case)}: {error}"
        case "unconfirmed":
            return f"is unconfirmed{_got(case)}: {error}"
        case "cancelled":
            return "was cancelled before it started" if row.started_at is None else f"was cancelled after {took}{tries}"
        case _:
            return f"ended with an unknown result{tries}{_got(case)}: {error}"


_FAILED_WHY: Final = {
    "busy": ", because its target stayed busy",
    "throttled": ", because its target asked for a later retry",
    "quota": ", because its agent's quota is used up",
    RESOURCES: ", because the system had no resources for it for an hour, while other runs began",
    "budget": ", and was not retried because a budget is used up",
    "crash": ", because the node that ran it died",
    "shutdown": ", because its node was shut down",
    "paused": ", and was not retried because the schedule was paused",
    "disabled": ", and was not retried because the schedule was disabled",
    "removed": ", and was not retried because the schedule was removed",
    "invalid": ", because its definition can no longer be read",
}


def _got(case: WhyCase) -> str:
    reached = reached_by(_row(case), case.attempts)
    return "" if reached is None else f" (it got as far as {reached})"


def _lateness(case: WhyCase, times: TimeFormat) -> str:
    row = _row(case)
    if row.started_at is None or row.trigger == "manual":
        return ""
    late = row.started_at - row.due_at
    staggered = "" if row.due_at == row.planned_at else f", due at {times.brief(row.due_at)}{_due_why(case)}"
    if row.trigger == "catchUp":
        return f"{staggered}; it was caught up {length(late)} late because its planned time was missed"
    return f"{staggered}, {length(late)} late" if late > GRACE else staggered


def _due_why(case: WhyCase) -> str:
    row = _row(case)
    return " with its stagger" if row.due_at - row.planned_at == case.offset else " because of earlier errors"


def running(case: WhyCase, times: TimeFormat) -> str:
    row = _row(case)
    reached = reached_by(row, case.attempts)
    since = "" if row.claimed_at is None else f" since {times.brief(row.claimed_at)}"
    until = "" if row.deadline_at is None else f", and must finish by {times.brief(row.deadline_at)}"
    tries = "" if row.attempt <= 1 else f" on attempt {row.attempt}"
    progress = f"{since}{tries}, has got as far as {reached}{until}"
    return f"{_subject(case, times)} has been running{progress}{_lateness(case, times)}"


def stuck(case: WhyCase, times: TimeFormat) -> str:
    row = _row(case)
    queue = "" if row.lane is None else f" and {_queue(row.lane)}"
    return (
        f"{_subject(case, times)} is stuck: {_error(row)}; it blocks its schedule{queue} and takes up capacity until "
        "it is known to have ended"
    )


def waiting(case: WhyCase, times: TimeFormat) -> str:
    return f"{_subject(case, times)} is waiting {_for_what(case, _row(case), times)}"


def _for_what(case: WhyCase, row: Run, times: TimeFormat) -> str:
    until = "" if row.next_attempt_at is None else times.brief(row.next_attempt_at)
    if row.reason == RESOURCES:
        return f"for resources until {until}; it could not begin, which is not an attempt: {_error(row)}"
    match row.reason:
        case "retry":
            return f"to be retried at {until}, because attempt {row.attempt} failed: {_error(row)}"
        case "busy":
            return f"until {until}, because its target is busy: {_error(row)}"
        case "throttled":
            return f"until {until}, because its target asked for a later retry: {_error(row)}"
        case "crash" | "shutdown":
            return f"to be retried at {until}, because {_INTERRUPTED_BY[row.reason]}"
        case "worker":
            return f"to be retried at {until}, because {_error(row)}"
        case "quota":
            because = f"because {_used_up(case)}" if row.error is None else f"because {_error(row)}"
            return f"for quota until {until}, {because}"
        case "budget" | "brake" if row.error is not None:
            return f"until {until}, because {_error(row)}"
        case "check":
            return "to start: its check found something"
        case "queued":
            behind = case.blocker
            return "in the queue" if behind is None else f"in the queue behind {named_run(behind, case)}"
        case "lane" if case.is_parked:
            after = "" if case.holder is None else f", behind {named_run(case.holder, case)}"
            return f"in {_queue(row.lane or '')}{after}"
        case None | "lane":
            if case.lacking is not None:
                return f"to start: {case.lacking}"
            if case.nodes.is_full:
                return "to start: the concurrency limit is reached"
            if row.trigger == "manual" and case.nodes.is_full_for_manual:
                return "to start: the rest of the concurrency limit is reserved for scheduled runs"
            return "to start at the next tick"
        case reason:
            return f"until {until}, deferred by a gate: {reason}"


_INTERRUPTED_BY: Final = {"crash": "the node that ran it died", "shutdown": "its node was shut down"}


def _used_up(case: WhyCase) -> str:
    slot = None if isinstance(case.compiled, Broken) else case.compiled.model.slot
    return "its quota is used up" if slot is None else f"the quota of slot {slot!r} is used up until its reset"


def _queue(lane: str) -> str:
    """The queue a run waits in, in the terms of the settings: an agent's, or that of a shared lane."""
    if lane.startswith(AGENT_LANE):
        return f"the queue of agent {lane.removeprefix(AGENT_LANE)}"
    return f"the queue of lane {lane}"


def named_run(named: NamedRun, case: WhyCase) -> str:
    channel = channel_of(named.slug)
    if channel is not None:
        return f"run {named.run.run_id}, which answers a message on {channel}"
    of = "" if named.slug == case.slug else f" of {named.slug}"
    return f"run {named.run.run_id}{of}"


def skipped(case: WhyCase, times: TimeFormat) -> str:
    row = _row(case)
    return f"{_gap_subject(case, times, 'was skipped')} because {_why_skipped(case, row, times)}"


def _why_skipped(case: WhyCase, row: Run, times: TimeFormat) -> str:
    if row.reason in _SKIPPED_WHY:
        return _SKIPPED_WHY[row.reason]
    match row.reason:
        case "backoff":
            return f"earlier runs had failed, and the schedule was in backoff{_last_failure(case.before)}"
        case "blocked" if case.blocker is not None:
            ended = case.blocker.run.ended_at
            until = "is still open" if ended is None else f"was open until {times.brief(ended)}"
            return f"{named_run(case.blocker, case)} {until}, and a schedule has one run at a time (overlap: skip)"
        case "blocked":
            return "an earlier run was still open, and a schedule has one run at a time (overlap: skip)"
        case "excluded":
            return f"{case.excluded_day(case.subject_at) or times.day(case.subject_at)} is excluded"
        case "quota":
            return _used_up(case)
        case "budget" | "brake" if row.error is not None:
            return _error(row)
        case str(reason) if reason.startswith(MINIMUM_INTERVAL):
            return f"it prompts its agent too often: {reason}"
        case reason:
            return f"a gate refused it: {reason}"


_SKIPPED_WHY: Final = {
    "paused": "the schedule was paused",
    "disabled": "the schedule was disabled",
    "invalid": "its definition could not be read",
    "removed": "the schedule was removed",
    "edited": "its timing was changed before it started",
    "coalesced": "a later time was due at the same moment, and that one ran",
    "standby": "schedules were switched off (standby)",
    "nothing to do": "its check found nothing to do",
    "outside active hours": "it is outside the active hours",
}


def _last_failure(before: AdjacentInstant | None) -> str:
    row = None if before is None else before.row
    return "" if row is None or row.error is None else f": {_error(row)}"


def missed(case: WhyCase, times: TimeFormat) -> str:
    row = _row(case)
    subject = _gap_subject(case, times, "was missed")
    if row.reason == "clock":
        return f"{subject} because the clock jumped past it, or the machine was asleep{_caught_up(case, times)}"
    if row.reason == "suspended":
        return f"{subject} because the machine was suspended{_caught_up(case, times)}"
    if row.reason == NO_LABEL:
        queue = None if isinstance(case.compiled, Broken) else case.compiled.run_on
        lacked = "the label it needed" if queue is None else named(queue)
        return f"{subject} because no live node had {lacked}{_caught_up(case, times)}"
    if row.reason in LATE_REASONS and row.ended_at is not None:
        late = length(row.ended_at - row.due_at)
        return f"{subject} because it could only begin {late} late: it waited {_too_long(case, row)}"
    if row.reason == "restored":
        return f"{subject} because the store was restored from a backup, and what ran after the backup is unknown"
    down, back = case.nodes.down_from, case.nodes.down_until
    when = "" if down is None or back is None else f" between {times.brief(down)} and {times.brief(back)}"
    return f"{subject} because no process was ticking{when}{_caught_up(case, times)}"


def _too_long(case: WhyCase, row: Run) -> str:
    """What a run waited for that began too late, and the limit."""
    limit = None if isinstance(case.compiled, Broken) else case.compiled.rules.lateness_max
    allowed = "" if limit is None else f", and maxLateness is {format_duration(max(limit, GRACE))}"
    match row.reason:
        case "lane" if row.lane is not None:
            return f"in {_queue(row.lane)}{allowed}"
        case "queued":
            return f"for the previous run to end{allowed}"
        case "resources":
            return f"for resources of the system{allowed}"
        case _:
            return f"for capacity{allowed}"


def _caught_up(case: WhyCase, times: TimeFormat) -> str:
    """The catch-up run after an outage."""
    row = None if case.after is None else case.after.row
    if row is None or row.trigger != "catchUp" or row.started_at is None:
        return ""
    return f", and {times.brief(row.planned_at)} was caught up for all of them at {times.brief(row.started_at)}"


def _gap_subject(case: WhyCase, times: TimeFormat, outcome: str) -> str:
    row = _row(case)
    subject = f"{case.slug} at {times.full(case.subject_at)} {outcome}"
    if row.instants == 1:
        return subject
    until = times.brief(row.planned_until or row.planned_at)
    others = "1 other" if row.instants == 2 else f"{row.instants - 1} others"
    return f"{subject}, along with {others} from {times.brief(row.planned_at)} to {until},"


def in_short(row: Run) -> str:
    reason = "" if row.reason is None else f" ({row.reason})"
    match row.outcome:
        case "running":
            return "is running"
        case "waiting":
            return f"is waiting{reason}"
        case "skipped" | "missed":
            return f"was {row.outcome}{reason}"
        case "timedOut":
            return "timed out"
        case "unconfirmed":
            return "is unconfirmed"
        case "unknown":
            return "ended with an unknown result"
        case "cancelled":
            return "was cancelled"
        case outcome:
            return str(outcome)


def _row(case: WhyCase) -> Run:
    if case.row is None:
        raise AssertionError("this sentence needs a ledger row")
    return case.row


def _error(row: Run) -> str:
    return shorten(row.error)
