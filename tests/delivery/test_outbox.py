"""The outbox on virtual time: what is written arrives, in order, or is kept as a dead letter."""

from typing import Any

import pytest

from delivery.kit import Refused, Unsent, reachable, statuses
from features.kit import Bot, World, virtual
from wakeful import every
from wakeful.core.delivery.retries import DeliveryLimits, retry_at, retry_delay
from wakeful.core.refusals import Conflict, NotFound
from wakeful.core.time.instants import DAY, HOUR, MINUTE, SECOND
from wakeful.engine.chores import AT_ONCE_MAX, ChoreAlarms
from wakeful.ports.handlers import RingResult
from wakeful.ports.outbox import ALARM_DELIVERY

DOWN = Unsent("it is down")


@virtual
async def test_a_text_arrives_at_once_and_is_acknowledged(world: World) -> None:
    """Written, claimed, sent, noted: without any time passing."""
    app, people = await reachable(world, "phone")
    made = await app.people.send("hello")
    assert (made.status, made.channel, made.attempts) == ("pending", "phone", 0)
    await world.settle()
    assert people["phone"].got == ["hello"]
    seen = await app.people.delivery(made.id)
    assert (seen.status, seen.attempts, seen.last_error, seen.next_attempt_at) == ("delivered", 1, None, None)
    assert people["phone"].ids == [made.id]
    assert seen.ended_at is not None


@virtual
async def test_it_is_written_before_it_is_sent(world: World) -> None:
    """The row and its attempt are in the database while the receiver still thinks about it."""
    seen: list[Any] = []
    app, _ = await reachable(world, "phone", usual=lambda _: seen.append(statuses(world)))
    await app.people.send("hello")
    await world.settle()
    assert seen == [[("hello", "pending", 1)]]


@virtual
async def test_retries_follow_the_ladder_and_then_it_is_a_dead_letter(world: World) -> None:
    """5 s, 25 s, 2 min, 10 min, 10 min: six attempts under one id, and the text is kept (note 37)."""
    app, people = await reachable(world, "phone", usual=DOWN)
    made = await app.people.send("hello")
    await world.sleep("1h")
    phone = people["phone"]
    assert [at[-8:] for at in phone.at] == ["00:00:00", "00:00:05", "00:00:30", "00:02:30", "00:12:30", "00:22:30"]
    assert set(phone.ids) == {made.id}
    seen = await app.people.delivery(made.id)
    assert (seen.status, seen.attempts, seen.last_error, seen.text) == ("dead", 6, "it is down", "hello")


@virtual
async def test_how_often_is_a_setting(world: World) -> None:
    """No retries: one attempt."""
    app, people = await reachable(world, "phone", usual=DOWN, delivery=DeliveryLimits(retries_max=0))
    await app.people.send("hello")
    await world.sleep("1h")
    assert len(people["phone"].letters) == 1
    app._delivery.change(limits=DeliveryLimits(retries_max=7))
    people["phone"].letters.clear()
    await app.people.send("again")
    await world.sleep("3h")
    assert len(people["phone"].letters) == 8


@virtual
async def test_a_permanent_error_is_a_dead_letter_at_once(world: World) -> None:
    """The same would happen again."""
    app, people = await reachable(world, "phone", usual=Refused("no such chat"))
    made = await app.people.send("hello")
    await world.sleep("1h")
    assert len(people["phone"].letters) == 1
    assert (await app.people.delivery(made.id)).last_error == "no such chat"


@pytest.mark.parametrize(("asked", "waited"), [(90 * SECOND, 90 * SECOND), (SECOND, 5 * SECOND), (3 * HOUR, 3 * HOUR)])
@virtual
async def test_a_receiver_that_asks_to_be_left_alone_is(world: World, asked: int, waited: int) -> None:
    """Retry-After is obeyed, and never makes us faster than the ladder."""
    app, people = await reachable(world, "phone")
    people["phone"].script = [lambda _: Unsent("slow down", retry_at=world.now + asked)]
    began = world.now
    made = await app.people.send("hello")
    await world.sleep(waited - 1)
    assert people["phone"].got == []
    await world.sleep(1)
    assert people["phone"].got == ["hello"]
    ended = (await app.people.delivery(made.id)).ended_at
    assert ended is not None
    assert round(ended.timestamp() * 1000) == began + waited


