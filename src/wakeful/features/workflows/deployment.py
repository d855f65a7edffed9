"""Deploys a checked definition: what keeps its state, what is due immediately, what is removed."""

from typing import Literal, NamedTuple

from wakeful.core.refusals import Conflict
from wakeful.core.time.instants import Instant
from wakeful.core.time.timing import Manual, Once
from wakeful.core.workflow.definition import Producer, WorkflowDefinition
from wakeful.core.workflow.definition_json import decode_workflow, encode_workflow, resolved
from wakeful.core.workflow.pages import with_page
from wakeful.core.workflow.rows import FRESH, Handler, Origin, Status, Workflow
from wakeful.core.workflow.rules import WorkflowState
from wakeful.features.workflows.commands import Guard, acted, hold, set_status
from wakeful.features.workflows.state import read_flows, save_flows, tell, with_workflow
from wakeful.features.workflows.state_rows import Handlers
from wakeful.features.workflows.subscribing import subscribed
from wakeful.ports import events
from wakeful.ports.owners import Owners
from wakeful.ports.store import Alarm, Tx
from wakeful.ports.workflows import ALARM_WORKFLOW, NewWorkflow, StoredWorkflows


class Deployed(NamedTuple):
    """The result of a deployment."""

    name: str
    is_created: bool
    warnings: tuple[str, ...] = ()  # warnings for its author


def deploy(
    tx: Tx,
    definition: WorkflowDefinition,
    status: Status | None,
    *,
    origin: Origin,
    default_zone: str,
    is_tried: bool,
    now: Instant,
    guard: Guard | None = None,
) -> Deployed:
    """Write a checked definition. An identical one changes only the requested status. `is_tried`: its handlers passed a
    dry prepare."""
    workflow = hold(tx, definition.name)
    if guard is not None:
        guard(workflow)
    if workflow is None:
        return _create(tx, definition, status or "active", origin, default_zone, is_tried, now)
    if workflow.origin != origin:
        owner = "its Python module" if workflow.origin == "python" else "REST"
        raise Conflict(f"workflow '{workflow.name}' is defined by {owner}; change it there, or choose another name")
    before = read_flows(tx, [workflow])[workflow.workflow_id]
    definition = resolved(definition, _read(workflow), now=now, default_zone=default_zone)
    text = encode_workflow(definition)
    if text == workflow.definition:
        set_status(tx, before, status or workflow.status, now, is_tried=is_tried)
        return Deployed(definition.name, False)
    version = workflow.version + 1
    tried_version = version if is_tried else workflow.tried_version
    flow = with_workflow(before, definition=text, version=version, tried_version=tried_version, updated_at=now)
    flow, warnings = _rearranged(tx, flow, definition, _read(workflow), now)
    flow = acted(tx, with_workflow(flow, status=status or workflow.status), now)
    save_flows(tx, [(before, flow)], now)
    tell(
        tx,
        flow.workflow,
        events.WORKFLOW_DEPLOYED,
        f"version {flow.workflow.version} was deployed",
        version=flow.workflow.version,
    )
    for warning in warnings:
        tell(tx, flow.workflow, events.WORKFLOW_MESSAGES_LEFT, warning, level="warn", warning=warning)
    return Deployed(definition.name, False, tuple(warnings))


def _create(
    tx: Tx,
    definition: WorkflowDefinition,
    status: Status,
    origin: Origin,
    default_zone: str,
    is_tried: bool,
    now: Instant,
) -> Deployed:
    definition = resolved(definition, None, now=now, default_zone=default_zone)
    owner_id = tx[Owners].named(f"workflow:{definition.name}")
    new = NewWorkflow(definition.name, owner_id, encode_workflow(definition), origin, status, now)
    workflow_id = tx[StoredWorkflows].add_new(new)
    if workflow_id is None:
        raise Conflict(f"workflow '{definition.name}' was written by someone else at the same time; try again")
    workflow = tx[StoredWorkflows].lock([workflow_id])[workflow_id]
    tx.alarms.set_many([Alarm(ALARM_WORKFLOW, workflow_id, None, 1, None, 0)])
    before = WorkflowState(workflow, {}, {}, {})
    flow, _ = _rearranged(tx, before, definition, None, now)
    if is_tried:
        flow = with_workflow(flow, tried_version=workflow.version)
    save_flows(tx, [(before, flow)], now)
    tell(tx, workflow, events.WORKFLOW_DEPLOYED, "version 1 was deployed", version=1)
    return Deployed(definition.name, True)


def _rearranged(
    tx: Tx, flow: WorkflowState, definition: WorkflowDefinition, known: WorkflowDefinition | None, now: Instant
) -> tuple[WorkflowState, list[str]]:
    """Handlers, topics and subscriptions under the new definition, and warnings for its author. Producers that are new
    or have a changed schedule are due immediately, the others keep their time; every consumer runs once; handler state
    is kept."""
    workflow_id = flow.workflow.workflow_id
    timings = {producer.name: producer.timing for producer in known.producers} if known is not None else {}
    handlers: dict[str, Handler] = {}
    for place, handler in enumerate(definition.handlers):
        kind: Literal["producer", "consumer"] = "producer" if isinstance(handler, Producer) else "consumer"
        row = flow.handlers.get(handler.name)
        if row is None or row.kind != kind:
            row = Handler(workflow_id, handler.name, kind, place, None, None, None, 0, None, None)
        if not isinstance(handler, Producer):
            row = with_page(row, None)._replace(is_flagged=FRESH)
        elif timings.get(handler.name) != handler.timing or row.next_at is None:
            row = row._replace(next_at=_first_at(handler, now))
        handlers[handler.name] = row._replace(place=place)
    gone = [name for name in flow.handlers if name not in handlers]
    if gone:
        tx[Handlers].remove_named(workflow_id, gone)
    return subscribed(tx, flow._replace(handlers=handlers), definition)


def _first_at(producer: Producer, now: Instant) -> Instant | None:
    """When a newly deployed producer first runs: immediately, unless it runs once or only manually."""
    match producer.timing:
        case Manual():
            return None
        case Once(at=at):
            return at
        case _:
            return now


def _read(workflow: Workflow) -> WorkflowDefinition | None:
    try:
        return decode_workflow(workflow.definition)
    except Exception:  # an unreadable definition is replaced as a whole
        return None
