"""Claiming: the runs that start now, in the transaction that finds them.

Candidates come from alarms that rang, from runs that wait, and from lanes of runs that ended; all take the same steps
(`engine.claim_steps`). A tick rings the due alarms and claims as many runs as there is capacity for; a settlement
claims what may follow the runs it settled.
"""

from collections.abc import Sequence
from typing import NamedTuple

from wakeful.core.run.effects import Alert
from wakeful.core.run.runs import PRIORITY_PERSON, Run
from wakeful.core.schedule.labels import may_take
from wakeful.core.time.instants import Instant
from wakeful.engine.claim_steps import Candidates, claim_candidates, reserve
from wakeful.engine.effects import apply
from wakeful.engine.fairness import DueRuns, late_max, waiting_runs
from wakeful.engine.labels import due_kinds, next_due_at, queues_for
from wakeful.engine.limits import HELD_BACK_MAX, RING_BATCH, TRY_AGAIN, TURN_NEEDS_ROW
from wakeful.ports.claims import Claim
from wakeful.ports.handlers import AlarmHandler, EngineHooks, RingResult, SideTask
from wakeful.ports.store import ALARM_RUN, Tx, run_alarm


class ClaimRequest(NamedTuple):
    """The node that claims, the time, and how many runs it can take."""

    node_id: int
    now: Instant
    room: int
    gap_reason: str = ""
    is_ringing: bool = False  # a settlement rings no alarms, and neither does a tick while the clock is not set yet
    lease_until: Instant = 0  # as this node last wrote it: if the store lacks it, the store was rolled back
    manual_room: int | None = None  # how many of `room` may be manual; None: all
    labels: frozenset[str] = frozenset()  # of this node, as its row says
    is_turn_of_late: bool = False  # a single place goes to what is older than the grace (`engine.fairness`)
    only: str | None = None  # ring and claim just the first alarm of this kind


class Claimed(NamedTuple):
    """The result of one claiming transaction."""

    claims: list[Claim]
    is_more: bool  # more is due, and there is capacity for it
    next_due_at: Instant | None
    side_tasks: list[SideTask]
    alerts: list[Alert]
    is_lost: bool = False  # another node took the lease: claim nothing more under this node id


def claim(tx: Tx, hooks: EngineHooks, request: ClaimRequest) -> Claimed:
    """Ring and claim what is due at `now`, at most `room` runs."""
    node_id, now, room, only = request.node_id, request.now, request.room, request.only
    if not tx.nodes.hold(node_id, lease_until=request.lease_until):
        return Claimed([], False, None, [], [], is_lost=True)
    queues = queues_for(tx, request.labels)
    kinds = due_kinds(tx, queues, now=now)
    if only is not None:
        kinds &= {only}
    due = _waiting(tx, queues, request) if room > 0 and ALARM_RUN in kinds else DueRuns([])
    claims, waiting = claim_candidates(tx, hooks, Candidates(due.runs), node_id, now) if due.runs else ([], 0)
    is_more = room > 0 and len(claims) + waiting >= room
    side_tasks: list[SideTask] = []
    full: list[str] = []
    next_looks: list[Instant] = []
    alerts: list[Alert] = []
    if request.manual_room is not None and _count_manual(due.runs) >= request.manual_room:
        full.append(ALARM_RUN)  # manual runs may be left: the end of another one sets the bell
        next_looks.append(now + TRY_AGAIN)
    for handler in hooks.alarms if request.is_ringing else ():
        if handler.kind not in kinds:
            continue
        left = room - len(claims)
        rung, is_limited = _ring(tx, handler, request, left, has_late=due.has_late)
        if rung.due or rung.plain:
            claims += claim_candidates(tx, hooks, _rung(rung, left, request.labels), node_id, now).claims
        side_tasks += rung.side_tasks
        full += rung.full
        next_looks += [] if rung.again_at is None else [rung.again_at]
        alerts += apply(tx, hooks, rung.effects, now) if rung.effects else []
        is_more = is_more or is_limited
    claims = reserve(tx, hooks, claims, now)
    earliest = next_due_at(tx, queues, besides=full)
    next_looks += [] if earliest is None else [earliest]
    return Claimed(claims, is_more, min(next_looks, default=None), side_tasks, alerts)


