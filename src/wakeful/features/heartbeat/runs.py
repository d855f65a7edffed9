"""Manages turns: what to prompt, what a reply means, and what happens to the events a turn carried."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from wakeful.core.heartbeat.acknowledgement import judge
from wakeful.core.heartbeat.heartbeat import Heartbeat, after_turn, timing_of, without_turn
from wakeful.core.run.effects import Deliver, Effect, Observed, Prove
from wakeful.core.run.results import Busy, Done, Ending, kept_of, kept_while_waiting, session_of
from wakeful.core.run.runs import ERRORS, NOT_RUN, Run
from wakeful.core.run.settlement import Close, Policy, Settlement, Wait, after_attempt, after_close
from wakeful.core.schedule.cadence import Cadence, Rules, in_session
from wakeful.core.schedule.definition import DeliverTo
from wakeful.core.schedule.gates import Defer, Skip
from wakeful.core.schedule.policies import BUSY_WAITS_MAX, NO_RETRY, ladder_delay
from wakeful.core.schedule.pre_check import CHECK_FAILED, CHECK_TIMEOUT, NOTHING_TO_DO
from wakeful.core.time.instants import Instant
from wakeful.core.time.timing import next_after
from wakeful.features.heartbeat.action import HeartbeatTurn, NothingToDo
from wakeful.features.heartbeat.agent_runs import NO_AGENT, AgentRuns
from wakeful.features.heartbeat.rules import HEARTBEAT, TURN, HeartbeatTerms
from wakeful.features.heartbeat.state import save
from wakeful.ports import events
from wakeful.ports.event_data import Acknowledged, Turned
from wakeful.ports.handlers import Job, RunAgent, Settled
from wakeful.ports.heartbeats import Heartbeats, WaitingEvents
from wakeful.ports.store import Report, Tx

NO_REPLY: Final = "no-reply"
"""The reason of a turn whose reply could not be read."""
_RETRIES_MAX: Final = 200  # how many failed turns in a row a retry is traced back through
_LOOK_BACK: Final = 50  # rows searched for the previous turn; skipped beats lie between
# A failed turn requests another one by its own wake, and the heartbeat is never disabled.
_POLICY: Final = Policy(NO_RETRY, "retry", 0, None)


class Locked(NamedTuple):
    """The locked rows that turns belong to."""

    heartbeats: dict[int, Heartbeat]
    cadences: dict[int, Cadence]


class TurnRuns(AgentRuns):
    """Manages the heartbeat's turns."""

    kind = TURN
    admits_without_locks = False  # it marks the system events that the turn carries

    def lock(self, tx: Tx, runs: Sequence[Run]) -> Locked:
        owners = {run.schedule_id for run in runs}
        return Locked(tx[Heartbeats].lock(owners), tx.cadences.lock(owners))

    def admit(self, tx: Tx, runs: Sequence[Run], *, now: Instant) -> list[Job | Defer | Skip | str]:
        return [self._job(tx, run) for run in runs]

    def jobs(self, tx: Tx, runs: Sequence[Run]) -> list[Job | str]:
        return [self._job(tx, run) for run in runs]

    def settle(self, tx: Tx, locked: Locked, ended: Sequence[tuple[Run, Ending]], *, now: Instant) -> list[Settled]:
        return [self._settle(tx, locked, run, ending, now) for run, ending in ended]

    def agent_of(self, tx: Tx, run: Run) -> RunAgent:
        return RunAgent(_kept(run).get("agent", self._terms().agent), DeliverTo("last"))

    def _job(self, tx: Tx, run: Run) -> Job | str:
        if not self._has_agents:
            return NO_AGENT
        terms, kept = self._terms(), _kept(run)
        # Marked in the claiming transaction; a run inspected while it is running already has its events.
        is_under_way = run.outcome != "waiting"
        events = tx[WaitingEvents].carried(run.run_id) if is_under_way else tx[WaitingEvents].carry(run.run_id)
        agent, reasons = kept.get("agent", terms.agent), tuple(kept["reasons"])
        spec = HeartbeatTurn(agent, terms.prompt, tuple(events), reasons, terms.ack, terms.session_config, terms.check)
        timeout = terms.timeout + (CHECK_TIMEOUT if spec.is_checked else 0)
        return Job(spec, self._fire(run, HEARTBEAT), timeout, "retry")

    def _settle(self, tx: Tx, locked: Locked, run: Run, ending: Ending, now: Instant) -> Settled:
        terms = self._terms()
        agent = _kept(run).get("agent", terms.agent)
        heartbeat, cadence = locked.heartbeats[run.schedule_id], locked.cadences[run.schedule_id]
        settlement = _after_attempt(tx, run, ending, now)
        if isinstance(settlement, Wait):
            return Settled(settlement, result=kept_while_waiting(ending, earlier=run.result), agent=agent)
        said: tuple[Effect, ...] = ()
        if settlement.outcome == "succeeded":
            carried = _acknowledged(tx, run)
            settlement, said = _judged(run, ending, settlement, terms, carried, _inherited_reasons(tx, run))
        cadence, effects = after_close(cadence, Rules(timing_of(heartbeat)), _POLICY, run, settlement, now=now)
        if _kept(run)["reasons"] == ["retry"]:
            effects = tuple(map(_of_the_same_instant, effects))
        cadence = cadence._replace(backoff_until=None)  # beats keep their grid; a retry is requested separately
        if _kept(run).get("agent") == terms.agent:  # else the session belongs to another agent
            cadence = in_session(cadence, session_of(ending), self._node)
        is_failed = settlement.outcome in ERRORS and not settlement.is_cancelled
        before = _row_before(tx, run, ending, settlement, heartbeat)
        if before is not None and cadence.last_row_id == run.run_id:
            cadence = cadence._replace(last_row_id=before.run_id)
        if settlement.reason in (NOTHING_TO_DO, CHECK_FAILED):
            heartbeat = without_turn(heartbeat)
        elif run.is_open:
            asks_again = is_failed and cadence.state != "paused"
            heartbeat = after_turn(heartbeat, cadence.consecutive_errors, is_failed=asks_again, now=now)
        save(tx, heartbeat, locked.cadences[run.schedule_id], cadence, terms.beats, now=now)
        locked.heartbeats[run.schedule_id], locked.cadences[run.schedule_id] = heartbeat, cadence
        _report(tx, run, settlement)
        kept = kept_of(ending, earlier=run.result, is_late=not run.is_open)
        return Settled(settlement, effects + said, kept, agent, joins=before)


