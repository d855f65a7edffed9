"""L1 for the heartbeat: whatever happens to it, every beat of its grid is one row of the ledger, or inside one."""

import random
from dataclasses import replace

import pytest

from features.kit import Bench, World, as_ms, short, told, virtual
from features.voice import BUSY, NO, OK, Voice, beating
from sampling import sampled
from wakeful import RunView
from wakeful.core.heartbeat.heartbeat import BeatRules
from wakeful.core.time.active_hours import ActiveHours
from wakeful.core.time.instants import HOUR, MINUTE
from wakeful.features.heartbeat.rules import HeartbeatTerms

pytestmark = pytest.mark.promise

EVERY = 30 * MINUTE
DAY_ONLY = BeatRules(hours=ActiveHours("08:00", "20:00", "Europe/Berlin"), turns_per_hour_max=5)
NIGHT = BeatRules(hours=ActiveHours("22:00", "06:00", "America/New_York"), turns_per_hour_max=3)
ALWAYS = BeatRules(turns_per_hour_max=2)


def reaches(run: RunView, at: int) -> bool:
    assert run.planned_at is not None
    return as_ms(run.planned_at) <= at <= as_ms(run.planned_until or run.planned_at)


async def tiles(world: World, app: Bench) -> None:
    """Every beat up to the border is covered once, none beyond it twice, and counts are right."""
    ((anchor, through),) = world.query(
        "SELECT anchor_at, planned_through FROM heartbeats JOIN cadences ON schedule_id = owner_id"
    )
    covered: list[int] = []
    rows = [run for run in await app.runs("heartbeat", limit=100_000) if run.trigger != "wake"]
    for run in rows:
        assert run.planned_at is not None
        first, last = as_ms(run.planned_at), as_ms(run.planned_until or run.planned_at)
        inside = list(range(first, last + 1, EVERY))
        assert len(inside) == run.count, run
        covered += inside
    twice = sorted({at for at in covered if covered.count(at) > 1})
    assert not twice, [(short(at), [told(run) for run in rows if reaches(run, at)]) for at in twice]
    expected = set(range(anchor + EVERY, through + 1, EVERY))
    assert expected <= set(covered), f"no row for {sorted(expected - set(covered))}"
    assert all((at - anchor) % EVERY == 0 for at in covered)


@pytest.mark.parametrize("seed", sampled([4, 12, 19], every=3))
@virtual
async def test_every_beat_has_its_row_whatever_happens(world: World, seed: int) -> None:
    """Wakes, long, failing and busy turns, other hours, off and on, stops, kills, outages, a clock that jumps.

    With the first seed, the clock also comes back while the hours change."""
    world.sleep_max = 5 * MINUTE
    chance = random.Random(seed)
    voice = Voice(world)
    terms = HeartbeatTerms(enabled=True, every=EVERY, beats=chance.choice([ALWAYS, DAY_ONLY, NIGHT]))
    app = await beating(world, voice, terms)
    for _ in range(40):
        voice.usual = chance.choice([OK, OK, "news", NO, BUSY, 50 * MINUTE, 3 * HOUR, 200])
        match chance.randrange(8):
            case 0 | 1:
                for _ in range(chance.randrange(1, 6)):
                    await app.request_wake(chance.choice(["manual", "hook", "cron"]), chance.choice([None, "look"]))
                    await world.sleep(chance.choice([1, 100, 250, 5_000]))
            case 2:
                terms = replace(terms, enabled=chance.random() < 0.7, beats=chance.choice([ALWAYS, DAY_ONLY, NIGHT]))
                await app.feature.follow(terms)  # type: ignore[attr-defined]
            case 3:
                await (app.stop() if chance.random() < 0.5 else app.kill())
                await world.sleep(chance.choice([1, EVERY, 7 * HOUR, 30 * HOUR]))
                app = await beating(world, voice, terms)
            case 4:
                world.wall.step(chance.choice([-2 * HOUR, -1_000, 1_000, 5 * HOUR]))
            case _:
                pass
        await world.sleep(chance.choice([1, EVERY - 100, EVERY, EVERY + 100, 5 * HOUR, 13 * HOUR]))
    voice.usual = OK
    await world.sleep(6 * HOUR)
    await tiles(world, app)
