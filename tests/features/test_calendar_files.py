"""Calendar files: which days their events exclude."""

import os
from datetime import date, timedelta
from pathlib import Path

import pytest

from wakeful.core.schedule.exclude import CalendarDays, excluded_days
from wakeful.core.time.excluded_days import day_number
from wakeful.integrations.calendars import days
from wakeful.integrations.calendars.content_lines import BadCalendar
from wakeful.integrations.calendars.days import LAST_YEAR, calendar_days
from wakeful.integrations.calendars.files import SIZE_MAX, CalendarFiles


def calendar(*events: str) -> str:
    body = "".join(f"BEGIN:VEVENT\r\n{event.strip()}\r\nEND:VEVENT\r\n" for event in events)
    return f"BEGIN:VCALENDAR\r\nVERSION:2.0\r\n{body}END:VCALENDAR\r\n"


def excluded(text: str, zone: str = "Europe/Berlin", *, year: int = 2026) -> list[str]:
    """The excluded days of a year in a zone, as MM-DD."""
    days = excluded_days(zone, ((), calendar_days(text)))
    shown = [date(1970, 1, 1) + timedelta(days=number) for number in (() if days is None else days.days)]
    return [day.strftime("%m-%d") for day in shown if day.year == year]


def test_an_all_day_event_ends_before_its_end() -> None:
    """DTEND is the first day that is free again; without it, the event is one day."""
    assert excluded(calendar("DTSTART;VALUE=DATE:20261224\nDTEND;VALUE=DATE:20261227")) == ["12-24", "12-25", "12-26"]
    assert excluded(calendar("DTSTART;VALUE=DATE:20261224")) == ["12-24"]
    assert excluded(calendar("DTSTART;VALUE=DATE:20261224\nDURATION:P2D")) == ["12-24", "12-25"]
    assert excluded(calendar("DTSTART;VALUE=DATE:20261224\nDURATION:P1W"))[-1] == "12-30"


def test_an_event_with_times_excludes_the_local_days_it_touches() -> None:
    """In the schedule's zone, whatever the zone of the event."""
    evening = calendar("DTSTART;TZID=America/New_York:20261223T200000\nDTEND;TZID=America/New_York:20261223T210000")
    assert excluded(evening, "America/New_York") == ["12-23"]
    assert excluded(evening, "Europe/Berlin") == ["12-24"]
    utc = calendar("DTSTART:20261223T230000Z\nDTEND:20261224T230000Z")
    assert excluded(utc, "Europe/Berlin") == ["12-24"]
    assert excluded(utc, "UTC") == ["12-23", "12-24"]
    floating = calendar("DTSTART:20261223T230000\nDTEND:20261224T000000")
    assert excluded(floating, "Asia/Tokyo") == excluded(floating, "America/New_York") == ["12-23"]
    foreign = calendar('DTSTART;TZID="W. Europe Standard Time":20261223T230000\nDURATION:PT30M')
    assert excluded(foreign) == ["12-23"]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("DTSTART;VALUE=DATE:20201225\nRRULE:FREQ=YEARLY", ["12-25"]),
        ("DTSTART;VALUE=DATE:20201126\nRRULE:FREQ=YEARLY;BYMONTH=11;BYDAY=4TH", ["11-26"]),
        ("DTSTART;VALUE=DATE:20200525\nRRULE:FREQ=YEARLY;BYMONTH=5;BYDAY=-1MO", ["05-25"]),
        ("DTSTART;VALUE=DATE:20240101\nRRULE:FREQ=YEARLY;INTERVAL=2", ["01-01"]),
        ("DTSTART;VALUE=DATE:20250101\nRRULE:FREQ=YEARLY;INTERVAL=2", []),
        ("DTSTART;VALUE=DATE:20240101\nRRULE:FREQ=YEARLY;COUNT=2", []),
        ("DTSTART;VALUE=DATE:20240101\nRRULE:FREQ=YEARLY;UNTIL=20260101", ["01-01"]),
        ("DTSTART;VALUE=DATE:20261229\nRRULE:FREQ=DAILY;COUNT=2\nEXDATE;VALUE=DATE:20261230", ["12-29"]),
        ("DTSTART;VALUE=DATE:20261229\nRDATE;VALUE=DATE:20261231", ["12-29", "12-31"]),
        ("DTSTART;VALUE=DATE:20261201\nRRULE:FREQ=WEEKLY;COUNT=2;BYDAY=TU", ["12-01", "12-08"]),
        ("DTSTART;VALUE=DATE:19500212\nRRULE:FREQ=YEARLY", ["02-12"]),
    ],
)
def test_recurring_holidays(rule: str, expected: list[str]) -> None:
    """Thanksgiving, Memorial Day, and what ends after a while."""
    assert excluded(calendar(rule)) == expected


def test_a_rule_in_a_zone_keeps_its_wall_time() -> None:
    """23:30 in Berlin stays on its day in summer and winter; its end in UTC is the last one included."""
    nightly = "DTSTART;TZID=Europe/Berlin:20261023T233000\nDURATION:PT15M\nRRULE:FREQ=DAILY;UNTIL=20261026T223000Z"
    assert excluded(calendar(nightly)) == ["10-23", "10-24", "10-25", "10-26"]


