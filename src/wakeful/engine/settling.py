"""Settling: writes outcome, lane, alarm and effects of ended attempts in one transaction, if the fence is valid.

The transaction that settles a run in a lane also claims a run that waits. Otherwise the lane would be idle for one
commit and one tick. A run in a lane keeps its part of the capacity until it is settled (`engine.settler.Settler.kept`),
so that there is room for its successor; a backfilled run uses no capacity, and has none to hand on. The successor is
chosen as in a tick: of all waiting runs that are due, those requested by people first, then by due time. So a long
queue does not displace runs outside its lane.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from wakeful.core.run.effects import Alert, Effect
from wakeful.core.run.results import DONE, Done, Ending, StuckRunEnded, masked
from wakeful.core.run.runs import Attempt, Run, RunKind
from wakeful.core.run.settlement import Close, Wait, with_cancel_request
from wakeful.core.run.transitions import closed, ended_attempt, never_begun, waiting
from wakeful.core.schedule.plain import SUCCESS, is_plain_success
from wakeful.core.time.instants import Instant
from wakeful.engine.cancels import Cancels
from wakeful.engine.claiming import ClaimRequest, claim_next
from wakeful.engine.effects import apply
from wakeful.engine.labels import next_due_at, queues_for
from wakeful.engine.merged_runs import MergedRun, MergedRuns
from wakeful.ports.claims import Claim
from wakeful.ports.handlers import Booked, EngineHooks, RunKeeper, Settled
from wakeful.ports.store import ALARM_RUN, Alarm, Tx, run_alarm


class Ended(NamedTuple):
    """An attempt of this node that ended, and how."""

    claim: Claim
    ending: Ending


class SettleResult(NamedTuple):
    """For each ending, whether it still counted; and the alerts to send."""

    counted: list[bool]
    alerts: list[Alert]
    is_plain: bool = False  # all were equal, and led to nothing: no alarm was set
    lanes: Sequence[tuple[str, int]] = ()  # still held by them, if so


class Succession(NamedTuple):
    """What was settled, the runs this node owns now, and when the next alarm is due; None: as before, or later."""

    settled: SettleResult
    claims: list[Claim]
    next_due_at: Instant | None


class OfKind(NamedTuple):
    """Ended runs of one kind, locked, and their owners, which were locked before them."""

    keeper: RunKeeper
    locked: Any
    pairs: Sequence[tuple[Run, Ending]]


class Caused(NamedTuple):
    """What runs that were settled together lead to."""

    effects: Sequence[Effect] = ()
    booked: Sequence[Booked] = ()  # those that cost something


NOTHING: Final = Caused()


def settle_and_claim(tx: Tx, hooks: EngineHooks, ended: Sequence[Ended], request: ClaimRequest) -> Succession:
    """Settle these endings and claim at most `room` waiting runs, if this node still has its lease. The lease is
    locked first, as in a claim: a node that takes it over locks the runs after it."""
    may_claim = request.room > 0 and tx.nodes.hold(request.node_id, lease_until=request.lease_until)
    settled = settle(tx, hooks, ended, node_id=request.node_id, now=request.now)
    if settled.is_plain and not settled.lanes:
        return Succession(settled, [], None)
    claims: list[Claim] = []
    are_all_claimed = False
    if may_claim:
        claims, are_all_claimed = claim_next(tx, hooks, settled.lanes, request, is_passed_on=settled.is_plain)
    else:
        tx.lanes.free_many(settled.lanes)
    is_unchanged = settled.is_plain and are_all_claimed
    return Succession(settled, claims, None if is_unchanged else next_due_at(tx, queues_for(tx, request.labels)))


def settle(tx: Tx, hooks: EngineHooks, ended: Sequence[Ended], *, node_id: int, now: Instant) -> SettleResult:
    """Settle the runs this node still holds; a run that another node took is left alone (L6). Equal endings are
    settled together, the others run by run. If all are equal and lead to nothing, their lanes are left to the
    caller."""
    closed, freed, caused = _settle_alike(tx, hooks, ended, node_id=node_id, now=now)
    if len(closed) == len(ended) and caused is NOTHING:
        return SettleResult([True] * len(ended), [], is_plain=True, lanes=freed)
    rest = [(claim.run, ending) for claim, ending in ended if claim.run_id not in closed]
    locked = lock_all(tx, hooks, [run for run, _ in rest])
    rows = _held(tx, rest, node_id)
    kinds = [
        OfKind(
            hooks.keepers[kind],
            kept,
            [(rows[run.run_id], ending) for run, ending in rest if run.kind == kind and run.run_id in rows],
        )
        for kind, kept in locked.items()
    ]
    alerts = conclude_all(tx, hooks, kinds, now=now, freed=freed, caused=caused)
    return SettleResult([claim.run_id in rows or claim.run_id in closed for claim, _ in ended], alerts)


def _settle_alike(
    tx: Tx, hooks: EngineHooks, ended: Sequence[Ended], *, node_id: int, now: Instant
) -> tuple[set[int], list[tuple[str, int]], Caused]:
    """Settle the endings that are equal (`core.schedule.plain`). Returns the runs it closed, the lanes they hold, and
    what they lead to. Only if all runs are of one kind: owners are locked kind by kind, before any run."""
    plain = [one for one in ended if one.claim.batch.is_first and is_plain_success(one.ending)]
    if not plain or len({claim.batch.kind for claim, _ in ended}) > 1:
        return set(), [], NOTHING
    said, paid = _said(tx, hooks, plain)
    alike = hooks.alike(tx, [claim for claim, _ in plain], said)
    if not alike.claims:
        return set(), [], NOTHING
    if len(alike.claims) < len(ended):
        lock_all(tx, hooks, [claim.run for claim, _ in ended])
    closed = tx.plain.settle(node_id, alike.claims, now=now, results=alike.results)
    in_lanes = [(lane, claim.run_id) for claim in alike.claims if (lane := claim.lane) is not None]
    effects = [effect for run_id, effect in alike.effects if run_id in closed]
    booked = [Booked(run, ending, Settled(SUCCESS)) for run, ending in paid if run.run_id in closed]
    freed = sorted(held for held in in_lanes if held[1] in closed)
    return closed, freed, Caused(effects, booked) if effects or booked else NOTHING


def _said(tx: Tx, hooks: EngineHooks, plain: Sequence[Ended]) -> tuple[dict[int, Ending], Sequence[tuple[Run, Ending]]]:
    """The endings that are more than done, by run id, with their costs and without secrets; and those of runs that cost
    something. What costs nothing has no price, so its row is not needed."""
    said = {claim.run_id: ending for claim, ending in plain if ending is not DONE}
    if not said:
        return said, ()
    paid = [(claim.run, said[claim.run_id]) for claim, _ in plain if getattr(said.get(claim.run_id), "usage", None)]
    paid = hooks.accounts.priced(tx, paid) if paid else paid
    said |= {run.run_id: ending for run, ending in paid}
    if (redact := hooks.redact) is not None:
        said = {run_id: masked(ending, redact) for run_id, ending in said.items()}
    return said, paid


def lock_all(tx: Tx, hooks: EngineHooks, runs: Sequence[Run]) -> dict[RunKind, Any]:
    """Lock the owners of these runs before any run: kind by kind, in the same order everywhere."""
    kinds = sorted({run.kind for run in runs})
    return {kind: hooks.keepers[kind].lock(tx, [run for run in runs if run.kind == kind]) for kind in kinds}


def conclude(
    tx: Tx, hooks: EngineHooks, keeper: RunKeeper, locked: Any, pairs: Sequence[tuple[Run, Ending]], *, now: Instant
) -> list[Alert]:
    """Conclude runs of one kind."""
    return conclude_all(tx, hooks, [OfKind(keeper, locked, pairs)], now=now)


def conclude_all(
    tx: Tx,
    hooks: EngineHooks,
    kinds: Sequence[OfKind],
    *,
    now: Instant,
    freed: Sequence[tuple[str, int]] = (),
    caused: Caused = NOTHING,
) -> list[Alert]:
    """Let the keepers decide, then write rows, attempts, alarms and lanes, and apply the effects. All keepers come
    before the first lane: they may lock further runs, and lanes are locked after all runs. `freed` are lanes of runs
    that were already settled, and `caused` is what those lead to."""
    kinds = [group._replace(pairs=_finished(tx, group.pairs, hooks)) for group in kinds]
    kinds = _with_cancel_requests(tx, kinds)
    pairs = [pair for group in kinds for pair in group.pairs]
    settled = [
        fate for keeper, locked, of_kind in kinds if of_kind for fate in keeper.settle(tx, locked, of_kind, now=now)
    ]
    rows: list[Run] = []
    done: list[Run] = []
    attempts: list[Attempt] = []
    alarms: list[Alarm] = []
    lanes = list(freed)
    silenced: list[int] = []
    merged: list[tuple[Run, Run]] = []
    for (run, _), decision in zip(pairs, settled, strict=True):
        is_stuck = False
        match decision.settlement:
            case Close() if decision.joins is not None:
                merged.append((run, decision.joins))
            case Close(stuck=is_stuck) as close:
                if close.outcome == "missed" or not close.has_begun:
                    rows.append(never_begun(run, close, now=now))
                else:
                    (rows if is_stuck else done).append(closed(run, close, now=now, result=decision.result))
                if run.outcome == "waiting":
                    silenced.append(run.run_id)
            case Wait(until=until) as wait:
                row = waiting(run, wait, result=decision.result)
                rows.append(row)
                if wait.is_attempt:
                    attempts.append(ended_attempt(run, wait, now=now))
                alarms.append(run_alarm(row, until))
        if run.lane is not None and not is_stuck:
            lanes.append((run.lane, run.run_id))
    if merged:
        tx.runs.save_many([into for _, into in merged], grown=[1] * len(merged))
        tx[MergedRuns].add_many([MergedRun(run.run_id, into.run_id) for run, into in merged])
        tx.runs.remove_many(sorted(run.run_id for run, _ in merged))
    if done:
        tx.runs.close_many(sorted(done))
    if rows:
        tx.runs.save_many(sorted(rows))
    if attempts:
        tx.runs.add_attempts(sorted(attempts))
    if alarms:
        tx.alarms.set_many(sorted(alarms, key=lambda alarm: alarm.ref))
    if silenced:
        tx.alarms.remove_many(ALARM_RUN, sorted(silenced))
    if lanes:
        tx.lanes.free_many(sorted(lanes))
    ended = [*caused.booked, *(Booked(*pair, fate) for pair, fate in zip(pairs, settled, strict=True))]
    booked = hooks.accounts.book(tx, ended, now=now)
    effects = [*caused.effects, *(effect for decision in settled for effect in decision.effects), *booked]
    return apply(tx, hooks, effects, now)


def _with_cancel_requests(tx: Tx, kinds: Sequence[OfKind]) -> Sequence[OfKind]:
    """A run that a person asked to cancel is not tried again, however its attempt ended."""
    unsuccessful = [run.run_id for group in kinds for run, ending in group.pairs if not isinstance(ending, Done)]
    requested = tx[Cancels].among(unsuccessful) if unsuccessful else {}
    if not requested:
        return kinds
    return [
        group._replace(
            pairs=[
                (run, with_cancel_request(ending) if run.run_id in requested else ending) for run, ending in group.pairs
            ]
        )
        for group in kinds
    ]


def _held(tx: Tx, ended: Sequence[tuple[Run, Ending]], node_id: int) -> dict[int, Run]:
    """The rows that are still ours under the fence of the claim."""
    running = {run.run_id: run.fence for run, ending in ended if not isinstance(ending, StuckRunEnded)}
    rows = tx.runs.held(node_id, running) if running else {}
    stuck = {run.run_id: run.fence for run, ending in ended if isinstance(ending, StuckRunEnded)}
    if stuck:
        for row in tx.runs.lock(sorted(stuck)).values():
            if row.stuck and row.owner == node_id and row.fence == stuck[row.run_id]:
                rows[row.run_id] = row
    return rows


def _finished(tx: Tx, pairs: Sequence[tuple[Run, Ending]], hooks: EngineHooks) -> list[tuple[Run, Ending]]:
    """The endings with the costs that the settings give, and without secrets."""
    redact, priced = hooks.redact, hooks.accounts.priced(tx, pairs)
    return priced if redact is None else [(run, masked(ending, redact)) for run, ending in priced]
