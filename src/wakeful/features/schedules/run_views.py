"""Views of runs: values for Python, one JSON shape for everything else."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal

from wakeful.core.description import COMPONENTS
from wakeful.core.returned import INTERNAL, TIME, Named, RunId, kind, returned
from wakeful.core.run.runs import Attempt, Outcome, Run, RungName, Trigger, reached_by
from wakeful.core.run.usage import CompleteUsage, Priced, complete
from wakeful.core.time.timing_builders import as_datetime
from wakeful.engine.cancels import CancelRequest
from wakeful.features.schedules.views import as_text
from wakeful.observe.log_reading import LogLine
from wakeful.ports.backfills import BackfilledRun
from wakeful.ports.outbox import Delivery, Purpose, public_id


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptView:
    """One attempt of a run."""

    attempt: int
    started_at: datetime | None
    ended_at: datetime | None
    outcome: str
    rung: RungName | None
    error: str | None
    node: Annotated[str | None, "the node that made it"]


ATTEMPT: Final = returned(AttemptView, name="Attempt")


DeliveryStatus = Literal["pending", "delivered", "dead", "suppressed"]


@dataclass(frozen=True, slots=True)
class RunDelivery:
    """The delivery of a run's reply; the run's outcome does not depend on it."""

    status: DeliveryStatus
    id: str | None = None
    channel: str | None = None
    to: str | None = None
    attempts: int = 0
    error: Annotated[str | None, Named("lastError")] = None
    ended_at: datetime | None = None
    purpose: Annotated[Purpose | None, "note: a message that no reply could be read"] = None
    reason: Annotated[str | None, "if suppressed: why there is nothing to deliver"] = None


def _delivery_json(delivery: RunDelivery, *, with_purpose: bool = False) -> dict[str, Any]:
    """A suppressed delivery has only its reason; any other has all its fields."""
    without = ("reason", *(() if with_purpose else ("purpose",)))
    if delivery.status == "suppressed":
        return {"status": "suppressed", "reason": delivery.reason} | ({"purpose": "message"} if with_purpose else {})
    shown = DELIVERY.write(delivery, full=True)
    return {name: value for name, value in shown.items() if name not in without}


DELIVERY: Final = returned(RunDelivery)
_DELIVERY: Final = {"$ref": COMPONENTS + DELIVERY.name}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """One row of the ledger."""

    run_id: RunId
    slug: str
    planned_at: datetime
    due_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    attempt: int
    attempts: tuple[AttemptView, ...]
    trigger: Trigger
    outcome: Outcome
    reason: str | None
    rung: RungName | None
    error: str | None
    next_attempt_at: datetime | None
    session_id: str | None
    reached: Annotated[RungName | None, "the highest rung of any attempt; `rung` is that of the last one"]
    usage: CompleteUsage | None
    node: Annotated[str | None, "the node that runs it, or ran it last"]
    run_on: Annotated[tuple[str, ...], "labels of which a node needs one to begin it"] = ()
    count: Annotated[int, "number of instants that the row covers, if more than one"] = 1
    planned_until: datetime | None = None
    reply: str | None = None
    output: str | None = None
    stderr: Annotated[str | None, "what a command wrote to stderr"] = None
    delivery: Annotated[
        RunDelivery | None,
        "first of `deliveries`, or why there is none",
        kind({"anyOf": [_DELIVERY, {"type": "null"}]}, _delivery_json, "", DELIVERY),
    ] = None
    deliveries: Annotated[
        tuple[RunDelivery, ...],
        "one for each recipient",
        kind(
            {"type": "array", "items": _DELIVERY}, lambda all: [_delivery_json(one, with_purpose=True) for one in all]
        ),
    ] = ()
    blocked_by: RunId | None = None
    is_stuck: Annotated[bool, Named("stuck")] = False
    replay_of: Annotated[RunId | None, "the run whose instant it runs once more"] = None
    cancel_requested_at: Annotated[datetime | None, "when a person asked to cancel it"] = None
    reasons: Annotated[tuple[str, ...], "for a turn: all wake requests, in order"] = ()
    ladder: Annotated[
        tuple[tuple[str, datetime], ...],
        "when each rung was reached",
        kind(
            {"type": "object", "additionalProperties": dict(TIME.schema)},
            lambda reached: {rung: as_text(at) for rung, at in reached},
        ),
    ] = ()
    refused_tools: Annotated[tuple[str, ...], "tools that the agent was not allowed to use"] = ()
    handler: Annotated[str | None, INTERNAL] = None  # of a workflow's run; only in pages of the workflow
    log: Annotated[Sequence[LogLine], INTERNAL] = ()  # oldest first, as far back as it is kept; only of a single run
    log_is_cut: Annotated[bool, INTERNAL] = False  # whether there are more lines

    @property
    def cost(self) -> float | None:
        """Its cost in US dollars; None if unknown."""
        return None if self.usage is None else self.usage["cost"]

    @property
    def priced(self) -> Priced:
        """Where the cost comes from."""
        return "unknown" if self.usage is None else self.usage["priced"]

    def to_json(self) -> dict[str, Any]:
        """The JSON shape of a run."""
        return RUN.write(self)


RUN: Final = returned(
    RunView,
    name="Run",
    properties={"cost": Annotated[float | None, "in US dollars; null if unknown"], "priced": Priced},
)


def view_delivery(delivery: Delivery, store_id: str) -> RunDelivery:
    """The view of a run's delivery."""
    return RunDelivery(
        delivery.status,
        public_id(store_id, delivery),
        delivery.channel,
        delivery.recipient,
        delivery.attempts,
        delivery.last_error,
        as_datetime(delivery.ended_at),
        delivery.purpose,
    )


