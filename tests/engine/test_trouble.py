"""Trouble: a store that is out of order, a tick that fails, a row that cannot be read. The clock goes on (L9)."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from features.kit import Bot, World, ledger, short, virtual
from wakeful import Conflict, StoreUnavailable, cron, every
from wakeful.core.time.instants import HOUR, MINUTE
from wakeful.features.schedules.runs import ScheduleRuns


@virtual
async def test_an_ending_is_kept_until_the_store_can_be_written_again(world: World) -> None:
    """The disk is full when the run ends: nothing is lost, nothing runs twice, commands say what is wrong."""
    bot = Bot(world, usual=MINUTE)
    app = await world.open(bot)
    await app.add("job", every("1h"))
    await world.until("01-01 01:00:30")
    app.store.is_down = True
    await world.until("01-01 01:10:00")
    with pytest.raises(StoreUnavailable, match="the disk is full"):
        await app.pause("job")
    assert (await app.get("job")).status == "running"
    app.store.is_down = False
    await world.until("01-01 01:10:05")
    assert await ledger(app, "job") == ["01-01 01:00:00 succeeded"]
    await world.until("01-01 02:30:00")
    assert len(bot.fires) == 2


@virtual
async def test_an_instant_that_came_due_while_the_store_was_down_is_caught_up(world: World) -> None:
    """Nine minutes without a store are an outage like any other."""
    bot = Bot(world)
    app = await world.open(bot)
    await app.add("job", every("2m"))
    app.store.is_down = True
    await world.until("01-01 00:09:00")
    assert bot.fires == []
    app.store.is_down = False
    await world.until("01-01 00:11:00")
    assert await ledger(app, "job") == [
        "01-01 00:02:00 missed (outage) x3",
        "01-01 00:08:00 succeeded",
        "01-01 00:10:00 succeeded",
    ]


@virtual
async def test_a_tick_that_fails_does_not_stop_the_clock(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """Any exception: it is logged, and a second later the engine looks again."""
    bot = Bot(world)
    app = await world.open(bot, limits={"renew_every": HOUR // 3})  # the renewal fails
    await app.add("job", every("1h"))
    await world.until("01-01 00:59:30")
    app.store.fails_next = ZeroDivisionError("a fault of ours")
    await world.until("01-01 01:30:00")
    assert "a tick failed; the engine continues" in caplog.text
    assert bot.planned == ["01-01 01:00:00"]


@virtual
async def test_a_store_that_is_down_at_start_is_said_so(world: World) -> None:
    """Starting fails, and can be tried again."""
    app = world.bench()
    world.path.mkdir()
    with pytest.raises(Exception, match=r"wakeful\.db"):
        await app.start()
    world.path.rmdir()
    await app.start()
    assert app._is_ticking


UNREADABLE = [
    '{"slug": "bad", "schedule"',
    '{"slug": "bad", "schedule": {"type": "cron", "expression": "0 9 * * *", "timezone": "Mars/Olympus"}, '
    '"call": {"target": "on_due"}}',
    '{"slug": "bad", "schedule": {"type": "sometimes"}, "call": {"target": "on_due"}}',
    "[]",
]


@pytest.mark.parametrize("stored", UNREADABLE)
@virtual
async def test_a_definition_that_cannot_be_read_invalidates_only_itself(world: World, stored: str) -> None:
    """L9, OC#15359: it is shown with the reason, its row is kept, the neighbours run, and writing it anew heals it."""
    bot = Bot(world)
    app = await world.open(bot)
    for slug in ("a", "bad", "z"):
        await app.add(slug, every("1h"))
    await app.stop()
    world.tamper("UPDATE schedules SET definition = ? WHERE slug = 'bad'", stored)
    await app.start()
    await world.until("01-01 02:30:00")
    assert sorted(fire.slug for fire in bot.fires) == ["a", "a", "z", "z"]
    view = await app.get("bad")
    assert (view.status, view.definition) == ("invalid", None)
    assert view.status_reason
    assert {v.slug: v.status for v in await app.list()} == {"a": "idle", "bad": "invalid", "z": "idle"}
    assert await app.next_times("bad") == []
    with pytest.raises(Conflict):
        await app.run_now("bad")
    await app.add("bad", every("1h"))
    await world.until("01-01 04:30:00")
    assert (await app.get("bad")).status == "idle"
    assert "bad" in {fire.slug for fire in bot.fires}


@virtual
async def test_an_invalid_schedule_can_be_removed(world: World) -> None:
    """What cannot be read can still be thrown away."""
    app = await world.open(Bot(world))
    await app.add("bad", cron("0 9 * * *"))
    await app.stop()
    world.tamper("UPDATE schedules SET definition = '{'")
    await app.start()
    await world.until("01-01 09:30:00")
    await app.remove("bad")
    assert await app.list() == []


