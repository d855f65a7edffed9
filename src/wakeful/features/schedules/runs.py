"""Manages the runs of schedules: what to perform, and what a result means for the schedule."""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from wakeful.core.run.effects import Effect, QuotaReached
from wakeful.core.run.results import (
    DONE,
    Cancelled,
    Done,
    Ending,
    Failed,
    HandedOver,
    Throttled,
    kept_of,
    kept_while_waiting,
    session_of,
)
from wakeful.core.run.runs import Run
from wakeful.core.run.settlement import Close, Policy, Wait, after_attempt, after_close, release, settle
from wakeful.core.run.transitions import closed
from wakeful.core.schedule.actions import Prompt
from wakeful.core.schedule.cadence import Cadence, in_session, is_turned
from wakeful.core.schedule.gates import Decision, Defer, Skip
from wakeful.core.schedule.lateness import CAPACITY, begins_too_late, waited_for
from wakeful.core.schedule.plain import SUCCESS
from wakeful.core.schedule.policies import NO_RETRY
from wakeful.core.time.instants import MINUTE, Duration, Instant
from wakeful.features.schedules.alarms import rings_at
from wakeful.features.schedules.checking import after_check, row_before
from wakeful.features.schedules.compiled import KIND, Broken, Compilations, Compiled, agent_of, read_stored
from wakeful.features.schedules.jobs import Jobs
from wakeful.features.schedules.labels import gap_reason_of
from wakeful.features.schedules.replies import reply_of, with_words
from wakeful.features.schedules.withdrawing import with_event_withdrawn
from wakeful.ports.claims import Claim
from wakeful.ports.handlers import Alike, Gate, Job, RunAgent, Settled
from wakeful.ports.ownerships import Ownerships
from wakeful.ports.store import ALARM_RUN, ALARM_SCHEDULE, StoreUnavailable, Tx, run_alarm

log = logging.getLogger("wakeful.schedules")


