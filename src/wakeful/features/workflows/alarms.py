"""Handles workflow alarms: a session starts, continues or ends, and a handler runs.

A session of kind `schedule` runs the producers that were due when it started, `manual` all of them, `event` none; then
consumers run, the longest-waiting one first, until there is nothing to do or the session is full. One handler at a
time: while a run is open the alarm is off, and closing the run sets it again.
"""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, NamedTuple

from wakeful.core.run.runs import Outcome, Trigger, unplanned
from wakeful.core.run.transitions import planned
from wakeful.core.schedule.cadence import Gap
from wakeful.core.schedule.policies import GRACE
from wakeful.core.time.instants import Duration, Instant
from wakeful.core.time.timing import latest_until, next_after, tally
from wakeful.core.workflow.definition import Producer
from wakeful.core.workflow.rows import Handler, HandlerRun, Phase
from wakeful.core.workflow.rules import (
    CONSUMERS_MAX,
    WorkflowState,
    counted,
    due_producers,
    is_held,
    is_limited,
    is_startable,
    next_consumer,
)
from wakeful.engine.planning import add_gaps
from wakeful.features.workflows.clock_steps import taken, turned_back, untaken
from wakeful.features.workflows.compiled import Broken, Compilations, Compiled, Known
from wakeful.features.workflows.feeding import Loops
from wakeful.features.workflows.loading import ASKED_AGAIN
from wakeful.features.workflows.message_rows import Messages, SubscriptionKey
from wakeful.features.workflows.session_rows import Session, SessionKind, Sessions
from wakeful.features.workflows.state import (
    read_flows,
    save_flows,
    skipped_times,
    tell,
    touch,
    with_handler,
    with_workflow,
)
from wakeful.ports import events
from wakeful.ports.handler_runs import HandlerRunDetails
from wakeful.ports.handlers import Due, RingResult
from wakeful.ports.store import Tx
from wakeful.ports.workflows import ALARM_WORKFLOW, StoredWorkflows

PRODUCER: Final = "producer"
CONSUMER: Final = "consumer"


class _Step(NamedTuple):
    """The next step of one workflow: its state, and the handler to run."""

    flow: WorkflowState
    session: Session | None = None
    handler: Handler | None = None


class WorkflowAlarms:
    """Rings workflows."""

    kind = ALARM_WORKFLOW
    brings_runs = True

    def __init__(
        self, compilations: Compilations, loaded: Callable[[], Collection[str]], *, left_for: Duration
    ) -> None:
        self._compilations = compilations
        self._loaded = loaded  # the Python workflows of this process
        self._loops = Loops(compilations)
        self._left_for = left_for  # how long others are left alone, for the processes that have them

    def ring(self, tx: Tx, *, now: Instant, due_by: Instant, limit: int, late_max: int, gap_reason: str) -> RingResult:
        """Advance every workflow whose alarm was due by `due_by`, at most `limit` of them."""
        loaded = self._loaded()
        rung = tx[StoredWorkflows].due_here(now=due_by, left_by=due_by - self._left_for, loaded=loaded, limit=limit)
        if not rung:
            return RingResult((), 0)
        workflows = [workflow for workflow in rung if workflow.origin != "python" or workflow.name in loaded]
        others = [workflow for workflow in rung if workflow.origin == "python" and workflow.name not in loaded]
        if others:  # never claimed here: a process that has the functions takes them
            again_at = now + ASKED_AGAIN
            moves = [(workflow.workflow_id, again_at if is_startable(workflow) else None) for workflow in others]
            tx.alarms.move_many(ALARM_WORKFLOW, sorted(moves))
        if not workflows:
            return RingResult((), len(rung))
        flows = read_flows(tx, workflows)
        oldest = _by_workflow(tx[Messages].oldest(flows))
        sessions = tx[Sessions].among(
            [workflow.session_id for workflow in workflows if workflow.session_id is not None]
        )
        steps: list[_Step] = []
        for flow in flows.values():
            session = sessions.get(flow.workflow.session_id or 0)
            known = self._compilations.of(flow.workflow)
            steps.append(_begin(tx, flow, session, known, oldest.get(flow.workflow.workflow_id, {}), self._loops, now))
        starts = [self._start(tx, step, now, gap_reason) for step in steps]
        due, after = _runs(tx, [start for start in starts if isinstance(start, _Started)], now)
        after |= {start.flow.workflow.workflow_id: start.flow for start in starts if isinstance(start, _Step)}
        save_flows(tx, [(flows[key], after[key]) for key in flows], now)
        # An alarm that rang without effect is recomputed as well.
        touch(tx, [flow for key, flow in flows.items() if after[key] is flow], now)
        return RingResult(due, len(rung))

    def turn_back(self, tx: Tx, *, now: Instant, after_id: int, limit: int) -> int | None:
        """The clock was set back: replan from now what was planned in the future."""
        workflows = tx[StoredWorkflows].after(after_id, limit=limit)
        if not workflows:
            return None
        flows = read_flows(tx, workflows)
        pairs = [
            (flow, _turned_back_or_unchanged(tx, flow, self._compilations.of(flow.workflow), now))
            for flow in flows.values()
        ]
        save_flows(tx, pairs, now)
        return workflows[-1].workflow_id

    def recover(self, tx: Tx, *, now: Instant) -> None:
        """Workflows have no side tasks; the engine recovers the runs of dead nodes."""

    def _start(self, tx: Tx, step: _Step, now: Instant, gap_reason: str) -> "_Step | _Started":
        """How the run of a workflow's handler starts, if one does."""
        if step.handler is None:
            return step
        try:
            return _Started(step, _start(tx, step, self._compilations.of(step.flow.workflow), now, gap_reason))
        except Exception as error:  # a schedule that cannot be computed must not stop the others (L9)
            said = f"{step.handler.name}: its next time cannot be computed ({type(error).__name__}: {error})"
            return _Step(with_workflow(step.flow, error=said, error_at=now))


