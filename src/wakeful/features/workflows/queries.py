"""Queries on workflows. Queries never write (L1)."""

import json
from collections.abc import Sequence

from wakeful.core.fields import shown
from wakeful.core.refusals import NotFound
from wakeful.core.time.instants import Instant
from wakeful.core.workflow.rows import Workflow
from wakeful.features.workflows.compiled import Compilations
from wakeful.features.workflows.message_rows import Messages, MessageStatus
from wakeful.features.workflows.session_rows import Sessions
from wakeful.features.workflows.state import HANDLER, read_flows
from wakeful.features.workflows.state_rows import Topics
from wakeful.features.workflows.upcoming import next_start
from wakeful.features.workflows.views import (
    MessagesPage,
    SessionsPage,
    WorkflowsPage,
    WorkflowView,
    message_view,
    run_view,
    session_view,
    workflow_view,
)
from wakeful.ports.handler_runs import HandlerRunDetails
from wakeful.ports.store import ALARM_RUN, Tx
from wakeful.ports.workflows import StoredWorkflows


def find(tx: Tx, name: str) -> Workflow:
    """The workflow with this name. Raises `NotFound`."""
    workflow = tx[StoredWorkflows].by_names([name]).get(name)
    if workflow is None:
        raise NotFound(f"there is no workflow {shown(name)}")
    return workflow


def views(tx: Tx, workflows: Sequence[Workflow], compilations: Compilations, now: Instant) -> list[WorkflowView]:
    """Views of workflows, in a fixed number of queries however many workflows and topics there are."""
    flows = read_flows(tx, workflows)
    counts: dict[int, dict[tuple[str, str], dict[MessageStatus, int]]] = {}
    for (workflow_id, topic, consumer), by_status in tx[Messages].counts(flows).items():
        counts.setdefault(workflow_id, {})[topic, consumer] = by_status
    open_ids = [workflow.open_run_id for workflow in workflows if workflow.open_run_id is not None]
    runs, owns = (tx.runs.lock(open_ids), tx[HandlerRunDetails].among(open_ids)) if open_ids else ({}, {})
    alarms = tx.alarms.by_refs(ALARM_RUN, open_ids) if open_ids else {}
    listed = []
    for workflow_id, flow in flows.items():
        known, run_id = compilations.of(flow.workflow), flow.workflow.open_run_id or 0
        run = runs.get(run_id)
        next_at = next_start(tx, flow, known, run, alarms.get(run_id), now)
        listed.append(workflow_view(flow, known, counts.get(workflow_id, {}), run, owns.get(run_id), next_at, now))
    return listed


def get(tx: Tx, name: str, compilations: Compilations, *, now: Instant) -> WorkflowView:
    """The view of one workflow. Raises `NotFound`."""
    (view,) = views(tx, [find(tx, name)], compilations, now)
    return view


def page(tx: Tx, compilations: Compilations, *, after: str | None, limit: int, now: Instant) -> WorkflowsPage:
    """Workflows by name, and where the next page starts."""
    rows = tx[StoredWorkflows].page(after=after, limit=limit + 1)
    more = rows[limit - 1].name if len(rows) > limit else None
    return WorkflowsPage(views(tx, rows[:limit], compilations, now), more)


def sessions(tx: Tx, name: str, *, before_id: int | None, limit: int) -> SessionsPage:
    """Sessions of a workflow, newest first, with their runs and phases."""
    rows = tx[Sessions].page(find(tx, name).workflow_id, before_id=before_id, limit=limit + 1)
    more = rows[limit - 1].session_id if len(rows) > limit else None
    owns = tx[HandlerRunDetails].of_sessions([row.session_id for row in rows[:limit]])
    ledger = tx.runs.lock(sorted(own.run_id for of in owns.values() for own in of))
    shown = [
        session_view(row, [run_view(own, ledger.get(own.run_id)) for own in owns.get(row.session_id, ())])
        for row in rows[:limit]
    ]
    return SessionsPage(shown, more)


def messages(
    tx: Tx,
    name: str,
    topic: str,
    *,
    after_place: int,
    limit: int,
    status: MessageStatus | None = None,
    consumer: str | None = None,
) -> MessagesPage:
    """Messages of a topic, by first publication, one per consumer."""
    workflow = find(tx, name)
    known = {row.name for row in tx[Topics].of([workflow.workflow_id]).get(workflow.workflow_id, ())}
    if topic not in known:
        raise NotFound(f"workflow '{name}' has no topic {shown(topic)}")
    rows = tx[Messages].page(
        workflow.workflow_id, topic, after_place=after_place, limit=limit + 1, status=status, consumer=consumer
    )
    more = rows[limit - 1].place if len(rows) > limit else None
    return MessagesPage([message_view(row) for row in rows[:limit]], more)


def handlers_of(tx: Tx, run_ids: Sequence[int]) -> dict[int, str]:
    """The handler of each of these runs, where known; a row for times at which a producer did not run names it
    itself."""
    handlers = {run_id: own.handler for run_id, own in tx[HandlerRunDetails].among(run_ids).items()}
    others = tx.runs.lock(sorted(set(run_ids) - handlers.keys()))
    named = {run_id: json.loads(run.result or "{}").get(HANDLER) for run_id, run in others.items()}
    return handlers | {run_id: name for run_id, name in named.items() if name is not None}