def test_a_moved_occurrence_replaces_the_regular_one() -> None:
    """And a cancelled event does not count; an alarm inside an event is not an event."""
    series = "UID:a\nDTSTART;VALUE=DATE:20260101\nRRULE:FREQ=MONTHLY;COUNT=3"
    moved = "UID:a\nRECURRENCE-ID;VALUE=DATE:20260201\nDTSTART;VALUE=DATE:20260210"
    gone = "UID:a\nRECURRENCE-ID;VALUE=DATE:20260301\nDTSTART;VALUE=DATE:20260301\nSTATUS:CANCELLED"
    alarmed = "DTSTART;VALUE=DATE:20260501\nBEGIN:VALARM\nTRIGGER:-PT15M\nDTSTART;VALUE=DATE:20260601\nEND:VALARM"
    assert excluded(calendar(series, moved, gone, alarmed)) == ["01-01", "02-10", "05-01"]


def test_folded_lines_quoted_parameters_and_bare_newlines_are_read() -> None:
    """As programs write them."""
    folded = 'SUMMARY:A very\r\n  long name\r\nDTSTART;X-NOTE="a;b:c";VAL\r\n UE=DATE:2026\r\n\t1224'
    assert excluded(calendar(folded)) == ["12-24"]
    assert excluded("\ufeff" + calendar("DTSTART;VALUE=DATE:20261224").replace("\r\n", "\n")) == ["12-24"]


def test_a_rule_without_an_end_is_followed_to_the_last_year() -> None:
    """Also one that never matches comes to an end."""
    endless = calendar("DTSTART;VALUE=DATE:20260101\nRRULE:FREQ=YEARLY")
    assert excluded(endless, year=LAST_YEAR) == ["01-01"]
    assert excluded(endless, year=LAST_YEAR + 1) == []
    never = calendar("DTSTART;VALUE=DATE:20260102\nRRULE:FREQ=MONTHLY;BYMONTHDAY=30;BYMONTH=2;COUNT=5")
    assert calendar_days(never).days == frozenset()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "not a calendar file"),
        ("dates: 2026-12-24", "not a calendar file"),
        ("BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART:20260101\n", "ends before END:VEVENT"),
        ("BEGIN:VCALENDAR\nEND:VEVENT\n", "ends what did not begin"),
        ("BEGIN:VCALENDAR\nwhat is this\nEND:VCALENDAR\n", "has no value"),
        (calendar("SUMMARY:x"), "no DTSTART"),
        (calendar("DTSTART:tomorrow"), "'tomorrow' is not a date"),
        (calendar("DTSTART;VALUE=DATE:20260230"), "'20260230' is not a date"),
        (calendar("DTSTART;VALUE=DATE:20260102\nDTEND;VALUE=DATE:20260101"), "ends before it starts"),
        (calendar("DTSTART;VALUE=DATE:20260102\nDTEND:20260103T000000Z"), "another type"),
        (calendar("DTSTART;VALUE=DATE:20260102\nDURATION:soon"), "'soon' cannot be read"),
        (calendar("DTSTART:20260102T000000Z\nRRULE:FREQ=SECONDLY"), "FREQ must be one of"),
        (calendar("DTSTART:20260102T000000Z\nRRULE:FREQ=YEARLY;BYDAY=XX"), "cannot be read"),
        (calendar("DTSTART:20260102T000000Z\nRRULE:FREQ=YEARLY;COUNT=many"), "cannot be read"),
    ],
)
def test_a_broken_file_says_what_is_wrong(text: str, complaint: str) -> None:
    """It is refused as a whole: half of a calendar would exclude half of the holidays."""
    with pytest.raises(BadCalendar, match=complaint):
        calendar_days(text)


def test_too_many_occurrences_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything read from outside has a limit, of all events together."""
    assert days.OCCURRENCES_MAX == 100_000
    monkeypatch.setattr(days, "OCCURRENCES_MAX", 50_000)
    with pytest.raises(BadCalendar, match="more than 50000 occurrences"):
        calendar_days(calendar(*["DTSTART:19700101T000000Z\nRRULE:FREQ=DAILY"] * 2))


def test_a_file_is_read_once_until_it_changes(tmp_path: Path) -> None:
    """The same value as long as it is the same file; a replaced one is noticed."""
    files, path = CalendarFiles(tmp_path), tmp_path / "a.ics"
    path.write_text(calendar("DTSTART;VALUE=DATE:20261224"))
    first = files("a.ics")
    assert first is not None and first is files("a.ics")
    other = tmp_path / "b.ics"
    other.write_text(calendar("DTSTART;VALUE=DATE:20261231"))
    other.replace(path)
    changed = files("a.ics")
    assert changed is not None and changed.days == {day_number(date(2026, 12, 31))}
    path.unlink()
    assert files("a.ics") is None
    assert "No such file" in (files.fault("a.ics") or "")


def test_what_is_not_a_readable_file_is_a_fault(tmp_path: Path) -> None:
    """A folder, a pipe that would never end, something huge, something that is not text."""
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "huge").write_text(" " * (SIZE_MAX + 1))
    (tmp_path / "binary").write_bytes(b"BEGIN:VCALENDAR\xff\xfe")
    files = CalendarFiles(tmp_path)
    assert "is not a file" in (files.fault("folder") or "")
    assert "is not a file" in (files.fault("pipe") or "")
    assert "is larger than 1024 KiB" in (files.fault("huge") or "")
    assert "is not UTF-8 text" in (files.fault("binary") or "")
    assert files("binary") is None


def test_two_calendars_and_dates_are_one_list() -> None:
    """Sorted, each day once."""
    one, two = CalendarDays(frozenset({3, 1})), CalendarDays(frozenset({2, 3}))
    days = excluded_days("UTC", (("1970-01-02", "1970-01-05"), one), ((), two))
    assert days is not None and days.days == (1, 2, 3, 4)
    assert excluded_days("UTC", ((), None)) is None
