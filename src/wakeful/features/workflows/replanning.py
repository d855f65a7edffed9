"""Replanning producers whose timing is read in another way than when they were planned."""

from collections.abc import Callable

from wakeful.core.time.instants import Instant
from wakeful.core.time.timing import Timing, next_after
from wakeful.core.workflow.definition import Producer
from wakeful.core.workflow.rows import Workflow
from wakeful.core.workflow.rules import WorkflowState
from wakeful.features.workflows.compiled import Broken, Compilations
from wakeful.features.workflows.state import read_flows, save_flows, with_handler
from wakeful.ports.store import Tx
from wakeful.ports.workflows import StoredWorkflows


def replan_producers(
    tx: Tx, compilations: Compilations, *, concerns: Callable[[Timing], bool], after_id: int, limit: int, now: Instant
) -> tuple[int, list[str]] | None:
    """Move the producers with these timings to a time of theirs; returns the last id processed, and the workflows."""
    workflows = tx[StoredWorkflows].after(after_id, limit=limit)
    if not workflows:
        return None
    flows = read_flows(tx, workflows)
    concerned = {key: concerned_producers(flow.workflow, compilations, concerns) for key, flow in flows.items()}
    save_flows(tx, [(flow, _replanned(flow, concerned[key])) for key, flow in flows.items()], now)
    return workflows[-1].workflow_id, [flow.workflow.name for key, flow in flows.items() if concerned[key]]


def concerned_producers(
    workflow: Workflow, compilations: Compilations, concerns: Callable[[Timing], bool]
) -> list[Producer]:
    """The workflow's producers with these timings."""
    known = compilations.of(workflow)
    producers = () if isinstance(known, Broken) else known.definition.producers
    return [producer for producer in producers if concerns(producer.timing)]


def _replanned(flow: WorkflowState, producers: list[Producer]) -> WorkflowState:
    for producer in producers:
        handler = flow.handlers.get(producer.name)
        if handler is None or handler.next_at is None:
            continue
        next_at = next_after(producer.timing, handler.next_at - 1)
        if next_at != handler.next_at:
            flow = with_handler(flow, handler._replace(next_at=next_at))
    return flow
