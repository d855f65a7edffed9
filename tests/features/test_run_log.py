"""The run log and the statistics of a schedule."""

import itertools
from pathlib import Path

import pytest

from features.kit import Bot, World, as_ms, instant, rfc, short, virtual
from wakeful import Wakeful, every, manual
from wakeful.app.options import Host
from wakeful.core.time.instants import HOUR, MINUTE, SECOND
from wakeful.core.time.timing import Every, tally
from wakeful.observe.log_reading import LogLine, RunLog


@virtual
async def test_runs_are_newest_first_bounded_and_can_be_paged(world: World) -> None:
    """`limit`, and `before_id` to go on."""
    app = await world.open(Bot(world))
    await app.add("tick", every("10m"))
    await app.add("other", every("10m"))
    await world.until("01-01 01:05:00")
    page = await app.runs("tick", limit=2)
    assert [short(run.planned_at) for run in page] == ["01-01 01:00:00", "01-01 00:50:00"]
    page = await app.runs("tick", limit=2, before_id=page[-1].run_id)
    assert [short(run.planned_at) for run in page] == ["01-01 00:40:00", "01-01 00:30:00"]
    assert len(await app.runs(limit=1000)) == 12


@virtual
async def test_the_ledger_can_be_searched_page_by_page(world: World) -> None:
    """By schedule, outcome, text and time; `next` continues, and is None on the last page."""
    bot = Bot(world)
    bot.script = [RuntimeError("no room"), None, RuntimeError("no route")]
    app = await world.open(bot)
    await app.add("tick", every("10m"))
    await world.until("01-01 00:35:00")
    page = await app.ledger.list(limit=2)
    assert [short(run.planned_at) for run in page.runs] == ["01-01 00:30:00", "01-01 00:20:00"]
    rest = await app.ledger.list(limit=2, cursor=page.next)
    assert ([short(run.planned_at) for run in rest.runs], rest.next) == (["01-01 00:10:00"], None)
    failed = (await app.ledger.list(slug="tick", outcome="failed", q="No Ro")).runs
    assert [run.error for run in failed] == ["RuntimeError: no route", "RuntimeError: no room"]
    early = (await app.ledger.list(since=rfc("01-01 00:10:00"), until=rfc("01-01 00:20:00"))).runs
    assert [short(run.planned_at) for run in early] == ["01-01 00:10:00"]


async def test_a_run_is_read_with_its_log_where_one_is_kept(tmp_path: Path) -> None:
    """From its planned time to its end. An app without a log returns the run alone, and so does a list."""
    asked: list[tuple[int, int, int]] = []
    line: LogLine = {"ts": "2026-01-01T00:00:00.000Z", "level": "info", "action": "run-ended", "phase": "event"}

    async def log_of_run(run_id: int, since: int, until: int) -> RunLog:
        asked.append((run_id, since, until))
        return RunLog([line], True)

    app = Wakeful(tmp_path / "logged.db", host=Host(log_of_run=log_of_run))
    async with app:
        await app.add("tick", manual(), call=int)
        ended = await app.run_now("tick", wait=True)
        run = await app.ledger.get(ended.run_id)
        listed = (await app.ledger.list()).runs
    assert ended.ended_at is not None
    assert asked == [(run.run_id, as_ms(ended.planned_at), as_ms(ended.ended_at))]
    assert (run.log, run.log_is_cut, run.outcome) == ([line], True, "succeeded")
    assert listed == [ended]


@virtual
async def test_a_run_tells_its_whole_story(world: World) -> None:
    """Planned, due, started, ended, attempts, trigger, outcome, error, key fields in JSON too."""
    bot = Bot(world)
    bot.script = [RuntimeError("first"), 30 * SECOND]
    app = await world.open(bot)
    await app.add("tick", every("1h"), retry={"times": 1, "delay": "5m"})
    await world.until("01-01 01:30:00")
    (run,) = await app.runs("tick")
    assert (run.slug, run.trigger, run.outcome, run.rung, run.attempt) == (
        "tick",
        "schedule",
        "succeeded",
        "finished",
        2,
    )
    assert [short(at) for at in (run.planned_at, run.due_at, run.started_at, run.ended_at)] == [
        "01-01 01:00:00",
        "01-01 01:00:00",
        "01-01 01:00:00",
        "01-01 01:05:30",
    ]
    first, second = run.attempts
    assert (first.outcome, first.error) == ("failed", "RuntimeError: first")
    assert (second.outcome, second.error, short(second.started_at)) == ("succeeded", None, "01-01 01:05:00")
    written = run.to_json()
    assert written["plannedAt"] == "2026-01-01T01:00:00.000Z"
    assert {"runId", "slug", "dueAt", "startedAt", "endedAt", "attempts", "trigger", "outcome", "reason"} <= set(
        written
    )


