"""The cadence of a schedule: what happens when its alarm rings.

Theory of operation
-------------------
`planned_through` is the boundary between decided and undecided: every instant up to it is in the ledger. `next_at` is
the first instant after it, and the alarm rings when that instant is due (its grid time plus the schedule's stagger,
or later while backing off). When it rings, `ring` processes *all* instants that are due by now and decides each exactly
once: it starts a run, or it becomes part of a gap (`skipped` or `missed`, counted, with a reason). Then the boundary
moves to the last of them. So the ledger tiles time (L1), an instant is decided once (L2) and the next one is always
after now (L3); a year of downtime is one gap, counted without enumerating it (L4).

The catch-up policy decides which instants start. An instant late by up to a minute is on time under every policy.
When several are due together, `once` starts the newest, `skip` starts the newest only if it is on time, and
`all` starts the oldest allowed one and keeps the rest until that run has closed (`catch_up_until` marks how far).
Instants that become due while such a backlog runs find an open run and are blocked, as always.

An instant on an excluded day never starts: it is skipped, and for the others it is as if it did not exist, so that
catch-up picks the latest instant that is not excluded.

Everything here is a pure function: `due_at` derives the due time of the alarm from the stored cadence; it is never
remembered.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeAlias

from wakeful.core.run.runs import Outcome, Run, RunKind, Trigger, stretch
from wakeful.core.schedule.exclude import EXCLUDED
from wakeful.core.schedule.policies import GRACE, CatchUp, Overlap
from wakeful.core.time.excluded_days import ExcludedDays, is_excluded, ranges
from wakeful.core.time.instants import Duration, Instant
from wakeful.core.time.timing import Cron, Every, Once, Times, Timing, latest_until, next_after, tally, without_days

State: TypeAlias = Literal["active", "paused", "disabled", "invalid", "done"]
_Fate: TypeAlias = tuple[Outcome, str, int | None]  # of instants that do not run: outcome, reason, blocking run


class Cadence(NamedTuple):
    """The state of a schedule, in the order of the table's columns."""

    schedule_id: int
    version: int
    state: State
    state_reason: str | None
    state_at: Instant
    resume_at: Instant | None  # when a pause ends by itself
    planned_through: Instant
    next_at: Instant | None
    ran_through: Instant  # instants up to here may have run already although they lie ahead: the clock went back
    backoff_until: Instant | None
    catch_up_until: Instant | None
    open_run_id: int | None
    queued_run_id: int | None
    last_row_id: int | None
    consecutive_errors: int
    last_run_at: Instant | None
    last_outcome: Outcome | None
    last_error: str | None
    last_success_at: Instant | None
    session_id: str | None
    trouble: int = 0  # WELL, RECOVERING, BAD … of `core.delivery.incidents`
    session_node: str | None = None  # the node that started the session; None if unknown


@dataclass(frozen=True, slots=True)
class Rules:
    """The part of a definition that the cadence depends on."""

    timing: Timing
    offset: Duration = 0
    catch_up: CatchUp = "once"
    catch_up_max: int = 10
    lateness_max: Duration | None = None
    overlap: Overlap = "skip"


class Start(NamedTuple):
    """This instant becomes a run."""

    planned_at: Instant
    due_at: Instant
    trigger: Trigger
    behind: int | None = None  # the open run it is queued behind


class Gap(NamedTuple):
    """These instants did not run."""

    first: Instant
    last: Instant
    instants: int
    outcome: Outcome
    reason: str
    blocked_by: int | None = None


def stretch_of(gap: Gap, *, run_id: int, kind: RunKind, schedule_id: int, version: int, now: Instant) -> Run:
    """The ledger row for instants that did not run."""
    return stretch(
        run_id=run_id,
        kind=kind,
        schedule_id=schedule_id,
        version=version,
        first=gap.first,
        last=gap.last,
        instants=gap.instants,
        outcome=gap.outcome,
        reason=gap.reason,
        now=now,
        blocked_by=gap.blocked_by,
    )


