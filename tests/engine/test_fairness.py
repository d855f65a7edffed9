"""What is due now does not wait behind all that is overdue, and what is overdue goes on (`engine.fairness`)."""

from typing import Any

import pytest

from conformance.rows import a_run, put_runs
from features.kit import Bench, Bot, World, virtual
from wakeful import every
from wakeful.core.time.instants import HOUR, SECOND
from wakeful.engine.fairness import late_max, waiting_runs
from wakeful.features.schedules.alarms import ScheduleAlarms
from wakeful.ports.store import Tx, run_alarm


@pytest.mark.parametrize(("room", "late"), [(2, 1), (3, 1), (4, 2), (200, 100)])
def test_the_larger_half_of_the_places_is_for_what_is_on_time(room: int, late: int) -> None:
    """Whichever turn it is."""
    assert late_max(room, is_turn_of_late=False) == late_max(room, is_turn_of_late=True) == late


def test_a_single_place_goes_to_each_side_in_turn() -> None:
    """At least every second claim takes something that is overdue."""
    assert [late_max(1, is_turn_of_late=turn) for turn in (False, True)] == [0, 1]


async def _overdue(
    world: World, bot: Bot, number: int, *, capacity: int, lane: str | None = None, due_at_start: str | None = None
) -> Bench:
    """An app that starts again two hours after so many instants were due, and when this schedule is."""
    app = await world.open(bot, concurrency_max=capacity)
    if due_at_start is not None:
        await app.add(due_at_start, every("8h"), active_hours={"start": "00:00", "end": "23:59"})
    for index in range(number):
        await app.add(f"old-{index}", every("6h"), lane=lane)
    await world.until("01-01 05:00:00")
    await app.stop()
    await world.until("01-01 08:00:00")
    await app.start()
    return app


def _began(bot: Bot, prefix: str) -> list[str]:
    return [began for fire, began in zip(bot.fires, bot.began, strict=True) if fire.slug.startswith(prefix)]


@pytest.mark.parametrize("capacity", [1, 2, 4])
@virtual
async def test_an_instant_on_time_passes_what_is_overdue(world: World, capacity: int) -> None:
    """It starts when the next runs end, however many are overdue; all of those run as well."""
    bot = Bot(world, usual=20 * SECOND)
    app = await _overdue(world, bot, 60 * capacity, capacity=capacity)
    await app.add("now", every("2m"))
    await world.until("01-01 08:17:10")
    assert bot.planned.count("01-01 06:00:00") < 60 * capacity, "some are still overdue"
    for minute, began in zip(range(2, 18, 2), _began(bot, "now"), strict=True):
        assert f"01-01 08:{minute:02}:00" <= began <= f"01-01 08:{minute + 1:02}:00"
    assert bot.running_max == capacity
    await world.until("01-01 08:40:00")
    assert len(_began(bot, "old")) == 60 * capacity


@virtual
async def test_a_single_place_is_shared_in_turn(world: World) -> None:
    """What is on time alone could keep it busy all the time."""
    bot = Bot(world, usual=20 * SECOND)
    app = await _overdue(world, bot, 6, capacity=1)
    for index in range(3):
        await app.add(f"now-{index}", every("30s"))
    await world.until("01-01 08:06:00")
    assert len(_began(bot, "old")) == 6
    assert len(_began(bot, "now")) > 6


@virtual
async def test_an_instant_on_time_does_not_pass_an_older_one_of_its_lane(world: World) -> None:
    """Both ring together after an outage: the older one was missed, and needs a decision of its own."""
    bot = Bot(world, usual=20 * SECOND)
    app = await world.open(bot)
    await app.add("now", every("8h"), lane="desk")
    await app.add("old", every("6h"), lane="desk")
    await world.until("01-01 05:00:00")
    await app.stop()
    await world.until("01-01 08:00:00")
    await app.start()
    await world.until("01-01 08:05:00")
    assert [fire.slug for fire in bot.fires] == ["old", "now"]


