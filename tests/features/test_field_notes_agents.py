"""What users of other schedulers reported about agents, their turns and their replies; a row each."""

from pathlib import Path
from typing import Any

import pytest

from agents.puppet import Puppet, at
from agents.test_engine import Office
from delivery.kit import reachable, statuses
from features.kit import Bot, World, as_ms, ledger, rfc, short, virtual
from features.voice import OK, Voice, beating
from wakeful import Conflict, cron, every, once
from wakeful.core.heartbeat.heartbeat import BeatRules
from wakeful.core.run.results import Busy, Done, Result
from wakeful.core.schedule.actions import Prompt
from wakeful.core.time.instants import DAY, HOUR, MINUTE, SECOND
from wakeful.features.heartbeat.action import HeartbeatAction, HeartbeatTurn, notes_in
from wakeful.features.heartbeat.rules import HeartbeatTerms
from wakeful.ports.agent import Finished
from wakeful.ports.store import SystemEvent


@virtual
async def test_prompts_that_no_session_ever_takes_up_are_never_green_and_end_in_an_alarm(world: World) -> None:
    """8, CC#72195: accepted each time, taken up never. Elsewhere that looked healthy for days."""
    office = Office(world)
    office.puppet.sights = at((0, Finished("yes", {})))
    await office.open()
    await world.sleep("6h30m")
    worked_at = world.now
    office.puppet.sights = Puppet(world.clock).sights  # silence
    await world.sleep("3d")
    rows = await office.told()
    assert [outcome for _, outcome, _, _ in rows] == ["succeeded"] + ["unconfirmed"] * 5
    view = await office.app.get("standup")
    assert (view.status, view.last_result) == ("disabled", "error")
    ((succeeded_at,),) = world.query("SELECT last_success_at FROM cadences")
    assert succeeded_at <= worked_at
    assert [name.partition(":")[0] for name in world.reported()] == ["failing"]


@virtual
async def test_a_session_that_a_person_keeps_busy_delays_its_own_run_and_nothing_else(world: World) -> None:
    """9, CC#87940: from eight to half past twelve somebody talks to the agent. Its run waits, visibly and without an
    error; the other schedules keep their times, and tomorrow it is nine o'clock again."""
    agent, other = Bot(world), Bot(world)
    agent.script = [Busy("Session busy")] * 4
    app = await world.open(other)
    await app.add("standup", cron("0 9 * * *"), call=agent)
    await app.add("other", every("30m"))
    await world.until("01-01 12:45:00")
    waiting = await app.get("standup")
    assert (waiting.status, waiting.status_reason, waiting.consecutive_errors) == ("waiting", "busy", 0)
    await world.until("01-02 10:00:00")
    assert other.began == other.planned
    assert len(other.fires) == 68
    assert await ledger(app, "standup") == ["01-01 09:00:00 succeeded", "01-02 09:00:00 succeeded"]
    first = (await app.runs("standup"))[-1]
    assert first.started_at is not None
    assert [(a.outcome, short(a.ended_at)) for a in first.attempts[:-1]] == [
        ("busy", f"01-01 {hour:02}:00:00") for hour in (9, 10, 11, 12)
    ]


@virtual
async def test_run_now_from_inside_a_run_of_the_same_lane_does_not_deadlock(world: World) -> None:
    """26, OC#43008: an agent that starts another schedule of its own lane gets its answer; waiting for the end of what
    can only begin after it is given up in time, and the other run starts when the lane is free."""
    bot, inner = Bot(world), Bot(world)
    app = await world.open(bot)
    answers: list[Any] = []

    async def nested() -> None:
        answers.append(await app.run_now("second"))
        try:
            await app.run_now("third", wait=True, within="30s")
        except Conflict as conflict:
            answers.append(str(conflict))

    bot.script = [nested]
    await app.add("first", every("1h"), lane="agent")
    for slug in ("second", "third"):
        await app.add(slug, every("1d"), lane="agent", call=inner)
    await world.until("01-01 01:05:00")
    assert [(fire.slug, began) for fire, began in zip(inner.fires, inner.began, strict=True)] == [
        ("second", "01-01 01:00:30"),
        ("third", "01-01 01:00:30"),
    ]
    assert "waiting" in answers[1]
    assert await ledger(app, "first") == ["01-01 01:00:00 succeeded"]