class Plan(NamedTuple):
    """The result of ringing: ledger rows in time order, and the new cadence."""

    rows: tuple[Start | Gap, ...]
    cadence: Cadence


def due_at(cadence: Cadence, rules: Rules) -> Instant | None:
    """When the schedule's alarm rings next; None: not until something else happens."""
    if cadence.state == "paused":
        return cadence.resume_at
    if cadence.state != "active" or cadence.next_at is None:
        return None
    if cadence.open_run_id is not None and _is_in_backlog(cadence, cadence.next_at):
        return None  # one at a time: closing the open run derives the alarm again
    regular = cadence.next_at + rules.offset
    return regular if cadence.backoff_until is None else max(regular, cadence.backoff_until)


def begin(schedule_id: int, version: int, rules: Rules, *, now: Instant, state: State, reason: str | None) -> Cadence:
    """The cadence of a new schedule."""
    next_at = next_after(rules.timing, now)
    return Cadence(
        schedule_id, version, state, reason, now, None, now, next_at, 0,
        None, None, None, None, None, 0, None, None, None, None, None,
    )  # fmt: skip


def is_turned(before: Cadence, after: Cadence) -> bool:
    """Whether it was halted or resumed, or its pause ends at another time."""
    return (before.state, before.resume_at) != (after.state, after.resume_at)


def is_spent(rules: Rules, next_at: Instant | None) -> bool:
    """Whether there will be no further instant."""
    timing = rules.timing
    can_end = isinstance(timing, Cron | Times | Once) or (isinstance(timing, Every) and timing.until is not None)
    return next_at is None and can_end


def ring(
    cadence: Cadence,
    rules: Rules,
    *,
    now: Instant,
    gap_reason: str,
    taken: frozenset[Instant],
    excluded: ExcludedDays | None = None,
) -> Plan:
    """Decide every instant that is due by now. `taken` are instants ahead of the boundary that already ran."""
    rows: list[Start | Gap] = []
    if cadence.state == "paused":
        cadence = _end_pause(cadence, rules, rows, until=cadence.resume_at or now)
    before = without(rows, taken, rules.timing)
    if cadence.state != "active":
        return Plan(before, cadence)
    if excluded is None:
        plan = _decide_due(cadence, rules, now=now, gap_reason=gap_reason, taken=taken)
    else:
        plan = _decide_around(cadence, rules, excluded, now=now, gap_reason=gap_reason, taken=taken)
    return Plan(before + plan.rows, plan.cadence)


def _decide_due(cadence: Cadence, rules: Rules, *, now: Instant, gap_reason: str, taken: frozenset[Instant]) -> Plan:
    rows: list[Start | Gap] = []
    cadence = _past_taken(cadence, rules.timing, taken)
    first = cadence.next_at
    if first is None:
        return Plan((), cadence)
    first_due = first + rules.offset
    held_off = cadence.backoff_until is not None and cadence.backoff_until > first_due
    if cadence.backoff_until is not None and held_off:
        first_due = cadence.backoff_until
    if first_due > now:  # a pause ended by itself, or only excluded instants are due
        return Plan((), cadence)
    if held_off and not _is_in_backlog(cadence, first):
        first = _after_backoff(first_due, first, rules, rows)
    next_at = next_after(rules.timing, first)
    is_only_one = next_at is None or next_at + rules.offset > now
    if is_only_one and now - first_due <= GRACE:
        rows.append(_on_time(cadence, rules, first, first_due))
        return Plan(without(rows, taken, rules.timing), _planned(cadence, first, next_at, None))
    last = None if is_only_one else latest_until(rules.timing, now - rules.offset, since=first - 1)
    last, catch_up_until = _late(cadence, rules, first, first_due, last or first, now, gap_reason, rows)
    next_at = next_after(rules.timing, last)
    if catch_up_until == last and (next_at is None or next_at + rules.offset > now):
        catch_up_until = None  # the backlog is finished, and nothing became due while it ran
    return Plan(without(rows, taken, rules.timing), _planned(cadence, last, next_at, catch_up_until))


