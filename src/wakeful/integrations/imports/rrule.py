"""RRULEs, as far as a schedule can express them: hours and minutes of chosen days, or an interval."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

from wakeful.core.time.instants import Instant, format_instant
from wakeful.core.time.zones import check_zone
from wakeful.integrations.imports.agent_jobs import every, once
from wakeful.integrations.imports.entries import SourceTimes, refuse
from wakeful.integrations.imports.wall_rules import WallRules

_DAYS: Final = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_KNOWN: Final = {
    "FREQ", "INTERVAL", "COUNT", "BYDAY", "BYHOUR", "BYMINUTE", "BYSECOND", "BYMONTHDAY", "BYMONTH", "WKST",
}  # fmt: skip


def rrule_schedule(
    text: str, zone: str, *, now: Instant, made: Instant | None
) -> tuple[dict[str, Any], SourceTimes | None]:
    """A rule's schedule and times; `made` is when it was created. DTSTART decides its zone, its first time, and the
    parts that the rule leaves out."""
    rule, start = _parse(text, zone)
    if "INTERVAL" in rule and not rule["INTERVAL"].isdecimal():
        refuse(f"INTERVAL={rule['INTERVAL'][:20]} is not a number")
    interval = int(rule.get("INTERVAL", "1"))
    length = {"MINUTELY": 60_000, "HOURLY": 3_600_000}.get(rule["FREQ"])
    if length is not None and not rule.keys() - {"FREQ", "INTERVAL", "WKST"}:
        return every(length * interval, made if start is None else start.at)
    if interval != 1 or rule["FREQ"] not in ("DAILY", "WEEKLY", "MONTHLY", "YEARLY", "HOURLY"):
        refuse(f"every {interval} of {rule['FREQ']} cannot be expressed as a schedule; write it by hand")
    schedule, times = _wall(rule if start is None else start.completed(rule), zone if start is None else start.zone)
    begin = now if start is None else max(now, start.at - 1)
    if rule.get("COUNT") == "1":
        return once(next(iter(times((now if made is None else made) if start is None else start.at - 1, 1)), None))
    if "COUNT" in rule:
        refuse(f"COUNT={rule['COUNT'][:20]} cannot be expressed as a schedule; write it by hand")
    first = next(iter(times(begin, 1)), None)
    if first is None:
        refuse("it has no time")
    if times(now, 1) != [first]:
        begins = format_instant(first)
        refuse(f"it does not begin before {begins}, which a schedule cannot express; import it after that time")
    return schedule, times


@dataclass(frozen=True, slots=True)
class _Start:
    """DTSTART: the first time that can count, and the pattern of a rule that does not say more."""

    wall: datetime
    zone: str

    @property
    def at(self) -> Instant:
        return round(self.wall.replace(tzinfo=ZoneInfo(self.zone)).timestamp() * 1000)

    def completed(self, rule: Mapping[str, str]) -> Mapping[str, str]:
        """The rule with the parts that RFC 5545 takes from DTSTART."""
        wall = self.wall
        usual = {"BYSECOND": str(wall.second)} if "BYSECOND" not in rule else {}
        if rule["FREQ"] != "MINUTELY" and "BYMINUTE" not in rule:
            usual["BYMINUTE"] = str(wall.minute)
        if rule["FREQ"] not in ("MINUTELY", "HOURLY") and "BYHOUR" not in rule:
            usual["BYHOUR"] = str(wall.hour)
        if rule["FREQ"] == "WEEKLY" and not {"BYDAY", "BYMONTHDAY"} & rule.keys():
            usual["BYDAY"] = _DAYS[wall.weekday()]
        if rule["FREQ"] in ("MONTHLY", "YEARLY") and not {"BYDAY", "BYMONTHDAY"} & rule.keys():
            usual["BYMONTHDAY"] = str(wall.day)
            if rule["FREQ"] == "YEARLY" and "BYMONTH" not in rule:
                usual["BYMONTH"] = str(wall.month)
        return {**usual, **rule}


def _parse(text: str, zone: str) -> tuple[Mapping[str, str], _Start | None]:
    rule, start = "", None
    for line in filter(None, map(str.strip, re.split(r"[\r\n]+|\s(?=RRULE:)", text.strip()))):
        name, colon, value = line.partition(":")
        if "FREQ=" in line.upper() and not rule:
            rule = line.upper().removeprefix("RRULE:")
        elif colon and name.upper().partition(";")[0] == "DTSTART":
            start = _start(name, value, zone)
        else:
            refuse(f"{line[:60]} cannot be expressed as a schedule; write it by hand")
    pairs = [part.partition("=") for part in rule.split(";") if part]
    read = {name.strip(): value.strip() for name, _, value in pairs}
    unknown = read.keys() - _KNOWN
    if "FREQ" not in read or unknown:
        refuse(f"the RRULE cannot be read: {', '.join(sorted(unknown)) or 'FREQ is missing'}")
    return read, start


def _start(name: str, value: str, zone: str) -> _Start:
    """DTSTART is local in its TZID, in UTC with a Z, and local on this machine with neither."""
    parameters = dict(part.upper().partition("=")[::2] for part in name.split(";")[1:])
    named = next((part[len("TZID=") :] for part in name.split(";")[1:] if part.upper().startswith("TZID=")), zone)
    if parameters.keys() - {"TZID", "VALUE"} or parameters.get("VALUE", "DATE-TIME") != "DATE-TIME":
        refuse(f"{name[:60]} cannot be expressed as a schedule; write it by hand")
    try:
        wall = datetime.strptime(value.strip().upper().removesuffix("Z"), "%Y%m%dT%H%M%S")  # noqa: DTZ007 - a wall time
        return _Start(wall, "UTC" if value.strip().upper().endswith("Z") else check_zone(named))
    except ValueError:
        refuse(f"DTSTART {name.partition(';')[2][:60]} {value[:40]} is not a time in a known zone")


def _wall(rule: Mapping[str, str], zone: str) -> tuple[dict[str, Any], SourceTimes]:
    hours = _numbers(rule, "BYHOUR", 23, tuple(range(24)) if rule["FREQ"] == "HOURLY" else None)
    minutes = _numbers(rule, "BYMINUTE", 59, (0,))
    if _numbers(rule, "BYSECOND", 59, (0,)) != (0,):
        refuse("BYSECOND cannot be expressed as a schedule")
    dates, months = _numbers(rule, "BYMONTHDAY", 31, ()), _numbers(rule, "BYMONTH", 12, ())
    days = tuple(sorted(map(_day, filter(None, rule.get("BYDAY", "").split(",")))))
    if rule["FREQ"] == "WEEKLY" and not days:
        refuse("a weekly rule without BYDAY depends on when it was created; name the day")
    if rule["FREQ"] in ("MONTHLY", "YEARLY") and (not dates or days or (rule["FREQ"] == "YEARLY" and not months)):
        refuse(f"a {rule['FREQ'].lower()} rule needs BYMONTHDAY and no BYDAY")

    def matches(day: date) -> bool:
        return (
            (not days or day.weekday() in days)
            and (not dates or day.day in dates)
            and (not months or day.month in months)
        )

    if days and dates:
        refuse("BYDAY and BYMONTHDAY together cannot be expressed as a schedule")
    listed = [
        ",".join(map(str, minutes)),
        "*" if len(hours) == 24 else ",".join(map(str, hours)),
        ",".join(map(str, dates)) or "*",
        ",".join(map(str, months)) or "*",
        ",".join(str((day + 1) % 7) for day in days) or "*",
    ]
    times = tuple(hour * 3600 + minute * 60 for hour in hours for minute in minutes)
    is_rhythm = len(hours) == 24
    rules = WallRules(zone, matches, times, "skip" if is_rhythm else "run", "twice" if is_rhythm else "once")
    return {"type": "cron", "expression": " ".join(listed), "timezone": zone}, rules


def _numbers(rule: Mapping[str, str], name: str, most: int, usual: tuple[int, ...] | None) -> tuple[int, ...]:
    if name not in rule:
        if usual is None:
            refuse(f"it has no {name}, so its time depends on when it was created")
        return usual
    parts = rule[name].split(",")
    if not all(part.isdecimal() and int(part) <= most for part in parts):
        refuse(f"{name}={rule[name][:40]} cannot be expressed as a schedule")
    return tuple(sorted(set(map(int, parts))))


def _day(word: str) -> int:
    if word not in _DAYS:
        refuse(f"BYDAY={word[:20]} cannot be expressed as a schedule")
    return _DAYS.index(word)