def _row_before(tx: Tx, run: Run, ending: Ending, close: Close, heartbeat: Heartbeat) -> Run | None:
    """The row that a beat with nothing to do joins: the row right before it, skipped for the same reason."""
    nothing = ending.carries if isinstance(ending, Done) else None
    if not isinstance(nothing, NothingToDo) or not nothing.is_checked or run.attempt > 1:
        return None
    for row in tx.runs.page(schedule_id=run.schedule_id, before_id=run.run_id, limit=1):
        last = row.planned_until or row.planned_at
        is_same = (row.outcome, row.reason, row.version) == ("skipped", close.reason, run.version)
        if is_same and next_after(timing_of(heartbeat), last) == run.planned_at:
            locked = tx.runs.lock([row.run_id]).get(row.run_id)
            if locked is not None:
                return locked._replace(planned_until=run.planned_at, instants=locked.instants + 1, error=close.error)
    return None


def _of_the_same_instant(effect: Effect) -> Effect:
    """The effect of a retry's failure: a retry right after the failed turn is another attempt, not another bad
    instant."""
    return replace(effect, counts="never") if isinstance(effect, Observed) and not effect.is_good else effect


def _after_attempt(tx: Tx, run: Run, ending: Ending, now: Instant) -> Settlement:
    if isinstance(ending, Done) and isinstance(ending.carries, NothingToDo):
        error = ending.carries.error
        return Close("skipped", run.rung, error, CHECK_FAILED if error else NOTHING_TO_DO, is_counted=False)
    if not isinstance(ending, Busy):
        return after_attempt(run, _POLICY, ending, now=now, next_due_at=None)
    if _kept(run)["reasons"] == ["interval"] and not tx[WaitingEvents].carried(run.run_id):  # the next beat will do
        return Close("skipped", run.rung, ending.error, "busy", is_counted=False)
    if run.waits >= BUSY_WAITS_MAX:
        return Close("failed", run.rung, ending.error, "busy", is_counted=False)
    return Wait(now + ladder_delay(run.waits + 1), "busy", "busy", run.rung, ending.error, is_busy=True)


def _judged(
    run: Run,
    ending: Ending,
    close: Close,
    terms: HeartbeatTerms,
    carried: Sequence[int | None],
    reasons: frozenset[str],
) -> tuple[Close, tuple[Effect, ...]]:
    """What the reply means, for people and for the runs whose events it carried. An unreadable reply is not an empty
    one: its content is unknown."""
    waiting = tuple(run_id for run_id in carried if run_id is not None)
    reply = ending.reply if isinstance(ending, Done) else None
    if reply is None:
        return close._replace(reason=NO_REPLY), tuple(Prove(run_id) for run_id in waiting)
    judged = judge(reply, terms.ack)
    proven = tuple(Prove(run_id, reply=judged.text or "") for run_id in waiting)
    close = close._replace(reason=judged.verdict)
    if judged.text is None:
        return close, proven
    # A turn only for schedules' events belongs to them: schedules with their own channel get the reply on it.
    is_theirs = reasons == {"cron"} and len(waiting) == len(carried)
    unless_told = waiting if is_theirs else ()
    return close, (*proven, Deliver(judged.text, run_id=run.run_id, slug=HEARTBEAT, unless_told=unless_told))


def _inherited_reasons(tx: Tx, run: Run) -> frozenset[str]:
    """Why the turn ran. A retry inherits the reasons of the failed turns before it."""
    reasons = set(_kept(run)["reasons"])
    for _ in range(_RETRIES_MAX):
        if "retry" not in reasons:
            break
        reasons.discard("retry")
        earlier = tx.runs.page(schedule_id=run.schedule_id, before_id=run.run_id, limit=_LOOK_BACK)
        before = next((row for row in earlier if row.outcome not in NOT_RUN), None)
        if before is None or before.outcome not in ERRORS:
            break
        run = before
        reasons |= set(_kept(run)["reasons"])
    return frozenset(reasons)


def _acknowledged(tx: Tx, run: Run) -> list[int | None]:
    """Mark the turn's events as delivered; returns the runs that waited for them, None where none did."""
    carried = tx[WaitingEvents].carried(run.run_id)
    if carried:
        tx[WaitingEvents].remove_many([event.event_id for event in carried])
        heard = Acknowledged(run.run_id, [event.event_id for event in carried])
        tx.report(Report(events.EVENT_ACKNOWLEDGED, heard))
    return [event.run_id for event in carried]


def _report(tx: Tx, run: Run, close: Close) -> None:
    status = close.reason if close.outcome == "succeeded" else close.outcome
    kept = _kept(run)
    data = Turned(run.run_id, status, kept.get("reason"), kept["reasons"])
    tx.report(Report(events.HEARTBEAT_TURNED, data, slug=HEARTBEAT))


def _kept(run: Run) -> Mapping[str, Any]:
    kept: Mapping[str, Any] = {"reasons": []} if run.definition is None else json.loads(run.definition)
    return kept