@virtual
async def test_order_is_kept_per_channel_and_recipient(world: World) -> None:
    """The next of an addressee goes when the one before is delivered or dead; nobody else waits for it."""
    app, people = await reachable(world, "phone", "mail")
    people["phone"].usual = lambda letter: DOWN if letter.text.startswith("a") else None
    for text in ("a1", "b1", "a2", "b2"):
        await app.people.send(text, channel="phone", to="7")
    await app.people.send("other person", channel="phone", to="8")
    await app.people.send("other channel", channel="mail")
    await world.settle()
    assert people["phone"].got == ["other person"]
    assert people["mail"].got == ["other channel"]
    await world.sleep("22m29s")
    assert people["phone"].got == ["other person"]
    await world.sleep("1s")
    assert people["phone"].got[:2] == ["other person", "b1"]
    await world.sleep("1h")
    assert [text for text in people["phone"].got if len(text) == 2] == ["b1", "b2"]
    assert statuses(world)[:4] == [("a1", "dead", 6), ("b1", "delivered", 1), ("a2", "dead", 6), ("b2", "delivered", 1)]


@virtual
async def test_an_addressee_gets_one_at_a_time(world: World) -> None:
    """Slowly and in order, while others get theirs."""
    app, people = await reachable(world, "phone", usual=10 * SECOND)
    for n in range(5):
        await app.people.send(str(n), to="7")
    await world.sleep("55s")
    assert people["phone"].got == ["0", "1", "2", "3", "4"]
    assert people["phone"].under_way_max == 1


@virtual
async def test_what_is_too_old_is_not_sent(world: World) -> None:
    """A day, unless the settings say otherwise; it stays as a dead letter with its error (note 36)."""
    app, people = await reachable(world, "phone", delivery=DeliveryLimits(age_max=HOUR))
    people["phone"].usual = lambda _: Unsent("slow down", retry_at=world.now + DAY)
    made = await app.people.send("old")
    await app.people.send("behind it", to="8")
    await world.sleep("59m")
    assert (await app.people.delivery(made.id)).status == "pending"
    await world.sleep("1m")
    seen = await app.people.delivery(made.id)
    assert (seen.status, seen.last_error) == ("dead", "not delivered within 1h; the last error: slow down")
    assert len(people["phone"].letters) == 2  # one each; the alert goes elsewhere


@virtual
async def test_a_dead_letter_is_sent_again_by_hand(world: World) -> None:
    """From the start, under the same id; one that waits goes at once; one that arrived does not go twice."""
    app, people = await reachable(world, "phone", usual=DOWN)
    made = await app.people.send("hello")
    await world.sleep("1h")
    assert (await app.people.delivery(made.id)).status == "dead"
    again = await app.people.retry(made.id)
    assert (again.status, again.attempts, again.id) == ("pending", 0, made.id)
    await world.settle()
    assert len(people["phone"].letters) == 7
    people["phone"].usual = None
    await app.people.retry(str(made.number))
    await world.settle()
    assert people["phone"].got[0] == "hello"
    assert set(people["phone"].ids[:8]) == {made.id}
    with pytest.raises(Conflict, match="was already delivered"):
        await app.people.retry(made.id)


@virtual
async def test_what_is_discarded_is_gone_and_what_is_behind_it_goes(world: World) -> None:
    """Pending or dead; an unknown one is said to be unknown."""
    app, people = await reachable(world, "phone")
    people["phone"].usual = lambda letter: DOWN if letter.text == "stuck" else None
    stuck = await app.people.send("stuck")
    await app.people.send("next")
    await world.settle()
    assert people["phone"].got == []
    await app.people.discard(stuck.id)
    await world.settle()
    assert people["phone"].got == ["next"]
    for unknown in (stuck.id, "999", f"{'0' * 12}-1", "x", "-1", "٣", "9" * 30):
        with pytest.raises(NotFound):
            await app.people.discard(unknown)


