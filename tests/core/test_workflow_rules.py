"""The rules of workflows as values: dirty, queued, fair choice, wakeAt, backoff, phases."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.core.workflow.definition import Consumer, Python
from wakeful.core.workflow.rows import FRESH, Handler, HandlerRun, Subscription, Workflow
from wakeful.core.workflow.rules import (
    BACKOFF_MAX,
    LOOP_RUNS_MAX,
    PHASES,
    WorkflowState,
    backoff,
    clamp_wake,
    counted,
    due_producers,
    is_dirty,
    is_limited,
    is_queued,
    is_startable,
    looping,
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


def flow(*handlers: Handler, read: tuple[Subscription, ...] = (), **changes: object) -> WorkflowState:
    subscriptions = {(one.topic, one.consumer): one for one in read}
    return WorkflowState(workflow(**changes), {one.name: one for one in handlers}, {}, subscriptions)


def reads(topic: str, consumer: str, published: int, seen: int, is_active: int = 1) -> Subscription:
    return Subscription(1, topic, consumer, published, seen, is_active)


@given(st.integers(0, 4 * NOW))
def test_wake_at_lies_between_30_seconds_and_24_hours_from_now(at: int) -> None:
    """Whatever was asked for; inside the bounds it is what was asked for."""
    clamped = clamp_wake(at, NOW)
    assert NOW + 30_000 <= clamped <= NOW + 86_400_000
    assert clamped == at or not NOW + 30_000 <= at <= NOW + 86_400_000


def test_backoff_doubles_from_ten_seconds_to_ten_minutes() -> None:
    """And stays there, without end."""
    assert [backoff(n) // 1000 for n in range(1, 9)] == [10, 20, 40, 80, 160, 320, 600, 600]
    assert backoff(10_000) == BACKOFF_MAX


@pytest.mark.parametrize(
    ("flagged", "published", "seen", "expected"), [(0, 3, 3, False), (0, 4, 3, True), (1, 3, 3, True), (0, 0, 0, False)]
)
def test_dirty_is_flagged_or_published_beyond_what_was_seen(
    flagged: int, published: int, seen: int, expected: bool
) -> None:
    """Of its own topics only, and for itself only."""
    consumer = handler("c", is_flagged=flagged)
    read = (reads("own", "c", published, seen), reads("own", "d", 9, 0), reads("left", "c", 9, 0, is_active=0))
    assert is_dirty(flow(consumer, read=read), consumer) is expected


def test_a_page_that_is_left_to_be_shown_is_dirty() -> None:
    """That of the heads, which has no topic, too."""
    for topic in ("own", ""):
        consumer = handler("c", turn_topic=topic)
        assert is_dirty(flow(consumer), consumer)


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
    dirty = flow(handler("c", wake_at=NOW + 5), read=(reads("t", "c", 1, 0),))
    assert rings_at(dirty, NOW) == NOW
    assert rings_at(flow(handler("c"), read=(reads("t", "gone", 1, 0, is_active=0),)), NOW) is None


def test_a_handler_that_is_held_off_rings_when_that_is_over() -> None:
    """The others are not held with it."""
    held = handler("c", is_flagged=FRESH, held_until=NOW + 7)
    assert rings_at(flow(held), NOW) == NOW + 7
    assert rings_at(flow(held, handler("d", wake_at=NOW + 3)), NOW) == NOW + 3
    assert rings_at(flow(handler("p", "producer", next_at=NOW - 5, held_until=NOW + 9)), NOW) == NOW + 9
    assert next_consumer(flow(held), {}, NOW) is None
    assert next_consumer(flow(held), {}, NOW + 7) == "c"
    assert due_producers(flow(handler("p", "producer", next_at=NOW, held_until=NOW + 1)), NOW) == []


def test_the_rate_limit_holds_the_consumers_until_the_minute_is_over() -> None:
    """Producers are not held; another minute begins from nothing."""
    row = workflow()
    for n in range(LOOP_RUNS_MAX):
        assert not is_limited(row, NOW + n)
        row = counted(row, NOW + n)
    assert is_limited(row, NOW + 59_999)
    limited = flow(handler("c", is_flagged=FRESH))._replace(workflow=row)
    assert rings_at(limited, NOW + 500) == NOW + 60_000
    assert next_consumer(limited, {}, NOW + 500) is None
    assert next_consumer(limited, {}, NOW + 60_000) == "c"
    assert counted(row, NOW + 60_000)._replace(window_at=None) == workflow(window_runs=1)


def test_only_consumers_whose_messages_lead_back_to_them_are_limited() -> None:
    """Directly, or by way of others; one in front of such a ring, or behind it, is not."""

    def consumer(name: str, subscribe: str, *publishes: str) -> Consumer:
        return Consumer(name, (subscribe,), publishes, Python("x"))

    own = consumer("own", "a", "a")
    ring = [consumer("one", "b", "c"), consumer("two", "c", "b", "d"), consumer("behind", "d")]
    assert looping([own, consumer("front", "e", "b"), *ring]) == {"own", "one", "two"}
    assert looping([consumer("x", "a", "b"), consumer("y", "b", "c")]) == frozenset()


def test_the_next_consumer_is_the_one_that_has_waited_longest() -> None:
    """Oldest pending message or due wakeAt; then definition order; one to be looked at without messages comes last."""
    a, b, c = ("t", "a"), ("t", "b"), ("t", "c")
    read = (reads(*a, 1, 0), reads(*b, 1, 0), reads(*c, 1, 1))
    both = flow(handler("a"), handler("b"), handler("c"), read=read)
    assert next_consumer(both, {a: NOW - 1, b: NOW - 2, c: NOW - 99}, NOW) == "b"
    assert next_consumer(both, {a: NOW - 2, b: NOW - 2}, NOW) == "a"
    woken = flow(handler("a"), handler("b"), handler("c", wake_at=NOW - 5), read=read)
    assert next_consumer(woken, {a: NOW - 1, b: NOW - 2, c: NOW - 99}, NOW) == "c"
    assert next_consumer(flow(handler("a", is_flagged=FRESH), handler("b"), read=read), {b: NOW - 1}, NOW) == "b"
    assert next_consumer(flow(handler("a", wake_at=NOW + 1)), {a: 1}, NOW) is None
    turning = flow(handler("c", turn_topic="t", last_run_at=NOW - 1), handler("b"), read=read)
    assert next_consumer(turning, {b: NOW - 2, c: NOW - 99}, NOW) == "b"  # it takes turns with the others


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
