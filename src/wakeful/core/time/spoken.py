"""What pieces such as `every weekday` and `at 9` mean together.

Theory of operation: which kinds of pieces there are decides what they can mean. Where a strict form of the text exists
(`weekdays at 09:00`), it is written and read by `when`, so that a text has one meaning everywhere. People leave out
what seems obvious to them. What nearly all of them mean is assumed and said (`every morning` is at 08:00); for anything
else `Unclear` is raised, with texts that are clear.

A bare hour from 7 to 12 is the hour of the day; one from 1 to 6 could be in either half, and has to be asked about.
`when` asks about every bare hour, because what it has read is not confirmed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from wakeful.core.errors import Invalid
from wakeful.core.time.instants import Instant
from wakeful.core.time.spoken_intervals import in_days, in_time
from wakeful.core.time.spoken_pieces import Piece, Says
from wakeful.core.time.spoken_saying import Saying, Unclear, refuse_together
from wakeful.core.time.timing import Every, Timing, is_past, resolve
from wakeful.core.time.when_words import MONTH, ORDINALS, WEEKDAYS, month_of

_COUNTS: Final = (
    ("twice two 2", "08:00 and 20:00"),
    ("three 3", "08:00 and 14:00 and 20:00"),
    ("four 4", "08:00 and 12:00 and 16:00 and 20:00"),
)
_NTH: Final = {"1st": "first", "2nd": "second", "3rd": "third", "4th": "fourth"}
_IN_WEEK: Final = ("daily", "weekdays", "weekends", "working days", "names")
_DETAILS: Final[frozenset[Says]] = frozenset({"time", "part", "zone"})
_BESIDE: Final[dict[Says, frozenset[Says]]] = {
    "whole": frozenset({"zone"}),
    "delay": frozenset(),
    "length": frozenset({"days", "window", "zone"}),
    "count": frozenset({"days", "zone"}),
    "step": _DETAILS,
    "date": _DETAILS,
    "days": _DETAILS,
    "open": _DETAILS,
    "time": _DETAILS,
    "part": _DETAILS,
}
"""The pieces that decide what is meant, in this order, and what may stand beside each."""


@dataclass(frozen=True, slots=True)
class Said:
    """A timing, and what was assumed to get it."""

    timing: Timing
    assumed: tuple[str, ...]


def timing_said(pieces: Sequence[Piece], *, now: Instant, zone: str) -> Said:
    """The timing that these pieces describe together; raises `Unclear`."""
    saying = Saying(pieces, now, zone)
    try:
        timing = _timing(saying)
    except Invalid as invalid:
        raise Unclear(saying.text, "; ".join(error.message for error in invalid.errors)) from invalid
    if not isinstance(timing, Every):  # an interval without an anchor counts from when it is written
        timing = resolve(timing, now=now, default_zone=saying.zone)
    if is_past(timing, now):
        raise Unclear(saying.text, f"'{saying.text}' has passed; when should it run?")
    return Said(timing, tuple(saying.assumed))


def _timing(saying: Saying) -> Timing:
    leading = next((says for says in _BESIDE if says in saying.by), None)
    if leading is None:
        raise Unclear(saying.text, f"When is '{saying.text}'?")
    for says, other in saying.by.items():
        if says != leading and says not in _BESIDE[leading]:
            refuse_together(saying.by[leading], other)
    piece = saying.by[leading]
    match leading:
        case "whole":
            return saying.read(next(iter(piece.given.values())))
        case "delay":
            (length,) = piece.given.values()
            return saying.read(f"in {'30m' if length == 'half an hour' else length}")
        case "length":
            return in_time(saying, piece)
        case "count":
            return _count(saying, piece)
        case "step":
            return in_days(saying, piece)
        case "date":
            return saying.read(f"{piece.given.get('date', 'today')} at {saying.one_time()}")
        case "days":
            return _days(saying, piece)
        case "open":
            return _open(saying, piece)
        case _:
            return _times_alone(saying)


def _times_alone(saying: Saying) -> Timing:
    forms = {saying.by[says].form for says in ("time", "part") if says in saying.by}
    is_daily = "every" in forms
    return saying.read(f"{'every day ' * is_daily}at {saying.times()}")


def _days(saying: Saying, piece: Piece) -> Timing:
    given, times = piece.given, saying.times()
    match piece.form:
        case form if form in _IN_WEEK:
            return saying.read(f"{saying.day_words(piece)} at {times}")
        case "next":
            return saying.read(f"next {given['name']} at {times}")
        case "nth" | "every nth" | "on nth":
            return _nth(saying, piece, _NTH.get(given["nth"], given["nth"]), given.get("name", "day"), times)
        case "numbers":
            return _numbers(saying, [int(one) for one in re.findall(r"\d+", given["numbers"])], times)
        case "every number":
            monthly = f"every month on the {given['number']}th at {times}"
            raise Unclear(piece.text, f"Is '{piece.text}' a day of each month?", *saying.zoned([monthly]))
        case "on number":
            monthly = f"every month on the {given['number']}th at {times}"
            dated = f"{saying.next_day(lambda day: day.day == int(given['number']))} at {times}"
            question = f"'{piece.text}' can mean every month, or once; which one?"
            raise Unclear(piece.text, question, *saying.zoned([monthly, dated]))
        case _:
            day, month = _day_and_month(given["yearly"])
            return _cron(saying, f"{day} {month} *", times)


def _nth(saying: Saying, piece: Piece, nth: str, name: str, times: str) -> Timing:
    if name not in ("day", *WEEKDAYS):
        if nth == "last":
            return _cron(saying, "LW * *", times)
        raise Unclear(piece.text, f"no timing has the {nth} {name} of a month; which day should it be?")
    monthly = f"{nth} {name} of every month at {times}"
    if piece.form == "every nth" and nth not in ("first", "last"):
        others = [f"every other {name} at {times}"] if nth == "second" else []
        others = [f"every {ORDINALS[nth]} days at {times}"] if name == "day" else others
        question = f"'{piece.text}' can mean the {nth} of a month, or every {nth} one; which one?"
        raise Unclear(piece.text, question, *saying.zoned([monthly, *others]))
    if piece.form != "nth":
        saying.assumed.append("of every month")
    return saying.read(monthly)


def _numbers(saying: Saying, days: list[int], times: str) -> Timing:
    if max(days) > 28:
        saying.assumed.append(f"months without a day {max(days)} are left out")
    return _cron(saying, f"{','.join(map(str, sorted(days)))} * *", times)


def _cron(saying: Saying, days: str, times: str) -> Timing:
    hours, minutes = {time[:2] for time in times.split(" and ")}, {time[3:] for time in times.split(" and ")}
    if min(len(hours), len(minutes)) > 1:
        raise Unclear(saying.text, f"'{saying.text}' has times that no single schedule can have; give one minute")
    return saying.read(f"{_listed(minutes)} {_listed(hours)} {days}")


def _open(saying: Saying, piece: Piece) -> Timing:
    """A period that does not say on which day."""
    unit = next((unit for unit in ("week", "month", "year") if unit in piece.text.lower()), "")
    if piece.form != "period" or not unit:
        raise Unclear(piece.text, f"no timing is '{piece.text}'; on which days should it run?")
    times = saying.times()
    days = {
        "week": [f"every {WEEKDAYS[saying.today.weekday()]}"],
        "month": ["every month on the 1st", "last day of every month"],
        "year": [f"every {saying.today:%B} {saying.today.day}".lower()],
    }
    readings = saying.zoned([f"{one} at {times}" for one in days[unit]])
    raise Unclear(piece.text, f"On which day is '{piece.text}'?", *readings)


def _count(saying: Saying, piece: Piece) -> Timing:
    times = next(times for words, times in _COUNTS if piece.given["count"].split()[0] in words.split())
    days = saying.by.get("days")
    saying.assumed.append(f"{piece.text} is at {times}")
    return saying.read(f"{'every day' if days is None else saying.day_words(days)} at {times}")


def _day_and_month(text: str) -> tuple[int, int]:
    (day,) = re.findall(r"\d+", text)
    (month,) = re.findall(rf"\b(?:{MONTH})\b", text)
    return int(day), month_of(month)


def _listed(values: Iterable[int | str]) -> str:
    return ",".join(str(value) for value in sorted(int(value) for value in values))
