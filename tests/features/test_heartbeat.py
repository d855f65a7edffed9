"""The heartbeat on virtual time: beats on a grid, and every one of them in the ledger."""

from dataclasses import replace
from typing import Any

import pytest

from features.kit import AllTogether, World, ledger, short, virtual
from features.voice import BUSY, NO, OK, Voice, beating
from wakeful import once
from wakeful.core.heartbeat.heartbeat import BeatRules
from wakeful.core.run.results import Throttled
from wakeful.core.time.active_hours import ActiveHours
from wakeful.core.time.instants import DAY, HOUR, MINUTE, SECOND
from wakeful.drill.ledger import audit
from wakeful.features.heartbeat.feature import HeartbeatFeature
from wakeful.features.heartbeat.rules import HeartbeatTerms
from wakeful.stores.sqlite.store import SqliteStore

TERMS = HeartbeatTerms(enabled=True)


def within(start: str, end: str, zone: str = "UTC", **rules: int) -> HeartbeatTerms:
    """A heartbeat with active hours."""
    return replace(TERMS, beats=BeatRules(ActiveHours(start, end, zone), **rules))


@virtual
async def test_it_beats_on_its_grid_at_the_end_of_each_window(world: World) -> None:
    """The first beat is one interval after it was switched on."""
    voice = Voice(world)
    app = await beating(world, voice)
    await world.sleep("1h31m")
    assert voice.began == ["01-01 00:30:00.250", "01-01 01:00:00.250", "01-01 01:30:00.250"]
    assert await ledger(app, "heartbeat") == [
        "01-01 00:30:00 succeeded (ok-ack)",
        "01-01 01:00:00 succeeded (ok-ack)",
        "01-01 01:30:00 succeeded (ok-ack)",
    ]
    runs = await app.runs("heartbeat")
    assert {(run.trigger, run.reasons) for run in runs} == {("schedule", ("interval",))}


@virtual
async def test_restarts_do_not_move_the_grid(world: World) -> None:
    """Frequent restarts neither reset nor stop it (OC#59977)."""
    voice = Voice(world)
    app = await beating(world, voice)
    for _ in range(6):
        await world.sleep("20m")
        await app.stop()
        app = await beating(world, voice)
    await world.sleep("1s")
    assert voice.began == [f"01-01 0{n // 2}:{n % 2 * 3}0:00.250" for n in (1, 2, 3, 4)]


@virtual
async def test_an_outage_is_caught_up_once_and_the_rest_is_one_row(world: World) -> None:
    """No stampede of old heartbeats (OC#73644): the latest runs, the others are counted."""
    voice = Voice(world)
    app = await beating(world, voice)
    await world.sleep("10m")
    await app.stop()
    await world.sleep("5h")
    app = await beating(world, voice)
    await world.sleep("1s")
    assert await ledger(app, "heartbeat") == ["01-01 00:30:00 missed (outage) x9", "01-01 05:00:00 succeeded (ok-ack)"]
    assert (await app.runs("heartbeat"))[0].trigger == "catchUp"
    await world.sleep("20m")
    assert voice.began[-1] == "01-01 05:30:00.250"


@virtual
async def test_beats_outside_the_active_hours_are_one_counted_row(world: World) -> None:
    """The next beat is planned inside the window, start included and end excluded; nights are gaps."""
    voice = Voice(world)
    app = await beating(world, voice, within("09:00", "11:00"))
    view, _ = await app.turns.heartbeat()
    assert short(view.next_beat) == "01-01 09:00:00"
    await world.until("01-02 09:31:00")
    assert [at[:-4] for at in voice.began] == [
        *(f"01-01 {at}:00" for at in ("09:00", "09:30", "10:00", "10:30")),
        *(f"01-02 {at}:00" for at in ("09:00", "09:30")),
    ]
    rows = await ledger(app, "heartbeat")
    assert rows[0] == "01-01 00:30:00 skipped (outside active hours) x17"
    assert rows[5] == "01-01 11:00:00 skipped (outside active hours) x44"


@virtual
async def test_active_hours_cross_midnight_and_daylight_saving(world: World) -> None:
    """On the wall clock of their zone: New York springs forward on 8 March 2026, and 02:00 does not exist."""
    await world.until("03-07 00:00:00")
    voice = Voice(world)
    await beating(world, voice, replace(within("22:00", "02:30", "America/New_York"), every=HOUR))
    await world.until("03-09 12:00:00")
    # 22:00 to 02:30 is 03:00-07:30 UTC before, and 02:00-06:30 UTC after; in the night itself 02:00 is left out.
    assert [at[:8] for at in voice.began] == [
        *(f"03-07 0{hour}" for hour in (3, 4, 5, 6, 7)),
        *(f"03-08 0{hour}" for hour in (3, 4, 5, 6)),
        *(f"03-09 0{hour}" for hour in (2, 3, 4, 5, 6)),
    ]


