"""The rules of workflows as values: dirty, queued, fair choice, wakeAt, backoff, phases."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.core.workflow_rows import Handler, HandlerRun, Topic, Workflow
from wakeful.core.workflow_rules import (
    BACKOFF_MAX,
    PHASES,
    Flow,
    backoff,
    clamp_wake,
    due_producers,
    is_dirty,
    is_given_up,
    is_queued,
    is_startable,
    moved,
    next_consumer,
    rings_at,
)

NOW = 1_800_000_000_000


def workflow(**changes: object) -> Workflow:
    row = Workflow(1, "w", -1, "{}", 1, "rest", "active", None, None, NOW, NOW, None, None, None, None)
    return row._replace(**changes)  # type: ignore[arg-type]


def handler(name: str, kind: str = "consumer", **changes: object) -> Handler:
    row = Handler(1, name, kind, 0, None, None, None, 0, None, None)  # type: ignore[arg-type]
    return row._replace(**changes)  # type: ignore[arg-type]


def flow(*handlers: Handler, topics: tuple[Topic, ...] = (), **changes: object) -> Flow:
    return Flow(workflow(**changes), {one.name: one for one in handlers}, {one.name: one for one in topics})


@given(st.integers(0, 4 * NOW))
def test_wake_at_lies_between_30_seconds_and_24_hours_from_now(at: int) -> None:
    """Whatever was asked for; inside the bounds it is what was asked for."""
    clamped = clamp_wake(at, NOW)
    assert NOW + 30_000 <= clamped <= NOW + 86_400_000
    assert clamped == at or not NOW + 30_000 <= at <= NOW + 86_400_000


def test_backoff_doubles_from_ten_seconds_to_ten_minutes() -> None:
    """And five tries are enough."""
    assert [backoff(n) // 1000 for n in range(1, 9)] == [10, 20, 40, 80, 160, 320, 600, 600]
    assert backoff(10_000) == BACKOFF_MAX
    assert [is_given_up(n) for n in range(3, 7)] == [False, False, True, True]


@pytest.mark.parametrize(
    ("flagged", "published", "seen", "expected"), [(0, 3, 3, False), (0, 4, 3, True), (1, 3, 3, True), (0, 0, 0, False)]
)
def test_dirty_is_flagged_or_published_beyond_what_was_seen(
    flagged: int, published: int, seen: int, expected: bool
) -> None:
    """Of its own topics only."""
    topics = (Topic(1, "own", "c", published, seen), Topic(1, "other", "d", 9, 0))
    assert is_dirty(handler("c", is_flagged=flagged), topics) is expected


def test_queued_is_due_while_another_run_is_open() -> None:
    """Its own run does not make it queued."""
    producer = handler("p", "producer", next_at=NOW, last_run_id=7)
    assert is_queued(workflow(open_run_id=8), producer, NOW)
    assert not is_queued(workflow(open_run_id=7), producer, NOW)
    assert not is_queued(workflow(), producer, NOW)
    assert not is_queued(workflow(open_run_id=8), producer, NOW - 1)


@pytest.mark.parametrize(
    "changes", [{"status": "paused"}, {"status": "draft"}, {"error": "x"}, {"deleted_at": NOW}, {"open_run_id": 1}]
)
def test_nothing_rings_that_may_not_start(changes: dict[str, object]) -> None:
    """However much there is to do."""
    busy = flow(handler("c", is_flagged=1), handler("p", "producer", next_at=0), **changes)
    assert not is_startable(busy.workflow)
    assert rings_at(busy, NOW) is None


def test_the_alarm_is_the_earliest_of_all_that_is_to_come() -> None:
    """Now, if something is dirty or a session is under way."""
    sleeping = flow(handler("p", "producer", next_at=NOW + 9), handler("c", wake_at=NOW + 5), handler("d"))
    assert rings_at(sleeping, NOW) == NOW + 5
    assert rings_at(flow(handler("c")), NOW) is None
    assert rings_at(flow(handler("c"), session_id=3), NOW) == NOW
    dirty = flow(handler("c", wake_at=NOW + 5), topics=(Topic(1, "t", "c", 1, 0),))
    assert rings_at(dirty, NOW) == NOW
    assert rings_at(flow(handler("c"), topics=(Topic(1, "t", None, 1, 0),)), NOW) is None


def test_the_next_consumer_is_the_one_that_has_waited_longest() -> None:
    """Oldest pending message or due wakeAt; then definition order; one to be looked at without messages comes last."""
    topics = (Topic(1, "ta", "a", 1, 0), Topic(1, "tb", "b", 1, 0), Topic(1, "tc", "c", 1, 1))
    both = flow(handler("a"), handler("b"), handler("c"), topics=topics)
    assert next_consumer(both, {"ta": NOW - 1, "tb": NOW - 2, "tc": NOW - 99}, NOW) == "b"
    assert next_consumer(both, {"ta": NOW - 2, "tb": NOW - 2}, NOW) == "a"
    woken = flow(handler("a"), handler("b"), handler("c", wake_at=NOW - 5), topics=topics)
    assert next_consumer(woken, {"ta": NOW - 1, "tb": NOW - 2, "tc": NOW - 99}, NOW) == "c"
    assert next_consumer(flow(handler("a", is_flagged=1), handler("b"), topics=topics), {"tb": NOW - 1}, NOW) == "b"
    assert next_consumer(flow(handler("a", wake_at=NOW + 1)), {"ta": 1}, NOW) is None


def test_due_producers_come_in_the_order_of_the_definition() -> None:
    """Not in that of their times."""
    several = flow(
        handler("z", "producer", next_at=NOW),
        handler("a", "producer", next_at=NOW - 9),
        handler("m", "producer", next_at=NOW + 1),
        handler("n", "producer"),
    )
    assert due_producers(several, NOW) == ["z", "a"]


def test_phases_move_by_their_table_only() -> None:
    """A side effect is behind us, or it is not; what is over is over."""
    run = HandlerRun(1, 1, 1, "c", "consumer", "preparing", "{}", None, None, None, 0, 0, 0, 0, None, 0)
    for phase, targets in PHASES.items():
        for target in PHASES:
            if target in targets:
                assert moved(run._replace(phase=phase), target).phase == target
            else:
                with pytest.raises(AssertionError, match=f"from {phase} to {target}"):
                    moved(run._replace(phase=phase), target)
    assert "preparing" not in PHASES["mutated"] and "mutating" not in PHASES["mutated"]
    assert not PHASES["committed"] and not PHASES["abandoned"]
