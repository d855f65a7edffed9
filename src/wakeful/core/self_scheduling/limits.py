"""What an agent may schedule on its own: the `[self_scheduling]` settings, and the refusals they lead to.

Each refusal names the limit, its value, what is left, and what the agent can do instead. The person who set the limit
reads the same sentence."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from wakeful.core.refusals import Conflict
from wakeful.core.schedule.definition import Definition
from wakeful.core.time.instants import DAY, HOUR, Duration, Instant, format_duration, format_instant
from wakeful.core.time.spacing import shortest_gap
from wakeful.core.time.timing import Once

Approval: TypeAlias = Literal["always", "recurring", "never"]


@dataclass(frozen=True, slots=True)
class SelfSchedulingTerms:
    """The `[self_scheduling]` settings, and who may approve by chat."""

    approval: Approval = "always"
    schedules_max: int = 20
    interval_min: Duration = HOUR
    expires: Duration = 30 * DAY
    depth_max: int = 1
    wakes_per_day: int = 24
    approvers: tuple[str, ...] = ()  # `[alerts] approvers`: CHANNEL:SENDER


class Limited(Conflict):
    """A `[self_scheduling]` limit forbids the request."""

    def __init__(self, limit: str, message: str) -> None:
        super().__init__(f"{limit}: {message}")
        self.limit = limit


def check_interval(definition: Definition, terms: SelfSchedulingTerms) -> None:
    """Refuse a schedule that runs too often."""
    gap = shortest_gap(definition.timing)
    if gap is not None and gap < terms.interval_min:
        least = format_duration(terms.interval_min)
        raise Limited(
            "interval_min",
            f"this would run every {format_duration(gap)}, and an agent's schedule may run every {least} at most; "
            f"choose a longer interval, or use wake_me for something that happens once",
        )


def check_spacing(last: Instant, following: Instant | None, terms: SelfSchedulingTerms) -> None:
    """Refuse a change that would put the next run too soon after the last one."""
    if following is not None and following < last + terms.interval_min:
        least = format_duration(terms.interval_min)
        raise Limited(
            "interval_min",
            f"with this change it would run at {format_instant(following)}, less than {least} after its last run; "
            f"choose times from {format_instant(last + terms.interval_min)} on",
        )


def check_number(count: int, terms: SelfSchedulingTerms) -> None:
    """Refuse a schedule beyond the limit; `count` includes schedules that wait for approval."""
    if count >= terms.schedules_max:
        raise Limited(
            "schedules_max",
            f"you have {count} schedules, and the maximum is {terms.schedules_max} (0 left); "
            f"change one of them (list_schedules), or delete one with set_schedule_state",
        )


def check_depth(depth: int, terms: SelfSchedulingTerms) -> None:
    """Refuse a schedule at the end of too long a chain of schedules that created each other."""
    if depth > terms.depth_max:
        raise Limited(
            "depth_max",
            f"this turn was itself scheduled by an agent (depth {depth - 1} of at most {terms.depth_max}), so it may "
            f"not schedule anything further; finish the work now, or ask the person",
        )


def check_horizon(definition: Definition, terms: SelfSchedulingTerms, now: Instant) -> None:
    """Refuse a single time, or an end, beyond the maximum lifetime of an agent's schedules."""
    ends = definition.timing.at if isinstance(definition.timing, Once) else definition.expires_at
    if ends is not None and ends > now + terms.expires:
        most = format_instant(now + terms.expires)
        raise Limited(
            "expires",
            f"an agent's schedule ends after {format_duration(terms.expires)}, at {most}; choose an earlier time",
        )


def check_wakes(count: int, terms: SelfSchedulingTerms) -> None:
    """Refuse a `wake_me`, or another one-time schedule, beyond the daily limit."""
    if count >= terms.wakes_per_day:
        raise Limited(
            "wakes_per_day",
            f"wake_me and one-time schedules were used {count} times in 24 hours, "
            f"and the maximum is {terms.wakes_per_day} (0 left); try again tomorrow, or ask the person to schedule it",
        )


def check_proposals(count: int, terms: SelfSchedulingTerms) -> None:
    """Refuse a flood of proposals: a person reads each of them."""
    if count >= terms.schedules_max:
        raise Limited(
            "schedules_max",
            f"you proposed {count} schedules or changes within the last hour, which is the most a person is asked to "
            f"read; wait until they are decided",
        )


def needs_approval(definition: Definition, terms: SelfSchedulingTerms) -> bool:
    """Whether a person has to approve what an agent wrote."""
    match terms.approval:
        case "always":
            return True
        case "recurring":
            return not isinstance(definition.timing, Once)
        case "never":
            return False


def wake_needs_approval(depth: int, terms: SelfSchedulingTerms) -> bool:
    """Whether a `wake_me` has to be approved: only in a chain, from the second link on."""
    return terms.approval == "always" and depth > 1