@virtual
async def test_one_that_cannot_ring_does_not_put_off_what_is_overdue(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """L9: alarms are then rung one by one, oldest first, and the one that failed is put off."""
    decide = ScheduleAlarms._decide

    def poisoned(self: ScheduleAlarms, tx: Any, cadence: Any, compiled: Any, *rest: Any) -> Any:
        if getattr(compiled, "slug", None) == "bad":
            raise ZeroDivisionError("a fault of ours")
        return decide(self, tx, cadence, compiled, *rest)

    monkeypatch.setattr(ScheduleAlarms, "_decide", poisoned)
    bot = Bot(world, usual=20 * SECOND)
    await _overdue(world, bot, 12, capacity=2, due_at_start="bad")
    await world.until("01-01 08:00:10")
    put_off = (
        "SELECT slug FROM alarms JOIN schedules ON schedule_id = ref WHERE kind = 'schedule' AND due_at BETWEEN ? AND ?"
    )
    assert set(world.query(put_off, world.now, world.now + HOUR)) <= {("bad",)}
    await world.until("01-01 08:10:00")
    assert len(_began(bot, "old")) == 12
    assert "bad" not in {fire.slug for fire in bot.fires}


@virtual
async def test_in_a_lane_what_is_overdue_comes_first(world: World) -> None:
    """There the order is by due time."""
    bot = Bot(world, usual=20 * SECOND)
    app = await _overdue(world, bot, 8, capacity=4, lane="desk")
    await app.add("now", every("1m"), lane="desk")
    await world.until("01-01 08:04:00")
    slugs = [fire.slug for fire in bot.fires]
    assert slugs[:8] == [f"old-{index}" for index in range(8)]
    assert set(slugs[8:]) == {"now"}


@pytest.mark.parametrize("room", [1, 2, 3, 5, 9])
@virtual
async def test_a_run_whose_alarm_is_later_than_it_says_is_taken_once(world: World, room: int) -> None:
    """As after a crash: what was begun hours ago waits with an alarm of now. All places are used."""
    app = await world.open()
    now = world.now
    rows = [a_run(number, planned_at=now - HOUR, due_at=now - HOUR + number) for number in range(1, 7)]

    def taken(tx: Tx) -> list[int]:
        put_runs(tx, *rows)
        tx.alarms.set_many([run_alarm(row, now if row.run_id % 2 else row.due_at) for row in rows])
        return [
            run.run_id
            for run in waiting_runs(
                tx, [], frozenset(), now=now, room=room, manual_max=None, is_turn_of_late=False
            ).runs
        ]

    runs = await app._store.write(taken)
    assert len(runs) == len(set(runs)) == min(room, len(rows))


@virtual
async def test_retries_do_not_take_every_single_place(world: World) -> None:
    """A retry of an old instant is on time by its alarm: what is overdue has the next turn all the same."""
    fires: list[str] = []

    async def act(fire: Any) -> None:
        fires.append(fire.slug)
        await world.clock.sleep(20 * SECOND)
        if fire.slug.startswith("retry"):
            raise RuntimeError("again")

    app = await world.open(act, concurrency_max=1)
    for index in range(3):
        await app.add(f"retry-{index}", every("5h"), retry={"times": 500, "delay": "30s"}, max_consecutive_errors=None)
    for index in range(12):
        await app.add(f"old-{index}", every("6h"))
    await world.until("01-01 06:30:00")
    assert sum(slug.startswith("old") for slug in fires) == 12


@virtual
async def test_in_a_lane_a_waiting_run_on_time_does_not_pass_an_older_one(world: World) -> None:
    """Beside late runs without a lane, too."""
    app = await world.open()
    now = world.now
    rows = [
        a_run(1, planned_at=now - HOUR, due_at=now - HOUR, lane="desk"),
        a_run(2, planned_at=now - HOUR, due_at=now - HOUR + 1),
        a_run(3, planned_at=now - HOUR, due_at=now - HOUR + 2),
        a_run(4, planned_at=now - SECOND, due_at=now - SECOND, lane="desk"),
    ]

    def held(tx: Tx) -> set[int]:
        put_runs(tx, *rows)
        tx.alarms.set_many([run_alarm(row, row.due_at) for row in rows])
        due = waiting_runs(tx, [], frozenset(), now=now, room=4, manual_max=None, is_turn_of_late=False)
        return set(tx.lanes.take_many([(run.lane, run.run_id) for run in due.runs if run.lane is not None]))

    assert await app._store.write(held) == {1}
