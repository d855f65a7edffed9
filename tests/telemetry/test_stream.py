"""The live stream: order, resuming, being told what was lost, and subscribers that can break nothing."""

import asyncio
import json
from typing import Any

import pytest

from features.kit import Bot, World, virtual
from telemetry.kit import open_told
from wakeful import every
from wakeful.core.refusals import Conflict
from wakeful.core.time.instants import SECOND
from wakeful.observe.sse import parse_last_id, render, render_event
from wakeful.observe.stream import ID_BITS, SUBSCRIBERS_MAX, Event, Stream, Subscription

MOMENT = 1


async def taken(world: World, subscription: Subscription) -> list[Event]:
    """Everything that is there for it now."""
    found: list[Event] = []
    while events := await subscription.next(world.clock, MOMENT, limit=7):
        found += events
    return found


def publish(stream: Stream, count: int, name: str = "runs", start: int = 0) -> None:
    for number in range(start, start + count):
        stream.publish(name, "counted", {"n": number})


@virtual
async def test_ids_grow_over_all_streams_and_sequences_within_each(world: World) -> None:
    """Nothing is left out and nothing comes twice."""
    stream = Stream(world.clock)
    watching = stream.subscribe()
    for number in range(20):
        publish(stream, 1, "runs" if number % 3 else "alerts", number)
    events = await taken(world, watching)
    assert [event.data["n"] for event in events] == list(range(20))
    assert [event.id for event in events] == list(range(events[0].id, events[0].id + 20))
    for name in ("runs", "alerts"):
        assert [e.seq for e in events if e.stream == name] == list(range(1, 1 + sum(e.stream == name for e in events)))


@virtual
async def test_ids_also_grow_from_one_process_to_the_next(world: World) -> None:
    """Even if the next one starts a millisecond later and the first was busy."""
    first = Stream(world.clock)
    publish(first, 10_000)
    await world.sleep(1)
    second = Stream(world.clock)
    publish(second, 1)
    assert second.last_id > first.last_id
    assert second.last_id < 1 << 63
    assert first.last_id >> ID_BITS == world.now - 1


@virtual
async def test_a_subscriber_hears_only_the_streams_it_asked_for(world: World) -> None:
    """And its cursor passes over the others."""
    stream = Stream(world.clock)
    watching = stream.subscribe(["alerts"])
    publish(stream, 50, "runs")
    publish(stream, 2, "alerts")
    publish(stream, 50, "runs")
    assert [event.data["n"] for event in await taken(world, watching)] == [0, 1]
    assert watching.next_id == stream.last_id + 1


@virtual
async def test_it_resumes_after_the_last_event_seen(world: World) -> None:
    """`Last-Event-ID`: exactly what came after it."""
    stream = Stream(world.clock)
    publish(stream, 10)
    seen = stream.last_id
    publish(stream, 5, start=10)
    assert [event.data["n"] for event in await taken(world, stream.subscribe(last_id=seen))] == [10, 11, 12, 13, 14]


@virtual
async def test_resuming_beyond_what_is_kept_begins_with_a_reset(world: World) -> None:
    """How many were lost is said, then comes what is left."""
    stream = Stream(world.clock, kept_max=10)
    publish(stream, 1)
    seen = stream.last_id
    publish(stream, 100, start=1)
    reset, *rest = await taken(world, stream.subscribe(last_id=seen))
    assert (reset.stream, reset.what, reset.data["missed"]) == ("reset", "reset", 90)
    assert [event.data["n"] for event in rest] == list(range(91, 101))
    reset, *rest = await taken(world, stream.subscribe(["runs"], last_id=seen))
    assert (reset.what, reset.data["missed"], len(rest)) == ("reset", None, 10)


@virtual
async def test_an_id_of_another_process_is_answered_with_a_reset(world: World) -> None:
    """An older one, one from the future, and one that is no number: nobody knows what was missed."""
    before = Stream(world.clock)
    publish(before, 3)
    await world.sleep("1m")
    stream = Stream(world.clock)
    publish(stream, 3)
    for last_id in (before.last_id, stream.last_id + 1, parse_last_id("nonsense")):
        (reset,) = await taken(world, stream.subscribe(last_id=last_id))
        assert (reset.what, reset.data["missed"], reset.id) == ("reset", None, stream.last_id)


@virtual
async def test_a_slow_subscriber_holds_up_nobody_and_is_told_what_it_missed(world: World) -> None:
    """Ten thousand events past one that does not read cost a ring of fifty; only lost events of its streams count."""
    stream = Stream(world.clock, kept_max=50)
    slow, quick = stream.subscribe(["runs"]), stream.subscribe(["runs"])
    heard = 0
    for number in range(1000):
        publish(stream, 5, "runs", number)
        publish(stream, 5, "alerts", number)
        heard += len(await taken(world, quick))
    assert heard == 5000
    reset, *rest = await taken(world, slow)
    assert reset.what == "reset"
    assert reset.data["missed"] + len(rest) == 5000
    assert len(rest) <= 50
    publish(stream, 1, "runs", 7)
    assert [event.data["n"] for event in await taken(world, slow)] == [7]


@virtual
async def test_losing_only_events_of_other_streams_is_no_reset(world: World) -> None:
    """They were not asked for."""
    stream = Stream(world.clock, kept_max=10)
    watching = stream.subscribe(["alerts"])
    publish(stream, 100, "runs")
    publish(stream, 1, "alerts")
    assert [event.stream for event in await taken(world, watching)] == ["alerts"]


