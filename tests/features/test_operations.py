"""Every operation of the Python contract, and the refusals: each names the field and the cure."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from features.kit import Bot, World, ledger, rfc, short, virtual
from nested import top_level
from wakeful import Conflict, Invalid, New, NotFound, after_reset, cron, every, manual, once, times
from wakeful.core.time.instants import MINUTE


@virtual
async def test_add_without_a_slug_makes_one_and_answers_it(world: World) -> None:
    """Each is its own schedule, and can be read back at once (OC#8734)."""
    bot = Bot(world)
    app = await world.open(bot)
    slugs = [await app.add(None, every("1h")) for _ in range(3)]
    assert len(set(slugs)) == 3
    assert [short((await app.get(slug)).next_run) for slug in slugs] == ["01-01 01:00:00"] * 3
    await world.until("01-01 01:30:00")
    assert sorted(fire.slug for fire in bot.fires) == sorted(slugs)


@virtual
async def test_add_of_a_known_slug_updates_and_keeps_where_it_stands(world: World) -> None:
    """OC#86451: one schedule, its errors, last run and ledger kept; only what changed changes."""
    bot = Bot(world, usual=RuntimeError("no"))
    app = await world.open(bot)
    await app.add("tick", every("2h"), timeout="1m")
    await world.until("01-01 04:30:00")
    before = await app.get("tick")
    assert await app.add("tick", every("2h"), timeout="5m") == "tick"
    after = await app.get("tick")
    assert (after.consecutive_errors, after.last_run, after.last_error) == (2, before.last_run, before.last_error)
    assert (after.next_run, after.version, after.created_at) == (before.next_run, 2, before.created_at)
    assert after.updated_at > before.updated_at
    assert len(await app.list()) == 1
    assert len(await app.runs("tick")) == 2


@virtual
async def test_an_identical_definition_changes_nothing_at_all(world: World) -> None:
    """§4: not the version, not the update time, not one row."""
    app = await world.open(Bot(world))
    await app.add("tick", every("2h", anchor="2026-01-01T10:00:00Z"), timeout="1m", lane="x")
    before = await app.get("tick")
    await world.sleep("45m")
    await app.add("tick", every("2h", anchor="2026-01-01T10:00:00Z"), timeout="60s", lane="x")
    assert await app.get("tick") == before


@virtual
async def test_a_new_interval_begins_a_new_grid_and_an_edit_of_anything_else_does_not(world: World) -> None:
    """L3: only a change of timing replans."""
    bot = Bot(world)
    app = await world.open(bot)
    await app.add("tick", every("2h"))
    await world.until("01-01 00:30:00")
    await app.update("tick", timeout="3m", lane="x")
    assert short((await app.get("tick")).next_run) == "01-01 02:00:00"
    await app.add("tick", every("1h"))
    assert short((await app.get("tick")).next_run) == "01-01 01:30:00"
    await world.until("01-01 03:00:00")
    assert bot.planned == ["01-01 01:30:00", "01-01 02:30:00"]


@virtual
async def test_update_merges_and_none_takes_back(world: World) -> None:
    """A JSON merge patch by snake_case names."""
    app = await world.open(Bot(world))
    await app.add("tick", every("2h"), retry={"times": 3, "delay": "5m"}, max_lateness="10m", lane="x")
    await app.update("tick", retry={"delay": "7m"}, max_lateness=None)
    definition = (await app.get("tick")).to_json()
    assert definition["retry"] == {"times": 3, "delay": "7m"}
    assert definition["maxLateness"] is None
    assert definition["lane"] == "x"
    await app.update("tick", schedule={"type": "cron", "expression": "0 9 * * *"})
    assert short((await app.get("tick")).next_run) == "01-01 09:00:00"


@virtual
async def test_update_of_an_outdated_version_is_refused(world: World) -> None:
    """HA PR#46604: nobody overwrites what he has not read."""
    app = await world.open(Bot(world))
    await app.add("tick", every("2h"))
    await app.update("tick", timeout="3m", if_version=1)
    with pytest.raises(Conflict, match="at version 2, not 1; read it again"):
        await app.update("tick", timeout="4m", if_version=1)
    assert (await app.get("tick")).to_json()["timeout"] == "3m"


@virtual
async def test_an_edit_applies_to_what_is_planned_next(world: World) -> None:
    """§4: a run ends under the version it began with, timeout included."""
    bot = Bot(world, usual=20 * MINUTE)
    app = await world.open(bot)
    await app.add("long", every("1h"), timeout="30m")
    await world.until("01-01 01:05:00")
    await app.update("long", timeout="1m")
    await world.until("01-01 02:30:00")
    assert [row.partition(" ")[2] for row in await ledger(app, "long")] == ["01:00:00 succeeded", "02:00:00 timedOut"]


@virtual
async def test_remove_keeps_the_ledger_and_lets_the_run_end(world: World) -> None:
    """§4: what runs, ends and is recorded; nothing follows; the slug is free again."""
    bot = Bot(world, usual=20 * MINUTE)
    app = await world.open(bot)
    await app.add("long", every("1h"))
    await world.until("01-01 02:05:00")
    open_run = (await app.get("long")).open_run_id
    await app.remove("long")
    with pytest.raises(NotFound, match="there is no schedule 'long'"):
        await app.get("long")
    await world.until("01-01 09:00:00")
    assert len(bot.fires) == 2
    assert open_run is not None
    assert (await app.ledger.get(open_run)).outcome == "succeeded"
    assert [run.outcome for run in await app.runs()] == ["succeeded", "succeeded"]
    await app.add("long", every("1h"))
    assert await app.runs("long") == []


@virtual
async def test_remove_gives_up_what_waits(world: World) -> None:
    """A retry of a schedule that is gone would surprise everyone."""
    bot = Bot(world, usual=RuntimeError("no"))
    app = await world.open(bot)
    await app.add("tick", every("1h"), retry={"times": 5, "delay": "10m"})
    await world.until("01-01 01:05:00")
    await app.remove("tick")
    await world.until("01-01 05:00:00")
    assert len(bot.fires) == 1
    assert [(run.outcome, run.reason) for run in await app.runs()] == [("failed", "removed")]


@virtual
async def test_pause_is_one_counted_row_and_nothing_is_caught_up(world: World) -> None:
    """§4: a pause is not an outage."""
    bot = Bot(world)
    app = await world.open(bot)
    await app.add("tick", every("1h"))
    await world.until("01-01 02:30:00")
    await app.pause("tick")
    schedule = await app.get("tick")
    assert (schedule.status, schedule.enabled, schedule.next_run) == ("paused", True, None)
    await world.until("01-02 00:30:00")
    await app.resume("tick")
    await world.until("01-02 01:30:00")
    assert await ledger(app, "tick") == [
        "01-01 01:00:00 succeeded",
        "01-01 02:00:00 succeeded",
        "01-01 03:00:00 skipped (paused) x22",
        "01-02 01:00:00 succeeded",
    ]


@virtual
async def test_a_pause_with_an_end_ends_by_itself(world: World) -> None:
    """Also when the process was down at its end."""
    bot = Bot(world)
    app = await world.open(bot)
    await app.add("tick", every("1h"))
    await app.pause("tick", until=datetime(2026, 1, 1, 3, 30, tzinfo=UTC))
    await world.until("01-01 04:30:00")
    assert bot.planned == ["01-01 04:00:00"]
    await app.pause("tick", until=rfc("01-01 06:30:00"))
    app = await world.reopen(app, bot, off="5h")
    await world.settle()
    assert await ledger(app, "tick") == [
        "01-01 01:00:00 skipped (paused) x3",
        "01-01 04:00:00 succeeded",
        "01-01 05:00:00 skipped (paused) x2",
        "01-01 07:00:00 missed (outage) x2",
        "01-01 09:00:00 succeeded",
    ]


@virtual
async def test_a_pause_outlives_a_restart(world: World) -> None:
    """CC#74055: paused or disabled never fires after a restart, however long it was down."""
    bot = Bot(world)
    app = await world.open(bot)
    await app.add("paused", every("1h"))
    await app.add("disabled", every("1h"), enabled=False)
    await app.pause("paused")
    for _ in range(3):
        app = await world.reopen(app, bot, off="9h")
        await world.sleep("2h")
    assert bot.fires == []
    assert [(view.slug, view.status) for view in await app.list()] == [("disabled", "disabled"), ("paused", "paused")]


@virtual
async def test_pausing_gives_up_a_waiting_retry(world: World) -> None:
    """A halted schedule starts nothing, not even a retry."""
    bot = Bot(world, usual=RuntimeError("no"))
    app = await world.open(bot)
    await app.add("tick", every("1h"), retry={"times": 5, "delay": "10m"})
    await world.until("01-01 01:05:00")
    await app.pause("tick")
    await world.until("01-01 05:00:00")
    assert len(bot.fires) == 1
    assert (await ledger(app, "tick"))[0] == "01-01 01:00:00 failed (paused)"


@virtual
async def test_a_run_that_fails_while_its_schedule_is_halted_is_not_retried(world: World) -> None:
    """Paused, disabled or removed under a run: the run ends, and nothing of it starts again."""
    bot = Bot(world, usual=lambda: fail_after(world, 20 * MINUTE))
    app = await world.open(bot)
    for slug in ("paused", "disabled", "removed"):
        await app.add(slug, every("1h"), retry={"times": 5, "delay": "10m"})
    await world.until("01-01 01:05:00")
    await app.pause("paused")
    await app.update("disabled", enabled=False)
    await app.remove("removed")
    await world.until("01-01 09:00:00")
    assert len(bot.fires) == 3
    assert sorted((run.outcome, run.reason) for run in await app.runs()) == [
        ("failed", "disabled"),
        ("failed", "paused"),
        ("failed", "removed"),
    ]


@virtual
async def test_a_crash_of_a_halted_schedule_is_not_made_up_for(world: World) -> None:
    """CC#74055, L2: a disabled schedule never fires, not even to repeat what a crash interrupted."""
    bot = Bot(world, usual=20 * MINUTE)
    app = await world.open(bot)
    await app.add("job", every("1h"))
    await world.until("01-01 01:05:00")
    await app.update("job", enabled=False)
    await app.kill()
    app = await world.open(bot)
    await world.until("01-01 03:00:00")
    assert len(bot.fires) == 1
    assert await ledger(app, "job") == ["01-01 01:00:00 unknown (disabled)"]
    await world.settle()
    assert world.reported() == []  # a person disabled it, and knows


@virtual
async def test_enabled_false_and_true_are_disable_and_resume(world: World) -> None:
    """The contract's PATCH, in Python."""
    bot = Bot(world)
    app = await world.open(bot)
    await app.add("tick", every("1h"))
    await app.update("tick", enabled=False)
    schedule = await app.get("tick")
    assert (schedule.status, schedule.enabled, schedule.status_reason) == ("disabled", False, "by a person")
    await world.until("01-01 03:30:00")
    await app.update("tick", enabled=True)
    await world.until("01-01 04:30:00")
    assert await ledger(app, "tick") == ["01-01 01:00:00 skipped (disabled) x3", "01-01 04:00:00 succeeded"]


@virtual
async def test_registering_again_does_not_enable_what_a_person_disabled(world: World) -> None:
    """CC#74055: a program that adds its schedules at each start must not overrule a person."""
    bot = Bot(world)
    app = await world.open(bot)
    await app.add("tick", every("1h"))
    await app.update("tick", enabled=False)
    await app.add("tick", every("1h"))
    await app.add("tick", every("1h"), timeout="9m")
    await world.until("01-01 02:30:00")
    assert bot.fires == []


@virtual
async def test_list_filters_by_status_and_by_text(world: World) -> None:
    """In slug order."""
    app = await world.open(Bot(world))
    for slug in ("news-b", "news-a", "report"):
        await app.add(slug, every("1h"))
    await app.pause("news-b")
    assert [view.slug for view in await app.list()] == ["news-a", "news-b", "report"]
    assert [view.slug for view in await app.list(status="paused")] == ["news-b"]
    assert [view.slug for view in await app.list(contains="news")] == ["news-a", "news-b"]
    assert [view.slug for view in await app.list(contains="news", status="idle")] == ["news-a"]
    assert [view.slug for view in await app.list(limit=2)] == ["news-a", "news-b"]
    assert await app.list(contains="%") == []


@virtual
async def test_list_reaches_beyond_one_page(world: World) -> None:
    """More than a page of five hundred, each once."""
    app = await world.open(Bot(world))
    slugs = await app.add_many([New(f"s{n:04}", every("1h")) for n in range(1201)])
    assert [view.slug for view in await app.list()] == slugs


@virtual
async def test_add_many_takes_what_it_was_given_at_first(world: World) -> None:
    """Anything that can be iterated; a list that is emptied meanwhile is still written whole."""
    app = await world.open(Bot(world))
    assert await app.add_many(New(f"g{n}", every("1h")) for n in range(3)) == ["g0", "g1", "g2"]
    given = [New(f"s{n:04}", every("1h")) for n in range(1201)]
    writing = asyncio.create_task(app.add_many(given))
    await asyncio.sleep(0)
    given.clear()
    assert len(await writing) == 1201
    assert len(await app.list()) == 1204


@virtual
async def test_schedules_added_together_are_each_their_own(world: World) -> None:
    """They share one definition in memory. Each keeps its slug on every path: in time, retried, run by hand, edited,
    and added again."""
    bot = Bot(world, usual=RuntimeError("no"))
    app = await world.open(bot)
    timing, retry = every("1h"), {"times": 1, "delay": "1m"}
    slugs = ["x", "y", "z"]
    await app.add_many([New(slug, timing, retry=retry) for slug in slugs])
    await world.until("01-01 01:30:00")
    assert sorted((fire.slug, fire.attempt) for fire in bot.fires) == [(slug, n) for slug in slugs for n in (1, 2)]
    assert (await app.run_now("y", wait=True)).slug == "y" and bot.fires[-1].slug == "y"
    await app.update("y", timeout="5m")
    await app.add_many([New(slug, timing, retry=retry) for slug in slugs])
    views = {view.slug: view for view in await app.list()}
    assert {slug: (view.definition.slug, view.version) for slug, view in views.items() if view.definition} == {
        "x": ("x", 1),
        "y": ("y", 3),
        "z": ("z", 1),
    }
    assert [view.consecutive_errors for view in views.values()] == [1, 1, 1]
    assert all(f'"slug":"{slug}"' in view.to_text() for slug, view in views.items())


@virtual
async def test_schedules_that_differ_by_slug_are_each_their_own_after_a_restart(world: World) -> None:
    """Their stored definitions are read once for all; a stagger depends on the schedule."""
    bot = Bot(world)
    app = await world.open(bot)
    timing = every("1h")
    slugs = [f"s{n}" for n in range(4)]
    await app.add_many([New(slug, timing) for slug in slugs])
    await app.add_many([New(f"{slug}-spread", timing, stagger="50m") for slug in slugs])
    spread = {slug: (await app.get(f"{slug}-spread")).next_run for slug in slugs}
    assert len(set(spread.values())) == len(slugs)
    app = await world.reopen(app, bot)
    await world.until("01-01 01:00:30")
    assert sorted(fire.slug for fire in bot.fires if "-" not in fire.slug) == slugs
    assert {slug: (await app.get(f"{slug}-spread")).next_run for slug in slugs} == spread
    assert [(await app.get(slug)).slug for slug in slugs] == slugs


@virtual
async def test_add_many_checks_all_before_it_writes_any(world: World) -> None:
    """One bad definition among good ones: nothing is written."""
    app = await world.open(Bot(world))
    with pytest.raises(Invalid, match="slug"):
        await app.add_many([New("good", every("1h")), New("Bad!", every("1h"))])
    assert await app.list() == []


@virtual
async def test_run_now_is_one_attempt_and_leaves_the_cadence_alone(world: World) -> None:
    """OC#33940, L3: the daily seven o'clock stays at seven."""
    bot = Bot(world, usual=RuntimeError("no"))
    app = await world.open(bot)
    await app.add("daily", cron("0 7 * * *"), retry={"times": 5, "delay": "1m"})
    await world.until("01-01 13:00:00")
    before = await app.get("daily")
    run = await app.run_now("daily", wait=True)
    assert (run.outcome, run.trigger, run.attempt) == ("failed", "manual", 1)
    after = await app.get("daily")
    assert (after.next_run, after.consecutive_errors) == (before.next_run, before.consecutive_errors)
    assert short(after.next_run) == "01-02 07:00:00"


@virtual
async def test_run_now_beside_an_open_run_is_refused_with_its_id(world: World) -> None:
    """One at a time, for persons too; and it cannot deadlock (OC#43008)."""
    bot = Bot(world, usual=20 * MINUTE)
    app = await world.open(bot)
    await app.add("long", every("1h"), lane="one")
    await world.until("01-01 01:05:00")
    with pytest.raises(Conflict, match=r"already has an open run, 1; wait for it to end"):
        await app.run_now("long")
    await world.until("01-01 01:25:00")
    bot.usual = None
    assert (await app.run_now("long", wait=True)).outcome == "succeeded"


@virtual
async def test_run_now_is_allowed_while_paused_or_disabled(world: World) -> None:
    """§4: a person asks, and is served; the schedule stays halted."""
    app = await world.open(Bot(world))
    await app.add("paused", every("1h"))
    await app.add("disabled", every("1h"), enabled=False)
    await app.pause("paused")
    for slug in ("paused", "disabled"):
        assert (await app.run_now(slug, wait=True)).outcome == "succeeded"
        assert (await app.get(slug)).status == slug


@virtual
async def test_waiting_for_a_run_gives_up_after_the_time_given(world: World) -> None:
    """A Conflict says how far it is; the run goes on."""
    app = await world.open(Bot(world, usual=20 * MINUTE))
    await app.add("long", manual())
    with pytest.raises(Conflict, match="is still running after 5s"):
        await app.run_now("long", wait=True, within="5s")
    await world.sleep("20m")
    assert [run.outcome for run in await app.runs("long")] == ["succeeded"]


@virtual
async def test_next_times_are_strictly_after_and_change_nothing(world: World) -> None:
    """As many as asked for, from now or from any time."""
    app = await world.open(Bot(world))
    await app.add("daily", cron("0 9 * * *"))
    before = await app.get("daily")
    assert [short(at) for at in await app.next_times("daily", 2)] == ["01-01 09:00:00", "01-02 09:00:00"]
    assert [short(at) for at in await app.next_times("daily", 1, after=rfc("03-01 09:00:00"))] == ["03-02 09:00:00"]
    assert await app.get("daily") == before


@virtual
async def test_on_due_serves_what_has_no_action_and_calls_serve_the_rest(world: World) -> None:
    """`on_due` gets the fire of each due job."""
    due, own = Bot(world), Bot(world)
    app = await world.open()
    app.on_due(due)
    await app.add("plain", every("1h"))
    await app.add("own", every("1h"), call=own.__call__)
    await world.until("01-01 01:30:00")
    assert [fire.slug for fire in due.fires] == ["plain"]
    assert [fire.slug for fire in own.fires] == ["own"]


@virtual
async def test_callables_of_the_same_name_are_told_apart(world: World) -> None:
    """Closures, lambdas and methods of two objects share a name; each schedule still calls its own."""
    app = await world.open()
    called: list[tuple[str, int]] = []

    def make(number: int) -> Any:
        async def job(fire: Any) -> None:
            called.append((fire.slug, number))

        return job

    for number in range(3):
        await app.add(f"job-{number}", every("1h"), call=top_level(make(number)))
    await world.until("01-01 01:30:00")
    assert sorted(called) == [("job-0", 0), ("job-1", 1), ("job-2", 2)]


@virtual
async def test_arguments_are_passed_by_name(world: World) -> None:
    """And the fire says which instant it is."""
    got: list[Any] = []

    async def job(fire: Any, city: str) -> str:
        got.append((fire.slug, short(fire.planned_at), fire.attempt, city))
        return f"sunny in {city}"

    app = await world.open()
    await app.add("weather", every("1h"), call=top_level(job), args={"city": "Oslo"})
    await world.until("01-01 01:30:00")
    assert got == [("weather", "01-01 01:00:00", 1, "Oslo")]
    (run,) = await app.runs("weather")
    assert run.output == "sunny in Oslo"


@virtual
async def test_declared_jobs_are_written_at_start_and_starting_again_is_harmless(world: World) -> None:
    """`@app.job`: three starts, one schedule, one grid."""
    fires: list[str] = []

    for _ in range(3):
        app = world.bench()

        @app.job(every("1h"), timeout="5m")
        async def beat(fire: Any) -> None:
            fires.append(short(fire.planned_at))

        await app.start()
        await world.sleep("25m")
        await app.stop()
    await app.start()
    await world.sleep("1m")
    assert fires == ["01-01 01:00:00"]
    assert [(view.slug, view.version) for view in await app.list()] == [("beat", 1)]


@virtual
async def test_start_and_stop_are_idempotent_and_nothing_works_before_start(world: World) -> None:
    """Stopping twice or starting twice is no error; asking a stopped app says what to do."""
    bot = Bot(world)
    app = await world.open(bot)
    await app.start()
    await app.add("tick", every("1h"))
    assert app._is_ticking
    await app.stop()
    await app.stop()
    assert not app._is_ticking
    with pytest.raises(RuntimeError, match="not started; use `async with app:`"):
        await app.get("tick")
    await world.sleep("90m")
    assert bot.fires == []
    async with app:
        await world.sleep("31m")
        assert bot.planned == ["01-01 01:00:00", "01-01 02:00:00"]


@virtual
async def test_an_app_that_does_not_tick_adds_and_reads(world: World) -> None:
    """`tick=False`: the clock is someone else's."""
    bot = Bot(world)
    reader = await world.open(bot, tick=False, name="reader")
    await reader.add("tick", every("1h"))
    await world.sleep("90m")
    assert bot.fires == []
    assert not reader._is_ticking
    ticker = await world.open(bot, name="ticker")
    await world.settle()
    assert bot.planned == ["01-01 01:00:00"]
    assert await ledger(reader, "tick") == await ledger(ticker, "tick") == ["01-01 01:00:00 succeeded"]


@virtual
async def test_what_is_not_there_is_said_so(world: World) -> None:
    """Every operation on an unknown slug or run."""
    app = await world.open(Bot(world))
    for question in (app.get, app.remove, app.pause, app.resume, app.run_now, app.runs, app.stats, app.next_times):
        with pytest.raises(NotFound, match="there is no schedule 'nobody'"):
            await question("nobody")
    with pytest.raises(NotFound, match="there is no schedule 'nobody'"):
        await app.update("nobody", timeout="1m")
    with pytest.raises(NotFound, match="there is no run 77"):
        await app.ledger.get(77)


async def fail_after(world: World, duration: int) -> None:
    await world.clock.sleep(duration)
    raise RuntimeError("no")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"concurrency_max": 0}, "concurrency_max: 0 is too small; write 1 or more"),
        ({"timezone": "Mars/Olympus"}, "timezone.*Mars/Olympus"),
        ({"shutdown_grace": "soon"}, "shutdown_grace: 'soon' is not a duration; write it like"),
        ({"every_min": "x"}, "every_min: 'x' is not a duration; write it like"),
    ],
)
@virtual
async def test_settings_that_cannot_work_are_refused(world: World, settings: dict[str, Any], message: str) -> None:
    """Before anything is opened: a program that would never run anything must not look alive."""
    with pytest.raises(Invalid, match=message):
        world.bench(**settings)