@virtual
async def test_one_discarded_while_it_is_sent_leaves_nothing_behind(world: World) -> None:
    """Its answer finds no row, and the next goes all the same."""
    app, people = await reachable(world, "phone", usual=10 * SECOND)
    made = await app.people.send("first")
    await app.people.send("second")
    await world.sleep("5s")
    await app.people.discard(made.id)
    await world.sleep("30s")
    assert people["phone"].got == ["first", "second"]
    assert statuses(world) == [("second", "delivered", 1)]


@virtual
async def test_a_process_that_dies_after_sending_sends_once_more_under_the_same_id(world: World) -> None:
    """At least once: the receiver knows the second by its id."""
    app, people = await reachable(world, "phone", usual=10 * SECOND)
    made = await app.people.send("hello")
    await app.people.send("behind")
    await world.sleep("9s")
    await app.kill()
    phone = people["phone"]
    again, later = await reachable(world, "phone")
    await world.sleep("1s")
    assert phone.got == []
    assert later["phone"].got == ["hello", "behind"]
    assert later["phone"].ids[0] == made.id
    assert statuses(world)[0] == ("hello", "delivered", 2)
    await world.reopen(again)
    await world.sleep("1h")
    assert len(later["phone"].got) == 2


@virtual
async def test_a_text_that_kills_its_sender_is_given_up(world: World) -> None:
    """Attempts are counted before they are made."""
    app, _ = await reachable(world, "phone", usual=10 * SECOND)
    await app.people.send("poison")
    await app.people.send("fine")
    for _ in range(6):
        await world.sleep("5s")
        await app.kill()
        app, people = await reachable(world, "phone", usual=10 * SECOND)
    await world.sleep("1m")
    assert statuses(world)[:2] == [("poison", "dead", 6), ("fine", "delivered", 1)]
    assert people["phone"].got[0] == "fine"


@virtual
async def test_a_start_spends_its_budget_and_defers_the_rest(world: World) -> None:
    """In order within the budget; then a pause, then the rest, still in order. What is new does not wait for it."""
    app, people = await reachable(world, "phone", "mail", usual=RuntimeError("down"))
    for n in range(100):
        await app.people.send(f"{n:03}", channel="phone")
    await world.sleep("10s")
    await app.kill()
    again, people = await reachable(world, "phone", "mail", usual=SECOND)
    await world.sleep("70s")
    sent = len(people["phone"].got)
    assert 25 <= sent <= 61  # its first in line had to wait for its retry
    assert people["phone"].got == [f"{n:03}" for n in range(sent)]
    await again.people.send("new", channel="mail")
    await world.sleep("2s")
    assert people["mail"].got == ["new"]
    assert len(people["phone"].got) == sent
    await world.sleep("3m")
    assert people["phone"].got == [f"{n:03}" for n in range(100)]


@virtual
async def test_a_channel_that_hangs_is_left_and_harms_nobody(world: World) -> None:
    """Its attempt ends after 50 s and counts as an error; the clock is not late."""
    app, people = await reachable(world, "slow", "quick", usual=None)
    people["slow"].usual = HOUR
    bot = Bot(world)
    await app.add("tick", every("10s"), call=bot)
    await app.people.send("x", channel="slow")
    await app.people.send("y", channel="quick")
    await world.sleep("51s")
    assert people["quick"].got == ["y"]
    assert bot.began == bot.planned
    assert len(bot.began) == 5
    assert "no answer within 50 s" in ((await app.people.deliveries(status="pending")).deliveries[0].last_error or "")


@virtual
async def test_sends_are_bounded_and_nothing_waits_for_no_reason(world: World) -> None:
    """64 at once; the others go as soon as there is room, and the engine sleeps meanwhile."""
    app, people = await reachable(world, "phone", usual=5 * SECOND)
    for n in range(200):
        await app.people.send(str(n), to=str(n))
    await world.sleep("4s")
    assert people["phone"].under_way == 64
    writes = app.store.writes
    await world.sleep("500ms")
    assert app.store.writes - writes <= 2
    await world.sleep("16s")
    assert len(people["phone"].got) == 200
    assert people["phone"].under_way_max == 64


