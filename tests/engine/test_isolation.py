"""L9: whatever is wrong with one row or one handler, the clock goes on for all others."""

import sys
from types import ModuleType
from typing import Any

import pytest

from features.kit import Bench, Bot, World, ledger, short, virtual
from features.voice import OK, Voice, beating
from sampling import sampled
from wakeful import every
from wakeful.app.bootstrap import FeatureContext
from wakeful.core.time.instants import DAY, HOUR, MINUTE, Instant
from wakeful.ports.handlers import FeatureHooks, RingResult
from wakeful.ports.store import Alarm, Tx

KIND = "poison"


class Poison:
    """A handler whose alarm cannot be rung until somebody mends it."""

    kind = KIND
    brings_runs = False

    def __init__(self) -> None:
        self.tried: list[Instant] = []
        self.is_mended = False

    async def plug(self, _: FeatureContext) -> FeatureHooks:
        return FeatureHooks(alarms=[self])

    def ring(self, tx: Tx, *, now: Instant, due_by: Instant, limit: int, late_max: int, gap_reason: str) -> RingResult:
        self.tried.append(now)
        if not self.is_mended:
            raise ZeroDivisionError("a fault of ours")
        tx.alarms.move_many(KIND, [(1, None)])
        return RingResult((), 1)

    def turn_back(self, tx: Tx, *, now: Instant, after_id: int, limit: int) -> int | None:
        raise ZeroDivisionError("another one")

    def recover(self, tx: Tx, *, now: Instant) -> None:
        tx.alarms.set_many([Alarm(KIND, 1, now + HOUR, 1, None, 0)])
        raise ZeroDivisionError("and one more")


@virtual
async def test_a_handler_that_raises_holds_up_nobody_and_is_told_of(world: World) -> None:
    """Its alarm is tried again each minute, people hear of it once, everything else is on time; mended, it rings."""
    poison, bot, told = Poison(), Bot(world), []

    async def hear(text: str) -> None:
        told.append(text)

    bench = world.bench(features=[poison.plug])
    bench.on_due(bot)
    bench.register_channel("phone", None, hear)
    await bench.start()
    for number in range(3):
        await bench.add(f"tick-{number}", every("10m"), catch_up="skip")
    await world.until("01-01 03:05:00")
    assert len(bot.fires) == 3 * 18
    assert bot.began == bot.planned
    assert 120 <= len(poison.tried) <= 2 * 126
    expected = f"cannot ring the alarm of {KIND} 1, retrying every minute: ZeroDivisionError: a fault of ours"
    assert told == [expected]
    poison.is_mended = True
    await world.sleep(2 * MINUTE)
    assert world.query("SELECT due_at FROM alarms WHERE kind = ?", KIND) == [(None,)]


@virtual
async def test_a_clock_that_comes_back_is_faced_although_one_handler_cannot(world: World) -> None:
    """Planning anew fails for one kind: the others are planned from now, and fall silent never."""
    poison, bot = Poison(), Bot(world)
    bench = world.bench(features=[poison.plug])
    bench.on_due(bot)
    await bench.start()
    await bench.add("tick", every("1h"))
    world.clock.set(world.now + 30 * DAY)
    await world.sleep(2 * MINUTE)
    world.clock.set(world.now - 30 * DAY)
    await world.sleep(2 * MINUTE)
    before = len(bot.fires)
    await world.sleep(5 * HOUR)
    assert len(bot.fires) == before + 5


