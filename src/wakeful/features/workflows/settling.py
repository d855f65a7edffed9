"""Settles a handler's run after an attempt, depending on the phase it reached.

Theory of operation
-------------------
The stored phase says what may have happened outside. Before `mutating` nothing has: whatever went wrong, reservations
are released and the next run starts fresh. At `mutated` the side effect is done: the next attempt resumes at `next`,
and the reservations stay. In between it is uncertain, unless the handler itself said that it did nothing: the run
waits for a person and is never repeated automatically.

A handler that cannot be reached, or asks to be retried later, is retried with growing backoff, without limit: its run
closes as failed(transient), and the other handlers continue. Only after its side effect a run stays open for it. Only
a wrong response stops a workflow.

A run that waits for a person stays open, so that nothing else in its workflow starts; `awaits` says what is to be
decided, and the workflow's error says it in words.
"""

import json
from typing import NamedTuple, assert_never

from wakeful.core.delivery.incidents import GOOD_USUAL, good_needed, handler_incident, stop_incident
from wakeful.core.run.effects import Alert, Counts, Effect, Observed
from wakeful.core.run.results import (
    Busy,
    Cancelled,
    Done,
    Dropped,
    Ending,
    Failed,
    Forgotten,
    HandedOver,
    Interrupted,
    Lost,
    NotBegun,
    StuckRunEnded,
    Throttled,
    TimedOut,
    Unconfirmed,
    Unproven,
    kept_while_waiting,
)
from wakeful.core.run.runs import Run
from wakeful.core.run.settlement import CANCELLED, Close, Settlement, Wait, after_cancel, not_begun
from wakeful.core.schedule.cadence import Gap
from wakeful.core.schedule.policies import BUSY_WAITS_MAX
from wakeful.core.time.instants import Instant
from wakeful.core.time.timing import tally
from wakeful.core.workflow.answers import Published
from wakeful.core.workflow.definition import Producer
from wakeful.core.workflow.pages import with_page
from wakeful.core.workflow.rows import FOLLOWING, Handler, HandlerRun, Phase
from wakeful.core.workflow.rules import CRASHES_MAX, HELD_MAX, WorkflowState, backoff
from wakeful.engine.planning import add_gaps
from wakeful.features.workflows.clock_steps import following, taken, untaken
from wakeful.features.workflows.compiled import Broken, Known
from wakeful.features.workflows.message_rows import Messages
from wakeful.features.workflows.publishing import publish
from wakeful.features.workflows.state import (
    end_session,
    reached,
    release,
    settle_messages,
    skipped_times,
    tell,
    with_handler,
    with_workflow,
)
from wakeful.ports import events
from wakeful.ports.handlers import Settled
from wakeful.ports.store import Tx

UNCERTAIN = "uncertain"
STOPPED = "stopped"
TRANSIENT = "transient"
RESOLVE = "say what happened: resolve it as retry, didNotHappen or skip"
RESUME = "fix the cause and resume the workflow"


class Fate(NamedTuple):
    """The settlement of one run, and the resulting state of its workflow."""

    settled: Settled
    flow: WorkflowState
    run: HandlerRun


def settle_run(
    tx: Tx, flow: WorkflowState, own: HandlerRun, run: Run, ending: Ending, known: Known, *, now: Instant
) -> Fate:
    """Settle one run. Writes messages, sessions and ledger rows; the caller writes flow and handler run."""
    fate = _fate(tx, flow, own, run, ending, known, now)
    return fate._replace(settled=_with_usage(fate.settled, run, ending))


def _with_usage(settled: Settled, run: Run, ending: Ending) -> Settled:
    """Keep the usage that the run's attempts reported, however the run continues."""
    kept = kept_while_waiting(ending, earlier=run.result)
    if kept is None:
        return settled
    known = {} if settled.result is None else json.loads(settled.result)
    return settled._replace(result=json.dumps({**known, **json.loads(kept)}, ensure_ascii=False))