@virtual
async def test_a_clock_that_came_back_does_not_hold_deliveries_up(world: World) -> None:
    """What was to be tried on the wrong clock is tried on the right one."""
    world.sleep_max = MINUTE
    app, people = await reachable(world, "phone", usual=DOWN)
    await app.people.send("hello")
    await world.sleep("31s")
    people["phone"].usual = None
    world.wall.step(-30 * MINUTE)
    await world.sleep("4m")
    assert people["phone"].got == ["hello"]


def test_the_ladder_goes_on_with_its_last_step() -> None:
    """However many retries the settings allow."""
    assert [retry_delay(n) for n in (1, 2, 3, 4, 5, 6, 50)] == [
        5 * SECOND,
        25 * SECOND,
        2 * MINUTE,
        *([10 * MINUTE] * 4),
    ]
    assert retry_at(1, now=0, asked=3 * SECOND) == 5 * SECOND
    assert retry_at(1, now=0, asked=9 * SECOND) == 9 * SECOND


@virtual
async def test_a_clock_that_is_moved_sends_nothing_again_while_it_is_under_way(world: World) -> None:
    """The claim runs out by the wall, but the send goes on in this very process: nobody gets it twice."""
    world.sleep_max = MINUTE
    app, people = await reachable(world, "phone", "mail", usual=20 * SECOND)
    await app.people.send("hello", channel="phone")
    await app.people.send("and goodbye", channel="phone")
    await world.sleep(5 * SECOND)
    world.clock.step(HOUR)
    await app.people.send("look at the clock", channel="mail")
    await world.sleep(2 * MINUTE)
    assert people["phone"].got == ["hello", "and goodbye"]
    assert people["phone"].under_way_max == 1


@virtual
async def test_what_was_queued_on_a_clock_that_was_ahead_does_not_wait_for_it(world: World) -> None:
    """Two texts, written while the clock was an hour ahead; it comes back while the first is under way: the second is
    not kept until the hour is over."""
    world.sleep_max = MINUTE
    app, people = await reachable(world, "phone", "mail", usual=20 * SECOND)
    world.clock.step(HOUR)
    await app.people.send("hello", channel="phone")
    await app.people.send("and goodbye", channel="phone")
    await world.sleep(5 * SECOND)
    world.clock.step(-HOUR)
    await app.people.send("look at the clock", channel="mail")
    await world.sleep(5 * MINUTE)
    assert people["phone"].got == ["hello", "and goodbye"]


@virtual
async def test_a_process_that_dies_young_on_a_clock_that_was_ahead_holds_nothing_back(world: World) -> None:
    """It starts a day ahead and is gone before it renews its lease; the clock comes back before the next one starts:
    what waits for another attempt does not wait for that day."""
    world.sleep_max = MINUTE
    app, _ = await reachable(world, "phone")
    await app.kill()
    world.clock.step(DAY)
    app, _ = await reachable(world, "phone", usual=DOWN)
    await app.people.send("hello")
    await world.settle()
    await app.kill()
    world.clock.step(-DAY)
    _, people = await reachable(world, "phone")
    await world.sleep(5 * MINUTE)
    assert people["phone"].got == ["hello"]


@pytest.mark.promise
@virtual
async def test_the_ring_that_takes_the_last_room_says_that_it_is_full(world: World) -> None:
    """What is due beyond it is not looked at until a send ends: no second ring only to find that there is no room."""
    app, people = await reachable(world, "phone", usual=20 * SECOND)
    rungs: list[RingResult] = []
    (attempts,) = [one for one in app.parts.hooks.alarms if one.kind == ALARM_DELIVERY]
    assert isinstance(attempts, ChoreAlarms)
    ring = attempts.ring

    def heard(*args: Any, **given: Any) -> RingResult:
        rungs.append(ring(*args, **given))
        return rungs[-1]

    attempts.ring = heard  # type: ignore[method-assign]
    for n in range(AT_ONCE_MAX + 6):
        await app.people.send("hello", channel="phone", to=f"r{n}")
    await world.sleep("1s")
    taken = [rung for rung in rungs if rung.side_tasks]
    assert sum(len(rung.side_tasks) for rung in taken) == AT_ONCE_MAX
    assert list(taken[-1].full) == [ALARM_DELIVERY]
    await world.sleep("1m")
    assert len(people["phone"].got) == AT_ONCE_MAX + 6
    assert people["phone"].under_way_max == AT_ONCE_MAX