class ScheduleRuns:
    """Manages the runs of schedules."""

    kind = KIND
    admits_without_locks = True

    def __init__(
        self,
        compilations: Compilations,
        jobs: Jobs,
        *,
        gates: Sequence[Gate] = (),
        node: str | None = None,
        interval: Callable[[], Duration] = lambda: 0,
    ) -> None:
        self._interval = interval  # the minimum between two turns of a schedule with a check
        self._compilations = compilations
        self._jobs = jobs
        self._gates = gates
        self._node = node  # the name of this node

    def lock(self, tx: Tx, runs: Sequence[Run]) -> dict[int, Cadence]:
        return tx.cadences.lock({run.schedule_id for run in runs})

    def admit(self, tx: Tx, runs: Sequence[Run], *, now: Instant) -> list[Job | Defer | Skip | str]:
        compiled = self._compiled(tx, runs)
        return [
            _too_late(tx, run, own, now) or self._held_back(tx, run, now) or self._jobs.of(run, own)
            for run, own in ((run, compiled[run.run_id]) for run in runs)
        ]

    def jobs(self, tx: Tx, runs: Sequence[Run]) -> list[Job | str]:
        compiled = self._compiled(tx, runs)
        return [self._jobs.of(run, compiled[run.run_id]) for run in runs]

    def settle(
        self, tx: Tx, locked: Mapping[int, Cadence], ended: Sequence[tuple[Run, Ending]], *, now: Instant
    ) -> list[Settled]:
        runs = [run for run, _ in ended]
        ended = [
            (run, with_event_withdrawn(tx, run, ending) if isinstance(ending, Cancelled) else ending)
            for run, ending in ended
        ]
        own = self._compiled(tx, runs)
        current = self._compilations.of(tx, {(c.schedule_id, c.version) for c in locked.values()})
        cadences = dict(locked)
        settled: list[Settled] = []
        promoted: list[int] = []
        given_up: dict[int, str] = {}
        for run, ending in ended:
            cadence, compiled = cadences.get(run.schedule_id), current.get(run.schedule_id)
            result, moved = self._settle_one(tx, run, ending, own[run.run_id], cadence, compiled, now)
            settled.append(result._replace(agent=_asked(own[run.run_id])))
            if cadence is not None and moved is not None:
                if moved.open_run_id is not None and moved.open_run_id == cadence.queued_run_id:
                    if moved.state == "active":
                        promoted.append(moved.open_run_id)
                    else:  # this result disabled the schedule
                        given_up[moved.open_run_id] = moved.state
                        moved = moved._replace(open_run_id=None)
                cadences[run.schedule_id] = moved
        self._save(tx, locked, cadences, current)
        if promoted:
            _wake_queued(tx, promoted, now)
        if given_up:
            _skip_queued(tx, given_up, now)
        return settled

    def agent_of(self, tx: Tx, run: Run) -> RunAgent:
        owner = tx[Ownerships].among([run.schedule_id]).get(run.schedule_id)
        depth, compiled = 0 if owner is None else owner.depth, self._compilations.of_run(tx, run)
        if not isinstance(compiled, Compiled):
            return RunAgent(None if owner is None else owner.owner, None, depth, is_turn=False)
        definition = compiled.definition
        if isinstance(definition.action, Prompt):
            return RunAgent(definition.action.agent, definition.deliver, depth)
        return RunAgent(None if owner is None else owner.owner, definition.deliver, depth, is_turn=False)

    def _settle_one(
        self,
        tx: Tx,
        run: Run,
        ending: Ending,
        own: Compiled | Broken,
        cadence: Cadence | None,
        current: Compiled | Broken | None,
        now: Instant,
    ) -> tuple[Settled, Cadence | None]:
        if not isinstance(own, Compiled) or own.model.check is None or cadence is None:
            return _settle(run, ending, own, cadence, current, self._node, now)
        checked = after_check(run, ending, own, cadence, interval=self._interval(), now=now)
        if checked is None or not isinstance(current, Compiled):
            return _settle(run, ending, own, cadence, current, self._node, now)
        settlement = checked.settlement
        if isinstance(settlement, Wait):
            if cadence.state == "active" or run.trigger == "manual":
                return Settled(settlement, result=checked.result), cadence
            settlement = Close("skipped", None, None, cadence.state)
        moved, effects = after_close(cadence, current.rules, current.policy, run, settlement, now=now)
        before = row_before(tx, run, settlement, own)
        if before is not None and moved.last_row_id == run.run_id:
            moved = moved._replace(last_row_id=before.run_id)
        return Settled(settlement, effects, joins=before), moved

    def alike(self, tx: Tx, claims: Sequence[Claim], said: Mapping[int, Ending]) -> Alike:
        """See `ports.handlers.DecideAlike`."""
        one_of = {claim.batch: claim for claim in claims}
        if any(batch.kind != KIND for batch in one_of):
            return Alike()
        if not all(batch.is_plain for batch in one_of):
            own = self._plain(tx, claims)
            claims = [claim for claim in claims if claim.batch.is_plain or claim.run_id in own]
        replying = {batch for batch, claim in one_of.items() if not batch.is_plain or claim.compiled.model.deliver}
        if not said and not replying:
            return Alike(claims)
        results: dict[int, str] = {}
        effects: list[tuple[int, Effect]] = []
        for claim in claims:
            run_id, suppressed = claim.run_id, None
            ending = said.get(run_id, DONE)
            if claim.batch in replying:
                compiled = claim.compiled if claim.batch.is_plain else own[run_id]
                replies, suppressed = reply_of(run_id, ending, compiled, SUCCESS)
                effects += [(run_id, effect) for effect in replies]
            kept = kept_of(ending, suppressed=suppressed)
            if kept is not None:
                results[run_id] = kept
        return Alike(claims, results, effects)

    def _plain(self, tx: Tx, claims: Sequence[Claim]) -> dict[int, Compiled]:
        """The plain definitions of the runs among these that were decided by themselves, by run id."""
        alone = [claim for claim in claims if not claim.batch.is_plain]
        if not alone:
            return {}
        compiled = self._compilations.of(tx, [(claim.schedule_id, claim.batch.version) for claim in alone])
        known = [(claim, compiled.get(claim.schedule_id)) for claim in alone]
        return {
            claim.run_id: own
            for claim, own in known
            if isinstance(own, Compiled) and own.starts_plainly and own.version == claim.batch.version
        }

    def _held_back(self, tx: Tx, run: Run, now: Instant) -> Decision:
        """The decision of the first gate that does not admit the run."""
        for gate in self._gates:
            try:
                decision = gate(tx, run, now)
            except StoreUnavailable:
                raise
            except Exception as error:  # a failing gate must not stop other runs (L9)
                log.exception("a gate raised for run %d", run.run_id)
                return Defer(now + MINUTE, f"a gate failed: {type(error).__name__}: {error}")
            if decision is not None:
                return decision
        return None

    def _compiled(self, tx: Tx, runs: Sequence[Run]) -> dict[int, Compiled | Broken]:
        """The definition each run started with: its own copy if the schedule was edited meanwhile."""
        shared = self._compilations.of(tx, {(r.schedule_id, r.version) for r in runs if r.definition is None})
        gone = Broken(0, 0, "its schedule was removed")
        return {
            run.run_id: shared.get(run.schedule_id, gone)
            if run.definition is None
            else read_stored(run.schedule_id, run.version, run.definition)
            for run in runs
        }

    def _save(
        self,
        tx: Tx,
        before: Mapping[int, Cadence],
        after: Mapping[int, Cadence],
        compiled: Mapping[int, Compiled | Broken],
    ) -> None:
        changed = [after[key] for key in sorted(after) if after[key] is not before[key]]
        if not changed:
            return
        # A session starts once and lasts long: the node that started it is not written with every settlement.
        begun = [cadence for cadence in changed if cadence.session_node != before[cadence.schedule_id].session_node]
        # Settling never resumes a schedule, so most rows need no second look.
        turned = [
            cadence
            for cadence in changed
            if cadence.state != "active" and is_turned(before[cadence.schedule_id], cadence)
        ]
        tx.cadences.save_settled(changed, turned=turned)
        if begun:
            tx.cadences.save_many(begun)
        moves = [
            (cadence.schedule_id, rings_at(cadence, known))
            for cadence in changed
            if (known := compiled.get(cadence.schedule_id)) is not None
            and rings_at(before[cadence.schedule_id], known) != rings_at(cadence, known)
        ]
        if moves:
            tx.alarms.move_many(ALARM_SCHEDULE, moves)


