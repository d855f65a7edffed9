"""The laws of reporting trouble, as questions about bad instants and about what people were told.

What is bad is decided here from the ledger alone: an instant that ended as failed, timed out, unknown or
unconfirmed, or whose run is open after an attempt that failed. Manual runs are no instants, and what a person gave up
was no surprise.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from wakeful.core.delivery.alert_rules import AlertRule
from wakeful.core.delivery.incidents import Incident
from wakeful.core.money.budgets import BUDGET
from wakeful.core.run.runs import OUTSIDE_PLAN, Attempt, Run
from wakeful.core.run.settlement import CANCELLED
from wakeful.core.time.instants import MINUTE, Duration, Instant, format_instant
from worlds.laws import describe

SLACK: Final[Duration] = 6 * MINUTE
"""How much later than `alerts.within` people may be told."""
OVERDUE_MAX: Final[Duration] = 2 * MINUTE
"""How long a report may be missing that was due when a node looked, while nothing disturbs that node."""

_BAD: Final = frozenset({"failed", "timedOut", "unknown", "unconfirmed"})
_FAILED_ATTEMPTS: Final = frozenset({"failed", "timedOut"})


class Owed(NamedTuple):
    """A report that people are owed."""

    run: Run  # the bad instant
    deadline: Instant  # by the wall
    since: Instant  # when the first one in a row was bad, by the wall


def turns_bad(before: Run | None, after: Run, attempts: Sequence[Attempt]) -> bool:
    """Whether an instant became bad, or was tried again in vain."""
    if after.trigger in OUTSIDE_PLAN or (before is not None and not before.is_open):
        return False
    if after.outcome in _BAD and after.reason != CANCELLED:
        is_given_up = before is not None and before.outcome == "waiting" and before.attempt == after.attempt
        return not is_given_up and after.reason != BUDGET  # a budget that is used up is reported by itself
    if before is not None and before.outcome == "waiting" and before.attempt == after.attempt:
        return False  # it waits for something else now, such as a budget: nothing was tried
    return after.outcome == "waiting" and bool(attempts) and attempts[-1].outcome in _FAILED_ATTEMPTS


def owes(run: Run, bad: int, rule: AlertRule, *, is_last: bool, since: Instant, now: Instant) -> Owed:
    """By when people are told of so many bad instants in a row; at once if no other will follow."""
    if bad >= rule.errors or is_last:
        return Owed(run, now + SLACK, since)
    return Owed(run, max(min(run.due_at, now) + rule.within, now) + SLACK, since)


def nearer(owed: Owed, rule: AlertRule, *, now: Instant, ahead_max: Duration) -> Owed:
    """A clock that was ahead and came back delays no report: it is owed by the clock as it is now."""
    latest = now + rule.within + SLACK + ahead_max
    return owed._replace(deadline=min(owed.deadline, latest), since=min(owed.since, now))


def is_covered(owed: Owed, known: Sequence[Incident], rule: AlertRule, *, now: Instant) -> bool:
    """Whether people were told of it: by an incident that was open then, or by one that had just ended, which is
    said again only if it stays."""
    # A node may stand still between its look at the clock and the commit: what it wrote is of the time it saw.
    since = min([owed.since, *(one.opened_at for one in known if one.closed_at is None)])
    for one in known:
        if one.stage == "reported" and (one.closed_at is None or one.closed_at >= owed.since):
            return True
        is_just_over = one.closed_at is not None and since <= one.closed_at + rule.within
        if is_just_over and now <= owed.since + 2 * rule.within + SLACK:
            return True
    return False


def is_reported(name: str, owed: Owed, incident: Incident | None, rule: AlertRule) -> Iterator[str]:
    """L9: every bad instant is covered by an incident that was reported, or is still within its time."""
    stage = "no incident" if incident is None else f"an incident that is {incident.stage}"
    yield (
        f"L9 {name}: {describe(owed.run)} was bad, people should know since {format_instant(owed.deadline)} "
        f"(within {rule.within // MINUTE} min, {rule.errors} in a row), and there is {stage}"
    )


def is_told(incident: Incident, alerts: Sequence[Instant]) -> Iterator[str]:
    """L8: what is called reported was really handed to the outbox."""
    if incident.stage == "reported" and incident.told_at is not None and incident.told_at not in alerts:
        yield f"L8 incident {incident.name}: reported at {format_instant(incident.told_at)}, and no message says so"


def is_told_once(before: Incident | None, after: Incident) -> Iterator[str]:
    """L4: people are told of an incident once, and again only after somebody resumed it."""
    if before is None or before.stage != "reported" or after.stage != "reported":
        return
    if before.told_at != after.told_at:
        yield f"L4 incident {after.name}: reported again, and it was neither over nor resumed since"