@virtual
async def test_a_one_shot_that_fails_is_told_of(world: World) -> None:
    """It has no second instant that could fail: without this the reminder would just be gone."""
    app, people = await reachable(world, "phone")
    bot = Bot(world, RuntimeError("no session"))
    await app.add("pills", once(rfc("01-01 08:00:00")), call=bot)
    await world.until("01-01 09:00:00")
    (told,) = people["phone"].got
    assert told.startswith("pills: it failed. The run of pills planned for 2026-01-01 08:00 (UTC) failed ")
    assert told.count("RuntimeError: no session") == 1
    assert (await app.get("pills")).status == "done"


@virtual
async def test_a_one_shot_that_came_too_late_is_told_of(world: World) -> None:
    """12: not run hours later, as its owner said; and not forgotten in silence either."""
    app, people = await reachable(world, "phone")
    bot = Bot(world)
    await app.add("market", once(rfc("01-01 11:00:00")), call=bot, max_lateness="30m")
    await app.stop()
    await world.until("01-01 22:00:00")
    bench = world.bench()
    bench.register_channel("phone", None, people["phone"])
    await bench.start()
    await world.sleep("1h")
    assert bot.fires == []
    told = people["phone"].got[0]
    assert told.startswith("market: its last planned time, 2026-01-01T11:00:00.000Z, was missed: outage. ")


@virtual
async def test_a_target_that_is_busy_for_days_is_told_of(world: World) -> None:
    """Being busy is no error, so no row of errors says it: when a whole day of waiting was in vain, somebody hears."""
    app, people = await reachable(world, "phone")
    bot = Bot(world, Busy("Session busy"))
    await app.add("standup", cron("0 9 * * *"), call=bot)
    await world.sleep(2 * DAY)
    (told,) = people["phone"].got
    assert told.startswith("standup: it failed")
    assert "Session busy" in told
    assert (await app.get("standup")).consecutive_errors == 0
    bot.usual = None
    await world.sleep(2 * DAY)
    assert [text.startswith("standup: recovered") for text in people["phone"].got] == [False, True]


@virtual
async def test_a_definition_that_turns_unreadable_is_told_of(world: World) -> None:
    """50, OC#15359: kept, shown, left alone, and somebody knows that it does not run."""
    app, people = await reachable(world, "phone")
    bot = Bot(world)
    await app.add("bad", every("1h"), call=bot)
    await app.stop()
    world.tamper("UPDATE schedules SET definition = '{'")
    bench = world.bench()
    bench.register_channel("phone", None, people["phone"])
    await bench.start()
    await world.until("01-01 05:30:00")
    (told,) = people["phone"].got
    assert told.startswith("bad: its definition can no longer be read, so it does not run: ")


@virtual
async def test_a_reply_that_is_only_the_token_is_suppressed_and_says_so(world: World) -> None:
    """34, 39, OC#111851: silence that the agent chose is no delivery that was lost, and nobody sees the token."""
    app, people = await reachable(world, "phone")
    bot = Bot(world, Done(reply=f" {OK}\n"))
    await app.add("check", every("1h"), call=bot, deliver={"channel": "phone"})
    await world.until("01-01 01:30:00")
    bot.usual = Done(reply=f"{OK} take your pills")
    await world.until("01-01 02:30:00")
    assert people["phone"].got == ["take your pills"]
    told, quiet = await app.runs("check")
    assert quiet.to_json()["delivery"] == {"status": "suppressed", "reason": "the reply was only the ack token"}
    assert quiet.reply == f" {OK}\n"
    assert told.delivery is not None
    assert told.delivery.status == "delivered"