REFUSED: list[tuple[str, Any, dict[str, Any], str]] = [
    ("Not A Slug", lambda: every("1h"), {}, r"slug: 'Not A Slug' is not a slug; use"),
    ("heartbeat", lambda: every("1h"), {}, r"slug: 'heartbeat' is reserved; choose another"),
    ("x", lambda: cron("61 * * * *"), {}, r"expression"),
    ("x", lambda: cron("0 0 31 2 *"), {}, r"expression"),
    ("x", lambda: cron("0 9 * * *", tz="Mars/Olympus"), {}, r"(timezone|tz).*Mars/Olympus"),
    ("x", lambda: every("soon"), {}, r"every: 'soon' is not a duration; write it like"),
    ("x", lambda: every("0s"), {}, r"every: .*more than zero"),
    ("x", lambda: every("1h", anchor="yesterday"), {}, r"anchor: 'yesterday' is not a date and time; write it like"),
    ("x", lambda: every("1h", anchor="2026-02-30T00:00:00Z"), {}, r"anchor: .*not a valid date and time"),
    ("x", lambda: once("2026-06-01T09:00:00"), {}, r"at: .*has no offset.*; add Z or an offset"),
    ("x", lambda: times("25:00"), {}, r"times\[0\]"),
    ("x", times, {}, r"times: is empty; write at least one"),
    ("x", lambda: every("1h"), {"timeout": "long"}, r"timeout: 'long' is not a duration; write it like"),
    ("x", lambda: every("1h"), {"catch_up": "twice"}, r"catch_up: .*once.*skip.*all"),
    ("x", lambda: every("1h"), {"overlap": "both"}, r"overlap: .*skip.*queue"),
    ("x", lambda: every("1h"), {"on_crash": "panic"}, r"on_crash: .*retry.*unknown"),
    ("x", lambda: every("1h"), {"retry": {"tries": 3}}, r"retry.tries"),
    ("x", lambda: every("1h"), {"colour": "red"}, r"colour"),
    ("x", lambda: every("1h"), {"max_consecutive_errors": -1}, r"max_consecutive_errors"),
    ("x", lambda: every("1h"), {"catch_up_max": 0}, r"catch_up_max"),
    ("x", lambda: every("1h"), {"active_hours": {"start": "9", "end": "17:00"}}, r"active_hours"),
    ("x", lambda: every("1h"), {"call": "nowhere_at_all:f"}, r"call: 'nowhere_at_all' cannot be imported .*; install"),
    ("x", lambda: every("1h"), {"call": "unheard_of"}, r"call: no callable is registered as 'unheard_of'; register"),
    ("x", lambda: every("1h"), {"call": "json:dumps", "isolate": "thread"}, r"isolate"),
    ("x", lambda: every("1h"), {"command": "make report"}, r"command.argv"),
    ("x", lambda: every("1h"), {"command": []}, r"command.argv: must be a list of strings starting with the program"),
    ("x", lambda: every("1h"), {"http": "localhost/in"}, r"http.url: .*is not an http or https address; write"),
    ("x", lambda: every("1h"), {"prompt": "hello"}, r"prompt: this process cannot perform it"),
    ("x", lambda: every("1h"), {"event": "hello"}, r"event: this process cannot perform it"),
    (
        "x",
        lambda: every("1h"),
        {"deliver": {"channel": "fax"}},
        r"deliver.channel: there is no channel .fax.; write last",
    ),
    ("x", lambda: after_reset(""), {}, r"slot: is empty; write the name"),
]


