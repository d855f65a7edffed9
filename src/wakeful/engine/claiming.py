"""Claiming: one transaction that rings the due alarms and claims as many runs as there is capacity for.

A run is claimed in three steps: the gates of its keeper admit it, its lane is taken, and its row is written under this
node with a new fence. A run that is not admitted, or whose lane is held, waits as an alarm. A run created in this
transaction takes the same steps before its first write, so the common case costs one insert and no alarm.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from wakeful.core.run.effects import Alert
from wakeful.core.run.results import Dropped, Failed
from wakeful.core.run.runs import PRIORITY_PERSON, Run, RungName
from wakeful.core.run.transitions import claimed, unclaimed
from wakeful.core.schedule.gates import Defer, Leave, Skip
from wakeful.core.schedule.labels import may_take
from wakeful.core.schedule.lateness import late_since
from wakeful.core.schedule.policies import OnCrash
from wakeful.core.time.instants import Instant
from wakeful.engine.effects import apply
from wakeful.engine.fairness import DueRuns, late_max, waiting_runs
from wakeful.engine.labels import due_kinds, next_due_at, queues_for
from wakeful.engine.limits import DEFERRED_MIN, HELD_BACK_MAX, RING_BATCH, TRY_AGAIN, TURN_NEEDS_ROW
from wakeful.ports.claims import Batch, Claim
from wakeful.ports.handlers import EngineHooks, Job, RingResult, SideTask
from wakeful.ports.store import ALARM_RUN, Alarm, Tx, run_alarm


class ClaimRequest(NamedTuple):
    """The node that claims, the time, and how many runs it can take."""

    node_id: int
    now: Instant
    room: int
    gap_reason: str
    is_ringing: bool  # False while the clock is not set yet
    lease_until: Instant = 0  # as this node last wrote it: if the store lacks it, the store was rolled back
    manual_room: int | None = None  # how many of `room` may be manual; None: all
    labels: frozenset[str] = frozenset()  # of this node, as its row says
    is_turn_of_late: bool = False  # a single place goes to what is older than the grace (`engine.fairness`)


class Claimed(NamedTuple):
    """The result of one claiming transaction."""

    claims: list[Claim]
    is_more: bool  # more is due, and there is capacity for it
    next_due_at: Instant | None
    side_tasks: list[SideTask]
    alerts: list[Alert]
    is_lost: bool = False  # another node took the lease: claim nothing more under this node id


class _Sorted(NamedTuple):
    """Due runs, grouped by what happens to them now."""

    claims: list[Claim]
    waiting: list[tuple[Run, Alarm]]


def claim(tx: Tx, hooks: EngineHooks, request: ClaimRequest, *, only: str | None = None) -> Claimed:
    """Ring and claim what is due at `now`, at most `room` runs; with `only`, just the first alarm of that kind."""
    node_id, now, room, gap_reason, is_ringing, lease_until, manual_room, labels, is_turn_of_late = request
    claims: list[Claim] = []
    side_tasks: list[SideTask] = []
    full: list[str] = []
    next_looks: list[Instant] = []
    alerts: list[Alert] = []
    if not tx.nodes.hold(node_id, lease_until=lease_until):
        return Claimed([], False, None, [], [], is_lost=True)
    queues = queues_for(tx, labels)
    kinds = due_kinds(tx, queues, now=now)
    if only is not None:
        kinds &= {only}
        room = min(room, 1)
        is_turn_of_late = True  # the first alarm is the one that is postponed if it fails
    due = DueRuns([])
    if room > 0 and ALARM_RUN in kinds:
        due = waiting_runs(
            tx, queues, labels, now=now, room=room, manual_max=manual_room, is_turn_of_late=is_turn_of_late
        )
    waiting = due.runs
    known = _claim_known(tx, hooks, waiting, node_id, now) if waiting else _Sorted([], [])
    claims += known.claims
    is_more = room > 0 and len(known.claims) + len(known.waiting) >= room
    if manual_room is not None and sum(run.priority == PRIORITY_PERSON for run in waiting) >= manual_room:
        full.append(ALARM_RUN)  # manual runs may be left: the end of another one sets the bell
        next_looks.append(now + TRY_AGAIN)
    for handler in hooks.alarms if is_ringing else ():
        if handler.kind not in kinds and (only is not None or not handler.is_always_asked):
            continue
        left = room - len(claims)
        is_held_back = handler.brings_runs and left <= 0
        limit = min(left, RING_BATCH) if handler.brings_runs and left > 0 else RING_BATCH
        limit = limit if only is None else 1
        # Beside runs that are late, what is on time gets a row: only then it has its part of the places.
        held_back = TURN_NEEDS_ROW if due.has_late else HELD_BACK_MAX
        due_by = now - held_back if is_held_back else now
        most = late_max(limit, is_turn_of_late=is_turn_of_late)
        rung = handler.ring(tx, now=now, due_by=due_by, limit=limit, late_max=most, gap_reason=gap_reason)
        if rung.due or rung.plain:
            claims += _claim_new(tx, hooks, rung, node_id, now, left, labels)
        side_tasks += rung.side_tasks
        full += rung.full
        next_looks += [] if rung.again_at is None else [rung.again_at]
        alerts += apply(tx, hooks, rung.effects, now)
        is_more = is_more or rung.rang >= limit
    claims = _reserve(tx, hooks, claims, now)
    earliest = next_due_at(tx, queues, besides=full)
    next_looks += [] if earliest is None else [earliest]
    return Claimed(claims, is_more, min(next_looks, default=None), side_tasks, alerts)


def claim_waiting(
    tx: Tx,
    hooks: EngineHooks,
    *,
    node_id: int,
    now: Instant,
    room: int,
    manual_room: int,
    labels: frozenset[str] = frozenset(),
    is_turn_of_late: bool = False,
) -> tuple[list[Claim], bool]:
    """Claim waiting runs that are due in a transaction that has already locked lanes (`engine.settling`). Runs whose
    admission takes locks are left for the next tick, because lanes are locked last. Also returns whether all that were
    due are claimed."""
    due = waiting_runs(
        tx, queues_for(tx, labels), labels, now=now, room=room, manual_max=manual_room, is_turn_of_late=is_turn_of_late
    )
    waiting = [run for run in due.runs if hooks.keepers[run.kind].admits_without_locks]
    claims = _reserve(tx, hooks, _claim_known(tx, hooks, waiting, node_id, now).claims, now) if waiting else []
    return claims, len(claims) == len(due.runs) and not due.is_more


def claim_successors(
    tx: Tx,
    hooks: EngineHooks,
    lanes: Sequence[tuple[str, int]],
    *,
    node_id: int,
    now: Instant,
    room: int,
    manual_room: int,
) -> tuple[list[Claim], bool] | None:
    """Pass lanes on from runs that were settled in this transaction: claim the next run of each. Also returns whether
    all of them are claimed. None if not all of them can simply start: then nothing was written, and the lanes must be
    freed, so that `claim_waiting` compares all that is due."""
    held = dict(lanes)
    if len(held) < len(lanes) or any(map(hooks.is_lifted, held)):
        return None
    runs = tx.plain.successors(held, now=now)
    if runs is None or not _have_room(runs, room, manual_room):
        return None
    jobs: dict[int, Job] = {}
    for kind in dict.fromkeys(run.kind for run in runs):
        keeper, of_kind = hooks.keepers[kind], [run for run in runs if run.kind == kind]
        if not keeper.admits_without_locks:
            return None
        for run, decision in zip(of_kind, keeper.admit(tx, of_kind, now=now), strict=True):
            if not isinstance(decision, Job):
                return None
            jobs[run.run_id] = decision
    claims = [_own(run, jobs[run.run_id], hooks, node_id, now) for run in sorted(runs)]
    tx.plain.pass_on(held, [claim.run for claim in claims])
    kept = _reserve(tx, hooks, claims, now) if claims else []
    return kept, len(kept) == len(claims)


def _have_room(runs: Sequence[Run], room: int, manual_room: int) -> bool:
    """Whether all of these may start on a node without labels."""
    manual = sum(run.priority == PRIORITY_PERSON for run in runs)
    return len(runs) <= room and manual <= manual_room and all(run.run_on is None for run in runs)


def _claim_known(tx: Tx, hooks: EngineHooks, runs: Sequence[Run], node_id: int, now: Instant) -> _Sorted:
    """Runs that were waiting in the ledger. Those that are left to other nodes are not in the result."""
    sorted_runs = _sort(tx, hooks, runs, node_id, now)
    known = set(map(id, runs))
    moved = [run for run, _ in sorted_runs.waiting if id(run) not in known]
    if moved:
        tx.runs.save_many(sorted(moved))
    if sorted_runs.claims:
        tx.runs.claim_many(sorted(claim.run for claim in sorted_runs.claims))
        tx.alarms.remove_many(ALARM_RUN, sorted(claim.run_id for claim in sorted_runs.claims))
    if sorted_runs.waiting:
        tx.alarms.set_many(sorted((alarm for _, alarm in sorted_runs.waiting), key=_by_ref))
    return sorted_runs


def _claim_new(
    tx: Tx, hooks: EngineHooks, rung: RingResult, node_id: int, now: Instant, room: int, labels: frozenset[str]
) -> list[Claim]:
    """Runs created in this transaction, which are not in the ledger yet. Those that need a label which this node lacks
    wait for another: any node advances a backfill."""
    due, plain = rung.due, _claim_plain(tx, hooks, rung.plain, node_id, now)
    if not due and not plain.waiting:
        return plain.claims
    room = max(room - len(plain.claims), 0)
    ready = [item.run for item in due if not item.rests]
    mine = [run for run in ready if may_take(run.run_on, labels)]
    sorted_runs = _sort(tx, hooks, mine[:room], node_id, now)
    others = [run for run in ready if not may_take(run.run_on, labels)]
    seen = {claim.run_id for claim in sorted_runs.claims} | {run.run_id for run, _ in sorted_runs.waiting}
    left = [run for run in mine[:room] if run.run_id not in seen]
    late = [(run, run_alarm(run, run.due_at)) for run in mine[room:] + others + left]
    rests = [(item.run, run_alarm(item.run, None)) for item in due if item.rests]
    waiting = plain.waiting + sorted_runs.waiting + late + rests
    tx.runs.add_many(sorted([claim.run for claim in sorted_runs.claims] + [run for run, _ in waiting]))
    if waiting:
        tx.alarms.set_many(sorted((alarm for _, alarm in waiting), key=_by_ref))
    return sorted(plain.claims + sorted_runs.claims, key=_by_due_time)


def _claim_plain(tx: Tx, hooks: EngineHooks, batches: Sequence[Batch], node_id: int, now: Instant) -> _Sorted:
    """New runs that no gate concerns: they start as they are written, or wait for their lane."""
    in_lanes = [
        (batch.due_at, claim.schedule_id, batch.lane, claim.run_id)
        for batch in batches
        if batch.lane is not None
        for claim in batch.claims
    ]
    parked = _parked(tx, hooks, [(lane, run_id) for *_, lane, run_id in sorted(in_lanes)]) if in_lanes else set()
    for batch in batches:
        batch.node_id, batch.claimed_at = node_id, now
        action = hooks.actions[type(batch.spec)]
        batch.rung = _first_rung(batch.on_crash, action.is_local)
        if not action.is_local:
            batch.job_of = partial(_job_with_access, hooks, batch.job_of)
        if parked:
            batch.put_apart(parked)
    if batches:
        tx.plain.start(batches)
    waiting = [claim.parked for batch in batches for claim in batch.waiting]
    return _Sorted(
        [claim for batch in batches for claim in batch.claims],
        [(run, run_alarm(run, run.next_attempt_at, parked=1)) for run in waiting],
    )


def _sort(tx: Tx, hooks: EngineHooks, runs: Sequence[Run], node_id: int, now: Instant) -> _Sorted:
    """Check the gates, take the lanes, and claim what may start for this node."""
    sorted_runs = _Sorted([], [])
    for kind in dict.fromkeys(run.kind for run in runs):
        of_kind = [run for run in runs if run.kind == kind]
        jobs = _admit(tx, hooks, of_kind, node_id, now, sorted_runs)
        free = _take_lanes(tx, hooks, [run for run in of_kind if run.run_id in jobs], sorted_runs)
        deferred = [
            (run.lane, run.run_id) for run, alarm in sorted_runs.waiting if run.lane is not None and not alarm.parked
        ]
        if deferred:
            tx.lanes.free_many(sorted(deferred))  # admitted but not started: the next run in line may go
        sorted_runs.claims.extend(_own(run, jobs[run.run_id], hooks, node_id, now) for run in free)
    return sorted_runs


def _admit(
    tx: Tx, hooks: EngineHooks, runs: Sequence[Run], node_id: int, now: Instant, sorted_runs: _Sorted
) -> dict[int, Job | str | Skip]:
    """Return the jobs of the runs that may start, by run id; deferred runs wait, and those left to other nodes stay as
    they are. A skipped run is claimed and settled like any other ending, so that its owner is always locked before the
    run is. One that is missed is known to be when its turn has come, so it takes its lane, and hands it on."""
    jobs: dict[int, Job | str | Skip] = {}
    for run, decision in zip(runs, hooks.keepers[runs[0].kind].admit(tx, runs, now=now), strict=True):
        match decision:
            case Defer(until=until, reason=reason):
                until = max(until, now + DEFERRED_MIN)  # a gate that defers to `now` would be checked in a tight loop
                moved = run._replace(reason=reason, next_attempt_at=until)
                sorted_runs.waiting.append((moved, run_alarm(moved, until)))
            case Skip(outcome="skipped") as skip:
                sorted_runs.claims.append(_own(run, skip, hooks, node_id, now))
            case Leave():
                pass  # it stays due
            case job:
                jobs[run.run_id] = job
    return jobs


def _take_lanes(tx: Tx, hooks: EngineHooks, runs: Sequence[Run], sorted_runs: _Sorted) -> list[Run]:
    """Return the runs that have no lane or got theirs; the others are parked until the lane is free."""
    parked = _parked(tx, hooks, [(run.lane, run.run_id) for run in runs])
    for run in runs:
        if run.run_id in parked:
            moved = run if run.reason == "lane" else run._replace(reason="lane", next_attempt_at=_ready_at(run))
            sorted_runs.waiting.append((moved, run_alarm(moved, run.next_attempt_at, parked=1)))
    return [run for run in runs if run.run_id not in parked]


def _ready_at(run: Run) -> Instant | None:
    """When a run was ready to begin that finds its lane held."""
    return run.next_attempt_at if run.attempt else late_since(run)


def _parked(tx: Tx, hooks: EngineHooks, runs: Sequence[tuple[str | None, int]]) -> set[int]:
    """Take the lanes of these runs, given as lane and id; returns those whose lane another run holds."""
    wanted = [(lane, run_id) for lane, run_id in runs if lane is not None and not hooks.is_lifted(lane)]
    if not wanted:
        return set()
    return {run_id for _, run_id in wanted} - tx.lanes.take_many(wanted)


def _reserve(tx: Tx, hooks: EngineHooks, claims: list[Claim], now: Instant) -> list[Claim]:
    """The last step: reserve what the runs may cost. It locks budgets without waiting, and locks nothing after them. A
    run that does not fit is settled as skipped, or waits as if it had not been claimed."""
    asked = [(claim.run, claim.job) for claim in claims if not claim.batch.is_plain]  # plain runs cost nothing
    decisions = hooks.accounts.reserve(tx, asked, now=now) if asked else {}
    if not decisions:
        return claims
    kept: list[Claim] = []
    waiting: list[Run] = []
    for claim in claims:
        match decisions.get(claim.run_id):
            case None:
                kept.append(claim)
            case Skip() as skip:
                kept.append(Claim.of(claim.run, _dropped(skip), 0))
            case Defer(until=until, reason=reason, error=error):
                waiting.append(unclaimed(claim.run, until=max(until, now + DEFERRED_MIN), reason=reason, error=error))
            case Job() as changed:
                kept.append(Claim.of(claim.run, changed, changed.timeout))
    if waiting:
        waiting.sort()
        tx.runs.save_many(waiting)
        tx.alarms.set_many([run_alarm(run, run.next_attempt_at) for run in waiting])
        held = [(run.lane, run.run_id) for run in waiting if run.lane is not None]
        if held:
            tx.lanes.free_many(sorted(held))
    return kept


def _own(run: Run, job: Job | str | Skip, hooks: EngineHooks, node_id: int, now: Instant) -> Claim:
    """The claim of a run that was decided by itself."""
    if not isinstance(job, Job):
        row = claimed(run, node_id=node_id, now=now, timeout=0, rung="claimed")
        return Claim.of(row, Failed(job, permanent=True) if isinstance(job, str) else _dropped(job), 0)
    is_local = hooks.actions[type(job.spec)].is_local
    rung = _first_rung(job.on_crash, is_local)
    row = claimed(run, node_id=node_id, now=now, timeout=job.timeout, rung=rung)
    return Claim.of(row, job if is_local else _with_access(job, row, hooks), job.timeout)


def _dropped(skip: Skip) -> Dropped:
    return Dropped(skip.reason, skip.error, skip.outcome)


def _first_rung(on_crash: OnCrash, is_local: bool) -> RungName:
    """The rung a claim records. A call starts immediately, so with `onCrash: retry` its row says `started` from the
    beginning: the result is the same either way. With `unknown` the difference matters, and the action reports it."""
    return "started" if is_local and on_crash == "retry" else "claimed"


def _job_with_access(hooks: EngineHooks, job_of: Callable[[Claim], Job], claim: Claim) -> Job:
    """What a run of a batch performs outside this process."""
    return _with_access(job_of(claim), claim.run, hooks)


def _with_access(job: Job, row: Run, hooks: EngineHooks) -> Job:
    """The job, with what a program outside this process needs."""
    access = hooks.run_access(row.run_id, row.fence)
    trace = None if hooks.traceparent is None else hooks.traceparent(row)
    return job._replace(fire=job.fire._replace(access=access, withholds=hooks.withholds, traceparent=trace))


def _by_due_time(claim: Claim) -> tuple[Instant, int]:
    return claim.batch.due_at, claim.schedule_id


def _by_ref(alarm: Alarm) -> int:
    return alarm.ref
