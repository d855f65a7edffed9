"""Wakes on virtual time: coalesced, one turn at a time, spaced and budgeted."""

from dataclasses import replace
from itertools import pairwise

from features.kit import World, instant, ledger, short, virtual
from features.voice import NO, OK, Voice, beating
from wakeful import every, once
from wakeful.core.heartbeat.heartbeat import BeatRules
from wakeful.core.time.instants import DAY, HOUR, MINUTE, SECOND, format_instant
from wakeful.drill.ledger import audit
from wakeful.features.heartbeat.rules import HeartbeatTerms

QUIET = HeartbeatTerms(enabled=False)


@virtual
async def test_requests_within_250_ms_of_the_first_become_one_turn(world: World) -> None:
    """A fixed window: one at 249 ms joins, one at 251 ms opens the next."""
    voice = Voice(world)
    app = await beating(world, voice, QUIET)
    assert not await app.request_wake("cron")
    await world.sleep(100)
    assert await app.request_wake("cron")
    await world.sleep(149)
    assert await app.request_wake("manual")
    await world.sleep(2)
    assert not await app.request_wake("hook")
    await world.sleep("1s")
    assert voice.began == ["01-01 00:00:00.250", "01-01 00:00:00.501"]
    runs = list(reversed(await app.runs("heartbeat")))
    assert [run.reasons for run in runs] == [("cron", "manual"), ("hook",)]
    assert [run.trigger for run in runs] == ["wake", "wake"]


@virtual
async def test_the_highest_priority_leads_and_the_first_wins_ties(world: World) -> None:
    """retry 0, interval 1, cron and message 2, manual and hook 3; all of them are kept."""
    voice = Voice(world)
    app = await beating(world, voice, QUIET)
    for reasons in (("cron", "hook", "manual"), ("message", "cron")):
        for reason in reasons:
            await app.request_wake(reason)
        await world.sleep("1m")
    rows = world.query("SELECT definition FROM runs ORDER BY run_id")
    assert '"reason": "hook", "reasons": ["cron", "hook", "manual"]' in rows[0][0]
    assert '"reason": "message", "reasons": ["message", "cron"]' in rows[1][0]


@virtual
async def test_a_cron_event_and_a_heartbeat_within_the_window_are_one_turn(world: World) -> None:
    """In both orders of arrival; the one turn carries the event, and its run is finished with it (OC#105257)."""
    voice = Voice(world)
    app = await beating(world, voice, HeartbeatTerms(enabled=True, every=HOUR))
    for shift in (-100, 0, 100):
        voice.heard.clear()
        view, _ = await app.turns.heartbeat()
        assert view.next_beat is not None
        slug = f"check{shift + 100}"
        await app.add(slug, once(format_instant(view.next_beat + shift)), event="Check BTC RSI")
        await world.sleep(view.next_beat - world.now + 2 * SECOND)
        assert len(voice.heard) == 1
        assert "> Check BTC RSI" in voice.heard[0]
        assert f"from cron:{slug} at" in voice.heard[0]
        turn = (await app.runs("heartbeat", limit=1))[0]
        assert set(turn.reasons) == {"interval", "cron"}
        assert turn.trigger == "schedule"
        assert [(run.outcome, run.rung) for run in await app.runs(slug)] == [("succeeded", "finished")]


@virtual
async def test_requests_during_a_turn_wait_for_its_end(world: World) -> None:
    """One turn at a time; whatever was asked for meanwhile is the next one."""
    voice = Voice(world)
    voice.script = [10 * SECOND]
    app = await beating(world, voice, QUIET)
    await app.request_wake("manual")
    await world.sleep("1s")
    await app.request_wake("cron")
    await app.request_wake("hook")
    await world.sleep("5s")
    assert len(voice.began) == 1
    await world.sleep("10s")
    assert voice.began == ["01-01 00:00:00.250", "01-01 00:00:10.250"]
    assert (await app.runs("heartbeat"))[0].reasons == ("cron", "hook")


@virtual
async def test_a_wake_survives_a_crash_before_its_turn(world: World) -> None:
    """It was answered, so it is not lost (L7)."""
    voice = Voice(world)
    app = await beating(world, voice, QUIET)
    await app.request_wake("manual", "look at this")
    await app.kill()
    await world.sleep("1h")
    app = await beating(world, voice, QUIET)
    await world.sleep("1s")
    assert len(voice.heard) == 1
    assert "> look at this" in voice.heard[0]


@virtual
async def test_a_wake_for_a_turn_that_waits_for_the_agent_joins_it(world: World) -> None:
    """The agent's lane is held: the turn has not begun, so nothing needs a second one."""
    voice = Voice(world)
    voice.script = [5 * MINUTE]
    app = await beating(world, voice, QUIET, agent_interval_min="1m")
    await app.add("long", every("1h"), prompt="take your time")
    await app.run_now("long")
    await world.sleep("1s")
    assert not await app.request_wake("cron", "one")
    await world.sleep("1m")
    assert await app.request_wake("manual", "two")
    await world.sleep("5m")
    assert len(voice.heard) == 2
    assert "> one" in voice.heard[1]
    assert "> two" in voice.heard[1]
    assert (await app.runs("heartbeat"))[0].reasons == ("cron", "manual")