def _decide_around(
    cadence: Cadence,
    rules: Rules,
    excluded: ExcludedDays,
    *,
    now: Instant,
    gap_reason: str,
    taken: frozenset[Instant],
) -> Plan:
    """Decide as if there were no instants on excluded days; those due before the next one that may run are skipped.

    The alarm still rings at instants on excluded days: whether a day is excluded is decided only on that day."""
    timing, first = without_days(rules.timing, excluded), cadence.next_at
    if first is not None and is_excluded(excluded, first):
        first = next_after(timing, first)
    ahead, wanted = cadence._replace(next_at=first), replace(rules, timing=timing)
    plan = _decide_due(ahead, wanted, now=now, gap_reason=gap_reason, taken=taken)
    boundary = plan.cadence.planned_through
    following = next_after(timing, boundary)
    until = now - rules.offset if following is None else min(now - rules.offset, following - 1)
    through = latest_until(rules.timing, until, since=boundary) or boundary
    skipped = without(_on_excluded_days(rules.timing, excluded, cadence.planned_through, through), taken, rules.timing)
    moved = plan.cadence._replace(planned_through=through, next_at=next_after(rules.timing, through))
    return Plan(_interleaved(plan.rows, skipped, timing), moved)


def _on_excluded_days(timing: Timing, excluded: ExcludedDays, after: Instant, until: Instant) -> list[Start | Gap]:
    """The instants in (after, until] on excluded days; those with no other instant in between are one gap."""
    gaps: list[Start | Gap] = []
    for first, last in ranges(excluded, after, until):
        start, before = first - 1, gaps[-1] if gaps else None
        if isinstance(before, Gap) and not tally(timing, before.last, start).count:
            start = before.first - 1
            gaps.pop()
        _gap(gaps, timing, start, last, "skipped", EXCLUDED)
    return gaps


def _interleaved(
    rows: Sequence[Start | Gap], skipped: Sequence[Start | Gap], timing: Timing
) -> tuple[Start | Gap, ...]:
    """The rows with the excluded instants, in time order; a gap that reaches across an excluded day is cut there."""
    if not skipped:
        return tuple(rows)
    pieces: list[Start | Gap] = list(skipped)
    for row in rows:
        if isinstance(row, Start):
            pieces.append(row)
            continue
        edge = row.first - 1
        for gap in skipped:
            if row.first < gap[0] < row.last:
                _gap(pieces, timing, edge, gap[0], row.outcome, row.reason, row.blocked_by)
                edge = gap[0]
        _gap(pieces, timing, edge, row.last, row.outcome, row.reason, row.blocked_by)
    return tuple(sorted(pieces, key=lambda row: row[0]))


def resume(cadence: Cadence, rules: Rules, *, now: Instant, taken: frozenset[Instant]) -> Plan:
    """Resume after a halt: its instants become one row, nothing is caught up, and the error count is reset."""
    rows: list[Start | Gap] = []
    cadence = _end_pause(cadence, rules, rows, until=now)._replace(consecutive_errors=0, backoff_until=None)
    if is_spent(rules, cadence.next_at) and cadence.open_run_id is None:
        cadence = cadence._replace(state="done")  # its last instant fell into the halt
    return Plan(without(rows, taken, rules.timing), cadence)


def replan(cadence: Cadence, old: Rules, new: Rules, *, now: Instant, taken: frozenset[Instant]) -> Plan:
    """The timing changed: instants of the old one that are undecided are skipped, the new one starts now."""
    rows: list[Start | Gap] = []
    if cadence.state == "active":
        _gap(rows, old.timing, cadence.planned_through, now, "skipped", "edited")
    elif cadence.state != "done":
        _halted(cadence, old, rows, until=now)  # `resume` will only know the new timing
    through = max(cadence.planned_through, now)
    return Plan(
        without(rows, taken, old.timing),
        cadence._replace(
            planned_through=through,
            next_at=next_after(new.timing, through),
            backoff_until=None,
            catch_up_until=None,
        ),
    )