@virtual
async def test_a_week_off_replays_nothing_however_often_it_starts(world: World) -> None:
    """36, OC#29106: what arrived is not sent again, what is a week old is a dead letter with its text, refused ones are
    not tried again; and the one alert says which channel it was about."""
    app, people = await reachable(world, "phone", "mail")
    await app.delivering.send("arrived", channel="mail")
    people["phone"].usual = RuntimeError("down")
    await app.delivering.send("last week's news", channel="phone")
    await world.sleep("1m")
    await app.kill()
    await world.sleep(8 * DAY)
    for _ in range(4):
        app, people = await reachable(world, "phone", "mail")
        await world.sleep("20m")
        assert [
            text for text in people["phone"].got + people["mail"].got if "last week" in text or text == "arrived"
        ] == []
        await app.kill()
    assert statuses(world)[:2] == [("arrived", "delivered", 1), ("last week's news", "dead", 3)]


@pytest.mark.parametrize("notes", ["", " \n\n"])
async def test_an_empty_heartbeat_file_keeps_nothing_back(tmp_path: Path, notes: str) -> None:
    """45, OC#2217: a file without a word skipped the turns of cron jobs elsewhere; here events are told."""
    (tmp_path / "HEARTBEAT.md").write_text(notes)
    heard: list[str] = []

    class Listening(Voice):
        async def perform(self, spec: Prompt, fire: Any, ladder: Any) -> Result:
            heard.append(spec.text)
            return Done(reply=OK)

    event = SystemEvent(1, "cron:plants", "cron", "water the plants", 0, 1, "plants", 7, None, None)
    turn = HeartbeatTurn("default", "look around", (event,), ("cron",))
    action = HeartbeatAction(Listening.__new__(Listening), notes_in(tmp_path))
    assert await action.perform(turn, None, None) == Done(reply=OK)  # type: ignore[arg-type]  # neither is looked at
    (told,) = heard
    assert "> water the plants" in told
    assert "HEARTBEAT.md" not in told


@pytest.mark.parametrize("most", [1, 2, 5])
@virtual
async def test_a_heartbeat_nobody_needs_costs_no_more_than_its_budget(world: World, most: int) -> None:
    """41 and 42, OC#98556, OC#48723: hooks that fire for hours cannot buy more turns than were allowed; that is told of
    once, however small the budget is; and switched off it costs nothing."""
    voice = Voice(world)
    app = await beating(
        world, voice, HeartbeatTerms(enabled=True, every=HOUR, beats=BeatRules(turns_per_hour_max=most))
    )
    for _ in range(6 * 12):
        await app.request_wake("hook")
        await world.sleep(5 * MINUTE)
    assert len(voice.began) <= most * 7
    assert [alert.incident for alert in app.alerted] == ["heartbeat:budget"]
    await app.feature.follow(HeartbeatTerms(enabled=False))  # type: ignore[attr-defined]
    await world.sleep(2 * HOUR)
    turns = len(voice.began)
    await world.sleep(DAY)
    assert len(voice.began) == turns


@pytest.mark.parametrize("off", [0, 1, 59, 90])
@virtual
async def test_a_start_at_any_moment_leaves_no_alarm_in_the_past(world: World, off: int) -> None:
    """5, OC#9655, OC#34432: after any start every alarm that is left lies ahead, and what was due has its row."""
    bot = Bot(world)
    app = await world.open(bot)
    for slug, timing in (
        ("hourly", every("1h")),
        ("nightly", cron("0 1 * * *")),
        ("shot", once(rfc("01-01 01:00:00"))),
    ):
        await app.add(slug, timing)
    await world.until("01-01 00:59:30")
    app = await world.reopen(app, bot, off=f"{30 + off}s")
    await world.sleep(SECOND)
    assert sorted(fire.slug for fire in bot.fires) == ["hourly", "nightly", "shot"]
    left = world.query("SELECT due_at FROM alarms WHERE due_at IS NOT NULL")
    assert left
    assert all(due_at > world.now for (due_at,) in left)
    view = await app.get("hourly")
    assert view.next_run is not None
    assert as_ms(view.next_run) > world.now