def _fate(  # noqa: C901 - one case for each ending
    tx: Tx, flow: WorkflowState, own: HandlerRun, run: Run, ending: Ending, known: Known, now: Instant
) -> Fate:
    if flow.workflow.deleted_at is not None and not isinstance(ending, Done):
        return _abandon(tx, flow, own, run, "removed", _error_of(ending), now)
    match ending:
        case Done(carries=Published() as published):
            return _commit(tx, flow, own, run, published, known, now)
        case Done() | HandedOver():
            return _fail(tx, flow, own, run, "the handler's run ended without a response", now)
        case Failed():
            return _after_error(tx, flow, own, run, ending, now)
        case Busy(error=error):
            return _hold_off(tx, flow, own, run, error, None, now)
        case NotBegun():
            return _wait_for_room(tx, flow, own, run, ending, now)
        case Throttled(error=error, until=until):
            return _hold_off(tx, flow, own, run, error, until, now)
        case TimedOut(error=error) if own.phase != "mutating":
            return _hold_off(tx, flow, own, run, error, None, now)
        case Unconfirmed(error=error) | TimedOut(error=error) | Unproven(error=error):
            return _ask_person(tx, flow, own, run, error, now)
        case Lost(error=error, is_over=False):
            return _ask_person(tx, flow, own, run, error, now)
        case Interrupted(error=error):
            return _after_loss(tx, flow, own, run, "shutdown", error, now, is_crash=False)
        case Lost(reason=reason, error=error):
            return _after_loss(tx, flow, own, run, reason, error, now, is_crash=True)
        case Forgotten(reason=reason, error=error):
            fate = _abandon(tx, flow, own, run, reason, error, now, is_known=False)
            return fate._replace(flow=_stop(tx, fate.flow, f"run {run.run_id}: {error}; {RESUME}", now))
        case Dropped(reason=reason):
            return _abandon(tx, flow, own, run, reason, None, now)
        case Cancelled():
            return _cancel(tx, flow, own, run, ending, known, now)
        case StuckRunEnded():
            return _abandon(tx, flow, own, run, "ended after its deadline", run.error, now)
        case _:
            assert_never(ending)


def _commit(
    tx: Tx, flow: WorkflowState, own: HandlerRun, run: Run, published: Published, known: Known, now: Instant
) -> Fate:
    """Commit consumed messages, published messages, state and run together."""
    flow, put = publish(tx, flow, published.messages, run_id=run.run_id, now=now)
    status = "skipped" if own.mutation == "skipped" else "consumed"
    settled = settle_messages(tx, run.run_id, "skipped" if status == "skipped" else "consumed", now)
    handler, needed = flow.handlers.get(own.handler), GOOD_USUAL
    if handler is not None:
        handler = handler._replace(tries=0, faults=0, held_until=None, last_error=None)
        if published.has_state:
            handler = handler._replace(state=published.state)
        if own.kind == "consumer" and own.reserved:
            handler = _looks_again(tx, flow, handler)
        producer = None if isinstance(known, Broken) else known.handlers.get(own.handler)
        needed = good_needed(producer.timing) if isinstance(producer, Producer) else needed
        if isinstance(producer, Producer):
            handler = handler._replace(ran_through=max(handler.ran_through, run.planned_at))
            _count_jumped(tx, flow, handler, producer, run, now)
            handler = handler._replace(next_at=following(tx, flow, handler, producer.timing, now))
        flow = with_handler(flow, handler)
    fresh = sum(result.fate != "duplicate" for result in put)
    own = reached(own, "committed", now)._replace(published=fresh, tries=0)
    flow = with_workflow(flow, open_run_id=None, freed_at=now)
    said = f"{own.handler}: {status} {settled}, published {fresh}" if own.kind == "consumer" else ""
    said = said or f"{own.handler}: published {fresh}"
    tell(
        tx,
        flow.workflow,
        events.WORKFLOW_COMMITTED,
        handler=own.handler,
        run_id=run.run_id,
        published=fresh,
        consumed=settled if status == "consumed" else None,
        skipped=settled if status == "skipped" else None,
    )
    name, stopped = handler_incident(flow.workflow.name, own.handler), (stop_incident(flow.workflow.name),)
    well = Observed(name, True, run.due_at, run.run_id, needed=needed, also=stopped)
    return Fate(Settled(Close("succeeded", "finished"), (well,), f'{{"output":"{said}"}}'), flow, own)


