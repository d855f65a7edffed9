"""The steps of a claim, the same for all candidates: admit, lane, write, reserve.

The gates of its keeper admit a run, its lane is taken, its row is written under this node with a new fence, and what it
may cost is reserved. A run that is not admitted, or whose lane is held, waits as an alarm. A run that an alarm just
created takes the same steps before its first write, so the common case costs one insert and no alarm. Runs that were
decided together concern no gate and cost nothing.

All gates come before the first lane: they may lock owners. Lanes are locked after all runs. Only budgets come after
them, which are locked without waiting.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

from wakeful.core.run.results import Dropped, Failed
from wakeful.core.run.runs import Run, RungName
from wakeful.core.run.transitions import claimed, unclaimed
from wakeful.core.schedule.gates import Defer, Leave, Skip
from wakeful.core.schedule.lateness import late_since
from wakeful.core.schedule.policies import OnCrash
from wakeful.core.time.instants import Instant
from wakeful.engine.labels import by_turn
from wakeful.engine.limits import DEFERRED_MIN
from wakeful.ports.claims import Batch, Claim
from wakeful.ports.handlers import EngineHooks, Job
from wakeful.ports.plain import NO_LANES
from wakeful.ports.store import Alarm, Tx, run_alarm

Admitted: TypeAlias = Job | Skip | str
"""What a run performs, that it ends without an attempt, or why it cannot be performed."""


class Candidates(NamedTuple):
    """Runs of one source that may start now."""

    runs: Sequence[Run] = ()  # each is decided by itself
    batches: Sequence[Batch] = ()  # decided together, and not written yet
    is_new: bool = False  # none of these is in the ledger yet
    resting: Sequence[tuple[Run, Alarm]] = ()  # new ones that do not start now
    passed_on: Mapping[str, int] = NO_LANES  # lanes that pass to these runs, and the ended runs that hold them


class Taken(NamedTuple):
    """What became of candidates."""

    claims: list[Claim]  # oldest first
    waiting: int  # how many have to wait


class _Admission(NamedTuple):
    """Candidates, by what happens to them before any lane is taken."""

    jobs: dict[int, Admitted]  # by run id
    waiting: list[tuple[Run, Alarm]]
    left_lanes: list[tuple[str, int]]  # of runs that did not start: the next in line may go


def claim_candidates(tx: Tx, hooks: EngineHooks, found: Candidates, node_id: int, now: Instant) -> Taken:
    """Take all steps but the last (`reserve`)."""
    jobs, waiting, left_lanes = _admit(tx, hooks, found, now)
    parked = _take_lanes(tx, hooks, found, jobs)
    for batch in found.batches:
        _start(hooks, batch, parked, node_id, now)
    waiting += [_parked(claim.parked, now) for batch in found.batches for claim in batch.waiting]
    waiting += [_parked(run, now) for run in found.runs if run.run_id in parked]
    claims = [
        _own(run, jobs[run.run_id], hooks, node_id, now)
        for run in found.runs
        if run.run_id in jobs and run.run_id not in parked
    ]
    _write(tx, found, claims, waiting)
    if left_lanes:  # after the alarms: the runs that left these lanes are not first in line any more
        tx.lanes.free_many(sorted(left_lanes))
    together = [claim for batch in found.batches for claim in batch.claims]
    if not claims:
        claims = together
    elif found.is_new:
        claims = sorted(together + claims, key=_by_due_time)
    return Taken(claims, len(waiting))


def _admit(tx: Tx, hooks: EngineHooks, found: Candidates, now: Instant) -> _Admission:
    """Ask the gates. A skipped run is claimed and settled like any other ending, so that its owner is always locked
    before the run is. A run that is left to other nodes stays as it is."""
    admission = _Admission({}, list(found.resting), [])
    for kind in dict.fromkeys(run.kind for run in found.runs):
        of_kind = [run for run in found.runs if run.kind == kind]
        for run, decision in zip(of_kind, hooks.keepers[kind].admit(tx, of_kind, now=now), strict=True):
            match decision:
                case Defer(until=until, reason=reason):
                    # A gate that defers to `now` would be checked in a tight loop.
                    until = max(until, now + DEFERRED_MIN)
                    moved = run._replace(reason=reason, next_attempt_at=until)
                    admission.waiting.append((moved, run_alarm(moved, until)))
                case Leave() if found.is_new:
                    admission.waiting.append((run, run_alarm(run, run.due_at)))
                case Leave():
                    pass
                case job:
                    admission.jobs[run.run_id] = job
                    continue
            if run.lane is not None and (isinstance(decision, Defer) or run.lane in found.passed_on):
                admission.left_lanes.append((run.lane, run.run_id))
    return admission


def _take_lanes(tx: Tx, hooks: EngineHooks, found: Candidates, jobs: Mapping[int, Admitted]) -> set[int]:
    """Take the lanes of what was admitted, the oldest first; returns the runs whose lane another run holds. A run that
    is skipped needs no lane. One that is missed is known to be when its turn has come, so it takes its lane, and hands
    it on."""
    turns = [
        (by_turn(run), run.lane)
        for run in found.runs
        if run.lane is not None and run.run_id in jobs and not _is_skipped(jobs[run.run_id])
    ]
    turns += [
        ((batch.priority, batch.due_at, claim.run_id), claim.lane)
        for batch in found.batches
        for claim in batch.claims
        if claim.lane is not None
    ]
    wanted = [
        (lane, turn[-1]) for turn, lane in sorted(turns) if lane not in found.passed_on and not hooks.is_lifted(lane)
    ]
    return {run_id for _, run_id in wanted} - tx.lanes.take_many(wanted) if wanted else set()


def _start(hooks: EngineHooks, batch: Batch, parked: set[int], node_id: int, now: Instant) -> None:
    """Let a batch start, except for the runs whose lane is held."""
    batch.node_id, batch.claimed_at = node_id, now
    action = hooks.actions[type(batch.spec)]
    batch.rung = _first_rung(batch.on_crash, action.is_local)
    if not action.is_local:
        batch.job_of = partial(_job_with_access, hooks, batch.job_of)
    if parked:
        batch.put_apart(parked)


def _write(tx: Tx, found: Candidates, claims: Sequence[Claim], waiting: Sequence[tuple[Run, Alarm]]) -> None:
    """Write what starts as claimed, and what waits with its alarm."""
    rows = [claim.run for claim in claims]
    if found.batches:
        tx.plain.start(found.batches)
    if found.is_new:
        rows += [run for run, _ in waiting]
        if rows:
            tx.runs.add_many(sorted(rows))
    else:
        unchanged = set(map(id, found.runs))
        moved = [run for run, _ in waiting if id(run) not in unchanged]
        if moved:
            tx.runs.save_many(sorted(moved))
        if rows or found.passed_on:
            tx.plain.claim(sorted(rows), found.passed_on)
    if waiting:
        tx.alarms.set_many(sorted((alarm for _, alarm in waiting), key=_by_ref))


def reserve(tx: Tx, hooks: EngineHooks, claims: list[Claim], now: Instant) -> list[Claim]:
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


def _parked(run: Run, now: Instant) -> tuple[Run, Alarm]:
    """The run, waiting for its lane. It keeps when it was ready to begin. By a clock that was ahead, that is still to
    come: when the clock went back, the alarm was brought forward and the row was not."""
    ready_at = run.next_attempt_at
    if run.reason != "lane" and not run.attempt:
        ready_at = late_since(run)
    if ready_at is not None and ready_at > now:
        ready_at = now
    if (run.reason, run.next_attempt_at) != ("lane", ready_at):
        run = run._replace(reason="lane", next_attempt_at=ready_at)
    return run, run_alarm(run, ready_at, parked=1)


def _own(run: Run, job: Admitted, hooks: EngineHooks, node_id: int, now: Instant) -> Claim:
    """The claim of a run that was decided by itself."""
    if not isinstance(job, Job):
        row = claimed(run, node_id=node_id, now=now, timeout=0, rung="claimed")
        return Claim.of(row, Failed(job, permanent=True) if isinstance(job, str) else _dropped(job), 0)
    is_local = hooks.actions[type(job.spec)].is_local
    rung = _first_rung(job.on_crash, is_local)
    row = claimed(run, node_id=node_id, now=now, timeout=job.timeout, rung=rung)
    return Claim.of(row, job if is_local else _with_access(job, row, hooks), job.timeout)


def _is_skipped(job: Admitted) -> bool:
    return isinstance(job, Skip) and job.outcome == "skipped"


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
