"""RRULEs, as far as a schedule can express them: hours and minutes of chosen days, or an interval."""

import re
from collections.abc import Mapping
from datetime import date
from typing import Any, Final

from wakeful.core.time.instants import Instant
from wakeful.integrations.imports.agent_jobs import every, once
from wakeful.integrations.imports.entries import SourceTimes, refuse
from wakeful.integrations.imports.wall_rules import WallRules

_DAYS: Final = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_KNOWN: Final = {
    "FREQ", "INTERVAL", "COUNT", "BYDAY", "BYHOUR", "BYMINUTE", "BYSECOND", "BYMONTHDAY", "BYMONTH", "WKST",
}  # fmt: skip


def rrule_schedule(text: str, zone: str, *, now: Instant, anchor: Instant) -> tuple[dict[str, Any], SourceTimes]:
    rule = _parse(text)
    if "INTERVAL" in rule and not rule["INTERVAL"].isdecimal():
        refuse(f"INTERVAL={rule['INTERVAL'][:20]} is not a number")
    interval = int(rule.get("INTERVAL", "1"))
    length = {"MINUTELY": 60_000, "HOURLY": 3_600_000}.get(rule["FREQ"])
    if length is not None and not {"BYHOUR", "BYMINUTE", "BYDAY"} & rule.keys():
        return every(length * interval, anchor)
    if interval != 1 or rule["FREQ"] not in ("DAILY", "WEEKLY", "MONTHLY", "YEARLY", "HOURLY"):
        refuse(f"every {interval} of {rule['FREQ']} cannot be expressed as a schedule; write it by hand")
    schedule, times = _wall(rule, zone)
    if rule.get("COUNT") == "1":
        return once(next(iter(times(now, 1)), None))
    if "COUNT" in rule:
        refuse(f"COUNT={rule['COUNT'][:20]} cannot be expressed as a schedule; write it by hand")
    return schedule, times


def _parse(text: str) -> Mapping[str, str]:
    line = next((part for part in re.split(r"[\r\n]+", text.strip()) if "FREQ=" in part.upper()), "")
    pairs = (part.partition("=") for part in line.upper().removeprefix("RRULE:").split(";") if part)
    rule = {name.strip(): value.strip() for name, _, value in pairs}
    unknown = rule.keys() - _KNOWN
    if "FREQ" not in rule or unknown:
        refuse(f"the RRULE cannot be read: {', '.join(sorted(unknown)) or 'FREQ is missing'}")
    return rule


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