class _Start(NamedTuple):
    """How a handler's run starts."""

    planned_at: Instant
    due_at: Instant
    trigger: Trigger
    queued: int
    gaps: Sequence[Gap] = ()


class _Started(NamedTuple):
    """A new run of a handler."""

    step: _Step
    start: _Start


def _runs(tx: Tx, started: Sequence[_Started], now: Instant) -> tuple[list[Due], dict[int, WorkflowState]]:
    """The new runs, with the ledger rows of instants skipped before them."""
    skipped = [skipped_times(flow, handler.name, start.gaps) for (flow, _, handler), start in started if handler]
    add_gaps(tx, skipped, now=now)
    ids = iter(tx.runs.reserve_ids(len(started)))
    due: list[Due] = []
    rows: list[HandlerRun] = []
    after: dict[int, WorkflowState] = {}
    for (flow, session, handler), start in started:
        if session is None or handler is None:  # only new runs are here
            continue
        workflow = flow.workflow
        run_id = next(ids)
        run = planned(
            run_id=run_id,
            kind=handler.kind,
            schedule_id=workflow.owner_id,
            version=workflow.version,
            planned_at=start.planned_at,
            due_at=start.due_at,
            trigger=start.trigger,
            lane=None,  # the workflow's own row acts as the lane: one open run
        )
        due.append(Due(run._replace(occurrence=unplanned(run_id, start.planned_at))))
        rows.append(_handler_run(run_id, flow, session, handler, start.queued, now))
        ran_through = max(handler.ran_through, start.planned_at) if handler.kind == PRODUCER else 0
        begins = handler._replace(last_run_id=run_id, last_run_at=now, ran_through=ran_through)
        after[workflow.workflow_id] = with_workflow(with_handler(flow, begins), open_run_id=run_id)
    if rows:
        tx[HandlerRunDetails].add_many(rows)
        tx[Sessions].save_many([run.step.session for run in started if run.step.session is not None])
    return due, after


def _begin(
    tx: Tx,
    flow: WorkflowState,
    session: Session | None,
    known: Known,
    oldest: Mapping[tuple[str, str], Instant],
    loops: Loops,
    now: Instant,
) -> _Step:
    """The next step of one workflow."""
    if not is_startable(flow.workflow):
        return _Step(flow)
    if isinstance(known, Broken):
        return _Step(with_workflow(flow, error=f"its definition cannot be read: {known.reason}", error_at=now))
    if session is not None:
        going_on = _next_in(tx, flow, session, known, oldest, loops, now)
        if going_on is not None:
            return going_on
        tx[Sessions].save_many([session._replace(ended_at=now, result="completed")])
        flow = with_workflow(flow, session_id=None)
    due = due_producers(flow, now)
    kind: SessionKind = "schedule" if due else "event"
    if not due and next_consumer(flow, oldest, now) is None:
        return _Step(flow)
    flow, session = open_session(tx, flow, kind, due, now)
    step = _next_in(tx, flow, session, known, oldest, loops, now)
    return _Step(flow) if step is None else step


def _next_in(
    tx: Tx,
    flow: WorkflowState,
    session: Session,
    known: Compiled,
    oldest: Mapping[tuple[str, str], Instant],
    loops: Loops,
    now: Instant,
) -> _Step | None:
    """The handler that runs next in a session; None if the session is over."""
    left: list[str] = json.loads(session.producers_left)
    while left:
        name = left.pop(0)
        # A handler in backoff is tried later; an unknown one was removed by a newer definition.
        if name in flow.handlers and not is_held(flow.handlers[name], now):
            return _Step(flow, session._replace(producers_left=json.dumps(left)), flow.handlers[name])
    if session.consumers_run >= CONSUMERS_MAX:
        return None
    consumer = next_consumer(flow, oldest, now)
    if consumer is None:
        return None
    shared = loops.through(tx, flow.workflow, now=now).get(consumer, 0)
    if shared or consumer in known.looping:
        flow = _counted(tx, flow, consumer, max(1, shared), now)
    session = session._replace(producers_left="[]", consumers_run=session.consumers_run + 1)
    return _Step(flow, session, flow.handlers[consumer])


