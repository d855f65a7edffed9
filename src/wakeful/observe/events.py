"""Facts as events of the live stream: the stream's name, the event's name, and its JSON.

An event is built from its row only when it is read. Until it is read, a batch of two hundred rows costs as much as one
row.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar, assert_never

from wakeful.core.run.runs import Run
from wakeful.core.time.instants import Instant
from wakeful.ports import event_data, events, sink
from wakeful.ports.claims import Batch
from wakeful.ports.event import EventKind
from wakeful.ports.event_data import RunChanged
from wakeful.ports.plain_runs import PlainRuns
from wakeful.ports.sink import Fact, Slugs

Data: TypeAlias = Mapping[str, Any]
T = TypeVar("T")


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
            return _of_runs(events.RUN_CLAIMED, at, runs, slugs)
        case sink.RunsWaiting(at, runs):
            return _of_runs(events.RUN_WAITING, at, runs, slugs)
        case sink.RunsSettled(at, runs):
            return _of_runs(events.RUN_SETTLED, at, runs, slugs)
        case sink.RunsRescued(at, runs):
            return _of_runs(events.RUN_RESCUED, at, runs, slugs)
        case sink.InstantsSkipped(at, runs):
            return _of_runs(events.RUN_SKIPPED, at, runs, slugs)
        case sink.InstantsMissed(at, runs):
            return _of_runs(events.RUN_MISSED, at, runs, slugs)
        case sink.RunsClimbed(at, marks):
            return _batch(
                events.RUN_CLIMBED,
                at,
                len(marks),
                lambda i: event_data.Climbed(marks[i].run_id, marks[i].rung),
            )
        case sink.RunsVoided(at, run_ids):
            return _batch(events.RUN_VOIDED, at, len(run_ids), lambda i: event_data.RunNamed(run_ids[i]))
        case sink.SchedulesChanged(at, changes):
            return EventBatch("schedules", "changed", at, len(changes), _changed(changes, slugs))
        case sink.NodeEntered() | sink.NodeLeft() | sink.LeaseLost() | sink.ClockJumped():
            return _of_nodes(fact)
        case sink.Alerted(at, incident, text):
            return _one(events.ALERT_ALERTED, at, event_data.IncidentText(incident, text))
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
            return _one(events.NODE_ENTERED, at, event_data.NodeEntered(node_id, name, host, pid))
        case sink.NodeLeft(at, node_ids):
            return _batch(events.NODE_LEFT, at, len(node_ids), lambda i: event_data.NodeNamed(node_ids[i]))
        case sink.LeaseLost(at, node_id):
            return _one(events.NODE_LOST_LEASE, at, event_data.NodeNamed(node_id))
        case sink.ClockJumped(at, by):
            return _one(events.NODE_CLOCK_JUMPED, at, event_data.ClockJumped(by))


def _batch(event: EventKind[T], at: Instant, size: int, data: Callable[[int], T]) -> EventBatch:
    return EventBatch(event.stream, event.what, at, size, lambda i: event.json(data(i)))


def _one(event: EventKind[T], at: Instant, data: T) -> EventBatch:
    return _batch(event, at, 1, lambda _: data)


def _of_runs(event: EventKind[RunChanged], at: Instant, runs: Sequence[Run], slugs: Slugs) -> EventBatch:
    if isinstance(runs, PlainRuns):
        return EventBatch(event.stream, event.what, at, len(runs), _plain(event, runs, slugs))
    return _batch(event, at, len(runs), lambda i: run_changed(runs[i], slugs))


def _plain(event: EventKind[RunChanged], runs: PlainRuns, slugs: Slugs) -> Callable[[int], Data]:
    """The JSON of runs in batches: made once for each batch, but for the names. Only one claim of each batch is kept:
    events may stay in the ring for long, and a claim holds its attempt."""
    run_ids = [claim.run_id for claim in runs.claims]
    schedule_ids = [claim.schedule_id for claim in runs.claims]
    batches = [claim.batch for claim in runs.claims]
    one_of, row_of = dict(zip(batches, runs.claims, strict=True)), runs.row_of
    made: dict[Batch, Data] = {}

    def expand(index: int) -> Data:
        batch = batches[index]
        data = made.get(batch)
        if data is None:
            data = made[batch] = event.json(run_changed(row_of(one_of[batch]), slugs))
        return {**data, "runId": str(run_ids[index]), "slug": slugs.get(schedule_ids[index])}

    return expand


def run_changed(run: Run, slugs: Slugs) -> RunChanged:
    """The summary of a run. An error of an earlier attempt is left out while the run is running."""
    same = {name: getattr(run, name) for name in _OF_THE_ROW}
    error = None if run.outcome == "running" else run.error
    return RunChanged(slug=slugs.get(run.schedule_id), error=error, **same)


_OF_THE_ROW = tuple(
    name for name in (field.attribute for field in events.RUN_SETTLED.data) if name in Run._fields and name != "error"
)
"""What is the same in the event and in the row of the ledger."""


def _changed(changes: Sequence[sink.ScheduleChange], slugs: Slugs) -> Callable[[int], Data]:
    """The JSON of changes; of those that are the same for many schedules, computed once, but for the slug."""
    same: dict[tuple[str, int, str | None], Data] = {}

    def expand(index: int) -> Data:
        schedule_id, kind, version, reason, known, _ = changes[index]
        slug = known or slugs.get(schedule_id)
        data = same.get((kind, version, reason))
        if data is None:
            event = events.SCHEDULE_CHANGES[kind]
            data = {"what": event.what, **event.json(event_data.ScheduleChanged(slug, version, reason))}
            same[kind, version, reason] = data
        return {**data, "slug": slug}

    return expand