@pytest.mark.parametrize(("slug", "timing", "options", "message"), REFUSED, ids=[case[3][:40] for case in REFUSED])
@virtual
async def test_what_cannot_work_is_refused_when_written(
    world: World, slug: str, timing: Any, options: dict[str, Any], message: str
) -> None:
    """Fail fast, naming field and cure; nothing is written."""
    app = await world.open(Bot(world))
    with pytest.raises(Invalid, match=message) as refused:
        await app.add(slug, timing(), **options)
    assert all(error.field for error in refused.value.errors)
    assert await app.list() == []


@virtual
async def test_an_edit_that_is_refused_leaves_what_was_there(world: World) -> None:
    """All or nothing."""
    app = await world.open(Bot(world))
    await app.add("tick", every("1h"))
    before = await app.get("tick")
    with pytest.raises(Invalid):
        await app.update("tick", schedule={"type": "cron", "expression": "nonsense"})
    with pytest.raises(Invalid):
        await app.add("tick", once("2020-01-01T00:00:00Z"))
    assert await app.get("tick") == before


@virtual
async def test_two_actions_exclude_one_another(world: World) -> None:
    """Exactly one, or none for the `on_due` handler."""
    app = await world.open(Bot(world))
    with pytest.raises(ValueError, match="call and command are mutually exclusive; give exactly one"):
        await app.add("x", every("1h"), call="json:dumps", command=["true"])


