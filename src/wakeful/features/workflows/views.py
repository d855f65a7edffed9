"""Views of workflows: plain JSON values, in camelCase."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from wakeful.core.run.runs import Run
from wakeful.core.time.instants import Instant, format_optional
from wakeful.core.workflow.definition_json import workflow_to_json
from wakeful.core.workflow.rows import Handler, HandlerRun, Message, MessageStatus, Session
from wakeful.core.workflow.rules import WorkflowState, is_dirty, is_held, is_limited, is_queued, rings_at
from wakeful.features.workflows.compiled import Broken, Known

MESSAGE_STATUSES: tuple[MessageStatus, ...] = ("pending", "reserved", "consumed", "skipped")


def workflow_view(
    flow: WorkflowState,
    known: Known,
    counts: Mapping[tuple[str, str], Mapping[MessageStatus, int]],
    run: Run | None,
    own: HandlerRun | None,
    now: Instant,
) -> dict[str, Any]:
    workflow = flow.workflow
    written: dict[str, Any] = (
        {"id": workflow.name, "producers": {}, "consumers": {}}
        if isinstance(known, Broken)
        else workflow_to_json(known.definition)
    )
    for kind in ("producers", "consumers"):
        for name in written[kind]:
            row = flow.handlers.get(name)
            if row is not None:
                written[kind][name] |= _handler_view(flow, row, counts, now)
    rings = rings_at(flow, now)
    return {
        "id": workflow.name,
        "status": workflow.status,
        "error": workflow.error,
        "errorAt": format_optional(workflow.error_at),
        "producers": written["producers"],
        "consumers": written["consumers"],
        "topics": {name: _counts([by for (topic, _), by in counts.items() if topic == name]) for name in flow.topics},
        "openRun": None if own is None or run is None else run_view(own, run),
        "session": None if workflow.session_id is None else str(workflow.session_id),
        "nextRun": format_optional(rings),
        "limitedUntil": format_optional(workflow.limited_until if is_limited(workflow, now) else None),
        "origin": workflow.origin,
        "version": workflow.version,
        "createdAt": format_optional(workflow.created_at),
        "updatedAt": format_optional(workflow.updated_at),
    }


def _handler_view(
    flow: WorkflowState, row: Handler, counts: Mapping[tuple[str, str], Mapping[MessageStatus, int]], now: Instant
) -> dict[str, Any]:
    view: dict[str, Any] = {
        "state": _read(row.state),
        "lastRun": format_optional(row.last_run_at),
        "heldUntil": format_optional(row.held_until if is_held(row, now) else None),
        "lastError": row.last_error,
    }
    if row.kind == "producer":
        return {"nextRun": format_optional(row.next_at), "queued": is_queued(flow.workflow, row, now), **view}
    messages = {
        subscription.topic: _counts([counts.get((subscription.topic, row.name), {})])
        for subscription in flow.subscribed_by(row.name)
    }
    return {"wakeAt": format_optional(row.wake_at), "dirty": is_dirty(flow, row), "messages": messages, **view}


def _counts(several: Sequence[Mapping[MessageStatus, int]]) -> dict[str, int]:
    return {status: sum(counts.get(status, 0) for counts in several) for status in MESSAGE_STATUSES}


def run_view(own: HandlerRun, run: Run | None) -> dict[str, Any]:
    """A handler's run: its ledger row and its progress."""
    prepared = None if own.prepared is None else json.loads(own.prepared)
    view: dict[str, Any] = {
        "runId": str(own.run_id),
        "handler": own.handler,
        "kind": own.kind,
        "phase": own.phase,
        "phases": {name: format_optional(at) for name, at in json.loads(own.phases).items()},
        "reserved": own.reserved,
        "published": own.published,
        "mutation": own.mutation,
        "ui": None if prepared is None else prepared.get("ui"),
        "awaits": own.awaits,
        "tries": own.tries,
        "queuedFor": own.queued / 1000,
    }
    if run is not None:
        view |= {
            "outcome": run.outcome,
            "reason": run.reason,
            "error": run.error,
            "attempt": run.attempt,
            "plannedAt": format_optional(run.planned_at),
            "startedAt": format_optional(run.started_at),
            "endedAt": format_optional(run.ended_at),
            "nextAttemptAt": format_optional(run.next_attempt_at),
        }
    return view


def session_view(session: Session, runs: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "sessionId": str(session.session_id),
        "kind": session.kind,
        "startedAt": format_optional(session.started_at),
        "endedAt": format_optional(session.ended_at),
        "result": session.result,
        "error": session.error,
        "runs": runs,
    }


def message_view(message: Message) -> dict[str, Any]:
    return {
        "id": message.message_id,
        "consumer": message.consumer or None,
        "payload": _read(message.payload),
        "status": message.status,
        "attempt": message.attempt,
        "seq": message.seq,
        "runId": None if message.run_id is None else str(message.run_id),
        "publishedBy": None if message.published_by is None else str(message.published_by),
        "publishedAt": format_optional(message.published_at),
        "updatedAt": format_optional(message.updated_at),
    }


def _read(text: str | None) -> Any:
    """A stored JSON value; unreadable text is returned as is, so that it can be repaired."""
    try:
        return None if text is None else json.loads(text)
    except ValueError:
        return text