@virtual
async def test_a_turn_that_wakes_itself_keeps_its_distance(world: World) -> None:
    """With its token, through its tools: not sooner than spacing_min after the turn before; a person need not wait."""
    voice = Voice(world)
    app = await beating(world, voice, replace(QUIET, beats=BeatRules(spacing_min=10 * SECOND)))
    token = app.parts.receipts

    async def again(fire: object) -> str:
        assert token is not None
        run_id = fire.run_id  # type: ignore[attr-defined]
        await app.turns.wake("hook", run_id=run_id, token=token.token(run_id))
        return OK

    voice.script = [again, again, again]
    await app.request_wake("manual")
    await world.sleep("15s")
    await app.request_wake("manual")
    await world.sleep("1m")
    assert [short(instant(at) if "." not in at else instant(at[:-4])) for at in voice.began] == [
        "01-01 00:00:00",
        "01-01 00:00:10",
        "01-01 00:00:15",
        "01-01 00:00:25",
    ]


@virtual
async def test_the_budget_stops_an_agent_that_wakes_itself_and_says_so(world: World) -> None:
    """60 turns in an hour, then it waits: one alert, the page and why name it, and beats are skipped (OC#17797)."""
    voice = Voice(world)
    app = await beating(world, voice, HeartbeatTerms(enabled=True, every=45 * MINUTE))

    async def again(_: object) -> str:
        await app.request_wake("hook")
        return OK

    voice.usual = again
    await app.request_wake("hook")
    await world.sleep("50m")
    assert len(voice.began) == 60
    view, _ = await app.turns.heartbeat()
    assert view.tripped_at is not None
    assert short(view.held_until) == "01-01 01:00:00.250"
    assert [alert.incident for alert in app.alerted] == ["heartbeat:budget"]
    sentence = (await app.why("heartbeat")).sentence
    assert "60 turns within an hour" in sentence
    assert (await ledger(app, "heartbeat"))[-1] == "01-01 00:45:00 skipped (budget)"
    await world.sleep("2h10m")
    assert len(voice.began) == 180
    assert len(app.alerted) == 1


@virtual
async def test_the_budget_rests_when_the_loop_ends(world: World) -> None:
    """An hour later all is well, and a second loop is another incident."""
    voice = Voice(world)
    app = await beating(world, voice, replace(QUIET, beats=BeatRules(turns_per_hour_max=4)))
    for _ in range(2):
        for _ in range(6):
            await app.request_wake("manual")
            await world.sleep("1s")
        await world.sleep("3h")
    assert len(voice.began) == 10
    assert [alert.incident for alert in app.alerted] == ["heartbeat:budget"] * 2
    await app.request_wake("manual")
    await world.sleep("1s")
    view, _ = await app.turns.heartbeat()
    assert view.tripped_at is None


@virtual
async def test_a_wake_clears_the_retry_it_forestalls(world: World) -> None:
    """A turn that happens anyway is the retry."""
    voice = Voice(world)
    voice.script = [NO, NO]
    app = await beating(world, voice, QUIET)
    await app.request_wake("manual")
    await world.sleep("10s")
    await app.request_wake("manual")
    await world.sleep("1h")
    assert len(voice.began) == 3


@virtual
async def test_reading_never_changes_what_is_planned(world: World) -> None:
    """However often it is asked how it stands (OC#12440)."""
    voice = Voice(world)
    app = await beating(world, voice)
    await world.sleep("29m59s")
    for _ in range(20):
        await app.turns.heartbeat()
        await app.why("heartbeat")
        await app.turns.system_events()
    await world.sleep("2s")
    assert voice.began == ["01-01 00:30:00.250"]


@virtual
async def test_a_day_of_beats_neither_dies_nor_bursts(world: World) -> None:
    """Failing and slow turns among them (OC#45772): never two beats for one instant, never a gap."""
    voice = Voice(world)
    voice.script = [NO, OK, 40 * MINUTE, OK, NO, NO, OK] * 3
    app = await beating(world, voice)
    await world.sleep(DAY + SECOND)
    rows = world.query(
        "SELECT planned_at, coalesce(planned_until, planned_at), instants FROM runs WHERE occurrence > 0 ORDER BY 1"
    )
    begun = world.query("SELECT anchor_at FROM heartbeats")[0][0]
    assert rows[0][0] == begun + 30 * MINUTE
    for (_, until, _), (first, *_) in pairwise(rows):
        assert first == until + 30 * MINUTE
    assert sum(count for *_, count in rows) == 48
    assert (await app.store.read(audit)).is_clean
    assert app.alerted == []


@virtual
async def test_what_is_switched_off_costs_nothing(world: World) -> None:
    """42, OC#98556: no beat, no turn, no row, for a month; and it says so."""
    voice = Voice(world)
    app = await beating(world, voice, QUIET)
    await world.sleep(30 * DAY)
    assert voice.heard == []
    assert await app.runs("heartbeat") == []
    assert "disabled in the settings" in (await app.why("heartbeat")).sentence


@virtual
async def test_only_what_asked_for_a_turn_is_in_its_reasons(world: World) -> None:
    """43, NB#1441: the prompt says who woke it, and is never taken for a person's words."""
    voice = Voice(world)
    app = await beating(world, voice, QUIET)
    await app.request_wake("cron", "remind Ann of the milk", "cron:milk")
    await world.sleep("1s")
    assert voice.heard[0].endswith("(woken by: cron)")
    assert "System event 1 from cron at" in voice.heard[0]
    assert [fire.slug for fire in voice.fires] == ["heartbeat"]