def forgo(cadence: Cadence, rules: Rules, reason: str, *, now: Instant, taken: frozenset[Instant]) -> Plan:
    """The instants until now cannot be accounted for: they are missed for this reason, and none is caught up.

    A halted schedule is unchanged; its halt continues."""
    if cadence.state != "active":
        return Plan((), cadence)
    rows: list[Start | Gap] = []
    _gap(rows, rules.timing, cadence.planned_through, now, "missed", reason)
    through = max(cadence.planned_through, now)
    next_at = next_after(rules.timing, through)
    moved = cadence._replace(planned_through=through, next_at=next_at, backoff_until=None, catch_up_until=None)
    if is_spent(rules, next_at) and cadence.open_run_id is None:
        moved = moved._replace(state="done", state_at=now)
    return Plan(without(rows, taken, rules.timing), moved)


def turn_back(cadence: Cadence, rules: Rules, *, now: Instant, taken: frozenset[Instant] = frozenset()) -> Cadence:
    """The clock was ahead and went back: plan from now; `ran_through` remembers what already ran. `taken` are instants
    ahead of now that ran."""
    next_at = next_after(rules.timing, now)
    state = cadence.state
    if state == "done" and cadence.state_reason is None and next_at is not None:
        if not _is_left(rules.timing, next_at, taken):
            next_at = None  # all of them ran out there: it stays done
        else:
            state = "active"  # its last instant lies ahead again and still runs
    return cadence._replace(
        state=state,
        state_at=min(cadence.state_at, now),
        planned_through=now,
        next_at=next_at,
        ran_through=max(cadence.ran_through, cadence.planned_through),
        backoff_until=None,
        catch_up_until=None,
    )


def without_own(cadence: Cadence, rules: Rules, run: Run) -> Cadence:
    """The cadence after its run closed. If the clock was set back while that was open, its instant is the next one once
    more, although it ran; then a one-shot has none left."""
    ran_ahead = run.occurrence == cadence.next_at and run.planned_at <= cadence.ran_through
    if not ran_ahead or _is_left(rules.timing, run.planned_at, frozenset({run.planned_at})):
        return cadence
    return cadence._replace(next_at=None)


def _is_left(timing: Timing, first: Instant, taken: frozenset[Instant]) -> bool:
    """Whether an instant, from `first` on, has not run."""
    at: Instant | None = first
    while at is not None and at in taken:
        at = next_after(timing, at)
    return at is not None


def with_rows(cadence: Cadence, open_run_id: int | None, queued_run_id: int | None, last_row_id: int | None) -> Cadence:
    """The cadence with the ledger rows of its instants."""
    return cadence._replace(open_run_id=open_run_id, queued_run_id=queued_run_id, last_row_id=last_row_id)


def in_session(cadence: Cadence, session_id: str | None, node: str | None) -> Cadence:
    """The cadence after a turn: a session other than its own was started on this node; None: there was none."""
    if session_id is None or session_id == cadence.session_id:
        return cadence
    return cadence._replace(session_id=session_id, session_node=node)


def _planned(
    cadence: Cadence, planned_through: Instant, next_at: Instant | None, catch_up_until: Instant | None
) -> Cadence:
    """Move the boundary; a backoff ends with the instant it delayed."""
    return cadence._replace(
        planned_through=planned_through, next_at=next_at, backoff_until=None, catch_up_until=catch_up_until
    )


def _past_taken(cadence: Cadence, timing: Timing, taken: frozenset[Instant]) -> Cadence:
    """Skip the instants of a backlog that ran before the clock went back: they are in the ledger."""
    instant = first = cadence.next_at
    while instant is not None and instant in taken and _is_in_backlog(cadence, instant):
        cadence = cadence._replace(planned_through=instant)
        instant = next_after(timing, instant)
    return cadence if instant == first else cadence._replace(next_at=instant)