@virtual
async def test_statistics_count_outcomes_durations_and_streaks(world: World) -> None:
    """Six instants: three good, an error, two blocked."""
    bot = Bot(world)
    bot.script = [10 * SECOND, 25 * MINUTE, RuntimeError("no"), 30 * SECOND]
    app = await world.open(bot)
    await app.add("tick", every("10m"))
    await world.until("01-01 01:05:00")
    stats = await app.stats("tick")
    assert stats.counts == {"succeeded": 3, "skipped": 2, "failed": 1}
    assert stats.success_rate == 0.75
    assert (stats.p50_duration, stats.p95_duration) == (30 * SECOND, 25 * MINUTE)
    assert stats.streak == 1
    assert (short(stats.last_run), short(stats.next_run)) == ("01-01 01:00:00", "01-01 01:10:00")


@virtual
async def test_statistics_since_a_time_leave_out_what_was_before(world: World) -> None:
    """Any time, given as text or datetime."""
    bot = Bot(world)
    bot.script = [RuntimeError("no"), RuntimeError("no")]
    app = await world.open(bot)
    await app.add("tick", every("1h"))
    await world.until("01-01 05:30:00")
    assert (await app.stats("tick")).counts == {"failed": 2, "succeeded": 3}
    stats = await app.stats("tick", since=rfc("01-01 02:30:00"))
    assert stats.counts == {"succeeded": 3}
    assert (stats.success_rate, stats.streak) == (1.0, 3)
    assert stats.to_json()["counts"] == {"succeeded": 3}


@virtual
async def test_statistics_of_a_schedule_that_never_ran(world: World) -> None:
    """Nothing is divided by nothing."""
    app = await world.open(Bot(world))
    await app.add("new", every("1h"))
    stats = await app.stats("new")
    assert (stats.counts, stats.success_rate, stats.p50_duration, stats.streak) == ({}, None, None, 0)


@virtual
async def test_a_missed_stretch_counts_as_many_instants_as_it_covers(world: World) -> None:
    """One row, forty-seven instants."""
    bot = Bot(world)
    app = await world.open(bot)
    await app.add("tick", every("1h"))
    app = await world.reopen(app, bot, off="2d")
    await world.settle()
    assert (await app.stats("tick")).counts == {"missed": 47, "succeeded": 1}
    missed = (await app.runs("tick"))[-1]
    assert (missed.count, short(missed.planned_at), short(missed.planned_until)) == (
        47,
        "01-01 01:00:00",
        "01-02 23:00:00",
    )


@pytest.mark.promise
@virtual
async def test_every_instant_ends_in_the_ledger_whatever_happens(world: World) -> None:
    """2 and 10, OC#10812, HA#113603, L1: a hard day, and the rows add up to its instants, in order, each once."""
    bot = Bot(world)
    bot.script = [25 * MINUTE, RuntimeError("no"), RuntimeError("no"), RuntimeError("no"), None, 2 * HOUR]
    app = await world.open(bot)
    await app.add("tick", every("10m"), timeout="50m")
    await world.until("01-01 02:05:00")
    await app.pause("tick")
    await world.until("01-01 03:05:00")
    await app.resume("tick")
    await world.until("01-01 05:00:00")
    await app.kill()
    await world.sleep("90m")
    app = await world.open(bot)
    await world.until("01-01 09:00:01")
    app = await world.reopen(app, bot, off="3h")
    await world.until("01-02 00:00:01")
    rows = list(reversed(await app.runs("tick", limit=1000)))
    spans = [(row.planned_at, row.planned_until or row.planned_at, row.count) for row in rows]
    timing = Every(10 * MINUTE, instant("01-01 00:00:00"))
    assert sum(count for _, _, count in spans) == 144
    assert all(tally(timing, as_ms(first) - 1, as_ms(last)).count == count for first, last, count in spans)
    assert all(earlier[1] < later[0] for earlier, later in itertools.pairwise(spans))
    assert all(row.reason for row in rows if row.outcome in ("skipped", "missed"))


@pytest.mark.promise
@virtual
async def test_claimed_is_not_started_and_the_last_success_is_a_fact_of_its_own(world: World) -> None:
    """8, CC#72195: a run that failed is not a run that worked, and the ladder says how far it got."""
    bot = Bot(world)
    bot.script = [None, RuntimeError("no session"), RuntimeError("no session")]
    app = await world.open(bot)
    await app.add("job", every("1h"))
    await world.until("01-01 03:30:00")
    schedule = await app.get("job")
    assert (short(schedule.last_run), schedule.last_result) == ("01-01 03:00:00", "error")
    assert world.query("SELECT last_success_at FROM cadences") == [(instant("01-01 01:00:00"),)]
    assert [run.rung for run in await app.runs("job")] == ["started", "started", "finished"]


@pytest.mark.promise
@virtual
async def test_how_long_a_run_waited_for_room_is_on_record(world: World) -> None:
    """9, CC#87940: planned, due and started are three columns."""
    bot = Bot(world, usual=10 * MINUTE)
    app = await world.open(bot, concurrency_max=1)
    await app.add("first", every("1h"))
    await app.add("second", every("1h"))
    await world.until("01-01 01:25:00")
    (second,) = await app.runs("second")
    assert (short(second.due_at), short(second.started_at)) == ("01-01 01:00:00", "01-01 01:10:00")
    assert second.outcome == "succeeded"