@virtual
async def test_a_batch_larger_than_the_ring_is_kept_whole(world: World) -> None:
    """The newest batch is never cut: the ring gives way."""
    stream = Stream(world.clock, kept_max=10)
    app = await open_told(world, Bot(world), stream.listen)
    for number in range(30):
        await app.add(f"tick-{number}", every("10m"))
    await world.until("01-01 00:09:00")
    watching = stream.subscribe(["runs"])
    await world.until("01-01 00:10:00")
    assert len([e for e in await taken(world, watching) if e.what == "settled"]) >= 10


@virtual
async def test_the_story_of_a_run_in_order(world: World) -> None:
    """Entered, created, claimed, settled, with slug and outcome in the data."""
    stream = Stream(world.clock)
    watching = stream.subscribe()
    app = await open_told(world, Bot(world, usual=SECOND), stream.listen)
    await app.add("daily", every("10m"))
    await world.until("01-01 00:11:00")
    events = await taken(world, watching)
    assert [(event.stream, event.what) for event in events] == [
        ("nodes", "entered"),
        ("schedules", "created"),
        ("runs", "claimed"),
        ("runs", "settled"),
    ]
    assert events[1].data == {"what": "created", "slug": "daily", "version": 1, "reason": None}
    assert (events[3].data["slug"], events[3].data["outcome"]) == ("daily", "succeeded")


@virtual
async def test_a_subscription_can_be_iterated_and_closed_from_outside(world: World) -> None:
    """Iteration ends when it is closed, and the place is free again."""
    stream = Stream(world.clock)
    watching = stream.subscribe()
    found: list[int] = []

    async def watch() -> None:
        found.extend([event.data["n"] async for event in watching])

    task = asyncio.create_task(watch())
    await world.settle()
    publish(stream, 3)
    await world.settle()
    watching.close()
    await task
    assert found == [0, 1, 2]
    assert stream.subscribers == 0


@virtual
async def test_the_number_of_subscribers_has_a_limit(world: World) -> None:
    """One more is refused, with the cure."""
    stream = Stream(world.clock)
    for _ in range(SUBSCRIBERS_MAX):
        stream.subscribe()
    with pytest.raises(Conflict, match="close one first"):
        stream.subscribe()


@virtual
async def test_handlers_hear_all_or_one_stream_until_they_unsubscribe(world: World) -> None:
    """`on` answers how to stop."""
    stream = Stream(world.clock)
    everything: list[int] = []
    alerts: list[int] = []
    stop = stream.on(lambda event: everything.append(event.data["n"]))
    stream.on(lambda event: alerts.append(event.data["n"]), "alerts")
    publish(stream, 1, "runs", 1)
    publish(stream, 1, "alerts", 2)
    stop()
    publish(stream, 1, "alerts", 3)
    assert (everything, alerts) == ([1, 2], [2, 3])


@virtual
async def test_a_handler_that_raises_is_dropped_and_the_run_goes_on(world: World) -> None:
    """Subscribers can never affect control flow."""
    calls: list[str] = []

    def broken(event: Event) -> None:
        calls.append(event.what)
        raise RuntimeError("I am broken")

    stream = Stream(world.clock)
    stream.on(broken)
    bot = Bot(world)
    app = await open_told(world, bot, stream.listen)
    await app.add("tick", every("10m"))
    await world.until("01-01 00:15:00")
    assert calls == ["entered"]
    assert bot.planned == ["01-01 00:10:00"]
    assert [event.what for event in await taken(world, stream.subscribe(["runs"], stream.last_id - 2))] == [
        "claimed",
        "settled",
    ]


@virtual
async def test_server_sent_events_carry_id_event_and_one_line_of_json(world: World) -> None:
    """`data` has stream, seq and at; line breaks in a text stay inside the JSON."""
    stream = Stream(world.clock, first_id=41)
    watching = stream.subscribe()
    stream.publish("alerts", "alerted", {"text": "two\nlines, naïve"})
    (event,) = await taken(world, watching)
    lines = render_event(event).decode().split("\n")
    assert lines[0] == "id: 41"
    assert lines[1] == "event: alerts"
    assert json.loads(lines[2].removeprefix("data: ")) == {
        "stream": "alerts",
        "seq": 1,
        "at": "2026-01-01T00:00:00.000Z",
        "what": "alerted",
        "text": "two\nlines, naïve",
    }
    assert lines[3:] == ["", ""]


@virtual
async def test_silence_is_filled_with_heartbeats(world: World) -> None:
    """A comment every five seconds in which nothing came; closing ends the answer and frees the place."""
    stream = Stream(world.clock)
    watching = stream.subscribe()
    answer: Any = render(watching, world.clock)
    assert (await anext(answer)).startswith(b"retry: ")
    began = world.now
    assert await anext(answer) == b": heartbeat\n\n"
    assert world.now - began == 5 * SECOND
    publish(stream, 2)
    assert (await anext(answer)).count(b"\ndata: ") == 2
    await answer.aclose()
    assert stream.subscribers == 0


def test_a_last_event_id_that_is_missing_or_empty_means_from_now_on() -> None:
    """Only a number is an id."""
    assert (parse_last_id(None), parse_last_id(""), parse_last_id("12"), parse_last_id("x")) == (None, None, 12, -1)