def _looks_again(tx: Tx, flow: WorkflowState, consumer: Handler) -> Handler:
    """After a run that reserved messages: it runs again only if messages are left for it."""
    pending = tx[Messages].oldest([flow.workflow.workflow_id])
    subscribed = {subscription.topic for subscription in flow.subscribed_by(consumer.name)}
    if any(name == consumer.name and topic in subscribed for _, topic, name in pending):
        return consumer._replace(is_flagged=consumer.is_flagged or FOLLOWING)
    return with_page(consumer, None)


def _count_jumped(tx: Tx, flow: WorkflowState, handler: Handler, producer: Producer, run: Run, now: Instant) -> None:
    """Times of a producer that came due during its own run are served by it, and counted in one row."""
    is_for_an_instant = run.trigger != "manual" or run.planned_at != handler.last_run_at
    decided_through = run.planned_at if is_for_an_instant or handler.next_at is None else handler.next_at - 1
    jumped = tally(producer.timing, decided_through, now)
    if jumped.count == 0 or jumped.first is None or jumped.last is None:
        return
    ran = taken(tx, flow, handler, since=jumped.first, until=now)
    jumped_gap = Gap(jumped.first, jumped.last, jumped.count, "skipped", "blocked", run.run_id)
    gaps = untaken(jumped_gap, ran, producer.timing)
    add_gaps(tx, [skipped_times(flow, producer.name, gaps)], now=now)


def _after_error(tx: Tx, flow: WorkflowState, own: HandlerRun, run: Run, failed: Failed, now: Instant) -> Fate:
    """An error that the handler reported. One of its server (`tries_max`) may be over soon, or be a bug that only a
    person can fix."""
    error, handler = failed.error, flow.handlers.get(own.handler)
    if failed.permanent:
        return _fail(tx, flow, own, run, error, now)
    if failed.tries_max is None or handler is None:
        return _hold_off(tx, flow, own, run, error, None, now)
    faults = 1 + handler.faults
    if faults > failed.tries_max:
        flow = with_handler(flow, handler._replace(faults=0, tries=0))  # resuming starts over
        return _fail(tx, flow, own, run, f"{error}, {faults} times in a row", now)
    return _hold_off(tx, with_handler(flow, handler._replace(faults=faults)), own, run, error, None, now)


def _hold_off(
    tx: Tx, flow: WorkflowState, own: HandlerRun, run: Run, error: str, until: Instant | None, now: Instant
) -> Fate:
    """A transient failure: the handler goes into backoff. Its run closes and another one retries, unless the side
    effect is done: then this run continues with `next`."""
    handler = flow.handlers.get(own.handler)
    tries = 1 + (own.tries if handler is None else handler.tries)
    at = max(now + backoff(tries), min(until or 0, now + HELD_MAX))
    tell(tx, flow.workflow, events.WORKFLOW_RETRYING, handler=own.handler, run_id=run.run_id, error=error, tries=tries)
    is_waiting = until is not None and tries <= BUSY_WAITS_MAX  # it asked for more time: no error, but limited
    effects = () if is_waiting or run.trigger == "manual" else (_bad(flow, own, run, error, tries),)
    if handler is not None:
        handler = handler._replace(tries=tries, held_until=at, last_error=error)
        if handler.kind == "producer" and run.planned_at > now:  # the clock went back: earlier times come first
            handler = handler._replace(next_at=min(handler.next_at or run.planned_at, run.planned_at))
        elif handler.kind == "producer" and (handler.next_at is None or handler.next_at <= run.planned_at):
            handler = handler._replace(next_at=run.planned_at)  # it stays due for this time until it has run
        flow = with_handler(flow, handler)
    own = own._replace(tries=tries)
    if own.phase == "mutated":
        return Fate(Settled(_wait(flow, run, at, "retry", "failed", error), effects), flow, own)
    flow = release(tx, flow, run.run_id, now)
    flow = with_workflow(flow, open_run_id=None, freed_at=now)
    return Fate(Settled(Close("failed", run.rung, error, TRANSIENT), effects), flow, reached(own, "abandoned", now))


