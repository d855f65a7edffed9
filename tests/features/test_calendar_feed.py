"""The calendar feed: two calendar libraries read it, with the right local times on both sides of a clock change."""

from collections import Counter
from datetime import UTC, date, datetime
from typing import Any
from zoneinfo import ZoneInfo

import icalendar
import vobject

from features.kit import Bench, Bot, World, virtual
from features.quota_kit import Shop, config, open_quota
from features.voice import Voice, beating
from wakeful import cron, every, once, times
from wakeful.features.schedules.calendar_entries import ENTRIES_MAX
from wakeful.server.http.calendar_text import LINE_MAX, calendar_text
from workflows.kit import Inbox


class Seen:
    """One entry as both libraries read it."""

    def __init__(self, title: str, starts: datetime, ends: datetime, uid: str) -> None:
        self.title, self.starts, self.ends, self.uid = title, starts, ends, uid

    def shown(self, zone: str) -> str:
        return self.starts.astimezone(ZoneInfo(zone)).strftime("%m-%d %H:%M")


async def text_of(app: Bench) -> str:
    entries, store_id = await app._look(app._calendar)
    return calendar_text(entries, now=app.clock.read().now, store_id=store_id)


def by_icalendar(text: str) -> list[Seen]:
    events = icalendar.Calendar.from_ical(text).walk("VEVENT")
    return [Seen(str(e["SUMMARY"]), e["DTSTART"].dt, e["DTEND"].dt, str(e["UID"])) for e in events]


def by_vobject(text: str) -> list[Seen]:
    parsed: Any = vobject.readOne(text)
    return [
        Seen(e.summary.value, e.dtstart.value, e.dtend.value, e.uid.value) for e in parsed.contents.get("vevent", [])
    ]


async def read(app: Bench) -> list[Seen]:
    """The entries; both libraries must agree."""
    text = await text_of(app)
    assert all(len(line.encode()) <= LINE_MAX for line in text.split("\r\n"))
    one, other = by_icalendar(text), by_vobject(text)
    assert [vars(entry) for entry in one] == [vars(entry) for entry in other]
    assert len({entry.uid for entry in one}) == len(one)
    return one


@virtual
async def test_local_times_are_right_on_both_sides_of_a_clock_change(world: World) -> None:
    """09:00 stays 09:00 in Berlin and in New York, where the clock is set forward three weeks apart."""
    await world.sleep("60d")  # 2 March 2026
    app = await world.open(Bot(world))
    await app.add("berlin", times("09:00", tz="Europe/Berlin"))
    await app.add("york", cron("30 2 * * *", tz="America/New_York"))
    seen = await read(app)
    berlin = [entry for entry in seen if entry.title == "berlin"]
    assert {entry.shown("Europe/Berlin")[6:] for entry in berlin} == {"09:00"}
    assert {entry.starts.astimezone(UTC).hour for entry in berlin} == {7, 8}
    york = [entry.shown("America/New_York") for entry in seen if entry.title == "york"]
    assert "03-08 03:00" in york, "02:30 is left out that night, and runs right after the gap"
    assert {at[6:] for at in york if at != "03-08 03:00"} == {"02:30"}
    assert len(berlin) == 28


@virtual
async def test_a_schedule_every_minute_is_one_entry_a_day(world: World) -> None:
    """From the first to the last, with the count; and it keeps its identity while the day passes."""
    app = await world.open(Bot(world))
    await app.add("tick", every("1m"))
    hours = {"start": "09:00", "end": "17:00", "timezone": "UTC"}
    await app.add("office", every("5m", anchor=datetime(2026, 1, 1, tzinfo=UTC)), active_hours=hours)
    seen = await read(app)
    assert len(seen) <= 2 * 29
    office = [entry for entry in seen if entry.title == "office (96 times)"]
    assert [(entry.shown("UTC")[6:], entry.ends.strftime("%H:%M")) for entry in office[:1]] == [("09:00", "17:00")]
    before = {entry.uid for entry in office}
    await app.pause("tick")
    await world.until("01-01 15:00:00")
    again = {entry.uid for entry in await read(app) if entry.title.startswith("office")}
    assert before <= again


@virtual
async def test_what_will_not_run_is_not_in_it(world: World) -> None:
    """Excluded days, active hours, paused and disabled schedules; what is delayed has its real time."""
    bot = Bot(world)
    app = await world.open(bot, exclude={"dates": ["2026-01-03"]})
    await app.add("daily", times("09:00"))
    await app.add("paused", times("10:00"))
    await app.pause("paused", until="2026-01-27T00:00:00Z")
    await app.add("party", once("2026-01-05T20:00:00Z"))
    shown = Counter(entry.shown("UTC") for entry in await read(app))
    assert shown["01-02 09:00"] == 1 and shown["01-03 09:00"] == 0
    assert [at for at in shown if at.endswith("10:00")] == ["01-27 10:00", "01-28 10:00"]
    assert shown["01-05 20:00"] == 1
    bot.usual = RuntimeError("no route to host")
    await app.add("failing", every("2m", anchor=datetime(2026, 1, 1, tzinfo=UTC)))
    await world.until("01-01 00:07:00")
    starts = [entry.shown("UTC") for entry in await read(app) if entry.title == "failing"]
    assert starts == ["01-01 00:11"], "five minutes after the third error, not at 00:08"


@virtual
async def test_beats_workflows_and_slots_are_in_it(world: World) -> None:
    """Grouped by day like the rest."""
    app = await beating(world, Voice(world), agent_interval_min="10m")
    titles = Counter(entry.title for entry in await read(app))
    assert 27 <= titles["heartbeat"] <= 29
    await app.stop()


@virtual
async def test_producers_are_in_it(world: World) -> None:
    """By their name."""
    app = await Inbox(world, period="1h").open()
    await world.sleep("1m")
    titles = Counter(entry.title for entry in await read(app))
    assert 27 <= titles["workflow:inbox poll (producer)"] <= 29


@virtual
async def test_slot_wakes_are_in_it(world: World) -> None:
    """Those that will be sent."""
    shop = Shop(world)
    shop.account("sk-main").warm("2h")
    opened = await open_quota(world, shop, config(world, {"main": {"times": ["03:00", "09:00"]}}))
    await world.sleep("1m")
    shown = [entry.shown("UTC") for entry in await read(opened.app) if entry.title == "slot:main (wake)"]
    assert shown[:3] == ["01-01 03:00", "01-01 09:00", "01-02 03:00"]


@virtual
async def test_it_is_bounded_and_says_until_when_it_is_complete(world: World) -> None:
    """Sixty schedules with four times a day are more than a calendar shows."""
    app = await world.open(Bot(world))
    for number in range(60):
        await app.add(f"s{number}", times("06:00", "09:00", "12:00", "18:00"))
    entries, _ = await app._look(app._calendar)
    assert ENTRIES_MAX - 60 < len(entries.entries) <= ENTRIES_MAX and entries.is_cut
    assert max(entry.starts_at for entry in entries.entries) <= entries.until
    assert "later runs do not fit" in (await text_of(app)).replace("\r\n ", "")


@virtual
async def test_odd_names_are_written_as_the_format_wants(world: World) -> None:
    """Long lines are folded, special characters escaped."""
    app = await world.open(Bot(world))
    long = "a" * 64
    await app.add(long, cron("0 9 * * 1,3,5", tz="Europe/Berlin"))
    seen = await read(app)
    assert {entry.title for entry in seen} == {long}
    assert {entry.starts.date() for entry in seen} >= {date(2026, 1, 2), date(2026, 1, 5)}