@virtual
async def test_a_list_may_be_narrowed_down(world: World) -> None:
    """By a text, by the words of the options, or by a function."""
    app = await world.open(Bot(world))
    for slug in ("daily-report", "hourly-report", "backup"):
        await app.add(slug, every("1h"))
    await app.pause("hourly-report")

    async def slugs(*args: Any, **options: Any) -> list[str]:
        return [view.slug for view in await app.list(*args, **options)]

    assert await slugs() == ["backup", "daily-report", "hourly-report"]
    assert await slugs("report") == await slugs(contains="report") == ["daily-report", "hourly-report"]
    assert await slugs({"status": "paused"}) == await slugs(status="paused") == ["hourly-report"]
    assert await slugs("report", status="idle") == await slugs({"contains": "report", "status": "idle"})
    assert await slugs(lambda view: view.slug.endswith("up")) == ["backup"]
    assert await slugs({"contains": "report"}, limit=1) == ["daily-report"]


@virtual
async def test_while_a_run_waits_the_next_is_when_it_is_tried_again(world: World) -> None:
    """Instants in between fall on the open run, so nothing comes of them, and `why` says so."""
    app = await world.open(Bot(world, usual=RuntimeError("no")))
    await app.add("tick", every("10m"), retry={"times": 2, "delay": "25m"})
    await world.until("01-01 00:11:00")
    view = await app.get("tick")
    assert (view.status, short(view.next_run)) == ("waiting", "01-01 00:35:00")
    assert "the next one, 00:20, will be skipped because it is still open" in (await app.why("tick")).sentence
    await world.until("01-01 00:34:00")
    assert [(run.outcome, run.count) for run in await app.runs("tick")] == [("skipped", 2), ("waiting", 1)]


@virtual
async def test_enabling_what_is_done_is_refused_like_resuming_it(world: World) -> None:
    """`enabled: true` in a patch equals resume; writing the whole definition again is harmless."""
    app = await world.open(Bot(world))
    single = {"schedule": {"type": "once", "at": "2026-01-01T00:10:00Z"}, "call": {"target": "os:getpid"}}
    await app.schedules.put("single", {**single, "enabled": True})
    await app.pause("single", until="2026-01-01T00:20:00Z")
    await world.until("01-01 00:30:00")
    assert (await app.get("single")).status == "done"
    with pytest.raises(Conflict) as resumed:
        await app.resume("single")
    with pytest.raises(Conflict) as enabled:
        await app.schedules.patch("single", {"enabled": True})
    assert str(resumed.value) == str(enabled.value)
    assert (await app.schedules.put("single", {**single, "enabled": True})).view.status == "done"
    later = await app.schedules.patch("single", {"enabled": True, "schedule": {"at": "2026-01-02T00:00:00Z"}})
    assert (later.view.status, later.view.enabled) == ("idle", True)
