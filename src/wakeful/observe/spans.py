"""Spans from rows of the ledger, with the names of OpenTelemetry's semantic conventions.

All times are those of the ledger. A span is a plain value here; `observe.otlp` sends it.
"""

import json
from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from wakeful.core.run.runs import ERRORS, Attempt, Run, idempotency_key
from wakeful.core.run.traces import SpanId, attempt_of, delivery_of, run_of, turn_of
from wakeful.core.run.usage import usage_of
from wakeful.core.time.instants import Instant, format_instant
from wakeful.ports.outbox import Delivery, public_id

SpanKind: TypeAlias = Literal["internal", "client", "producer"]
Attributes: TypeAlias = Mapping[str, str | int | float]

ERROR_MAX: Final = 1_000
AGENT_LANE: Final = "agent:"
NOT_ERRORS: Final = frozenset({"busy", "interrupted"})
"""How attempts end that are not failures: the target was busy, or this process was stopped."""


class Span(NamedTuple):
    """One span, ready to be sent."""

    id: SpanId
    parent: SpanId | None
    name: str
    kind: SpanKind
    started_at: Instant
    ended_at: Instant
    node: str  # where it happened
    attributes: Attributes
    error: str | None = None  # why it failed; empty if that is not known
    links: tuple[SpanId, ...] = ()


class RunContext(NamedTuple):
    """What the spans of a run need besides its row."""

    store_id: str
    slug: str
    node: str
    agent: str | None  # whose turns its attempts are
    created_by: tuple[Run, ...] = ()  # the run that it replays, or whose agent made its schedule
    provider: str | None = None  # of the agent's model


def span_of_run(run: Run, context: RunContext) -> Span:
    """The whole run, from when it was due."""
    ended = run.planned_at if run.ended_at is None else run.ended_at
    attributes = {
        **_common(run, context),
        "wakeful.trigger": run.trigger,
        "wakeful.outcome": run.outcome,
        "wakeful.reason": run.reason,
        "wakeful.attempts": run.attempt,
        "wakeful.planned_at": format_instant(run.planned_at),
    }
    return Span(
        run_of(_key(run, context)),
        None,
        f"run {context.slug}",
        "internal",
        min(run.due_at, ended if run.started_at is None else run.started_at, ended),
        ended,
        context.node,
        _known(attributes),
        _error(run.error) if run.outcome in ERRORS else None,
        tuple(run_of(idempotency_key(context.store_id, creator)) for creator in context.created_by),
    )


def spans_of_last_attempt(run: Run, context: RunContext) -> list[Span]:
    """The attempt that closed the run. None did if the run was waiting: then it has no owner."""
    if run.owner is None or run.claimed_at is None or run.ended_at is None:
        return []
    rungs = {} if run.ladder is None else json.loads(run.ladder)
    last = Attempt(run.run_id, run.attempt, run.claimed_at, run.ended_at, run.outcome, run.rung, run.error, run.owner)
    return spans_of_attempt(run, last, context, is_error=run.outcome in ERRORS, sent_at=rungs.get("sent"))


def spans_of_attempt(
    run: Run, attempt: Attempt, context: RunContext, *, is_error: bool, sent_at: Instant | None = None
) -> list[Span]:
    """An attempt, and the agent's turn in it if it has one."""
    if attempt.claimed_at is None:
        return []
    key = _key(run, context)
    own = attempt_of(key, attempt.attempt, attempt.claimed_at)
    error = _error(attempt.error) if is_error else None
    attributes = {
        **_common(run, context),
        "wakeful.attempt": attempt.attempt,
        "wakeful.outcome": attempt.outcome,
        "wakeful.rung": attempt.rung,
        "error.type": attempt.outcome if is_error else None,
    }
    began, ended = min(attempt.claimed_at, attempt.ended_at), attempt.ended_at
    name = f"attempt {context.slug}"
    spans = [Span(own, run_of(key), name, "internal", began, ended, context.node, _known(attributes), error)]
    if context.agent is not None:
        began = began if sent_at is None else max(began, min(sent_at, ended))
        about = _turn(run, context, is_last=attempt.ended_at == run.ended_at) | {"error.type": attributes["error.type"]}
        name = f"invoke_agent {context.agent}"
        spans.append(Span(turn_of(own), own, name, "client", began, ended, context.node, _known(about), error))
    return spans


def span_of_delivery(delivery: Delivery, run: Run, context: RunContext) -> Span:
    """A message to a person, from when it was queued until it arrived or was given up."""
    key, message_id = _key(run, context), public_id(context.store_id, delivery)
    is_dead = delivery.status == "dead"
    attributes = {
        **_common(run, context),
        "messaging.system": "wakeful",
        "messaging.operation.name": "deliver",
        "messaging.operation.type": "send",
        "messaging.destination.name": delivery.channel,
        "messaging.message.id": message_id,
        "wakeful.attempts": delivery.attempts,
        "error.type": "dead" if is_dead else None,
    }
    ended = delivery.enqueued_at if delivery.ended_at is None else delivery.ended_at
    return Span(
        delivery_of(key, message_id),
        run_of(key),
        f"deliver {delivery.channel}",
        "producer",
        min(delivery.enqueued_at, ended),
        ended,
        context.node,
        _known(attributes),
        _error(delivery.last_error) if is_dead else None,
    )


def agent_of(run: Run, definition: str | None) -> str | None:
    """The agent that a run prompts, by the definition of its schedule, or by the lane of an agent's own runs."""
    if definition is None:
        return run.lane.removeprefix(AGENT_LANE) if run.lane is not None and run.lane.startswith(AGENT_LANE) else None
    written = json.loads(definition)
    return written.get("agent", "default") if "prompt" in written else None


def _turn(run: Run, context: RunContext, *, is_last: bool) -> dict[str, Any]:
    """The ledger adds up what all attempts of a run used, so the last turn carries it."""
    kept = json.loads(run.result) if is_last and run.result is not None else {}
    used: Mapping[str, Any] = usage_of(kept.get("usage")) or {}
    return {
        **_common(run, context),
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": context.provider,
        "gen_ai.agent.name": context.agent,
        "gen_ai.conversation.id": kept.get("sessionId"),
        "gen_ai.response.model": used.get("model"),
        "gen_ai.usage.input_tokens": used.get("input"),
        "gen_ai.usage.output_tokens": used.get("output"),
        "gen_ai.usage.cache_read.input_tokens": used.get("cachedInput"),
        "wakeful.cost_usd": used.get("cost"),
    }


def _common(run: Run, context: RunContext) -> dict[str, Any]:
    return {"wakeful.slug": context.slug, "wakeful.run_id": str(run.run_id)}


def _key(run: Run, context: RunContext) -> str:
    return idempotency_key(context.store_id, run)


def _error(text: str | None) -> str:
    return (text or "")[:ERROR_MAX]


def _known(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in attributes.items() if value is not None}
