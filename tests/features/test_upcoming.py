"""What is to come: complete, and when it will really run."""

import json
from datetime import datetime

import pytest

from features.kit import Bench, Bot, World, instant, short, virtual
from features.quota_kit import Shop, config, open_quota
from features.voice import Voice, beating
from wakeful import Prepare, every, once
from wakeful.core.time.instants import HOUR, MINUTE, parse_instant
from wakeful.features.heartbeat.rules import HeartbeatTerms
from wakeful.features.schedules.timeline import timeline_text
from workflows.kit import Inbox, decline

BROKEN = RuntimeError("no route to host")


async def listed(app: Bench, until: str, limit: int = 100) -> list[str]:
    """What is to come: when, whose, what."""
    ahead = await app.schedules.upcoming(instant(until), limit=limit)
    return [
        " ".join(part for part in (short(one.due_at)[6:11], one.slug, one.kind, one.handler) if part)
        for one in ahead.instants
    ]


def clock(times: list[datetime]) -> list[str]:
    return [at.strftime("%H:%M") for at in times]


@virtual
async def test_producers_and_wake_ats_are_listed(world: World) -> None:
    """Until the time asked for; with the handler's name."""
    inbox = Inbox(world, period="1h", prepare=lambda _: Prepare(wake_at=datetime.fromisoformat("2026-01-01T01:20:00Z")))
    app = await inbox.open()
    await world.sleep("1m")
    assert await listed(app, "01-01 02:30:00") == [
        "01:00 workflow:inbox producer poll",
        "01:20 workflow:inbox wakeAt digest",
        "02:00 workflow:inbox producer poll",
    ]
    assert await listed(app, "01-01 02:30:00", limit=2) == [
        "01:00 workflow:inbox producer poll",
        "01:20 workflow:inbox wakeAt digest",
    ]
    await app.workflows.pause("inbox")
    assert await listed(app, "01-01 02:30:00") == []


@virtual
async def test_beats_are_listed_among_schedules(world: World) -> None:
    """In the order they are due."""
    app = await beating(world, Voice(world), agent_interval_min="10m")
    await app.add("hello", every("20m"), prompt="hello")
    assert await listed(app, "01-01 01:01:00") == [
        "00:20 hello schedule",
        "00:30 heartbeat beat",
        "00:40 hello schedule",
        "01:00 hello schedule",
        "01:00 heartbeat beat",
    ]


@virtual
async def test_wakes_that_will_be_sent_are_listed_and_those_into_a_warm_window_are_not(world: World) -> None:
    """Five hours after a wake the window is cold again: so it is played forward."""
    shop = Shop(world)
    shop.account("sk-main").warm("2h")
    opened = await open_quota(world, shop, config(world, {"main": {"times": ["01:00", "03:00", "06:00", "09:00"]}}))
    await world.sleep("1m")
    assert await listed(opened.app, "01-01 23:00:00") == ["03:00 slot:main wake", "09:00 slot:main wake"]


@virtual
async def test_a_wake_that_waits_to_be_sent_again_is_listed_once(world: World) -> None:
    """As a retry at its next attempt, and what follows it."""
    shop = Shop(world)
    shop.account("sk-main").warm("30m")
    opened = await open_quota(world, shop, config(world, {"main": {"times": ["01:00", "07:00"]}}))
    await world.until("01-01 00:50:00")
    shop.is_unreachable = True
    await world.until("01-01 01:16:00")
    assert await listed(opened.app, "01-01 12:00:00") == ["01:30 slot:main retry", "07:00 slot:main wake"]


@virtual
async def test_a_wake_that_waits_for_its_confirmation_is_no_upcoming_start(world: World) -> None:
    """It was sent: its forced retry only comes if no reading shows it."""
    shop = Shop(world)
    shop.account("sk-main").mood = "never"
    opened = await open_quota(world, shop, config(world, {"main": {"interval": "10h"}}))
    await world.sleep("5m")
    assert await listed(opened.app, "01-01 09:00:00") == []


@virtual
async def test_a_retry_is_listed_and_the_instants_that_fall_on_it_are_not(world: World) -> None:
    """Attempt 2 is in half an hour; every ten minutes between is skipped. So say upcoming, next and the timeline."""
    app = await world.open(Bot(world, usual=BROKEN))
    await app.add("tick", every("10m"), retry={"times": 3, "delay": "35m"})
    await world.until("01-01 00:12:00")
    assert await listed(app, "01-01 01:05:00") == ["00:45 tick retry", "00:50 tick schedule", "01:00 tick schedule"]
    assert clock(await app.next_times("tick", 3)) == ["00:45", "00:50", "01:00"]


@virtual
async def test_an_instant_that_queues_behind_a_retry_is_listed_with_it(world: World) -> None:
    """One is queued, the others are skipped."""
    app = await world.open(Bot(world, usual=BROKEN))
    await app.add("tick", every("10m"), retry={"times": 3, "delay": "35m"}, overlap="queue")
    await world.until("01-01 00:12:00")
    assert await listed(app, "01-01 00:55:00") == ["00:45 tick retry", "00:45 tick schedule", "00:50 tick schedule"]
    await world.until("01-01 00:22:00")
    assert await listed(app, "01-01 00:55:00") == ["00:45 tick retry", "00:45 tick schedule", "00:50 tick schedule"]