@virtual
async def test_active_hours_until_24_00_and_always(world: World) -> None:
    """24:00 is the end of the day; the same start and end mean always."""
    voice = Voice(world)
    app = await beating(world, voice, replace(within("23:00", "24:00"), every=HOUR // 2))
    await world.until("01-02 00:10:00")
    assert [at[:-4] for at in voice.began] == ["01-01 23:00:00", "01-01 23:30:00"]
    await app.stop()
    await beating(world, voice, replace(within("23:00", "23:00"), every=HOUR // 2))
    await world.until("01-02 01:10:00")
    assert [at[:-4] for at in voice.began[2:]] == ["01-02 00:30:00", "01-02 01:00:00"]


@virtual
async def test_active_hours_gate_beats_alone(world: World) -> None:
    """Wakes of any other reason turn at night (OC#2217)."""
    voice = Voice(world)
    app = await beating(world, voice, within("09:00", "10:00"))
    for reason in ("cron", "message", "manual", "hook"):
        await app.request_wake(reason)
        await world.sleep("1m")
    assert len(voice.began) == 4


@virtual
async def test_a_beat_that_is_late_into_the_night_is_missed(world: World) -> None:
    """It lay inside the hours, nobody ticked, and now is no time to catch it up."""
    voice = Voice(world)
    terms = replace(within("09:00", "13:00"), every=12 * HOUR)
    app = await beating(world, voice, terms)
    await world.until("01-01 11:00:00")
    await app.stop()
    await world.until("01-01 15:00:00")
    app = await beating(world, voice, terms)
    await world.until("01-02 12:30:00")
    assert voice.began == ["01-02 12:00:00.250"]
    assert await ledger(app, "heartbeat") == [
        "01-01 12:00:00 missed (outage)",
        "01-02 00:00:00 skipped (outside active hours)",
        "01-02 12:00:00 succeeded (ok-ack)",
    ]


@virtual
async def test_a_beat_on_an_open_turn_is_blocked_and_said_so(world: World) -> None:
    """A turn of 70 minutes blocks two beats, in one row that names it; the grid goes on."""
    voice = Voice(world)
    voice.script = [70 * MINUTE]
    app = await beating(world, voice)
    await world.sleep("2h5m")
    runs = list(reversed(await app.runs("heartbeat")))
    assert await ledger(app, "heartbeat") == [
        "01-01 00:30:00 succeeded (ok-ack)",
        "01-01 01:00:00 skipped (blocked) x2",
        "01-01 02:00:00 succeeded (ok-ack)",
    ]
    assert runs[1].blocked_by == runs[0].run_id


@virtual
async def test_blocked_beats_are_one_row_also_after_the_clock_went_back(world: World) -> None:
    """It was a day ahead for ten minutes, and what was decided then is planned again."""
    world.sleep_max = MINUTE
    voice = Voice(world)
    voice.script = [MINUTE, MINUTE, 70 * MINUTE]
    app = await beating(world, voice)
    await world.sleep("35m")
    world.wall.step(DAY)
    await world.sleep("10m")
    world.wall.step(-DAY)
    await world.sleep("110m")
    rows = await ledger(app, "heartbeat")
    assert [row for row in rows if "blocked" in row] == ["01-01 01:30:00 skipped (blocked) x2"]


@virtual
async def test_a_busy_agent_skips_the_beat_without_an_error(world: World) -> None:
    """409 is a row of the ledger, not a failure (OC#148874), and the beats after it come on time."""
    voice = Voice(world)
    voice.script = [BUSY]
    app = await beating(world, voice)
    await world.sleep("1h1m")
    assert await ledger(app, "heartbeat") == ["01-01 00:30:00 skipped (busy)", "01-01 01:00:00 succeeded (ok-ack)"]
    view, _ = await app.turns.heartbeat()
    assert view.errors_in_a_row == 0


@virtual
async def test_a_beat_waits_for_the_reset_of_a_limit(world: World) -> None:
    """No error; asked again right at the reset, and the beats in between fall on it."""
    voice = Voice(world)
    reset_at = world.now + 2 * HOUR + 10 * MINUTE
    voice.script = [Throttled("claude: its usage limit is used up", reset_at, reason="quota")]
    app = await beating(world, voice)
    await world.sleep("2h9m")
    assert len(voice.heard) == 1
    assert (await ledger(app, "heartbeat"))[0] == "01-01 00:30:00 waiting (quota)"
    view, _ = await app.turns.heartbeat()
    assert view.errors_in_a_row == 0
    await world.sleep("2m")
    assert len(voice.heard) == 2
    assert (await ledger(app, "heartbeat"))[0] == "01-01 00:30:00 succeeded (ok-ack)"


@virtual
async def test_a_beat_is_skipped_while_its_agents_lane_is_held(world: World) -> None:
    """A schedule of the same agent is at it: the beat names the run."""
    from wakeful import every

    voice = Voice(world)
    app = await beating(world, voice, agent_interval_min="1m")
    voice.script = [20 * MINUTE]
    await app.add("long", every("25m"), prompt="take your time")
    await world.sleep("31m")
    rows = await app.runs("heartbeat")
    assert [(run.outcome, run.reason) for run in rows] == [("skipped", "busy")]
    assert rows[0].blocked_by == (await app.runs("long"))[0].run_id


@virtual
async def test_a_wake_waits_for_a_busy_agent(world: World) -> None:
    """Who asked for a turn gets it, as soon as the agent is free."""
    voice = Voice(world)
    voice.script = [BUSY, BUSY]
    app = await beating(world, voice)
    await app.request_wake("manual")
    await world.sleep("2m")
    assert voice.began == ["01-01 00:00:00.250", "01-01 00:00:30.250", "01-01 00:01:30.250"]
    assert await ledger(app, "heartbeat") == ["01-01 00:00:00 succeeded (ok-ack)"]


@virtual
async def test_a_beat_with_an_event_waits_for_a_busy_agent(world: World) -> None:
    """The event would wait for the next beat, which may be half a day later."""
    voice = Voice(world)
    voice.script = [HOUR, BUSY, BUSY]
    app = await beating(world, voice, replace(TERMS, every=12 * HOUR))
    await app.request_wake("manual", "the kettle boils")
    await world.sleep("1s")
    (turn,) = await app.runs("heartbeat")
    await app.cancel(turn.run_id)  # the event is still queued, and nobody has requested another turn
    await world.sleep("12h10m")
    assert voice.began[1:] == ["01-01 12:00:00.250", "01-01 12:00:30.250", "01-01 12:01:30.250"]
    assert (await ledger(app, "heartbeat"))[1:] == ["01-01 12:00:00 succeeded (ok-ack)"]
    assert (await app.turns.system_events()).events == []


@virtual
async def test_a_beat_with_an_event_waits_for_the_lane_of_its_agent(world: World) -> None:
    """A schedule of the same agent is at it: the turn begins when that has ended."""
    voice = Voice(world)
    voice.script = [HOUR, 20 * MINUTE]
    app = await beating(world, voice, replace(TERMS, every=12 * HOUR), agent_interval_min="1m")
    await app.request_wake("manual", "the kettle boils")
    await world.sleep("1s")
    (turn,) = await app.runs("heartbeat")
    await app.cancel(turn.run_id)
    await app.add("long", once("+11h50m"), prompt="take your time")
    await world.sleep("12h30m")
    assert voice.began[1:] == ["01-01 11:50:01", "01-01 12:10:01"]
    assert (await ledger(app, "heartbeat"))[1:] == ["01-01 12:00:00 succeeded (ok-ack)"]
    assert (await app.turns.system_events()).events == []


@virtual
async def test_a_failed_turn_is_tried_again_after_a_second_then_by_the_ladder(world: World) -> None:
    """1 s, 30 s, 1, 5, 15, 60 minutes; each is a run of its own, under the reason retry; five alert once."""
    voice = Voice(world)
    voice.usual = NO
    app = await beating(world, voice, replace(TERMS, every=24 * HOUR))
    await app.request_wake("manual")
    await world.sleep("2h")
    assert voice.began == [
        "01-01 00:00:00.250",
        "01-01 00:00:01.500",
        "01-01 00:00:31.750",
        "01-01 00:01:32",
        "01-01 00:06:32.250",
        "01-01 00:21:32.500",
        "01-01 01:21:32.750",
    ]
    runs = list(reversed(await app.runs("heartbeat")))
    assert [run.reasons for run in runs] == [("manual",), *[("retry",)] * 6]
    assert [name.partition(":")[0] for name in world.reported()] == ["failing"]


@virtual
async def test_a_turn_that_succeeds_ends_the_row_of_errors(world: World) -> None:
    """After a good turn nothing is asked for again."""
    voice = Voice(world)
    voice.script = [NO, NO]
    app = await beating(world, voice)
    await app.request_wake("manual")
    await world.sleep("20m")
    assert len(voice.began) == 3
    view, _ = await app.turns.heartbeat()
    assert (view.errors_in_a_row, view.retry_at) == (0, None)


@pytest.mark.parametrize("days", [3, pytest.param(31, marks=pytest.mark.torture)])
@virtual
async def test_acknowledgements_cost_the_planned_turns_and_say_nothing(world: World, days: int) -> None:
    """31 days at 30 minutes are 1488 turns, each acknowledged, nothing delivered, one row each."""
    said: list[Any] = []
    voice = Voice(world)
    app = await beating(world, voice, said=said)
    await world.sleep(days * DAY + SECOND)
    assert len(voice.began) == days * 48
    assert said == []
    assert world.query("SELECT outcome, reason, count(*) FROM runs GROUP BY 1, 2") == [
        ("succeeded", "ok-ack", days * 48)
    ]
    assert app.alerted == []


@virtual
async def test_switching_off_and_on_keeps_the_grid(world: World) -> None:
    """The time in between is one row; only a changed interval begins a new grid."""
    voice = Voice(world)
    app = await beating(world, voice)
    await world.sleep("35m")
    await app.feature.follow(replace(TERMS, enabled=False))  # type: ignore[attr-defined]
    await world.sleep("2h")
    await app.feature.follow(TERMS)  # type: ignore[attr-defined]
    await world.sleep("30m")
    assert await ledger(app, "heartbeat") == [
        "01-01 00:30:00 succeeded (ok-ack)",
        "01-01 01:00:00 skipped (disabled) x4",
        "01-01 03:00:00 succeeded (ok-ack)",
    ]
    await app.feature.follow(replace(TERMS, every=10 * MINUTE))  # type: ignore[attr-defined]
    await world.sleep("11m")
    assert voice.began[-1] == "01-01 03:15:00.250"


@virtual
async def test_a_clock_that_jumps_either_way_causes_at_most_one_catch_up(world: World) -> None:
    """Ahead: one turn. Back: nothing is repeated, and no silence afterwards (L3)."""
    world.sleep_max = MINUTE
    voice = Voice(world)
    app = await beating(world, voice)
    await world.sleep("31m")
    world.wall.step(6 * HOUR)
    await world.sleep("2m")
    assert len(voice.began) == 2
    world.wall.step(-6 * HOUR)
    await world.sleep("1h")
    assert len(voice.began) == 4
    keys = [fire.idempotency_key for fire in voice.fires]
    assert len(set(keys)) == len(keys)
    assert all(run.outcome in ("succeeded", "missed") for run in await app.runs("heartbeat"))


@virtual
async def test_an_interval_that_was_changed_on_a_clock_ahead_does_not_silence_it(world: World) -> None:
    """The clock is days ahead, the interval is changed, the clock comes back: it beats on by the new interval, and what
    was missed before the change stays in the ledger."""
    world.sleep_max = MINUTE
    voice = Voice(world)
    app = await beating(world, voice)
    await world.sleep("31m")
    await app.stop()
    await world.sleep("2h")
    world.wall.step(30 * DAY)
    app = await beating(world, voice)
    await world.sleep("2m")
    await app.feature.follow(replace(TERMS, every=10 * MINUTE))  # type: ignore[attr-defined]
    world.wall.step(-30 * DAY)
    before = len(voice.began)
    await world.sleep("1h")
    assert [began[6:11] for began in voice.began[before:]] == ["02:43", "02:53", "03:03", "03:13", "03:23"]
    missed = [run for run in await app.runs("heartbeat") if run.outcome == "missed"]
    assert missed, "the two hours in which nothing ran are not to be seen any more"


@virtual
async def test_a_start_on_a_wrong_clock_that_came_to_nothing_leaves_no_silence(world: World) -> None:
    """The process starts while the clock is days ahead, leaves out the beats of the night, and dies before it has noted
    how far the clock got: the next one plans from now all the same."""
    world.sleep_max = MINUTE
    voice = Voice(world)
    terms = within("12:00", "18:00")
    app = await beating(world, voice, terms)
    await world.sleep("10m")
    await app.stop()
    world.wall.step(30 * DAY)
    feature = HeartbeatFeature(terms)
    store = SqliteStore.open_inline(world.path, hook=AllTogether())
    context = {"store": store, "clock": world.clock, "store_id": "x", "actions": {}}
    await feature.plug(**context, receipt_url=lambda _: None, ring_bell=lambda: None, apply=lambda *_: True)
    await store.close()
    world.wall.step(-30 * DAY)
    app = await beating(world, voice, replace(terms, beats=BeatRules()))
    await world.sleep("1h")
    assert [began[6:11] for began in voice.began] == ["00:30", "01:00"]


@virtual
async def test_it_has_a_session_of_its_own(world: World) -> None:
    """Kept from turn to turn, over restarts, apart from those of schedules."""
    voice = Voice(world)
    app = await beating(world, voice)
    await world.sleep("31m")
    await app.stop()
    app = await beating(world, voice)
    view, turns = await app.turns.heartbeat()
    assert view.session_id == "session-heartbeat"
    assert [run.outcome for run in turns] == ["succeeded"]


@virtual
async def test_what_the_agent_says_is_delivered_without_the_token(world: World) -> None:
    """Empty, or the token and little else: kept. Anything else is sent, and never with the token (OC#16974)."""
    said: list[Any] = []
    voice = Voice(world)
    long = "x" * 301
    voice.script = ["", f"{OK} all quiet", f"{OK}\n{long}", "the house is on fire", f"I would say {OK} but no"]
    app = await beating(world, voice, said=said)
    await world.sleep("2h31m")
    verdicts = [run.reason for run in reversed(await app.runs("heartbeat"))]
    assert verdicts == ["ok-empty", "ok-ack", "sent", "sent", "sent"]
    assert [one.text for one in said] == [long, "the house is on fire", "I would say  but no"]
    assert {one.slug for one in said} == {"heartbeat"}


@virtual
async def test_a_reply_nobody_heard_is_not_an_empty_one(world: World) -> None:
    """The turn is proven, its reply is not known: nothing is delivered, and that is what the ledger says."""
    from wakeful.core.run.results import Done

    said: list[Any] = []
    voice = Voice(world)
    voice.script = [Done()]
    app = await beating(world, voice, said=said)
    await world.sleep("31m")
    assert await ledger(app, "heartbeat") == ["01-01 00:30:00 succeeded (no-reply)"]
    assert said == []


@virtual
async def test_why_knows_the_active_hours(world: World) -> None:
    """Now, ahead and in the past, also before the gap is in the ledger; a turn that was asked for is told as such."""
    hours = ActiveHours("09:00", "17:00", "UTC")
    terms = HeartbeatTerms(enabled=True, beats=BeatRules(hours=hours))
    app = await beating(world, Voice(world), terms)
    outside = "outside its active hours (09:00 to 17:00, UTC)"
    assert (await app.why("heartbeat")).sentence == (
        f"It is {outside} and beats again at 2026-01-01T09:00:00.000Z; it can still be woken."
    )
    await world.until("01-01 12:00:00")
    assert "waits for its next beat" in (await app.why("heartbeat")).sentence
    ahead = (await app.why("heartbeat", at="2026-01-01T20:00:00Z")).sentence
    assert ahead.startswith(f"Nothing is planned for 2026-01-01T20:00:00.000Z: that is {outside}.")
    await world.until("01-01 22:00:00")
    past = (await app.why("heartbeat", at="2026-01-01T20:00:00Z")).sentence
    assert past == (
        f"No beat was planned for 2026-01-01T20:00:00.000Z: that is {outside}. "
        "The next beat is at 2026-01-02T09:00:00.000Z."
    )
    await app.request_wake("manual")
    await world.sleep("1m")
    assert "requested by manual" in (await app.why("heartbeat", at="2026-01-01T22:00:00Z")).sentence
    await world.until("01-02 12:00:00")
    assert "outside the active hours" in (await app.why("heartbeat", at="2026-01-01T20:00:00Z")).sentence


@virtual
async def test_why_says_what_became_of_beats(world: World) -> None:
    """One sentence for now, for the past and for what is to come."""
    voice = Voice(world)
    voice.script = [OK, NO, 10 * SECOND]
    app = await beating(world, voice)
    assert "next beat at 2026-01-01T00:30:00.000Z" in (await app.why("heartbeat")).sentence
    await world.sleep("31m")
    assert "acknowledged" in (await app.why("heartbeat", at="2026-01-01T00:30:10Z")).sentence
    await world.until("01-01 01:00:01")
    sentence = (await app.why("heartbeat")).sentence
    assert "The next turn is at 2026-01-01T01:00:01.500Z" in sentence
    await world.until("01-01 01:00:05")
    assert "has been running since" in (await app.why("heartbeat")).sentence
    assert "requested by retry" in (await app.why("heartbeat")).sentence
    assert "ended as failed: the model is down" in (await app.why("heartbeat", at="2026-01-01T01:00:00.500Z")).sentence
    assert "starting at 2026-01-01T01:30" in (await app.why("heartbeat", at="2026-01-02T00:00:00Z")).sentence


@virtual
async def test_another_agent_begins_a_session_of_its_own(world: World) -> None:
    """What one agent made is of no use to another, also if it is changed while a turn is under way."""
    voice = Voice(world)
    voice.script = [OK, 5 * MINUTE]
    app = await beating(world, voice)
    await world.sleep("1h1m")
    assert (await app.turns.heartbeat())[0].session_id == "session-heartbeat"
    await app.feature.follow(replace(TERMS, agent="other"))  # type: ignore[attr-defined]
    assert (await app.turns.heartbeat())[0].session_id is None
    await world.sleep("10m")
    assert (await app.turns.heartbeat())[0].session_id is None
    await world.sleep("20m")
    assert (await app.turns.heartbeat())[0].session_id == "session-heartbeat"


@virtual
async def test_a_grid_that_steps_over_the_active_hours_beats_when_they_begin(world: World) -> None:
    """46, OC#75487: once a day from midnight on, active from nine to ten. It would never beat, and nobody would say."""
    voice = Voice(world)
    app = await beating(world, voice, replace(within("09:00", "10:00"), every=24 * HOUR))
    view, _ = await app.turns.heartbeat()
    assert short(view.next_beat) == "01-02 09:00:00"
    assert "2026-01-02T09:00:00.000Z" in (await app.why("heartbeat")).sentence
    await world.until("01-03 03:00:00")
    await app.request_wake("manual")  # in the night, while the beat of midnight waits for the morning
    await world.until("01-04 12:00:00")
    assert voice.began == ["01-02 09:00:00.250", "01-03 03:00:00.250", "01-03 09:00:00.250", "01-04 09:00:00.250"]
    beats = [run for run in reversed(await app.runs("heartbeat")) if run.trigger != "wake"]
    assert [(short(run.planned_at), short(run.due_at), run.trigger) for run in beats] == [
        (f"01-0{day} 00:00:00", f"01-0{day} 09:00:00.250", "schedule") for day in (2, 3, 4)
    ]
    assert (await app.store.read(audit)).is_clean


@virtual
async def test_a_wide_grid_keeps_its_beats_over_daylight_saving_and_outages(world: World) -> None:
    """Half past nine in Berlin's summer is half past eight in its winter, before the hours begin. A restart while the
    beat waits for the morning neither loses nor hastens it, and days off are one catch-up."""
    await world.until("10-24 07:30:00")
    voice = Voice(world)
    terms = replace(within("09:00", "10:00", "Europe/Berlin"), every=24 * HOUR)
    app = await beating(world, voice, terms)
    await world.until("10-27 07:45:00")  # 08:45 in Berlin: the beat of 08:30 waits
    await app.stop()
    app = await beating(world, voice, terms)
    await world.until("10-28 07:45:00")
    await app.stop()
    await world.until("11-02 08:20:00")
    app = await beating(world, voice, terms)
    await world.until("11-03 12:00:00")
    assert [at[:14] for at in voice.began] == [
        *(f"10-{day} 08:00:00" for day in (25, 26, 27)),
        "11-02 08:20:00",
        "11-03 08:00:00",
    ]
    assert (await app.store.read(audit)).is_clean
    assert sum(run.count for run in await app.runs("heartbeat")) == 10


@virtual
async def test_a_grid_of_seven_hours_beats_in_every_window_it_has_a_beat_for(world: World) -> None:
    """Never twice for one window that it steps over, never none: a week with two hours a day."""
    voice = Voice(world)
    app = await beating(world, voice, replace(within("12:00", "14:00"), every=7 * HOUR))
    await world.until("01-15 00:00:00")
    assert len({at[:5] for at in voice.began}) == len(voice.began) == 14
    assert (await app.store.read(audit)).is_clean
