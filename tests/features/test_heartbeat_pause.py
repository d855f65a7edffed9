"""Pausing the heartbeat, on virtual time: no beats and no retries, and the ledger says why."""

from dataclasses import replace

import pytest

from features.kit import World, ledger, rfc, short, virtual
from features.test_heartbeat import TERMS, within
from features.voice import NO, Voice, beating
from wakeful.core.refusals import Conflict
from wakeful.core.time.instants import HOUR
from wakeful.drill.ledger import audit


@virtual
async def test_beats_of_a_pause_are_one_row_and_none_is_caught_up(world: World) -> None:
    voice = Voice(world)
    app = await beating(world, voice)
    await world.sleep("31m")
    await app.pause("heartbeat")
    view, _ = await app.turns.heartbeat()
    assert (view.status, view.next_beat) == ("paused", None)
    assert (await app.why("heartbeat")).sentence.startswith(
        "It has been paused since 2026-01-01T00:31:00.000Z (to resume: wakeful"
    )
    await world.sleep("2h")
    await app.resume("heartbeat")
    await world.sleep("30m")
    assert await ledger(app, "heartbeat") == [
        "01-01 00:30:00 succeeded (ok-ack)",
        "01-01 01:00:00 skipped (paused) x4",
        "01-01 03:00:00 succeeded (ok-ack)",
    ]
    assert "the heartbeat was paused" in (await app.why("heartbeat", at=rfc("01-01 02:00:00"))).sentence


@virtual
async def test_a_pause_ends_by_itself_and_outlives_a_restart(world: World) -> None:
    """The border is the end of the pause, whether or not a process was there."""
    voice = Voice(world)
    app = await beating(world, voice)
    await app.pause("heartbeat", rfc("01-01 02:10:00"))
    assert short((await app.turns.heartbeat())[0].resume_at) == "01-01 02:10:00"
    await app.stop()
    await world.sleep("1h")
    app = await beating(world, voice)
    assert (await app.turns.heartbeat())[0].status == "paused"
    await world.until("01-01 02:31:00")
    assert voice.began == ["01-01 02:30:00.250"]
    assert (await ledger(app, "heartbeat"))[0] == "01-01 00:30:00 skipped (paused) x4"


@virtual
async def test_a_pause_that_ended_while_no_process_was_there(world: World) -> None:
    """Beats until its end were paused, those after it were missed, and the latest is caught up."""
    voice = Voice(world)
    app = await beating(world, voice)
    await app.pause("heartbeat", rfc("01-01 02:10:00"))
    await app.stop()
    await world.until("01-01 04:10:00")
    app = await beating(world, voice)
    await world.sleep("1s")
    assert await ledger(app, "heartbeat") == [
        "01-01 00:30:00 skipped (paused) x4",
        "01-01 02:30:00 missed (outage) x3",
        "01-01 04:00:00 succeeded (ok-ack)",
    ]
    assert (await app.store.read(audit)).is_clean


@virtual
async def test_pausing_again_changes_the_end_and_keeps_the_beginning(world: World) -> None:
    app = await beating(world, Voice(world))
    await app.pause("heartbeat", rfc("01-01 00:40:00"))
    await world.sleep("20m")
    await app.pause("heartbeat")
    view, _ = await app.turns.heartbeat()
    assert (short(view.paused_at), view.resume_at) == ("01-01 00:00:00", None)
    await world.sleep("2h")
    assert await ledger(app, "heartbeat") == []


@virtual
async def test_another_interval_in_a_pause_does_not_end_it(world: World) -> None:
    """What the old grid had in the pause is counted, and the new one begins when it is resumed."""
    voice = Voice(world)
    app = await beating(world, voice)
    await app.pause("heartbeat")
    await world.sleep("1h5m")
    await app.stop()
    app = await beating(world, voice, replace(TERMS, every=HOUR))
    assert (await app.turns.heartbeat())[0].status == "paused"
    await world.sleep("1h5m")
    await app.resume("heartbeat")
    await world.sleep("1h")
    assert await ledger(app, "heartbeat") == [
        "01-01 00:30:00 skipped (paused) x2",
        "01-01 02:05:00 skipped (paused)",
        "01-01 03:05:00 succeeded (ok-ack)",
    ]


@virtual
async def test_a_wake_still_turns_it_and_a_failed_turn_is_not_retried(world: World) -> None:
    """As a paused schedule still runs when asked; a failing agent is left alone."""
    voice = Voice(world)
    app = await beating(world, voice)
    await app.pause("heartbeat")
    voice.usual = NO
    await app.request_wake("manual")
    await world.sleep("1h")
    assert len(voice.began) == 1
    assert (await app.turns.heartbeat())[0].retry_at is None


@virtual
async def test_pausing_takes_back_a_retry(world: World) -> None:
    voice = Voice(world)
    voice.usual = NO
    app = await beating(world, voice)
    await world.until("01-01 00:30:00")
    await world.sleep("600ms")
    assert (await app.turns.heartbeat())[0].retry_at is not None
    await app.pause("heartbeat")
    await world.sleep("3h")
    assert len(voice.began) == 1


@virtual
async def test_hours_before_the_pause_stay_what_they_were(world: World) -> None:
    """Beats outside the active hours are skipped for that reason, those of the pause for theirs; the tiling holds."""
    voice = Voice(world)
    app = await beating(world, voice, within("09:00", "11:00"))
    await world.until("01-01 08:10:00")
    await app.pause("heartbeat")
    await world.until("01-01 10:10:00")
    await app.resume("heartbeat")
    await world.until("01-01 10:31:00")
    assert await ledger(app, "heartbeat") == [
        "01-01 00:30:00 skipped (outside active hours) x16",
        "01-01 08:30:00 skipped (paused) x4",
        "01-01 10:30:00 succeeded (ok-ack)",
    ]
    assert (await app.store.read(audit)).is_clean


@virtual
async def test_one_that_is_switched_off_cannot_be_paused(world: World) -> None:
    """The settings decide that, and the message says where."""
    app = await beating(world, Voice(world), replace(TERMS, enabled=False))
    for command in (app.pause, app.resume):
        with pytest.raises(Conflict, match=r"enabled = true under \[heartbeat\]"):
            await command("heartbeat")


@virtual
async def test_switching_it_off_ends_the_pause(world: World) -> None:
    voice = Voice(world)
    app = await beating(world, voice)
    await app.pause("heartbeat", rfc("01-01 02:10:00"))
    await app.stop()
    app = await beating(world, voice, replace(TERMS, enabled=False))
    assert (await app.turns.heartbeat())[0].status == "disabled"
    await world.until("01-01 03:00:00")
    assert voice.began == []


@virtual
async def test_the_record_of_the_heartbeat(world: World) -> None:
    """Counts, and when it last turned and beats next."""
    app = await beating(world, Voice(world))
    await world.sleep("1h1m")
    stats = await app.stats("heartbeat")
    assert (stats.counts, stats.streak) == ({"succeeded": 2}, 2)
    assert stats.next_run is not None and stats.last_run is not None
    assert (short(stats.last_run), short(stats.next_run)) == ("01-01 01:00:00.250", "01-01 01:30:00")