def _wait_for_room(tx: Tx, flow: WorkflowState, own: HandlerRun, run: Run, refused: NotBegun, now: Instant) -> Fate:
    """Its first step could not begin: the same run waits. In the end it is held off like one that is not reached."""
    settlement = not_begun(run, refused, now=now)
    if isinstance(settlement, Close):
        return _hold_off(tx, flow, own, run, refused.error, None, now)
    flow, own = _back_to_start(tx, flow, own, now)
    return Fate(Settled(settlement), flow, own)


def _bad(flow: WorkflowState, own: HandlerRun, run: Run, error: str, tries: int) -> Observed:
    """A failed attempt. Attempts for the same time of a producer, or the same messages, count as one instant."""
    handler = flow.handlers.get(own.handler)
    failed = "failed" if handler is not None and handler.faults else "could not be reached"
    said = f"{failed} {tries} times in a row ({error})" if tries > 1 else f"{failed} ({error})"
    name = handler_incident(flow.workflow.name, own.handler)
    counts: Counts = "time" if own.kind == "producer" else "never"
    return Observed(name, False, run.planned_at, run.run_id, said, counts=counts)


def _after_loss(
    tx: Tx, flow: WorkflowState, own: HandlerRun, run: Run, reason: str, error: str, now: Instant, *, is_crash: bool
) -> Fate:
    """The run's node died or was shut down. A side effect that may have happened is never repeated automatically.
    `next` repeats safely: after each further death it is tried again, later and later, and reported as trouble."""
    if own.phase == "mutating":
        return _ask_person(tx, flow, own, run, error, now)
    is_next, deaths = own.phase in ("prepared", "mutated"), run.crashes + is_crash
    if is_crash and deaths >= CRASHES_MAX and not is_next:
        return _fail(tx, flow, own, run, f"{error}, twice in this run", now)
    flow, own = _back_to_start(tx, flow, own, now)
    outcome = "crashed" if is_crash else "interrupted"
    until, effects = now, tuple[Effect, ...]()
    if is_crash and is_next and deaths >= CRASHES_MAX:
        until = now + backoff(deaths - 1)
        name = handler_incident(flow.workflow.name, own.handler)
        said = f"{deaths} processes died while they ran its next ({error})"
        effects = (Observed(name, False, run.planned_at, run.run_id, said, is_urgent=deaths > CRASHES_MAX),)
    return Fate(Settled(_wait(flow, run, until, reason, outcome, error, is_crash=is_crash), effects), flow, own)


def _fail(tx: Tx, flow: WorkflowState, own: HandlerRun, run: Run, error: str, now: Instant) -> Fate:
    """A logic error, or too many errors: the workflow stops until a person acts.

    A run past its side effect stays open and resumes at `next` then; any other ends and starts over."""
    said = f"{own.handler}, {_phase_words(own.phase)}: {error}"
    effects = (Alert(stop_incident(flow.workflow.name), f"workflow {flow.workflow.name} stopped: {said}"),)
    if own.phase == "mutated":
        flow = _stop(tx, flow, f"{said}; {RESUME}", now)
        own = own._replace(awaits="stopped")
        return Fate(Settled(_wait(flow, run, None, STOPPED, "failed", error), effects), flow, own)
    flow = release(tx, flow, run.run_id, now)
    flow = _stop(tx, with_workflow(flow, open_run_id=None, freed_at=now), f"{said}; {RESUME}", now)
    own = reached(own, "abandoned", now)
    return Fate(Settled(Close("failed", run.rung, error), effects), flow, own)


def _ask_person(
    tx: Tx, flow: WorkflowState, own: HandlerRun, run: Run, error: str, now: Instant, *, attempt: str = "failed"
) -> Fate:
    """The result is uncertain, or the run could not be ended: nothing starts until a person decides."""
    is_uncertain = own.phase == "mutating"
    if not is_uncertain:
        flow, own = _back_to_start(tx, flow, own, now)
    cure = f"it is unknown whether it happened; {RESOLVE}" if is_uncertain else RESUME
    said = f"{own.handler}, {_phase_words(own.phase)}, run {run.run_id}: {error}; {cure}"
    flow = _stop(tx, flow, said, now)
    reason = UNCERTAIN if is_uncertain else STOPPED
    alert = Alert(stop_incident(flow.workflow.name), f"workflow {flow.workflow.name}: {said}")
    own = own._replace(awaits="uncertain" if is_uncertain else "stopped")
    return Fate(Settled(_wait(flow, run, None, reason, attempt, error), (alert,)), flow, own)


