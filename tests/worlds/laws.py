"""The laws as questions about facts.

Theory of operation
-------------------
Each law is one or more small functions. They take facts, rows of the ledger, cadences, lanes, and attempts as they were
*seen from outside*, and yield a sentence for everything that is wrong; no sentence, no violation. They know nothing of
the engine: none of them asks it what it thinks, and what should be planned is counted anew from the timing in force.

A fact seen from outside is a `Seen`: the world's own record that an attempt really began, and really ended, on some
node. A `ghost` is an attempt whose node lost its lease while it ran. It may go on for a little while, because nobody
can stop what stands still; but nothing it says counts any more, and it holds nothing.

An `Era` is a stretch of time under one timing. Which instants a schedule has is a question to its eras, so that an edit
of the timing divides the past from the future without making either wrong.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from wakeful.core.money.budgets import BUDGET
from wakeful.core.run.runs import NOT_RUN, OPEN, PRIORITY_BACKFILL, Attempt, Run, may_become
from wakeful.core.schedule.cadence import Cadence, Rules
from wakeful.core.schedule.labels import may_take
from wakeful.core.schedule.policies import GRACE
from wakeful.core.schedule.pre_check import NOTHING_TO_DO
from wakeful.core.time.instants import MINUTE, Duration, Instant, format_duration
from wakeful.core.time.timing import Timing, next_after
from wakeful.drill.laws import Ending as Ending
from wakeful.drill.laws import Era as Era
from wakeful.drill.laws import Seen as Seen
from wakeful.drill.laws import at as at
from wakeful.drill.laws import attempts_are_bounded as attempts_are_bounded
from wakeful.drill.laws import attempts_begin_once as attempts_begin_once
from wakeful.drill.laws import count_in as count_in
from wakeful.drill.laws import describe as describe
from wakeful.drill.laws import last_instant as last_instant
from wakeful.drill.laws import next_in as next_in
from wakeful.drill.laws import one_row_per_instant as one_row_per_instant
from wakeful.drill.laws import tiles as tiles
from wakeful.ports.store import Alarm

LEFT_LYING_MAX: Final[Duration] = 2 * MINUTE
"""How long something due may be left unrung while there is no room for it; beyond this it was overlooked."""

HALTED: Final = frozenset({"paused", "disabled", "invalid", "done"})


class Shift(NamedTuple):
    """A row before and after one commit; `before` is None when the commit wrote it first."""

    before: Run | None
    after: Run


# -- L1: no silent gap ------------------------------------------------------------------------------------------------


def stays_in_place(name: str, shift: Shift) -> Iterator[str]:
    """L1: what a row covers is written once, but a gap may grow at its end, or be cut there by a clock that came back.

    Whether it grew or was cut by the right instants is a question to `tiles`.
    """
    before, after = shift
    if before is None or before == after:
        return
    was = (before.schedule_id, before.occurrence, before.planned_at)
    now = (after.schedule_id, after.occurrence, after.planned_at)
    is_gap = before.outcome in NOT_RUN and after.outcome in NOT_RUN and before.attempt == 0
    # The next check found nothing either, or the budget is still used up.
    is_gap = is_gap or (before.reason == after.reason and after.reason in (NOTHING_TO_DO, BUDGET))
    if was != now or (not is_gap and (before.planned_until, before.instants) != (after.planned_until, after.instants)):
        yield f"L1 {name}: {describe(before)} was moved and is now {describe(after)}"


# -- L2: one run per instant ------------------------------------------------------------------------------------------
# That an instant has one row is checked by `one_row_per_instant` in `wakeful.drill.laws`, as is when attempts begin.


def moves_by_the_table(name: str, shift: Shift) -> Iterator[str]:
    """L2: what is settled stays settled; a run moves only along the transition table."""
    before, after = shift
    if before is None or before.outcome == after.outcome:
        return
    if not may_become(before.outcome, after.outcome):
        yield f"L2 {name}: {describe(before)} became {after.outcome}"


def cancelled_does_not_begin(seen: Seen, cancelled: Mapping[int, int]) -> Iterator[str]:
    """L2: after a person asked to cancel a run, no further attempt of it begins. `cancelled` has the last attempt that
    was claimed when they asked."""
    if seen.attempt > cancelled.get(seen.run_id, seen.attempt):
        yield f"L2 run {seen.run_id}: attempt {seen.attempt} began after a request to cancel it"


def begins_where_it_may(slug: str, run: Run | None, needed: str | None, labels: frozenset[str]) -> Iterator[str]:
    """L6: a run begins only on a node that has a label it needs, and it needs those of its schedule."""
    if run is not None and run.run_on != needed:
        yield f"L6 {slug}: run {run.run_id} needs {run.run_on}, and its schedule {needed}"
    if not may_take(needed, labels):
        yield f"L6 {slug}: it needs {needed}, and began on a node that has {sorted(labels)}"


def backfills_hold_up_nothing(name: str, cadence: Cadence, rows: Mapping[int, Run]) -> Iterator[str]:
    """L5: the run of a past instant, made on request, is never the open or the queued run of its schedule."""
    for run_id in (cadence.open_run_id, cadence.queued_run_id):
        row = None if run_id is None else rows.get(run_id)
        if row is not None and row.priority == PRIORITY_BACKFILL:
            yield f"L5 {name}: {describe(row)} holds up regular instants"


def backfills_count_for_nothing(name: str, before: Cadence, after: Cadence, shifts: Sequence[Shift]) -> Iterator[str]:
    """L3: errors in a row, a backoff and the schedule's last run come from runs of the plan and manual ones, never from
    the run of a past instant, made on request."""
    if not any(shift.after.priority == PRIORITY_BACKFILL for shift in shifts):
        return
    if any(shift.after.priority != PRIORITY_BACKFILL for shift in shifts):
        return  # it may be theirs
    is_counted = after.consecutive_errors > before.consecutive_errors
    if is_counted or (after.last_run_at, after.last_outcome) != (before.last_run_at, before.last_outcome):
        yield f"L3 {name}: {describe(shifts[0].after)} counts as a run of the plan: {before} is now {after}"


def one_backfill_per_instant(name: str, row: Run, rows: Mapping[int, Run]) -> Iterator[str]:
    """L2: of the runs of one past instant, at most one has not failed."""
    if row.trigger != "backfill" or row.outcome not in ("running", "waiting", "succeeded"):
        return
    for other in rows.values():
        is_same = other.trigger == "backfill" and other.planned_at == row.planned_at and other.run_id < row.run_id
        if is_same and other.outcome in ("running", "waiting", "succeeded"):
            yield f"L2 {name}: {describe(row)} repeats {describe(other)}"


def each_request_runs_an_instant_once(name: str, shift: Shift, rows: Mapping[int, Run], requests: int) -> Iterator[str]:
    """L2: a past instant has at most one run for each backfill that was requested."""
    row = shift.after
    if row.trigger != "backfill" or shift.before is not None:
        return
    made = sum(other.trigger == "backfill" and other.planned_at == row.planned_at for other in rows.values())
    if made > requests:
        yield f"L2 {name}: {describe(row)} is run {made} of its instant, and {requests} backfills were requested"


def not_blocked_by_a_backfill(name: str, row: Run, rows: Mapping[int, Run]) -> Iterator[str]:
    """L5: no regular instant is skipped because of the run of a past instant."""
    blocker = None if row.blocked_by is None else rows.get(row.blocked_by)
    if blocker is not None and blocker.priority == PRIORITY_BACKFILL:
        yield f"L5 {name}: {describe(row)} was blocked by {describe(blocker)}"


def keys_are_unique(name: str, seen: Seen, owners: Mapping[str, int]) -> Iterator[str]:
    """L2: an idempotency key belongs to one run."""
    owner = owners.get(seen.key)
    if owner is not None and owner != seen.run_id:
        yield f"L2 {name}: runs {owner} and {seen.run_id} share the key {seen.key}"


def halted_does_not_fire(name: str, before: Cadence | None, after: Cadence | None, shift: Shift) -> Iterator[str]:
    """L2: nothing planned begins while a schedule is paused, disabled, invalid or removed.

    A pause that ended in the same commit is over; what is planned after its end may begin.
    """
    row = shift.after
    if before is None or not is_planned(row) or row.outcome in NOT_RUN:
        return
    was_started = shift.before is not None and shift.before.attempt == row.attempt
    if was_started or row.attempt == 0 or before.state not in HALTED:
        return
    if after is None or after.state in HALTED:
        yield f"L2 {name}: {describe(row)} began although the schedule is {before.state} ({before.state_reason})"
    elif row.planned_at <= after.state_at and shift.before is None:
        yield f"L2 {name}: {describe(row)} was planned before {before.state} ended at {at(after.state_at)}"


# -- L3: strictly forward, on the grid --------------------------------------------------------------------------------


def is_forward(name: str, cadence: Cadence, timing: Timing) -> Iterator[str]:
    """L3: the next instant is the first one on the grid after what is planned."""
    if cadence.next_at is not None and cadence.next_at <= cadence.planned_through:
        yield f"L3 {name}: next is {at(cadence.next_at)}, not after {at(cadence.planned_through)}, planned through"
        return
    if cadence.state != "active":
        return
    expected = next_after(timing, cadence.planned_through)
    if cadence.next_at != expected:
        yield (
            f"L3 {name}: next is {at(cadence.next_at)}; the grid says {at(expected)} "
            f"after {at(cadence.planned_through)}, planned through"
        )


def done_is_done(name: str, cadence: Cadence, timing: Timing, ran: frozenset[Instant]) -> Iterator[str]:
    """L3: a schedule is done only when none of its instants is left, but for those that `ran` ahead of the clock."""
    if cadence.state != "done":
        return
    ahead = next_after(timing, cadence.planned_through)
    if ahead is not None and ahead not in ran:
        yield f"L3 {name}: it is called done, and {at(ahead)} is still to come"


def has_its_alarm(name: str, cadence: Cadence, alarm: Alarm | None, rules: Rules) -> Iterator[str]:
    """L3: an active schedule has an alarm at its next instant, held back by a backoff or a backlog and nothing else."""
    if cadence.state != "active" or cadence.next_at is None:
        return
    is_one_by_one = cadence.catch_up_until is not None and cadence.open_run_id is not None
    if alarm is None or alarm.due_at is None:
        if not is_one_by_one:
            yield f"L3 {name}: next is {at(cadence.next_at)} and no alarm is set for it"
        return
    regular = cadence.next_at + rules.offset
    latest = regular if cadence.backoff_until is None else max(regular, cadence.backoff_until)
    if not regular <= alarm.due_at <= latest:
        yield f"L3 {name}: the alarm rings at {at(alarm.due_at)}; it is due between {at(regular)} and {at(latest)}"


def is_not_silent(
    name: str, cadence: Cadence, due_at: Instant | None, *, now: Instant, is_asleep: bool, ahead_max: Duration
) -> Iterator[str]:
    """L3: after a look at the clock nothing due is left lying, and nothing is planned beyond the clock.

    What is planned beyond the clock would be silent until time has caught up.
    """
    if cadence.state != "active" or cadence.next_at is None:
        return
    if cadence.planned_through > now + ahead_max:
        yield f"L3 {name}: it is {at(now)} and planned through {at(cadence.planned_through)}: silent until then"
    if is_asleep and due_at is not None and due_at < now - LEFT_LYING_MAX:
        yield f"L3 {name}: it is {at(now)}, its alarm was due at {at(due_at)}, and the clock went to sleep over it"


def grid_stays(name: str, before: Cadence, after: Cadence, rows: Sequence[Shift]) -> Iterator[str]:
    """L3: the border moves when instants are decided or the schedule is replanned, not by manual runs or retries."""
    if after.planned_through <= before.planned_through or after.state != before.state:
        return
    if after.version != before.version or after.state_at != before.state_at:
        return
    if after.planned_through <= before.ran_through:
        return  # what lies there ran while the clock was ahead; passing it decides nothing
    if not any(_decides(shift) for shift in rows):
        yield (
            f"L3 {name}: planned through moved from {at(before.planned_through)} to {at(after.planned_through)}, "
            f"and no instant was decided"
        )


def _decides(shift: Shift) -> bool:
    """Whether a row is new, or a gap grew: so instants were decided."""
    if not is_planned(shift.after):
        return False
    return shift.before is None or shift.after.instants > shift.before.instants


# -- L4: no storms ----------------------------------------------------------------------------------------------------


def start_obeys_policy(
    name: str, row: Run, rules: Rules, *, now: Instant, backlog: int, slack: Duration = 0
) -> Iterator[str]:
    """L4: a late instant starts only if the catch-up policy says so; `backlog` counts the catch-ups of one outage."""
    late = now - row.due_at
    if late <= GRACE + slack:
        return
    if rules.catch_up == "skip":
        yield f"L4 {name}: {describe(row)} started {format_duration(late)} late, and the policy is to skip"
    if rules.lateness_max is not None and backlog <= 1 and late > max(rules.lateness_max, GRACE) + slack:
        limit = format_duration(rules.lateness_max)
        yield f"L4 {name}: {describe(row)} started {format_duration(late)} late; at most {limit} is allowed"
    if rules.catch_up == "once":
        newer = next_after(rules.timing, row.planned_at)
        if newer is not None and newer + rules.offset <= now - slack:
            yield f"L4 {name}: {describe(row)} started late although the newer {at(newer)} was due as well"
    if rules.catch_up == "all" and backlog > rules.catch_up_max:
        yield f"L4 {name}: {describe(row)} is catch-up number {backlog}; at most {rules.catch_up_max} are allowed"


def within_capacity(node: int, running: int, capacity: int) -> Iterator[str]:
    """L4: a node never runs more at once than its capacity."""
    if running > capacity:
        yield f"L4 node {node}: {running} attempts are running at once; its capacity is {capacity}"


# -- L5: one at a time per lane ---------------------------------------------------------------------------------------


def one_per_lane(busy: Iterable[Run], holders: Mapping[str, int]) -> Iterator[str]:
    """L5: of the runs that are running or stuck, each holds its lane, and no lane is held by anything else."""
    held: dict[str, Run] = {}
    for run in busy:
        if run.lane is None:
            continue
        other = held.setdefault(run.lane, run)
        if other is not run:
            yield f"L5 lane {run.lane}: {describe(other)} and {describe(run)} are in it at once"
        elif holders.get(run.lane) != run.run_id:
            yield f"L5 lane {run.lane}: {describe(run)} runs in it; the store says {holders.get(run.lane)} holds it"
    for lane, run_id in sorted(holders.items()):
        if lane not in held:
            yield f"L5 lane {lane}: run {run_id} holds it and is neither running nor stuck"


def seen_one_at_a_time(seen: Iterable[Seen]) -> Iterator[str]:
    """L5: of the attempts under way, no two are in one lane or of one schedule. Ghosts hold nothing."""
    lanes: dict[str, Seen] = {}
    schedules: dict[int, Seen] = {}
    for one in seen:
        if one.ended_at is not None or one.is_ghost:
            continue
        other = one if one.is_backfill else schedules.setdefault(one.schedule_id, one)
        if other is not one:
            yield f"L5 schedule {one.schedule_id}: runs {other.run_id} and {one.run_id} run at once"
        if one.lane is not None:
            other = lanes.setdefault(one.lane, one)
            if other is not one:
                yield f"L5 lane {one.lane}: runs {other.run_id} and {one.run_id} run in it at once"


def open_runs_are_few(name: str, cadence: Cadence, rows: Iterable[Run], rules: Rules) -> Iterator[str]:
    """L5: at most one open run per schedule, and one more queued behind it where the schedule says so."""
    open_rows = [row for row in rows if row.outcome in OPEN or row.stuck]
    limit = 2 if rules.overlap == "queue" or cadence.queued_run_id is not None else 1
    if len(open_rows) > limit:
        yield f"L5 {name}: {len(open_rows)} runs are open: {', '.join(describe(row) for row in open_rows)}"
    known = {cadence.open_run_id, cadence.queued_run_id}
    for row in open_rows:
        if row.run_id not in known:
            yield f"L5 {name}: {describe(row)} is open and the schedule does not know of it"
    busy = [row for row in open_rows if row.outcome == "running" or row.stuck]
    if len(busy) > 1:
        yield f"L5 {name}: {len(busy)} runs are running: {', '.join(describe(row) for row in busy)}"


def nobody_waits_at_a_free_lane(waiting: Sequence[Alarm], holders: Mapping[str, int]) -> Iterator[str]:
    """L5: whoever is parked is parked behind someone: the holder of the lane, or one who was let go to take it."""
    called = {alarm.lane for alarm in waiting if not alarm.parked and alarm.due_at is not None}
    for alarm in waiting:
        if alarm.parked and alarm.lane not in holders and alarm.lane not in called:
            yield f"L5 lane {alarm.lane}: run {alarm.ref} is parked although nobody holds the lane"


# -- L6: leases and fences --------------------------------------------------------------------------------------------


def fence_grows(name: str, shift: Shift) -> Iterator[str]:
    """L6: every attempt has a fence of its own, and a fence never goes back."""
    before, after = shift
    if before is None:
        return
    if after.fence < before.fence:
        yield f"L6 {name}: the fence of {describe(after)} went back from {before.fence} to {after.fence}"
    if after.attempt > before.attempt and after.fence <= before.fence:
        yield f"L6 {name}: {describe(after)} began under the fence {after.fence} of the attempt before"


def answers_are_its_own(name: str, shift: Shift, seen: Sequence[Seen]) -> Iterator[str]:
    """L6: a run is settled by the attempt that holds it, never by the late answer of one that lost it.

    Succeeded, failed for the target and timed out are claims about how the current attempt ended; it must have ended.
    """
    before, after = shift
    if before is not None and before.outcome == "waiting" and after.outcome in ("succeeded", "timedOut"):
        yield f"L6 {name}: {describe(before)} became {after.outcome} while nobody held it"
    if before is None or before.outcome != "running" or after.outcome == "running":
        return
    if after.fence != before.fence:
        return  # it moved on more than once between two looks; each step is judged by its attempts' rows
    current = next((one for one in seen if one.attempt == before.attempt), None)
    if after.outcome == "succeeded" and (current is None or current.ending != "done"):
        yield f"L6 {name}: {describe(after)} counts as succeeded; its attempt {ended_how(current)}"
    if after.outcome == "timedOut" and (current is None or current.ended_at is None):
        yield f"L6 {name}: {describe(after)} is called timed out; its attempt {ended_how(current)}"
    if after.outcome == "failed" and after.reason is None and current is not None and current.ended_at is None:
        yield f"L6 {name}: {describe(after)} counts as failed; its attempt {ended_how(current)}"


def retry_follows_an_end(name: str, shift: Shift, ended: Sequence[Attempt], seen: Sequence[Seen]) -> Iterator[str]:
    """L6: an attempt said to have failed or timed out has really ended before the run waits for the next."""
    if shift.after.outcome != "waiting":
        return
    for one in ended:
        if one.outcome not in ("failed", "timedOut", "busy", "throttled"):
            continue
        actual = next((s for s in seen if s.attempt == one.attempt), None)
        if actual is not None and actual.ended_at is None and not actual.is_ghost:
            run = describe(shift.after)
            yield f"L6 {name}: attempt {one.attempt} of {run} is called {one.outcome}; it {ended_how(actual)}"


def stuck_keeps_its_place(name: str, run: Run, cadence: Cadence | None, holders: Mapping[str, int]) -> Iterator[str]:
    """L6: what could not be ended keeps its lane and its schedule, visibly."""
    if not run.stuck:
        return
    if run.outcome != "unknown":
        yield f"L6 {name}: {describe(run)} is stuck and called {run.outcome}, as if its end were known"
    if run.lane is not None and holders.get(run.lane) != run.run_id:
        yield f"L6 {name}: {describe(run)} is stuck, and its lane {run.lane} is held by {holders.get(run.lane)}"
    is_beside = run.priority == PRIORITY_BACKFILL
    if cadence is not None and not is_beside and run.run_id not in (cadence.open_run_id, cadence.queued_run_id):
        yield f"L6 {name}: {describe(run)} is stuck, and its schedule has let go of it"


def ghosts_leave(seen: Iterable[Seen], *, awake_for: Duration, patience: Duration) -> Iterator[str]:
    """L6: a node that lost its lease ends what it had under way, soon after it is awake again."""
    for one in seen:
        if one.is_ghost and one.ended_at is None and awake_for > patience:
            awake = format_duration(awake_for)
            yield f"L6 node {one.node}: it lost the lease, is awake for {awake}, and run {one.run_id} goes on there"


def lease_is_kept(name: str, node_id: int, *, steady_for: Duration, lease: Duration) -> Iterator[str]:
    """L6: the lease of a node is taken when it died, stood still or is leaving; not because the clock was stepped, and
    the lease lies ahead of it or behind. `steady_for`: how long nothing of that happened."""
    if steady_for > lease:
        long = format_duration(steady_for)
        yield f"L6 {name}: it was up for {long} and renewed its lease, and another node took it (node {node_id})"


def open_runs_have_owners(name: str, run: Run, nodes: frozenset[int]) -> Iterator[str]:
    """L6: a running run belongs to a node that is in the books; a waiting one to nobody."""
    if run.outcome == "running" and run.owner not in nodes:
        yield f"L6 {name}: {describe(run)} runs on node {run.owner}, which nobody registered"
    if run.outcome == "waiting" and run.owner is not None:
        yield f"L6 {name}: {describe(run)} waits and is still owned by node {run.owner}"


# -- what the sentences are made of -----------------------------------------------------------------------------------


def is_planned(row: Run) -> bool:
    """Whether a row stands for instants of a grid, and not for something that was asked for."""
    return row.trigger not in ("manual", "wake", "backfill", "replay")


def ended_how(seen: Seen | None) -> str:
    """What the world knows of an attempt's end."""
    if seen is None:
        return "was never seen to begin"
    ghost = " after its node had lost the lease" if seen.is_ghost else ""
    return "still runs" + ghost if seen.ended_at is None else f"ended {seen.ending}{ghost}"