@virtual
async def test_an_open_run_of_a_schedule_that_turned_unreadable_ends(world: World) -> None:
    """A waiting retry under a definition that is gone: it fails with the reason, and holds nothing."""
    bot = Bot(world, usual=RuntimeError("no"))
    app = await world.open(bot)
    await app.add("bad", every("5h"), retry={"times": 3, "delay": "1h"}, lane="one")
    await app.add("good", every("6h"), lane="one")
    await world.until("01-01 05:30:00")
    await app.stop()
    world.tamper("UPDATE schedules SET definition = '{' WHERE slug = 'bad'")
    bot.usual = None
    await app.start()
    await world.until("01-01 06:30:00")
    assert [row.partition(" ")[2] for row in await ledger(app, "bad")] == ["05:00:00 failed (invalid)"]
    assert await ledger(app, "good") == ["01-01 06:00:00 succeeded"]
    assert world.query("SELECT * FROM lanes") == []


@virtual
async def test_an_ending_that_cannot_be_settled_does_not_take_others_with_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """L9: one run among twenty whose settling raises; the others are in the ledger, and the clock goes on."""
    poison = asyncio.Event()
    monkeypatch.setattr(ScheduleRuns, "settle", _poisoned(ScheduleRuns.settle, poison, lambda _, ended: ended))
    monkeypatch.setattr(
        ScheduleRuns, "alike", _poisoned(ScheduleRuns.alike, poison, lambda claims, _: [(one, None) for one in claims])
    )
    poison.set()
    app = await world.open(Bot(world))
    for number in range(1, 21):
        await app.add(f"job-{number:02}", every("1h"))
    await world.until("01-01 01:30:00")
    outcomes = dict(world.query("SELECT schedule_id, outcome FROM runs"))
    assert outcomes.pop(7) == "running"
    assert set(outcomes.values()) == {"succeeded"}
    assert len(outcomes) == 19
    poison.clear()
    await world.until("01-01 01:32:00")  # whatever was at fault is mended: no restart is needed
    assert dict(world.query("SELECT schedule_id, outcome FROM runs"))[7] == "succeeded"
    poison.set()
    await world.until("01-01 02:05:00")
    await app.stop()
    await app.start()  # it cannot be rescued either, and still the clock goes on
    await world.until("01-01 03:05:00")
    assert (await app.get("job-08")).last_run == (await app.get("job-09")).last_run
    assert (await ledger(app, "job-08"))[-1] == "01-01 03:00:00 succeeded"
    assert world.query("SELECT count(*) FROM runs WHERE schedule_id = 7 AND outcome = 'running'") == [(1,)]
    poison.clear()
    await world.until("01-01 04:30:00")
    assert (await app.get("job-07")).last_result == "success"


def _poisoned(settle: Any, poison: asyncio.Event, ended_of: Callable[..., Any]) -> Any:
    """The same, but while there is poison it raises for one schedule."""

    def poisoned(self: ScheduleRuns, tx: Any, *args: Any, **kwargs: Any) -> Any:
        if poison.is_set() and any(run.schedule_id == 7 for run, _ in ended_of(*args)):
            raise ZeroDivisionError("a fault of ours")
        return settle(self, tx, *args, **kwargs)

    return poisoned


@virtual
async def test_a_handler_that_dies_in_any_way_fails_its_own_run(world: World) -> None:
    """L9: SystemExit and KeyboardInterrupt of a callable do not end the engine."""
    bot = Bot(world)
    bot.script = [SystemExit(3), KeyboardInterrupt(), MemoryError(), RecursionError()]
    app = await world.open(bot)
    await app.add("job", every("3h"))
    await world.until("01-01 12:30:00")
    assert [run.error for run in reversed(await app.runs("job"))] == [
        "SystemExit: 3",
        "KeyboardInterrupt",
        "MemoryError",
        "RecursionError",
    ]
    assert app._is_ticking


@virtual
async def test_a_stop_while_the_store_is_down_waits_for_it(world: World) -> None:
    """An ending on its way is not dropped: the store comes back within the grace, and it is recorded."""
    bot = Bot(world, usual=20_000)
    app = await world.open(bot)
    await app.add("job", every("1h"))
    await world.until("01-01 01:00:10")
    app.store.is_down = True

    def heal() -> None:
        app.store.is_down = False

    world.loop.call_later(25, heal)
    await app.stop()
    app = await world.open(bot)
    assert await ledger(app, "job") == ["01-01 01:00:00 succeeded"]
    assert short(world.now) < "01-01 01:01:30"


@virtual
async def test_a_store_that_is_gone_does_not_keep_a_shutdown(world: World) -> None:
    """A run is open and nothing can be written: after the grace it is ended and the app stops."""
    bot = Bot(world, usual=HOUR)
    app = await world.open(bot, shutdown_grace="5s")
    await app.add("job", every("1h"))
    await world.until("01-01 01:00:30")
    assert bot.running == 1
    app.store.is_down = True
    await app.stop()
    assert short(world.now) == "01-01 01:00:35"
    assert bot.running == 0
    again = Bot(world)
    await world.open(again)
    await world.sleep("1m")
    assert [fire.attempt for fire in again.fires] == [2]
