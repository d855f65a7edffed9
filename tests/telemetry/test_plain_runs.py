"""What listeners learn of runs in batches is what their rows say, and the rows are made only if they are needed."""

from collections.abc import Callable
from typing import Any

import pytest

from conformance.rows import NOW, a_batch
from features.kit import World, virtual
from wakeful.core.run.runs import Run
from wakeful.core.run.transitions import closed
from wakeful.core.schedule.plain import SUCCESS
from wakeful.observe.events import batch_of
from wakeful.observe.facts import facts_of
from wakeful.observe.fan_out import FanOut
from wakeful.observe.log_lines import lines_of
from wakeful.observe.metrics import Metrics
from wakeful.observe.stream import Event, Stream
from wakeful.ports.changes import Change, RunsSaved, RunsStarted, RunsSucceeded, SchedulesDone
from wakeful.ports.claims import Claim
from wakeful.ports.plain_runs import PlainRuns
from wakeful.ports.sink import Fact, RunsSettled

SLUGS = {number: f"slug-{number}" for number in range(1, 7)}  # of the seventh schedule it is not known


def claims() -> list[Claim]:
    """Runs of batches with nothing in common, one of them of a single run, in the order in which they ended."""
    many = a_batch((11, 1), (12, 2), (13, 7), rung="started")
    other = a_batch((21, 3), (22, 4), planned_at=NOW - 9, due_at=NOW - 5, lane="a", claimed_at=NOW + 3, version=2)
    alone = Claim.of(a_batch((31, 5)).claims[0].run._replace(priority=2, trigger="manual"), Any, 9)
    return [*many.claims[:2], *other.claims, alone, many.claims[2]]


CHANGES: dict[str, Callable[[list[Claim]], list[Change]]] = {
    "started": lambda claims: [RunsStarted(claims)],
    "succeeded": lambda claims: [RunsSucceeded(claims, NOW + 40, {21: '{"output": "x"}'})],
    "done": lambda claims: [SchedulesDone(claims), RunsSucceeded(claims, NOW + 40, {})],
}


def with_rows(facts: list[Fact]) -> list[Any]:
    """The same facts, with the rows of all runs."""
    return [fact._replace(runs=list(fact.runs)) if hasattr(fact, "runs") else fact for fact in facts]


@pytest.mark.parametrize("change", CHANGES)
def test_every_listener_learns_what_the_rows_say(change: str) -> None:
    """Events with their fields in the same order, metrics, and lines of the log."""
    facts = facts_of(CHANGES[change](claims()), NOW + 50)
    assert any(isinstance(getattr(fact, "runs", None), PlainRuns) for fact in facts)
    told: list[Any] = []
    for given in (facts, with_rows(facts)):
        metrics = Metrics()
        metrics.listen(given, SLUGS)
        batches = [batch for fact in given if (batch := batch_of(fact, SLUGS)) is not None]
        events = [
            (batch.stream, batch.what, list(batch.expand(i).items())) for batch in batches for i in range(batch.size)
        ]
        told.append((events, metrics.render(), list(lines_of(given, SLUGS))))
    assert told[0] == told[1]
    assert len(told[0][0]) == 6 * len(facts)


def test_rows_are_not_made_for_listeners_of_something_else() -> None:
    """Numbers and names need no row of every run."""
    made: list[Claim] = []

    def row_of(claim: Claim) -> Run:
        made.append(claim)
        return closed(claim.run, SUCCESS, now=NOW, result=None)

    class Clock:
        def read(self) -> Any:
            return type("Moment", (), {"now": NOW})

    fan_out, stream, heard = FanOut(), Stream(Clock()), list[Event]()  # type: ignore[arg-type]
    stream.on(heard.append, "schedules")
    fan_out.listen(stream.listen)
    fan_out._learn(dict.fromkeys(range(9), "known"))
    runs = PlainRuns(a_batch(*((number, number) for number in range(1, 6))).claims, row_of)
    fan_out.tell([RunsSettled(NOW, runs)])
    assert (stream.last_id > 0, heard, made) == (True, [], [])
    fan_out.listen(Metrics().listen)
    fan_out.tell([RunsSettled(NOW, runs)])
    assert len(made) == 1


def test_a_row_that_is_written_twice_in_a_commit_is_told_once() -> None:
    """As it was written last."""
    ended = claims()
    again = ended[0].run._replace(outcome="waiting", reason="lane")
    facts = facts_of([RunsSucceeded(ended, NOW, {}), RunsSaved([again])], NOW)
    rows = [run for fact in facts for run in getattr(fact, "runs", ())]
    assert sorted(run.run_id for run in rows) == sorted(claim.run_id for claim in ended)
    assert [run.reason for run in rows if run.run_id == again.run_id] == ["lane"]


@virtual
async def test_an_event_is_built_once_for_all_handlers(world: World) -> None:
    stream = Stream(world.clock)
    heard: list[list[Event]] = [[], []]
    for events in heard:
        stream.on(events.append)
    stream.listen(facts_of([RunsStarted(claims())], NOW), SLUGS)
    assert len(heard[0]) == 6
    assert all(one is other for one, other in zip(*heard, strict=True))
