"""Timings in JSON, and as Python writes them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from wakeful.core.errors import Invalid
from wakeful.core.time.instants import parse_instant
from wakeful.core.time.timing import AfterReset, Cron, Every, Manual, Once, Times, Timing, resolve
from wakeful.core.time.timing_builders import after_reset, cron, every, manual, once, times
from wakeful.core.time.timing_json import read_timing, timing_to_json, timing_to_store

NOW = parse_instant("2026-01-30T09:00:00Z")
HOUR = 3_600_000


def read(data: object, now: int = NOW, default_zone: str = "Europe/Berlin") -> Timing:
    return resolve(read_timing(data), now=now, default_zone=default_zone)


def refused(data: object) -> dict[str, str]:
    with pytest.raises(Invalid) as caught:
        read(data)
    return {error.field.removeprefix("schedule."): error.message for error in caught.value.errors}


READ: list[tuple[dict[str, Any], Timing, dict[str, Any]]] = [
    (
        {"type": "cron", "expression": "0 9 * * 1-5"},
        Cron("0 9 * * 1-5", "Europe/Berlin"),
        {"timezone": "Europe/Berlin"},
    ),
    ({"type": "cron", "expression": " @daily ", "timezone": "UTC"}, Cron(" @daily ", "UTC"), {}),
    ({"type": "every", "every": "120m"}, Every(2 * HOUR, NOW), {}),
    ({"type": "every", "every": "2h", "anchor": "2026-02-01T00:00:00+01:00"}, Every(2 * HOUR, NOW + 38 * HOUR), {}),
    ({"type": "interval", "intervalMinutes": 60}, Every(HOUR, NOW), {}),
    ({"type": "interval", "intervalMinutes": 0.5, "anchor": "2026-01-30T09:00:00Z"}, Every(30_000, NOW), {}),
    ({"type": "once", "at": "2026-01-30T10:00:00+01:00"}, Once(NOW), {}),
    ({"type": "at", "at": "2026-01-30T17:00:00", "timezone": "Asia/Shanghai"}, Once(NOW), {}),
    (
        {"type": "times", "times": ["18:00", "09:00"]},
        Times(("18:00", "09:00"), "Europe/Berlin"),
        {"timezone": "Europe/Berlin"},
    ),
    ({"type": "afterReset", "slot": "main", "offsetMinutes": 1}, AfterReset("main", 60_000), {}),
    ({"type": "manual"}, Manual(), {}),
]


@pytest.mark.parametrize(("data", "timing", "filled_in"), READ, ids=lambda value: str(value)[:40])
def test_it_reads_back_as_written_with_the_rest_filled_in(
    data: dict[str, Any], timing: Timing, filled_in: dict[str, Any]
) -> None:
    """Alias, duration and offset stay as they were; only the zone is added."""
    assert read(data) == timing
    assert timing_to_json(read(data)) == data | filled_in


@pytest.mark.parametrize(("data", "timing", "_"), READ, ids=lambda value: str(value)[:40])
def test_the_stored_form_needs_neither_clock_nor_settings(data: dict[str, Any], timing: Timing, _: object) -> None:
    """Read on another day under another default zone, it is the same value and the same text."""
    stored = timing_to_store(read(data))
    again = read(stored, now=NOW + 999, default_zone="Asia/Tokyo")
    assert again == timing
    assert timing_to_store(again) == stored
    assert timing_to_json(again) == timing_to_json(read(data))


def test_what_has_passed_stays_readable() -> None:
    """A stored definition is not refused because its time has come."""
    assert read({"type": "once", "at": "1999-01-01T00:00:00Z"}) == Once(915_148_800_000)


def test_an_unknown_type_lists_the_known_ones() -> None:
    """Missing, misspelt or of the wrong kind."""
    assert "write one of cron, every, interval, once, at, times, afterReset, manual" in refused({})["type"]
    assert refused({"type": "crom"})["type"].startswith("'crom' is not a kind of schedule")
    assert "type" in refused({"type": ["cron"]})
    assert "" in refused("0 9 * * *") or "schedule" in refused("0 9 * * *")


def test_an_unknown_field_is_refused_by_name() -> None:
    """With the fields that this type does have."""
    faults = refused({"type": "cron", "expression": "0 9 * * *", "tz": "UTC"})
    assert faults == {
        "tz": "is not a field of this kind of schedule; cron has type, expression, timezone, inGap, inRepeat"
    }


def test_all_faults_of_one_definition_are_named_at_once() -> None:
    """A person corrects it once."""
    data = {"type": "cron", "expression": "61 * * * *", "timezone": "Europe/Berln", "every": "2h"}
    faults = refused(data)
    assert set(faults) == {"expression", "timezone", "every"}
    assert faults["timezone"] == "'Europe/Berln' is not an IANA zone; did you mean 'Europe/Berlin'?"


@pytest.mark.parametrize(
    ("data", "field", "message"),
    [
        ({"type": "cron"}, "expression", "is missing"),
        ({"type": "cron", "expression": 5}, "expression", "5 is not a string"),
        ({"type": "cron", "expression": "0 0 30 2 *"}, "expression", "never matches"),
        ({"type": "cron", "expression": "0 9 * * *", "timezone": 3}, "timezone", "3 is not a string"),
        ({"type": "every", "every": "0s"}, "every", "more than zero"),
        ({"type": "every", "every": "-2h"}, "every", "is not a duration"),
        ({"type": "every", "every": 7200}, "every", "7200 is not a string"),
        ({"type": "every", "every": "2h", "anchor": "2026-01-01T00:00:00"}, "anchor", "has no offset"),
        ({"type": "interval", "intervalMinutes": 0}, "intervalMinutes", "more than zero"),
        ({"type": "interval", "intervalMinutes": -5}, "intervalMinutes", "more than zero"),
        ({"type": "interval", "intervalMinutes": "60"}, "intervalMinutes", "is not a number"),
        ({"type": "interval", "intervalMinutes": True}, "intervalMinutes", "is not a number"),
        ({"type": "interval", "intervalMinutes": float("inf")}, "intervalMinutes", "more than zero"),
        ({"type": "interval", "intervalMinutes": float("nan")}, "intervalMinutes", "more than zero"),
        ({"type": "interval", "intervalMinutes": 1e300}, "intervalMinutes", "more than zero"),
        ({"type": "once", "at": "2026-01-30T09:00:00"}, "at", "has no offset"),
        ({"type": "once", "at": "2026-02-30T09:00:00Z"}, "at", "not a valid date and time"),
        ({"type": "once", "at": 1769763600}, "at", "is not a string"),
        ({"type": "at"}, "at", "is missing"),
        ({"type": "times", "times": []}, "times", "is empty"),
        ({"type": "times", "times": "09:00"}, "times", "is not a list"),
        ({"type": "times", "times": ["09:00", "9:30"]}, "times[1]", "is not a time of day"),
        ({"type": "times", "times": ["09:00", 930]}, "times[1]", "is not a string"),
        ({"type": "times", "times": ["24:00"]}, "times[0]", "is not a time of day"),
        ({"type": "times", "times": ["09:00", "09:00"]}, "times[1]", "is listed twice"),
        ({"type": "afterReset", "offsetMinutes": 1}, "slot", "is missing"),
        ({"type": "afterReset", "slot": " "}, "slot", "is empty"),
        ({"type": "afterReset", "slot": "main", "offsetMinutes": -1}, "offsetMinutes", "zero or more"),
        ({"type": "manual", "at": None}, "at", "is not a field"),
    ],
)
def test_a_bad_field_is_refused_with_the_cure(data: dict[str, Any], field: str, message: str) -> None:
    """Exactly that field, and what to write."""
    faults = refused(data)
    assert list(faults) == [field]
    assert message in faults[field]


def test_a_bad_zone_beside_an_instant_is_one_fault() -> None:
    """Not also a complaint about the offset, which the zone was to replace."""
    assert list(refused({"type": "once", "at": "2026-01-30T09:00", "timezone": "Mars/Phobos"})) == ["timezone"]


def test_python_builds_the_same_values() -> None:
    """The constructors and the JSON shapes meet in one value."""
    assert cron("0 9 * * 1-5", tz="Asia/Shanghai") == Cron("0 9 * * 1-5", "Asia/Shanghai")
    assert every("2h") == every(timedelta(hours=2)) == every(7200) == Every(2 * HOUR)
    assert every("2h", anchor="2026-01-30T09:00:00Z") == every("2h", datetime(2026, 1, 30, 9, tzinfo=UTC))
    assert once("2026-01-30T09:00:00Z") == once(datetime(2026, 1, 30, 9, tzinfo=UTC)) == Once(NOW)
    assert once(datetime(2026, 1, 30, 17), tz="Asia/Shanghai") == Once(NOW)  # noqa: DTZ001 - the zone stands beside it
    assert times("09:00", "18:00") == Times(("09:00", "18:00"))
    assert after_reset("main", "1m") == AfterReset("main", 60_000)
    assert manual() == Manual()


def test_python_leaves_open_what_was_not_said() -> None:
    """`resolve` fills it in, by the same rule as for JSON."""
    assert timing_to_json(cron("0 9 * * *")) == {"type": "cron", "expression": "0 9 * * *"}
    assert timing_to_json(every("120m")) == {"type": "every", "every": "120m"}
    resolved = resolve(every(timedelta(minutes=90)), now=NOW, default_zone="UTC")
    assert timing_to_json(resolved) == {"type": "every", "every": "1h30m"}
    assert timing_to_store(resolved) == {"type": "every", "every": "1h30m", "anchoredAt": "2026-01-30T09:00:00.000Z"}
    said = every(5400, datetime(2026, 1, 30, 9, tzinfo=UTC))
    assert timing_to_json(said) == {"type": "every", "every": "1h30m", "anchor": "2026-01-30T09:00:00.000Z"}


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: cron("61 * * * *", tz="Europe/Berln"), "expression: minute '61'.*; timezone: 'Europe/Berln'"),
        (lambda: every("0s"), "every: '0s'"),
        (lambda: every(timedelta(seconds=-1)), "every: .*between zero"),
        (lambda: every(float("nan")), "every: nan is not a duration"),
        (lambda: every(True), "every: True is not a duration"),
        (lambda: once("2026-01-30T09:00:00"), "at: .*has no offset"),
        (lambda: once(datetime(2026, 1, 30, 9)), "at: .*has no offset"),  # noqa: DTZ001 - what is to be refused
        (lambda: once(datetime(1960, 1, 1, tzinfo=UTC)), "at: .*1970 to 9999"),
        (lambda: once(5), "at: 5 is not a date and time"),  # type: ignore[arg-type]
        (times, "times: is empty"),
        (lambda: times("9:00"), r"times\[0\]: '9:00'"),
        (lambda: after_reset(""), "slot: is empty"),
    ],
)
def test_python_refuses_at_once(build: Any, message: str) -> None:
    """A mistake shows where it was typed."""
    with pytest.raises(Invalid, match=message):
        build()


@pytest.mark.parametrize(
    "name", ["localtime", "right/UTC", "posix/UTC", "", "Europe", "../UTC", "Mars/Phobos", "europe/berlin", "Berlin"]
)
def test_only_iana_names_are_zones(name: str) -> None:
    """Nothing whose meaning depends on the machine; the nearest name is suggested where there is one."""
    with pytest.raises(Invalid, match=r"timezone: .* is not an IANA zone; (did you mean|write a name)"):
        cron("0 9 * * *", tz=name)
