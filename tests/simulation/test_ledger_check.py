"""The ledger checker: silent on what the kernel leaves, and never silent on what somebody broke."""

from pathlib import Path
from typing import Any

import pytest

from features.kit import Bench, Bot, World, instant, virtual
from wakeful import every
from wakeful.core.time.instants import HOUR, MINUTE
from wakeful.core.time.timing import Every
from wakeful.drill.ledger import Verdict, audit
from wakeful.drill.observed import Observation, read_observations
from wakeful.testing.virtual_clock import EPOCH
from worlds.laws import Era


async def verdict(app: Bench, observed: Any = None, **given: Any) -> Verdict:
    return await app.store.read(lambda tx: audit(tx, observed, **given))


def observations(bot: Bot) -> list[Observation]:
    """What the bot saw, each attempt as long as a minute."""
    return [
        Observation(fire.run_id, fire.attempt, fire.idempotency_key, instant(began), instant(began) + MINUTE)
        for fire, began in zip(bot.fires, bot.began, strict=True)
    ]


async def a_day(world: World) -> tuple[Bench, Bot]:
    """Twenty-four hours: an outage of five, a retry, a pause, an edit of the timing, a manual run."""
    bot = Bot(world)
    bot.script = [RuntimeError("no")]
    app = await world.open(bot)
    await app.add("hourly", every("1h"), retry={"times": 1, "delay": "10m"})
    await world.sleep("3h30m")
    app = await world.reopen(app, bot, off="5h")
    await app.pause("hourly")
    await world.sleep("2h")
    await app.resume("hourly")
    await app.run_now("hourly")
    await world.sleep("3h")
    await app.add("hourly", every("2h"), retry={"times": 1, "delay": "10m"})
    await world.sleep("10h")
    return app, bot


@virtual
async def test_a_day_with_every_kind_of_row_is_clean(world: World) -> None:
    """Runs, retries, stretches that were missed, paused and edited away: all of it tiles."""
    app, bot = await a_day(world)
    found = await verdict(app, observations(bot))
    assert found.findings == ()
    assert found.schedules == 1
    assert found.runs > 8
    assert found.attempts_seen == len(bot.fires)
    assert "nothing missing" in found.in_words()


@pytest.mark.parametrize(
    ("kind", "sql"),
    [
        ("missing", "DELETE FROM runs WHERE run_id = (SELECT max(run_id) FROM runs WHERE outcome = 'succeeded')"),
        ("missing", "DELETE FROM runs WHERE outcome = 'missed'"),
        ("extra", "UPDATE runs SET instants = instants + 1 WHERE outcome = 'missed'"),
        ("extra", "UPDATE runs SET attempt = 0 WHERE attempt = 2"),
        ("overlapping", "UPDATE runs SET planned_until = planned_until + 7200000 WHERE outcome = 'missed'"),
    ],
)
@virtual
async def test_what_somebody_broke_is_named(world: World, kind: str, sql: str) -> None:
    """One row less, a miscount, an attempt that was forgotten, a stretch that covers too much."""
    app, bot = await a_day(world)
    world.tamper(sql)
    found = await verdict(app, observations(bot))
    assert kind in {one.kind for one in found.findings}
    assert not found.is_clean


@virtual
async def test_what_was_seen_and_what_is_written_must_agree(world: World) -> None:
    """Green without a witness, a witness without a row, and the same attempt twice."""
    app, bot = await a_day(world)
    seen = observations(bot)
    last = seen[-1]
    unseen = await verdict(app, seen[:-1])
    assert [one.kind for one in unseen.findings] == ["missing"]
    assert "was never seen to start" in unseen.findings[0].sentence
    stranger = last._replace(run_id=9_999)
    assert [one.kind for one in (await verdict(app, [*seen, stranger])).findings] == ["extra"]
    later = last._replace(began_at=last.began_at + HOUR, ended_at=last.began_at + 2 * HOUR)
    twice = await verdict(app, [*seen, later])
    assert "extra" in {one.kind for one in twice.findings}
    at_once = await verdict(app, [*seen, last])
    assert {one.kind for one in at_once.findings} == {"extra", "overlapping"}


@virtual
async def test_two_in_one_lane_at_once_are_seen(world: World) -> None:
    """Whatever the ledger says of it."""
    bot = Bot(world)
    app = await world.open(bot)
    await app.add("a", every("1h"), lane="one")
    await app.add("b", every("1h"), lane="one")
    await world.sleep("61m")
    seen = [one._replace(lane="one") for one in observations(bot)]
    found = await verdict(app, seen)
    assert [one.kind for one in found.findings] == ["overlapping"]
    apart = [seen[0], seen[1]._replace(began_at=seen[0].ended_at or 0, ended_at=(seen[0].ended_at or 0) + MINUTE)]
    assert (await verdict(app, apart)).is_clean


@virtual
async def test_a_history_from_outside_counts_more_than_the_store(world: World) -> None:
    """The test knows what it asked for; a store that planned by something else is caught."""
    bot = Bot(world)
    app = await world.open(bot)
    await app.add("hourly", every("1h"))
    await world.sleep("5h30m")
    asked = [Era(EPOCH, Every(HOUR // 2, EPOCH))]
    assert (await verdict(app)).is_clean
    found = await verdict(app, histories={"hourly": asked})
    assert {one.kind for one in found.findings} == {"missing"}


def test_lines_of_targets_are_put_together(tmp_path: Path) -> None:
    """One that was cut off by a kill is no line; one that never ended is still one that began."""
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_text(
        '{"what": "began", "runId": "1", "attempt": 1, "key": "k", "at": 5, "lane": "x"}\n'
        '{"what": "began", "runId": "2", "attempt": 1, "key": "l", "at": 6}\n'
        '{"what": "ended", "runId": "2", "atte'
    )
    two.write_text('{"what": "ended", "runId": "1", "attempt": 1, "key": "k", "at": 9}\n')
    assert read_observations([one, two]) == [
        Observation(1, 1, "k", 5, 9, "x"),
        Observation(2, 1, "l", 6, None),
    ]