def _end_pause(cadence: Cadence, rules: Rules, rows: list[Start | Gap], *, until: Instant) -> Cadence:
    """Write the gap of the halt and move the boundary to its end."""
    _halted(cadence, rules, rows, until=until)
    through = max(cadence.planned_through, until)
    return cadence._replace(
        state="active",
        state_reason=None,
        state_at=until,
        resume_at=None,
        planned_through=through,
        next_at=next_after(rules.timing, through),
        catch_up_until=None,
    )


def _halted(cadence: Cadence, rules: Rules, rows: list[Start | Gap], *, until: Instant) -> None:
    """Write the gap of a halt. Instants that were due before it and had not been rung are missed, not paused."""
    halted_at = cadence.planned_through
    if cadence.backoff_until is None or cadence.backoff_until <= cadence.state_at:
        halted_at = min(max(cadence.state_at - rules.offset, halted_at), until)
    _gap(rows, rules.timing, cadence.planned_through, halted_at, "missed", "outage")
    _gap(rows, rules.timing, halted_at, until, "skipped", cadence.state)


def _after_backoff(until: Instant, first: Instant, rules: Rules, rows: list[Start | Gap]) -> Instant:
    """Skip to the latest grid instant not after the delay; those in between are one row."""
    landing = latest_until(rules.timing, until - rules.offset, since=first)
    if landing is None:
        return first
    _gap(rows, rules.timing, first - 1, landing - 1, "skipped", "backoff")
    return landing


def _on_time(cadence: Cadence, rules: Rules, instant: Instant, due: Instant) -> Start | Gap:
    """One instant that is due and not late."""
    if _is_blocked(cadence, rules):
        return Gap(instant, instant, 1, "skipped", "blocked", cadence.open_run_id)
    trigger: Trigger = "catchUp" if _is_in_backlog(cadence, instant) else "schedule"
    return Start(instant, due, trigger, cadence.open_run_id)


def _late(
    cadence: Cadence,
    rules: Rules,
    first: Instant,
    first_due: Instant,
    last: Instant,
    now: Instant,
    gap_reason: str,
    rows: list[Start | Gap],
) -> tuple[Instant, Instant | None]:
    """Several instants are due, or one is late. Returns the new boundary, and up to where catch-up continues."""
    if _is_in_backlog(cadence, first):
        return _go_on_catching_up(cadence, rules, first, first_due, now, gap_reason, rows)
    last_due = first_due if first == last else last + rules.offset
    is_fresh = now - last_due <= GRACE
    is_blocked = _is_blocked(cadence, rules)
    is_after_backlog = cadence.catch_up_until is not None
    blocked: _Fate = ("skipped", "blocked", cadence.open_run_id or cadence.last_row_id)
    older: _Fate = ("missed", gap_reason, None)
    if is_after_backlog:
        older = blocked  # these became due one by one while the backlog ran: they found an open run
    elif now - first_due <= GRACE:
        older = blocked if is_blocked else ("skipped", "coalesced", None)
    if is_blocked:
        edge = first - 1 if older == blocked else last - 1
        _gap(rows, rules.timing, first - 1, edge, *older)
        _gap(rows, rules.timing, edge, last, *blocked)
        return last, None
    if rules.catch_up == "all" and not is_after_backlog:
        return _catch_up_all(cadence, rules, first, first_due, last, now, older, rows)
    may_catch_up = rules.catch_up == "once" and not is_after_backlog and not is_too_late(rules, now, last_due)
    if is_fresh or may_catch_up:
        _gap(rows, rules.timing, first - 1, last - 1, *older)
        rows.append(Start(last, last_due, "schedule" if is_fresh else "catchUp", cadence.open_run_id))
    else:
        _gap(rows, rules.timing, first - 1, last, *older)
    return last, None