def _abandon(
    tx: Tx,
    flow: WorkflowState,
    own: HandlerRun,
    run: Run,
    reason: str,
    error: str | None,
    now: Instant,
    *,
    is_known: bool = True,
) -> Fate:
    """Give up the run: release its reservations, or skip them if the side effect may have happened."""
    if own.phase in ("mutating", "mutated"):
        settle_messages(tx, run.run_id, "skipped", now)
    else:
        flow = release(tx, flow, run.run_id, now)
    flow = end_session(tx, with_workflow(flow, open_run_id=None, freed_at=now), "failed", reason, now)
    said = error or run.error
    close = Close("skipped", run.rung, None, reason)
    if own.phase == "mutating" or not is_known:
        close = Close("unknown", run.rung, said, reason)
    elif said is not None:
        close = Close("failed", run.rung, said, reason)
    return Fate(Settled(close), flow, reached(own, "abandoned", now)._replace(awaits=None))


def _cancel(
    tx: Tx, flow: WorkflowState, own: HandlerRun, run: Run, cancelled: Cancelled, known: Known, now: Instant
) -> Fate:
    """A person cancelled the run. What it reserved is released, or skipped if the side effect happened. The handler
    waits: a producer for its next time, a consumer as after a failure, or it would start again immediately. During the
    side effect nothing proves whether it happened, so the person is asked; that is no news to alert anyone about."""
    if cancelled.is_stuck:
        return _ask_person(tx, flow, own, run, "it was cancelled and could not be stopped", now)
    if own.phase == "mutating":
        fate = _ask_person(tx, flow, own, run, "it was cancelled during its side effect", now, attempt="unknown")
        return fate._replace(settled=fate.settled._replace(effects=()))
    fate = _abandon(tx, flow, own, run, CANCELLED, None, now)
    close = after_cancel(run, cancelled)
    handler = fate.flow.handlers.get(own.handler)
    if handler is not None:
        handler = handler._replace(held_until=now + backoff(1 + handler.tries))
        producer = None if isinstance(known, Broken) else known.handlers.get(own.handler)
        if isinstance(producer, Producer):
            ran_through = max(handler.ran_through, run.planned_at)
            handler = handler._replace(held_until=None, ran_through=ran_through)
            handler = handler._replace(next_at=following(tx, flow, handler, producer.timing, now))
        fate = fate._replace(flow=with_handler(fate.flow, handler))
    return fate._replace(settled=Settled(close))


def _back_to_start(tx: Tx, flow: WorkflowState, own: HandlerRun, now: Instant) -> tuple[WorkflowState, HandlerRun]:
    """Where the next attempt starts: fresh, with its reservations released, unless the side effect is done."""
    if own.phase in ("executing", "mutated"):
        return flow, own
    flow = release(tx, flow, own.run_id, now)
    own = reached(own, "preparing", now)
    return flow, own._replace(prepared=None, mutation=None, result=None, reserved=0)


def _stop(tx: Tx, flow: WorkflowState, error: str, now: Instant) -> WorkflowState:
    flow = end_session(tx, flow, "failed", error, now)
    tell(tx, flow.workflow, events.WORKFLOW_STOPPED, error, level="error", error=error)
    return with_workflow(flow, error=error, error_at=now)


def _wait(
    flow: WorkflowState,
    run: Run,
    until: Instant | None,
    reason: str,
    outcome: str,
    error: str,
    *,
    is_crash: bool = False,
) -> Settlement:
    """Make the run wait; while its workflow is paused its alarm is off, and resuming sets it."""
    is_held = flow.workflow.status != "active"
    return Wait(None if is_held else until, reason, outcome, run.rung, error, is_crash=is_crash)


def _phase_words(phase: Phase) -> str:
    return {
        "executing": "produce",
        "preparing": "prepare",
        "prepared": "next",
        "mutating": "mutate",
        "mutated": "next",
    }.get(phase, phase)


def _error_of(ending: Ending) -> str | None:
    return getattr(ending, "error", None)