def view_run(
    run: Run,
    slug: str,
    attempts: Sequence[Attempt],
    deliveries: Sequence[RunDelivery] = (),
    cancel: CancelRequest | None = None,
    backfilled: BackfilledRun | None = None,
    nodes: Mapping[int, str] = MappingProxyType({}),
) -> RunView:
    """A ledger row with its attempts, the current one last."""
    kept = json.loads(run.result) if run.result else {}
    earlier = tuple(
        AttemptView(
            attempt=a.attempt,
            started_at=as_datetime(a.claimed_at),
            ended_at=as_datetime(a.ended_at),
            outcome=a.outcome,
            rung=a.rung,
            error=a.error,
            node=nodes.get(a.owner or 0),
        )
        for a in attempts
        if a.attempt != run.attempt or run.outcome == "waiting"
    )
    current: tuple[AttemptView, ...] = ()
    node = nodes.get(run.owner or 0)
    if run.attempt and run.outcome != "waiting":
        error = None if run.outcome == "running" else run.error  # the row's error is from an earlier attempt
        started_at, ended_at = as_datetime(run.claimed_at), as_datetime(run.ended_at)
        current = (
            AttemptView(
                attempt=run.attempt,
                started_at=started_at,
                ended_at=ended_at,
                outcome=run.outcome,
                rung=run.rung,
                error=error,
                node=node,
            ),
        )
    return RunView(
        run_id=run.run_id,
        slug=slug,
        planned_at=as_datetime(run.planned_at),
        planned_until=as_datetime(run.planned_until),
        count=run.instants,
        due_at=as_datetime(run.due_at),
        started_at=as_datetime(run.started_at),
        ended_at=as_datetime(run.ended_at),
        attempt=run.attempt,
        attempts=earlier + current,
        trigger=run.trigger,
        outcome=run.outcome,
        reason=run.reason,
        rung=run.rung,
        error=run.error,
        next_attempt_at=as_datetime(run.next_attempt_at),
        blocked_by=run.blocked_by,
        output=kept.get("output"),
        stderr=kept.get("stderr"),
        reply=kept.get("reply"),
        usage=complete(kept.get("usage")),
        session_id=kept.get("sessionId"),
        is_stuck=bool(run.stuck),
        delivery=_first(deliveries, kept.get("suppressed")),
        deliveries=tuple(deliveries),
        ladder=tuple((rung, as_datetime(at)) for rung, at in json.loads(run.ladder or "{}").items()),
        reasons=_reasons(run),
        refused_tools=tuple(kept.get("refusedTools", ())),
        cancel_requested_at=None if cancel is None else as_datetime(cancel.requested_at),
        node=node or (earlier[-1].node if earlier else None),
        run_on=tuple((run.run_on or "").split()),
        replay_of=None if backfilled is None else backfilled.replay_of,
        reached=reached_by(run, attempts),
    )


def _first(deliveries: Sequence[RunDelivery], suppressed: str | None) -> RunDelivery | None:
    """The reply itself before any notice about it."""
    if suppressed is not None:
        return RunDelivery("suppressed", error=suppressed, purpose="message", reason=suppressed)
    replies = [delivery for delivery in deliveries if delivery.purpose == "message"]
    return next(iter(replies or deliveries), None)


def _reasons(run: Run) -> tuple[str, ...]:
    """What requested a turn. Other runs carry a definition, or nothing."""
    if run.schedule_id > 0 or run.definition is None:
        return ()
    kept = json.loads(run.definition)
    return tuple(kept.get("reasons", ())) if isinstance(kept, dict) else ()
