"""Explains a workflow's state, a past handler run or an upcoming one: one sentence, and the facts."""

import heapq
from collections.abc import Mapping
from typing import Any, Final

from wakeful.core.run.runs import ERRORS, Run
from wakeful.core.schedule.upcoming import Upcoming
from wakeful.core.time.instants import MINUTE, Duration, Instant
from wakeful.core.workflow.rows import Handler, HandlerRun
from wakeful.core.workflow.rules import WorkflowState, is_dirty, is_held, is_limited
from wakeful.features.workflows.compiled import Broken, Compilations
from wakeful.features.workflows.loading import unloaded
from wakeful.features.workflows.queries import views
from wakeful.features.workflows.state import read_flows
from wakeful.features.workflows.upcoming import ahead_of
from wakeful.features.workflows.views import WORKFLOW
from wakeful.ports.handler_runs import HandlerRunDetails
from wakeful.ports.rows import at_text as _at
from wakeful.ports.rows import begin_why
from wakeful.ports.store import Tx
from wakeful.ports.workflows import StoredWorkflows

SAME_MINUTE: Final[Duration] = MINUTE
STEPS_MAX: Final = 10_000

_NEXT: Final = {"producer": "producer", "wakeAt": "the wakeAt of consumer"}


class WhyWorkflow:
    """Explains `workflow:ID`."""

    def __init__(self, compilations: Compilations) -> None:
        self._compilations = compilations

    def __call__(self, tx: Tx, name: str, *, at: Instant | None, now: Instant) -> tuple[str, Mapping[str, Any]]:
        workflow = tx[StoredWorkflows].by_names([name]).get(name)
        facts, row = begin_why(tx, "workflow", name, is_known=workflow is not None, at=at, now=now)
        flow = None
        if workflow is not None:
            flow = read_flows(tx, [workflow])[workflow.workflow_id]
            (view,) = views(tx, [workflow], self._compilations, now)
            shown_as = WORKFLOW.write(view)
            facts |= {key: shown_as[key] for key in ("status", "error", "errorAt", "openRun", "nextRun", "topics")}
        if at is not None and at <= now:
            own = None if row is None else tx[HandlerRunDetails].among([row.run_id]).get(row.run_id)
            if row is not None:
                facts["run"]["handler"] = None if own is None else own.handler
            return _past(name, row, own, at), facts
        if flow is None:
            return f"Workflow {name} was removed, so it no longer runs.", facts
        return self._present(tx, flow, at, now), facts

    def _present(self, tx: Tx, flow: WorkflowState, at: Instant | None, now: Instant) -> str:
        name, known = flow.workflow.name, self._compilations.of(flow.workflow)
        open_id = flow.workflow.open_run_id
        runs = {} if open_id is None else tx.runs.lock([open_id])
        own = None if open_id is None else tx[HandlerRunDetails].among([open_id]).get(open_id)
        halt = _halt(flow, own)
        if isinstance(known, Broken):
            halt = f"Workflow {name} cannot run because its definition cannot be read: {known.reason}"
        if halt is not None:
            return f"{halt}." if at is None else f"Workflow {name} will not run at {_at(at)}. {halt}."
        run = None if open_id is None else runs.get(open_id)
        lacking = next((found for found in unloaded(tx, now=now) if found.workflow == name), None)
        if at is None and lacking is not None:
            return f"Workflow {lacking.sentence}; {lacking.cure}."
        if at is None and run is not None:
            return _open(name, run, own)
        coming = heapq.merge(*ahead_of(tx, flow, known, runs, now))
        if at is None:
            held = next((handler for handler in flow.handlers.values() if is_held(handler, now)), None)
            if held is not None:
                return _held(name, held)
            waiting = [consumer.name for consumer in flow.consumers if is_dirty(flow, consumer)]
            if waiting and is_limited(flow.workflow, now):
                until = _at(flow.workflow.limited_until)
                return f"Workflow {name} is holding back its consumers until {until} because its rate limit is reached."
            if waiting:
                return f"Workflow {name} is about to run {' and '.join(waiting)} on pending messages."
            return f"Workflow {name} is idle: {_next(next(coming, None))}."
        for _, planned in zip(range(STEPS_MAX), coming, strict=False):
            if abs(planned.due_at - at) < SAME_MINUTE:
                return f"{_handler(planned)} of workflow {name} will run at {_at(planned.due_at)}{_delayed(planned)}."
            if planned.due_at > at:
                return f"Workflow {name} has nothing planned for {_at(at)}: {_next(planned)}."
        return f"Workflow {name} has nothing planned for {_at(at)}."