def _catch_up_all(
    cadence: Cadence,
    rules: Rules,
    first: Instant,
    first_due: Instant,
    last: Instant,
    now: Instant,
    older: _Fate,
    rows: list[Start | Gap],
) -> tuple[Instant, Instant | None]:
    """Start the oldest instant that may still run; the rest follow one by one, up to `last`."""
    oldest: Instant | None = None
    candidate: Instant | None = last
    for _ in range(rules.catch_up_max):
        if candidate is None:
            break
        due = first_due if candidate == first else candidate + rules.offset
        if is_too_late(rules, now, due):
            break
        oldest, candidate = candidate, latest_until(rules.timing, candidate - 1, since=first - 1)
    if oldest is None:
        _gap(rows, rules.timing, first - 1, last, *older)
        return last, None
    _gap(rows, rules.timing, first - 1, oldest - 1, *older)
    due = first_due if oldest == first else oldest + rules.offset
    rows.append(Start(oldest, due, "catchUp", cadence.open_run_id))
    return oldest, last if oldest < last else None


def _go_on_catching_up(
    cadence: Cadence,
    rules: Rules,
    first: Instant,
    first_due: Instant,
    now: Instant,
    gap_reason: str,
    rows: list[Start | Gap],
) -> tuple[Instant, Instant | None]:
    """Start the next instant of the backlog; those that became too late in the meantime are missed."""
    until = cadence.catch_up_until
    if rules.lateness_max is not None and until is not None and is_too_late(rules, now, first_due):
        edge = min(now - rules.offset - max(rules.lateness_max, GRACE) - 1, until)
        _gap(rows, rules.timing, first - 1, edge, "missed", gap_reason)
        following = next_after(rules.timing, edge)
        if following is None or following > until:
            return until, until
        first, first_due = following, following + rules.offset
    if until is not None and tally(rules.timing, first - 1, until).count > rules.catch_up_max:
        # The limit was lowered, or days are no longer excluded: what is left is a new backlog.
        oldest = _newest(rules.timing, first, until, rules.catch_up_max)
        _gap(rows, rules.timing, first - 1, oldest - 1, "missed", gap_reason)
        first, first_due = oldest, oldest + rules.offset
    rows.append(Start(first, first_due, "catchUp"))
    return first, until


def _newest(timing: Timing, first: Instant, last: Instant, count: int) -> Instant:
    """The oldest of the newest `count` instants in [first, last]."""
    oldest = candidate = latest_until(timing, last, since=first - 1)
    for _ in range(count):
        if candidate is None:
            break
        oldest, candidate = candidate, latest_until(timing, candidate - 1, since=first - 1)
    return oldest or first


def _is_in_backlog(cadence: Cadence, instant: Instant) -> bool:
    return cadence.catch_up_until is not None and instant <= cadence.catch_up_until


def _is_blocked(cadence: Cadence, rules: Rules) -> bool:
    if cadence.open_run_id is None:
        return False
    return rules.overlap == "skip" or cadence.queued_run_id is not None


def is_too_late(rules: Rules, now: Instant, due: Instant) -> bool:
    """Whether an instant that was due then is later than allowed. Less than the grace period counts as that."""
    lateness = now - due
    return rules.lateness_max is not None and lateness > max(rules.lateness_max, GRACE)


def _gap(
    rows: list[Start | Gap],
    timing: Timing,
    after: Instant,
    until: Instant,
    outcome: Outcome,
    reason: str,
    blocked_by: int | None = None,
) -> None:
    """Append the instants in (after, until] as one gap, if there are any."""
    if until <= after:
        return
    counted = tally(timing, after, until)
    if counted.count and counted.first is not None and counted.last is not None:
        rows.append(Gap(counted.first, counted.last, counted.count, outcome, reason, blocked_by))


def without(rows: list[Start | Gap], taken: frozenset[Instant], timing: Timing) -> tuple[Start | Gap, ...]:
    """The rows without instants that ran before the clock went back: nothing runs twice."""
    if not taken:
        return tuple(rows)
    kept: list[Start | Gap] = []
    for row in rows:
        if isinstance(row, Start):
            if row.planned_at not in taken:
                kept.append(row)
            continue
        edge = row.first - 1
        for instant in sorted(t for t in taken if row.first <= t <= row.last):
            _gap(kept, timing, edge, instant - 1, row.outcome, row.reason, row.blocked_by)
            edge = instant
        _gap(kept, timing, edge, row.last, row.outcome, row.reason, row.blocked_by)
    return tuple(kept)
