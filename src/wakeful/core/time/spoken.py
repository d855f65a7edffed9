"""What pieces such as `every weekday` and `at 9` mean together.

Theory of operation: which kinds of pieces there are decides what they can mean. Where a strict form of the text exists
(`weekdays at 09:00`), it is written and read by `when`, so that a text has one meaning everywhere. People leave out
what seems obvious to them. What nearly all of them mean is assumed and said (`every morning` is at 08:00); for anything
else `Unclear` is raised, with texts that are clear.

A bare hour from 7 to 12 is the hour of the day; one from 1 to 6 could be in either half, and has to be asked about.
`when` asks about every bare hour, because nobody confirms what it has read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Final, NoReturn

from wakeful.core.errors import Invalid
from wakeful.core.time.instants import (
    DAY,
    HOUR,
    MINUTE,
    SECOND,
    WEEK,
    Duration,
    Instant,
    format_duration,
    parse_instant,
)
from wakeful.core.time.spoken_clock import clock_in, window
from wakeful.core.time.spoken_pieces import Piece, Says, zone_named
from wakeful.core.time.timing import Cron, Every, Timing, is_past, resolve
from wakeful.core.time.when import read_when
from wakeful.core.time.when_words import MONTH, ORDINALS, WEEKDAYS, TwoMeanings, length_of, month_of, weekdays_of
from wakeful.core.time.zones import segment_at

_USUAL: Final = {None: "08:00", "morning": "08:00", "afternoon": "14:00", "evening": "19:00"}
_COUNTS: Final = (
    ("twice two 2", "08:00 and 20:00"),
    ("three 3", "08:00 and 14:00 and 20:00"),
    ("four 4", "08:00 and 12:00 and 16:00 and 20:00"),
)
_NTH: Final = {"1st": "first", "2nd": "second", "3rd": "third", "4th": "fourth"}
_IN_WEEK: Final = ("daily", "weekdays", "weekends", "working days", "names")
_LIST: Final = re.compile(r"\s*,\s*(?:and\s+)?|\s+and\s+")
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


class Unclear(Exception):
    """A question about a part of the text, and texts of which one may be meant."""

    def __init__(self, text: str, question: str, *readings: str) -> None:
        super().__init__(question)
        self.text, self.question, self.readings = text, question, readings


@dataclass(frozen=True, slots=True)
class Said:
    """A timing, and what was assumed to get it."""

    timing: Timing
    assumed: tuple[str, ...]


def timing_said(pieces: Sequence[Piece], *, now: Instant, zone: str) -> Said:
    """The timing that these pieces describe together; raises `Unclear`."""
    saying = _Saying(pieces, now, zone)
    try:
        timing = saying.timing()
    except Invalid as invalid:
        raise Unclear(saying.text, "; ".join(error.message for error in invalid.errors)) from invalid
    if not isinstance(timing, Every):  # an interval without an anchor counts from when it is written
        timing = resolve(timing, now=now, default_zone=saying.zone)
    if is_past(timing, now):
        raise Unclear(saying.text, f"'{saying.text}' has passed; when should it run?")
    return Said(timing, tuple(saying.assumed))


class _Saying:
    """The pieces by what they say, and what is assumed when they are put together."""

    def __init__(self, pieces: Sequence[Piece], now: Instant, zone: str) -> None:
        self.pieces, self.now = pieces, now
        self.assumed: list[str] = []
        self.by: dict[Says, Piece] = {}
        for piece in pieces:
            if piece.says in self.by:
                _refuse_together(self.by[piece.says], piece)
            self.by[piece.says] = piece
        named = self.by.get("zone")
        self.zone = zone if named is None else zone_named(named.given) or zone
        if named is not None and "zone" not in named.given:
            self.assumed.append(f"'{named.text}' is the time zone {self.zone}")

    @property
    def text(self) -> str:
        return " ".join(piece.text for piece in self.pieces)

    def timing(self) -> Timing:
        leading = next((says for says in _BESIDE if says in self.by), None)
        if leading is None:
            raise Unclear(self.text, f"When is '{self.text}'?")
        for says, other in self.by.items():
            if says != leading and says not in _BESIDE[leading]:
                _refuse_together(self.by[leading], other)
        piece = self.by[leading]
        match leading:
            case "whole":
                return self._read(next(iter(piece.given.values())))
            case "delay":
                (length,) = piece.given.values()
                return self._read(f"in {'30m' if length == 'half an hour' else length}")
            case "length":
                return self._length(piece)
            case "count":
                return self._count(piece)
            case "step":
                return self._step(piece)
            case "date":
                return self._read(f"{piece.given.get('date', 'today')} at {self._one_time()}")
            case "days":
                return self._days(piece)
            case "open":
                return self._open(piece)
            case _:
                return self._times_alone()

    def _read(self, text: str) -> Timing:
        """What a strict text means; its question if it means two things."""
        try:
            return read_when(text, now=self.now, default_zone=self.zone)
        except TwoMeanings as two:
            both = " or ".join(f"'{reading}'" for reading in two.readings)
            raise Unclear(self.text, f"'{self.text}' can mean {both}; which one?", *self._zoned(two.readings)) from two

    def _zoned(self, texts: Sequence[str]) -> list[str]:
        return [f"{text} {self.zone}" if "zone" in self.by else text for text in texts]

    def _with(self, piece: Piece, texts: Sequence[str]) -> list[str]:
        """The pieces with each of these texts in place of one of them."""
        return [" ".join(text if one is piece else one.text for one in self.pieces) for text in texts]

    # --- times of day -------------------------------------------------------------------------------------------------

    def _times(self) -> str:
        """The times of day, as `09:00 and 17:30`."""
        time, part = self.by.get("time"), self._part_of_day()
        if time is not None:
            return " and ".join(sorted({self._time(word, time, part) for word in _LIST.split(time.given["times"])}))
        if part == "night":
            piece = self.by.get("part") or self.by["date"]
            nights = ("22:00",) if "date" in self.by else ("22:00", "02:00")
            days = {"every": "every day ", "today": "today "}.get(piece.form, "")
            readings = self._with(piece, [f"{days}at {night}" for night in nights])
            raise Unclear(piece.text, f"At what time is '{piece.text}'?", *readings)
        self.assumed.append(f"no time was given: {_USUAL[part]}")
        return _USUAL[part]

    def _part_of_day(self) -> str | None:
        for piece in (self.by.get("part"), self.by.get("date")):
            if piece is not None and (said := {"part", "several", "night"} & set(piece.given)):
                return "night" if "night" in said else piece.given[said.pop()].removesuffix("s")
        return None

    def _time(self, word: str, piece: Piece, part: str | None) -> str:
        readings = clock_in(word, part).readings
        if not readings:
            raise Unclear(piece.text, f"Which time of day is '{word}'{f' in the {part}' if part else ''}?")
        if len(readings) == 1:
            return readings[0]
        clear = [re.sub(rf"(?<!\d){re.escape(word)}(?![\d:])", one, piece.text, count=1) for one in readings]
        question = f"'{piece.text}' can mean {readings[0]} or {readings[1]}; which one?"
        raise Unclear(piece.text, question, *self._with(piece, clear))

    def _one_time(self) -> str:
        times = self._times()
        if " and " in times:
            raise Unclear(self.text, f"'{self.text}' has several times, which no single schedule has; give one")
        return times

    def _times_alone(self) -> Timing:
        forms = {self.by[says].form for says in ("time", "part") if says in self.by}
        is_daily = "every" in forms
        return self._read(f"{'every day ' * is_daily}at {self._times()}")

    # --- days ---------------------------------------------------------------------------------------------------------

    def _days(self, piece: Piece) -> Timing:
        given, times = piece.given, self._times()
        match piece.form:
            case form if form in _IN_WEEK:
                return self._read(f"{self._day_words(piece)} at {times}")
            case "next":
                return self._read(f"next {given['name']} at {times}")
            case "nth" | "every nth" | "on nth":
                return self._nth(piece, _NTH.get(given["nth"], given["nth"]), given.get("name", "day"), times)
            case "numbers":
                return self._numbers([int(one) for one in re.findall(r"\d+", given["numbers"])], times)
            case "every number":
                monthly = f"every month on the {given['number']}th at {times}"
                raise Unclear(piece.text, f"Is '{piece.text}' a day of each month?", *self._zoned([monthly]))
            case "on number":
                monthly = f"every month on the {given['number']}th at {times}"
                dated = f"{self._next_day(lambda day: day.day == int(given['number']))} at {times}"
                question = f"'{piece.text}' can mean every month, or once; which one?"
                raise Unclear(piece.text, question, *self._zoned([monthly, dated]))
            case _:
                day, month = _day_and_month(given["yearly"])
                return self._cron(f"{day} {month} *", times)

    def _day_words(self, piece: Piece) -> str:
        """Days in the words of a strict text."""
        if piece.form == "working days":
            self.assumed.append("working days are Monday to Friday, also on holidays")
            return "weekdays"
        if piece.form != "names":
            return {"daily": "every day"}.get(piece.form, piece.form)
        days = piece.given.get("days") or piece.given["day"]
        names = [WEEKDAYS[day] for day in weekdays_of(days, days, "when")]
        is_each = "each" in piece.given or len(names) > 1 or days.endswith("days")
        return f"{'every ' * is_each}{' and '.join(names)}"

    def _nth(self, piece: Piece, nth: str, name: str, times: str) -> Timing:
        if name not in ("day", *WEEKDAYS):
            if nth == "last":
                return self._cron("LW * *", times)
            raise Unclear(piece.text, f"no timing has the {nth} {name} of a month; which day should it be?")
        monthly = f"{nth} {name} of every month at {times}"
        if piece.form == "every nth" and nth not in ("first", "last"):
            others = [f"every other {name} at {times}"] if nth == "second" else []
            others = [f"every {ORDINALS[nth]} days at {times}"] if name == "day" else others
            question = f"'{piece.text}' can mean the {nth} of a month, or every {nth} one; which one?"
            raise Unclear(piece.text, question, *self._zoned([monthly, *others]))
        if piece.form != "nth":
            self.assumed.append("of every month")
        return self._read(monthly)

    def _numbers(self, days: list[int], times: str) -> Timing:
        if max(days) > 28:
            self.assumed.append(f"months without a day {max(days)} are left out")
        return self._cron(f"{','.join(map(str, sorted(days)))} * *", times)

    def _cron(self, days: str, times: str) -> Timing:
        hours, minutes = {time[:2] for time in times.split(" and ")}, {time[3:] for time in times.split(" and ")}
        if min(len(hours), len(minutes)) > 1:
            raise Unclear(self.text, f"'{self.text}' has times that no single schedule can have; give one minute")
        return self._read(f"{_listed(minutes)} {_listed(hours)} {days}")

    def _open(self, piece: Piece) -> Timing:
        """A period that does not say on which day."""
        unit = next((unit for unit in ("week", "month", "year") if unit in piece.text.lower()), "")
        if piece.form != "period" or not unit:
            raise Unclear(piece.text, f"no timing is '{piece.text}'; on which days should it run?")
        times = self._times()
        days = {
            "week": [f"every {WEEKDAYS[self._today.weekday()]}"],
            "month": ["every month on the 1st", "last day of every month"],
            "year": [f"every {self._today:%B} {self._today.day}".lower()],
        }
        readings = self._zoned([f"{one} at {times}" for one in days[unit]])
        raise Unclear(piece.text, f"On which day is '{piece.text}'?", *readings)

    # --- intervals ----------------------------------------------------------------------------------------------------

    def _step(self, piece: Piece) -> Timing:
        """Every so many days, at a time of day: as an interval, because cron begins again with each month."""
        count = piece.given.get("count", "2")
        length = (length_of(f"{count} days") or 0) * (7 if piece.form == "weeks" else 1)
        time = self._one_time()
        if length == DAY or not length:
            return self._read(f"every day at {time}")
        name = piece.given.get("name")
        weekday = None if name is None else weekdays_of(name, name, "when")[0]
        first = self._next_day(lambda day: weekday in (None, day.weekday()), after=time)
        anchor = f"{first}T{time}"
        self.assumed.append(f"the first time is on {first}")
        self._say_clock_changes()
        written = f"{length // DAY}d"
        return Every(length, parse_instant(anchor, self.zone), self.zone, written=written, anchor_written=anchor)

    def _say_clock_changes(self) -> None:
        offsets = {
            segment_at(self.zone, (self.now + ahead) // SECOND).offset for ahead in range(0, 52 * WEEK, 4 * WEEK)
        }
        if len(offsets) > 1:
            self.assumed.append("after a clock change it is an hour earlier or later")

    def _length(self, piece: Piece) -> Timing:
        length = 30 * MINUTE if piece.form == "half" else _length(piece.form, piece.given)
        if not length:
            raise Unclear(piece.text, f"How long is '{piece.text}'?")
        if len(self.by) == 1:
            return self._read(f"every {format_duration(length)}")
        if not {"days", "window"} & set(self.by):
            _refuse_together(piece, self.by["zone"])
        days = self._days_of_week()
        if length % HOUR == 0 and DAY % length == 0:
            return self._hourly(length // HOUR, days)
        if length % MINUTE == 0 and HOUR % length == 0:
            return self._by_minutes(length // MINUTE, days)
        raise Unclear(piece.text, f"'{piece.text}' does not fit evenly into an hour or a day; what should it be?")

    def _hourly(self, step: int, days: str) -> Timing:
        begin, end = self._window() or ((0, 0), (23, 59))
        if end[1] < begin[1]:
            end = (end[0] - 1, 59)
        hours = range(begin[0], min(end[0], 23) + 1, step)
        self.assumed.append(f"from {hours[0]:02}:{begin[1]:02} to {hours[-1]:02}:{begin[1]:02}")
        field = f"*/{step}" if len(hours) * step == 24 and step > 1 else "*" if len(hours) == 24 else _listed(hours)
        return self._read(f"{begin[1]} {_span(hours) if step == 1 and len(hours) < 24 else field} {days}")

    def _by_minutes(self, step: int, days: str) -> Timing:
        said = self._window()
        begin, end = said or ((0, 0), (24, 0))
        if begin[1] or end[1]:
            text = self.by["window"].text
            raise Unclear(text, f"'{text}' is not from a full hour to a full hour; which hours should it be?")
        hours = range(begin[0], end[0])
        if said is not None:
            self.assumed.append(f"from {hours[0]:02}:00 to {hours[-1]:02}:{60 - step:02}")
        return self._read(f"{'*' if step == 1 else f'*/{step}'} {'*' if len(hours) == 24 else _span(hours)} {days}")

    def _window(self) -> tuple[tuple[int, int], tuple[int, int]] | None:
        piece = self.by.get("window")
        if piece is None:
            return None
        found = window(piece.given["from"], piece.given["to"])
        if len(found) == 1:
            (begin, end) = found[0]
            return (begin.hours[0], begin.minute), (end.hours[0], end.minute)
        clear = [f"between {begin.readings[0]} and {end.readings[0]}" for begin, end in found]
        raise Unclear(piece.text, f"From when to when is '{piece.text}'?", *self._with(piece, clear))

    def _days_of_week(self) -> str:
        """The day fields of a cron expression."""
        piece = self.by.get("days")
        if piece is None or piece.form == "daily":
            return "* * *"
        if piece.form not in _IN_WEEK:
            _refuse_together(self.by["length"], piece)
        timing = self._read(f"{self._day_words(piece)} at 00:00")
        if not isinstance(timing, Cron):
            _refuse_together(self.by["length"], piece)
        return timing.expression.removeprefix("0 0 ")

    def _count(self, piece: Piece) -> Timing:
        times = next(times for words, times in _COUNTS if piece.given["count"].split()[0] in words.split())
        days = self.by.get("days")
        self.assumed.append(f"{piece.text} is at {times}")
        return self._read(f"{'every day' if days is None else self._day_words(days)} at {times}")

    # --- the calendar -------------------------------------------------------------------------------------------------

    @property
    def _wall(self) -> datetime:
        return datetime.fromtimestamp(self.now // SECOND + segment_at(self.zone, self.now // SECOND).offset, UTC)

    @property
    def _today(self) -> date:
        return self._wall.date()

    def _next_day(self, is_meant: Callable[[date], bool], after: str = "24:00") -> date:
        """The first day like this from today on; today only if this time of day is still to come."""
        days = (self._today + timedelta(days=ahead) for ahead in range(64))
        is_over = after == "24:00" or after <= f"{self._wall:%H:%M}"
        return next(day for day in days if is_meant(day) and not (is_over and day == self._today))


def _refuse_together(one: Piece, other: Piece) -> NoReturn:
    question = f"'{one.text}' and '{other.text}' are not one timing; is one of them part of the task?"
    raise Unclear(other.text, question)


def _length(form: str, given: Mapping[str, str]) -> Duration:
    if "unit" in given or not given:
        return length_of(f"{2 if form == 'other' else 1} {given.get('unit', 'hour')}") or 0
    return length_of(given["length"]) or 0


def _day_and_month(text: str) -> tuple[int, int]:
    (day,) = re.findall(r"\d+", text)
    (month,) = re.findall(rf"\b(?:{MONTH})\b", text)
    return int(day), month_of(month)


def _listed(values: Iterable[int | str]) -> str:
    return ",".join(str(value) for value in sorted(int(value) for value in values))


def _span(hours: Sequence[int]) -> str:
    return f"{hours[0]}-{hours[-1]}" if len(hours) > 1 else str(hours[0])