def _counted(tx: Tx, flow: WorkflowState, consumer: str, shares: int, now: Instant) -> WorkflowState:
    """Count a run of a consumer whose messages may lead back to it: after too many in a minute it waits."""
    flow = flow._replace(workflow=counted(flow.workflow, now, shares=shares))
    if is_limited(flow.workflow, now):
        runs = flow.workflow.window_runs
        said = (
            f"{consumer} publishes to a topic that leads back to it, and ran {runs} times within a minute; consumers "
            "wait until the minute is over"
        )
        tell(tx, flow.workflow, events.WORKFLOW_LIMITED, said, level="warn", handler=consumer)
    return flow


def open_session(
    tx: Tx, flow: WorkflowState, kind: SessionKind, producers: Sequence[str], now: Instant
) -> tuple[WorkflowState, Session]:
    """Start a session."""
    left = json.dumps(list(producers))
    session_id = tx[Sessions].start(flow.workflow.workflow_id, kind, producers_left=left, now=now)
    tell(tx, flow.workflow, events.WORKFLOW_SESSION_STARTED, session_id=session_id, kind=kind)
    session = Session(session_id, flow.workflow.workflow_id, kind, now, None, None, None, left, 0)
    return with_workflow(flow, session_id=session_id), session


def _start(tx: Tx, step: _Step, known: Known, now: Instant, gap_reason: str) -> _Start:
    """When the run was planned, and which times were skipped before it."""
    flow, session, handler = step
    if handler is None or session is None:
        raise AssertionError("no handler to start")
    if handler.kind == CONSUMER:
        since = handler.wake_at if handler.wake_at is not None and handler.wake_at <= now else now
        return _Start(since, since, "wake", 0)
    due_at = handler.next_at
    if due_at is None or due_at > now or isinstance(known, Broken):
        return _Start(now, now, "manual", 0)
    trigger: Trigger = "manual" if session.kind == "manual" else "schedule"
    freed_at = flow.workflow.freed_at
    was_busy = freed_at is not None and freed_at > due_at and not handler.tries
    queued = now - due_at if was_busy else 0
    producer = known.handlers[handler.name]
    if not isinstance(producer, Producer):
        return _Start(due_at, due_at, trigger, queued)
    ran = taken(tx, flow, handler, since=due_at, until=now)
    latest = latest_until(producer.timing, now, due_at)
    while latest is not None and latest in ran:
        latest = latest_until(producer.timing, latest - 1, due_at)
    latest = due_at if latest is None else latest
    if now - latest > GRACE and not (was_busy or handler.tries or trigger == "manual"):
        trigger = "catchUp"
    if latest == due_at:
        return _Start(due_at, due_at, trigger, queued)
    # Several times are due: one run, planned for the latest, serves them all; the others are counted in one row.
    gap = _skipped_times(producer, handler, latest, ("skipped", "coalesced") if was_busy else ("missed", gap_reason))
    return _Start(latest, latest, trigger, queued, () if gap is None else untaken(gap, ran, producer.timing))


def _skipped_times(producer: Producer, handler: Handler, latest: Instant, why: tuple[Outcome, str]) -> Gap | None:
    """The times from the one that was due to the last one before the latest; if the producer could not be reached, the
    first of them has its own run."""
    first = handler.next_at or latest
    instants = tally(producer.timing, first, latest).count
    if handler.tries and handler.ran_through <= first:
        first, instants, why = next_after(producer.timing, first) or latest, instants - 1, ("skipped", "backoff")
    last = latest_until(producer.timing, latest - 1, first) or first
    return Gap(first, last, instants, *why) if instants > 0 else None


def _handler_run(
    run_id: int, flow: WorkflowState, session: Session, handler: Handler, queued: int, now: Instant
) -> HandlerRun:
    phase: Phase = "executing" if handler.kind == PRODUCER else "preparing"
    phases = json.dumps({phase: now}, separators=(",", ":"))
    return HandlerRun(
        run_id, flow.workflow.workflow_id, session.session_id, handler.name, handler.kind, phase, phases,
        None, None, None, 0, 0, 0, queued, None, 0,
    )  # fmt: skip


def _turned_back_or_unchanged(tx: Tx, flow: WorkflowState, known: Known, now: Instant) -> WorkflowState:
    try:
        return turned_back(tx, flow, known, now)
    except Exception:  # reported when it rings; the others must not be affected (L9)
        return flow


def _by_workflow(oldest: Mapping[SubscriptionKey, Instant]) -> dict[int, dict[tuple[str, str], Instant]]:
    by_workflow: dict[int, dict[tuple[str, str], Instant]] = {}
    for (workflow_id, topic, consumer), since in oldest.items():
        by_workflow.setdefault(workflow_id, {})[topic, consumer] = since
    return by_workflow