@virtual
async def test_a_one_shot_that_is_tried_again_is_listed(world: World) -> None:
    """It has no further instant, and yet something is to come."""
    app = await world.open(Bot(world, usual=BROKEN))
    await app.add("once", once("2026-01-01T00:10:00Z"), retry={"times": 3, "delay": "30m"})
    await world.until("01-01 00:12:00")
    assert await listed(app, "01-01 02:00:00") == ["00:40 once retry"]
    assert clock(await app.next_times("once", 3)) == ["00:40"]


@virtual
async def test_what_the_error_ladder_holds_off_is_shown_when_it_will_run(world: World) -> None:
    """After errors in a row the next instants are skipped; the list begins where the pause ends."""
    app = await world.open(Bot(world, usual=BROKEN))
    await app.add("tick", every("1m"))
    await world.until("01-01 00:10:30")
    held_until = (await app.get("tick")).next_run
    assert held_until is not None
    assert held_until.timestamp() * 1000 - world.now > 2 * MINUTE
    times = await app.next_times("tick", 3)
    assert times[0] == held_until
    assert (await app.schedules.upcoming(world.now + 2 * HOUR, limit=1)).instants[0].due_at == int(
        held_until.timestamp() * 1000
    )
    await world.until("01-01 01:00:00")
    rows = await app.runs("tick", limit=1000)
    ran = [run.started_at.strftime("%H:%M:%S") for run in rows if run.started_at is not None]
    assert times[0].strftime("%H:%M:%S") in ran
    assert [row for row in ran if "00:10:30" < row < times[0].strftime("%H:%M:%S")] == []


@virtual
async def test_next_times_leave_out_what_lies_outside_the_active_hours(world: World) -> None:
    """They will be skipped."""
    app = await world.open(Bot(world))
    await app.add("tick", every("6h"), active_hours={"start": "05:00", "end": "13:00", "timezone": "UTC"})
    assert clock(await app.next_times("tick", 4)) == ["06:00", "12:00", "06:00", "12:00"]


@virtual
async def test_a_page_of_upcoming_is_in_order_and_says_how_far_it_is_complete(world: World) -> None:
    """Whatever the source, what is listed is the earliest."""
    inbox = Inbox(world, period="7m", prepare=decline)
    app = await inbox.open()
    ahead = await app.schedules.upcoming(instant("01-02 00:00:00"), limit=5)
    assert [short(one.due_at)[6:11] for one in ahead.instants] == ["00:07", "00:14", "00:21", "00:28", "00:35"]
    assert ahead.is_cut
    assert short(ahead.until) == "01-01 00:41:59.999"


@virtual
async def test_the_time_axis_has_rows_for_the_heartbeat_workflows_and_slots(world: World) -> None:
    """With what became of them, and what is to come."""
    shop = Shop(world)
    opened = await open_quota(world, shop, config(world, {"main": {"interval": "1h", "times": ["12:00"]}}))
    await world.sleep("1m")
    page = await opened.app.schedules.timeline(since=instant("01-01 00:00:00"), until=instant("01-01 13:00:00"))
    (row,) = json.loads(timeline_text(page))["others"]
    assert (row["slug"], row["status"], [run["outcome"] for run in row["runs"]]) == ("slot:main", "idle", ["succeeded"])
    assert [at[11:16] for at in row["planned"]] == ["05:00", "10:00"]
    assert row["nextRun"] == row["planned"][0]


@pytest.mark.promise
@virtual
async def test_reading_never_changes_what_is_planned(world: World) -> None:
    """1, OC#12440: every question, asked while an instant is overdue and nobody ticks."""
    bot = Bot(world)
    app = await world.open(bot, tick=False)
    await app.add("tick", every("1h"))
    await world.until("01-01 02:30:00")
    before = (
        world.query("SELECT * FROM cadences"),
        world.query("SELECT * FROM alarms"),
        world.query("SELECT * FROM runs"),
    )
    for _ in range(3):
        await app.get("tick")
        await app.list(status="idle", contains="t")
        await app.runs("tick")
        await app.stats("tick")
        await app.next_times("tick", 50)
    after = (
        world.query("SELECT * FROM cadences"),
        world.query("SELECT * FROM alarms"),
        world.query("SELECT * FROM runs"),
    )
    assert before == after
    assert short((await app.get("tick")).next_run) == "01-01 01:00:00"


@pytest.mark.promise
@virtual
async def test_the_beats_to_come_are_listed_among_what_is_to_come(world: World) -> None:
    """In order with the schedules, inside the active hours; cut where the list is."""
    app = await beating(world, Voice(world), HeartbeatTerms(enabled=True, every=30 * MINUTE))
    await app.add("hourly", every("1h"), event="look")
    until = parse_instant("2026-01-01T02:10:00Z", "until")
    ahead = await app.schedules.upcoming(until, limit=10)
    assert [(one.slug, short(one.planned_at)) for one in ahead.instants] == [
        ("heartbeat", "01-01 00:30:00"),
        ("hourly", "01-01 01:00:00"),
        ("heartbeat", "01-01 01:00:00"),
        ("heartbeat", "01-01 01:30:00"),
        ("hourly", "01-01 02:00:00"),
        ("heartbeat", "01-01 02:00:00"),
    ]
    assert not ahead.is_cut
    cut = await app.schedules.upcoming(until, limit=3)
    assert cut.instants == ahead.instants[:3]
    assert (cut.is_cut, cut.until) == (True, ahead.instants[3].due_at - 1)
    await world.sleep("35m")
    assert (await app.schedules.upcoming(until, limit=1)).instants[0].slug == "hourly"
