"""Facts as events of the live stream: the stream's name, the event's name, and its JSON.

An event is built from its row only when it is read. Until it is read, a batch of two hundred rows costs as much as one
row.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, assert_never

from wakeful.core.run.runs import Run
from wakeful.core.time.instants import Instant, format_instant, format_optional
from wakeful.ports import sink
from wakeful.ports.sink import Fact, ScheduleChange, Slugs
from wakeful.ports.store import Mark

Data: TypeAlias = Mapping[str, Any]


class EventBatch(NamedTuple):
    """A batch of similar events: `expand(i)` builds the JSON of the i-th."""

    stream: str
    what: str
    at: Instant
    size: int
    expand: Callable[[int], Data]


def batch_of(fact: Fact, slugs: Slugs) -> EventBatch | None:
    """The fact as a batch of events; None if it is only for metrics or traces."""
    match fact:
        case sink.RunsClaimed(at, runs):
            return _of_runs("claimed", at, runs, slugs)
        case sink.RunsWaiting(at, runs):
            return _of_runs("waiting", at, runs, slugs)
        case sink.RunsSettled(at, runs):
            return _of_runs("settled", at, runs, slugs)
        case sink.RunsRescued(at, runs):
            return _of_runs("rescued", at, runs, slugs)
        case sink.InstantsSkipped(at, runs):
            return _of_runs("skipped", at, runs, slugs)
        case sink.InstantsMissed(at, runs):
            return _of_runs("missed", at, runs, slugs)
        case sink.RunsClimbed(at, marks):
            return EventBatch("runs", "climbed", at, len(marks), lambda i: _mark(marks[i]))
        case sink.RunsVoided(at, run_ids):
            return EventBatch("runs", "voided", at, len(run_ids), lambda i: {"runId": str(run_ids[i])})
        case sink.SchedulesChanged(at, changes):
            return EventBatch("schedules", "changed", at, len(changes), lambda i: _change(changes[i], slugs))
        case sink.NodeEntered() | sink.NodeLeft() | sink.LeaseLost() | sink.ClockJumped():
            return _of_nodes(fact)
        case sink.Alerted(at, incident, text):
            return _one("alerts", "alerted", at, {"incident": incident, "text": text})
        case sink.Reported(at, reports):
            stream = reports[0].stream
            return EventBatch(
                stream, "reported", at, len(reports), lambda i: {"what": reports[i].what, **reports[i].data}
            )
        case sink.Ticked() | sink.CommitTimed() | sink.AttemptsEnded():
            return None
        case _:
            assert_never(fact)


def _of_nodes(fact: sink.NodeEntered | sink.NodeLeft | sink.LeaseLost | sink.ClockJumped) -> EventBatch:
    match fact:
        case sink.NodeEntered(at, node_id, name, host, pid):
            return _one("nodes", "entered", at, {"nodeId": str(node_id), "name": name, "host": host, "pid": pid})
        case sink.NodeLeft(at, node_ids):
            return EventBatch("nodes", "left", at, len(node_ids), lambda i: {"nodeId": str(node_ids[i])})
        case sink.LeaseLost(at, node_id):
            return _one("nodes", "lostLease", at, {"nodeId": str(node_id)})
        case sink.ClockJumped(at, by):
            return _one("nodes", "clockJumped", at, {"byMs": by})


def _one(stream: str, what: str, at: Instant, data: Data) -> EventBatch:
    return EventBatch(stream, what, at, 1, lambda _: data)


def _of_runs(what: str, at: Instant, runs: Sequence[Run], slugs: Slugs) -> EventBatch:
    return EventBatch("runs", what, at, len(runs), lambda i: run_json(runs[i], slugs))


def run_json(run: Run, slugs: Slugs) -> dict[str, Any]:
    """The summary of a run for watchers; the full run is at /api/runs/{id}."""
    out: dict[str, Any] = {
        "runId": str(run.run_id),
        "slug": slugs.get(run.schedule_id),
        "plannedAt": format_instant(run.planned_at),
        "dueAt": format_instant(run.due_at),
        "startedAt": format_optional(run.started_at),
        "endedAt": format_optional(run.ended_at),
        "attempt": run.attempt,
        "trigger": run.trigger,
        "outcome": run.outcome,
        "reason": run.reason,
        "rung": run.rung,
        "error": None if run.outcome == "running" else run.error,
        "nextAttemptAt": format_optional(run.next_attempt_at),
    }
    if run.instants > 1:
        out |= {"count": run.instants, "plannedUntil": format_optional(run.planned_until)}
    if run.blocked_by is not None:
        out["blockedBy"] = str(run.blocked_by)
    if run.stuck:
        out["stuck"] = True
    return out


def _change(change: ScheduleChange, slugs: Slugs) -> Data:
    slug = change.slug or slugs.get(change.schedule_id)
    return {"what": change.kind, "slug": slug, "version": change.version, "reason": change.reason}


def _mark(mark: Mark) -> Data:
    return {"runId": str(mark.run_id), "rung": mark.rung}