def _halt(flow: WorkflowState, own: HandlerRun | None) -> str | None:
    workflow = flow.workflow
    if workflow.error is not None:
        cure = f"fix the cause, then: wakeful workflows resume {workflow.name}"
        if own is not None and own.awaits == "uncertain":
            resolve = f"wakeful workflows resolve {workflow.name} {own.run_id} retry|didNotHappen|skip"
            cure = f"find out what happened, then: {resolve}"
        return f"Workflow {workflow.name} has been stopped since {_at(workflow.error_at)}: {workflow.error}; {cure}"
    if workflow.status != "active":
        what = "is a draft" if workflow.status == "draft" else f"is {workflow.status}"
        resume = f"wakeful workflows resume {workflow.name}"
        return f"Workflow {workflow.name} {what} and does not run; to start it: {resume}"
    return None


def _open(name: str, run: Run, own: HandlerRun | None) -> str:
    handler = "a handler" if own is None else f"{own.kind} {own.handler}"
    if run.outcome == "running":
        return f"Workflow {name} has been running {handler} since {_at(run.claimed_at)} (run {run.run_id})."
    until = "" if run.next_attempt_at is None else f" until {_at(run.next_attempt_at)}"
    error = "" if run.error is None else f": {run.error}"
    reason = "" if run.reason is None else f", {run.reason}"
    attempt = f"the next attempt of {handler} (run {run.run_id}{reason})"
    return f"Workflow {name} is waiting{until} for {attempt}{error}."


def _held(name: str, handler: Handler) -> str:
    tries = "once" if handler.tries == 1 else f"{handler.tries} times in a row"
    who = f"{handler.kind.capitalize()} {handler.name} of workflow {name}"
    again = _at(handler.held_until)
    return f"{who} could not be reached {tries} (last error: {handler.last_error}); it will be retried at {again}."


def _next(planned: Upcoming | None) -> str:
    if planned is None:
        return "nothing is planned until a message is published"
    return f"next is {_NEXT.get(planned.kind, 'the next attempt of')} {planned.handler} at {_at(planned.due_at)}"


def _handler(planned: Upcoming) -> str:
    if planned.kind == "wakeAt":
        return f"Consumer {planned.handler} (wakeAt)"
    return f"Producer {planned.handler}" if planned.kind == "producer" else f"Handler {planned.handler}"


def _delayed(planned: Upcoming) -> str:
    return "" if planned.due_at == planned.planned_at else f", planned for {_at(planned.planned_at)}"


def _past(name: str, row: Run | None, own: HandlerRun | None, at: Instant) -> str:
    if row is None:
        return f"The ledger has no entry for workflow {name} at or before {_at(at)}."
    handler = "The run" if own is None else f"{own.kind.capitalize()} {own.handler}"
    until = "" if row.planned_until is None else f" until {_at(row.planned_until)} ({row.instants} times)"
    subject = f"{handler} of workflow {name} planned for {_at(row.planned_at)}{until}"
    tries = f" on attempt {row.attempt}" if row.attempt > 1 else ""
    if row.outcome in ("skipped", "missed"):
        return f"{subject} was {row.outcome}{_after_colon(row.reason)}."
    if row.outcome in ERRORS:
        ended = "timed out" if row.outcome == "timedOut" else f"ended as {row.outcome}"
        return f"{subject} {ended}{tries}{_after_colon(row.error or row.reason)}."
    if row.outcome == "succeeded":
        return f"{subject} ran at {_at(row.started_at)} and succeeded at {_at(row.ended_at)}{tries}."
    again = "" if row.next_attempt_at is None else f" until {_at(row.next_attempt_at)}"
    known = row.reason or row.rung
    return f"{subject} is {row.outcome}{again}{'' if known is None else f' ({known})'}."


def _after_colon(words: str | None) -> str:
    return "" if words is None else f": {words}"