def claim_next(
    tx: Tx, hooks: EngineHooks, lanes: Sequence[tuple[str, int]], request: ClaimRequest, *, is_passed_on: bool
) -> tuple[list[Claim], bool]:
    """After a settlement, in its transaction: claim what waits, above all in the lanes it left, which are given with
    the runs that hold them. Also returns whether all that was due is claimed.

    The lanes pass directly to the next in line if nothing else may come first (`is_passed_on`: only these lanes became
    free). Otherwise they are freed, and all that is due is compared. Runs whose admission takes locks are left for the
    next tick, because lanes are locked already."""
    now, is_all = request.now, True
    found = _successors(tx, hooks, lanes, request) if is_passed_on else None
    if found is None:
        tx.lanes.free_many(lanes)
        due = _waiting(tx, queues_for(tx, request.labels), request)
        found = Candidates([run for run in due.runs if hooks.keepers[run.kind].admits_without_locks])
        is_all = len(found.runs) == len(due.runs) and not due.is_more
    claims = reserve(tx, hooks, claim_candidates(tx, hooks, found, request.node_id, now).claims, now)
    return claims, is_all and len(claims) == len(found.runs)


def _waiting(tx: Tx, queues: Sequence[str], request: ClaimRequest) -> DueRuns:
    """Runs that wait and are due."""
    return waiting_runs(
        tx,
        queues,
        request.labels,
        now=request.now,
        room=request.room,
        manual_max=request.manual_room,
        is_turn_of_late=request.is_turn_of_late,
    )


def _ring(
    tx: Tx, handler: AlarmHandler, request: ClaimRequest, left: int, *, has_late: bool
) -> tuple[RingResult, bool]:
    """Ring the alarms of one kind; also returns whether some may be left."""
    now = request.now
    limit = min(left, RING_BATCH) if handler.brings_runs and left > 0 else RING_BATCH
    if request.only is not None:
        limit = 1
    due_by = now
    if handler.brings_runs and left <= 0:
        # Beside runs that are late, what is on time gets a row: only then it has its part of the places.
        due_by -= TURN_NEEDS_ROW if has_late else HELD_BACK_MAX
    most = late_max(limit, is_turn_of_late=request.is_turn_of_late)
    rung = handler.ring(tx, now=now, due_by=due_by, limit=limit, late_max=most, gap_reason=request.gap_reason)
    return rung, rung.rang >= limit


def _rung(rung: RingResult, left: int, labels: frozenset[str]) -> Candidates:
    """What alarms brought. Runs that need a label which this node lacks wait for another node: any node advances a
    backfill."""
    room = max(left - sum(len(batch.claims) for batch in rung.plain), 0)
    ready = [item.run for item in rung.due if not item.rests]
    mine = [run for run in ready if may_take(run.run_on, labels)]
    others = [run for run in ready if not may_take(run.run_on, labels)]
    resting = [(run, run_alarm(run, run.due_at)) for run in mine[room:] + others]
    resting += [(item.run, run_alarm(item.run, None)) for item in rung.due if item.rests]
    return Candidates(mine[:room], rung.plain, is_new=True, resting=resting)


def _successors(
    tx: Tx, hooks: EngineHooks, lanes: Sequence[tuple[str, int]], request: ClaimRequest
) -> Candidates | None:
    """The first in line of each of these lanes; None if all that is due must be compared."""
    held = dict(lanes)
    if request.labels or len(held) < len(lanes) or any(map(hooks.is_lifted, held)):
        return None
    runs = tx.plain.successors(held, now=request.now)
    if runs is None or len(runs) > request.room or any(run.run_on is not None for run in runs):
        return None
    if request.manual_room is not None and _count_manual(runs) > request.manual_room:
        return None
    if not all(hooks.keepers[run.kind].admits_without_locks for run in runs):
        return None
    return Candidates(runs, passed_on=held)


def _count_manual(runs: Sequence[Run]) -> int:
    return sum(run.priority == PRIORITY_PERSON for run in runs)