# Each on the rows of `bad` while it waits for a retry and has run before; none of it touches `good`.
FAULTS = {
    "its next instant has been": "UPDATE cadences SET next_at = planned_through - 3600000 WHERE schedule_id = 2",
    "its schedule is gone": "DELETE FROM schedules WHERE slug = 'bad'",
    "its cadence is gone": "DELETE FROM cadences WHERE schedule_id = 2",
    "its run is gone": "DELETE FROM runs WHERE schedule_id = 2",
    "its run has ended, and its alarm has not": "UPDATE runs SET outcome = 'failed' WHERE schedule_id = 2",
    "a rung of a newer release": "UPDATE runs SET rung = 'celebrated' WHERE schedule_id = 2",
    "a kind of run of a newer release": "UPDATE runs SET kind = 'party' WHERE schedule_id = 2",
    "a process nobody can read": "UPDATE runs SET process = '{', outcome = 'running', owner = 1 WHERE schedule_id = 2",
    "an alarm of a newer release": "INSERT INTO alarms VALUES ('party', 1, 1, 1, NULL, 0, NULL)",
    "an alarm of nothing": "INSERT INTO alarms VALUES ('schedule', 99, 1, 1, '', 0, ''), ('run', 99, 1, 0, '', 0, '')",
    "a priority there is not": "UPDATE alarms SET priority = 7 WHERE ref = 2 OR kind = 'run'",
}


@pytest.mark.parametrize("fault", sampled(FAULTS, every=6))
@virtual
async def test_a_row_that_makes_no_sense_stops_nothing_but_itself(world: World, fault: str) -> None:
    """Edited by hand, left by a fault of ours, written by a newer release: the neighbour is on time, nobody spins."""
    bot = Bot(world)
    bot.script = [None, None, None, RuntimeError("no")]
    app = await _two(world, bot)
    await world.until("01-01 02:10:00")
    assert (await app.get("bad")).status == "waiting"
    await app.kill()
    world.tamper(FAULTS[fault])
    bot.fires.clear()
    app = await world.open(bot)
    writes = app.store.writes
    await world.until("01-01 05:30:00")
    good = [short(fire.planned_at) for fire in bot.fires if fire.slug == "good"]
    assert good == [f"01-01 0{hour}:00:00" for hour in range(3, 6)]
    assert app.store.writes - writes < 2 * 4 * 3600
    assert (await ledger(app, "good"))[-1] == "01-01 05:00:00 succeeded"


async def _two(world: World, bot: Bot) -> Bench:
    app = await world.open(bot)
    await app.add("good", every("1h"))
    await app.add("bad", every("1h"), retry={"times": 2, "delay": "25m"})
    return app


@pytest.mark.parametrize("column", ["wakes", "turns"])
@pytest.mark.parametrize("kept", ["{", "", "null", "7"])
@virtual
async def test_a_heartbeat_whose_row_is_spoilt_goes_on_beating(world: World, column: str, kept: Any) -> None:
    """What waited is lost with the row; the beats are not."""
    voice = Voice(world)
    app = await beating(world, voice)
    await world.sleep("40m")
    await app.kill()
    world.tamper(f"UPDATE heartbeats SET {column} = ?", kept)
    app = await beating(world, voice)
    await world.sleep("2h")
    assert len(voice.began) == 5
    assert {run.reason for run in await app.runs("heartbeat")} == {"ok-ack"}
    assert voice.usual == OK


@virtual
async def test_a_function_that_cannot_be_looked_up_fails_only_its_own_runs(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a module that imports lazily, after its dependency is gone: those claimed with it go on."""
    lazy, broken = ModuleType("lazy_module"), []

    async def job() -> None: ...

    def attribute(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if broken:
            raise ImportError("No module named 'pandas'")
        return job

    lazy.__getattr__ = attribute  # type: ignore[method-assign]
    monkeypatch.setitem(sys.modules, "lazy_module", lazy)
    bot = Bot(world)
    app = await world.open(bot)
    await app.add("bad", every("10m"), call="lazy_module:job", on_crash="retry", max_consecutive_errors=None)
    await app.add("good", every("10m"), on_crash="retry", timeout="2m")
    await world.sleep("15m")
    broken.append("yes")
    await world.sleep("1h")
    assert len(bot.fires) == 7
    assert {row.partition(" ")[2].split()[-1] for row in (await ledger(app, "good"))} == {"succeeded"}
    assert "failed" in (await ledger(app, "bad"))[-1]