def _too_late(tx: Tx, run: Run, own: Compiled | Broken, now: Instant) -> Skip | None:
    """What becomes of a run that waited longer than its schedule allows. It is missed for what it waited for."""
    if isinstance(own, Broken) or own.rules.lateness_max is None or not begins_too_late(run, own.rules, now):
        return None
    reason = waited_for(run)
    if reason == CAPACITY and run.run_on is not None:
        reason = gap_reason_of(tx, run.run_on, run.due_at, reason)
    return Skip(reason, outcome="missed")


def _asked(own: Compiled | Broken) -> str | None:
    return agent_of(own) if isinstance(own, Compiled) else None


def _settle(
    run: Run,
    ending: Ending,
    own: Compiled | Broken,
    cadence: Cadence | None,
    current: Compiled | Broken | None,
    node: str | None,
    now: Instant,
) -> tuple[Settled, Cadence | None]:
    """Settle one run under the definition it started with; its schedule advances under the current one."""
    if isinstance(own, Compiled):
        ending = with_words(ending, own.model)
    if isinstance(own, Broken) or cadence is None or not isinstance(current, Compiled):
        return _settle_alone(run, ending, own, cadence, now)
    rules, policy = current.rules, current.policy
    settlement, moved, effects = settle(run, own.policy, ending, cadence, rules, policy, now=now)
    if agent_of(own) == agent_of(current):  # else the schedule switched to another agent meanwhile
        moved = in_session(moved, session_of(ending), node)
    if isinstance(ending, Done | HandedOver):
        effects += ending.effects
    if isinstance(ending, Throttled) and ending.reason == "quota" and own.model.slot is not None:
        effects += (QuotaReached(own.model.slot, ending.until),)
    if not isinstance(settlement, Close):
        return Settled(settlement, effects, kept_while_waiting(ending, earlier=run.result)), moved
    reply = reply_of(run.run_id, ending, own, settlement)
    kept = kept_of(ending, earlier=run.result, is_late=not run.is_open, suppressed=reply.suppressed)
    return Settled(settlement, effects + reply.effects, kept), moved


def _settle_alone(
    run: Run, ending: Ending, own: Compiled | Broken, cadence: Cadence | None, now: Instant
) -> tuple[Settled, Cadence | None]:
    """Settle a run whose schedule was removed or is unreadable; nothing is planned."""
    policy = _UNREADABLE if isinstance(own, Broken) else own.policy
    settlement = after_attempt(run, policy, ending, now=now, next_due_at=None)
    if isinstance(own, Broken) and isinstance(settlement, Close) and isinstance(ending, Failed):
        settlement = settlement._replace(reason="invalid")
    if cadence is not None and isinstance(settlement, Close):
        cadence = release(cadence, run, settlement)
    reply = reply_of(run.run_id, ending, own, settlement)
    kept = kept_of(ending, earlier=run.result, is_late=not run.is_open, suppressed=reply.suppressed)
    return Settled(settlement, reply.effects, kept), cadence


# Settlement rules for a run whose definition can no longer be read: no retries.
_UNREADABLE: Final = Policy(NO_RETRY, "unknown", 0, None)


def _wake_queued(tx: Tx, run_ids: Sequence[int], now: Instant) -> None:
    """Make the run queued behind the closed one due now."""
    alarms = [
        run_alarm(run, max(run.due_at, now))
        for run in sorted(tx.runs.lock(run_ids).values())
        if run.outcome == "waiting"
    ]
    tx.alarms.set_many(alarms)


def _skip_queued(tx: Tx, run_ids: Mapping[int, str], now: Instant) -> None:
    """Skip the run queued behind the closed one: its schedule was just halted."""
    rows = [run for run in sorted(tx.runs.lock(sorted(run_ids)).values()) if run.outcome == "waiting"]
    halted = [closed(run, Close("skipped", run.rung, None, run_ids[run.run_id]), now=now, result=None) for run in rows]
    tx.runs.save_many(halted)
    tx.alarms.remove_many(ALARM_RUN, [run.run_id for run in rows])
