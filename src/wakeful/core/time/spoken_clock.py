"""Times of day as people say them: `9`, `at 8 in the evening`, `between 9 and 17`."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from wakeful.core.time.when_words import HOUR_WORD, count_of

_WORD: Final = re.compile(rf"(\d{{1,2}}|{HOUR_WORD})(?:[:.](\d{{2}}))?\s*(?:([ap])\.?m\.?|o'clock)?")
_TO_24: Final = re.compile(r"\d{1,2}(?:[:.]\d{2})?")
_NAMED: Final = {"noon": 12, "midday": 12, "midnight": 0}
_HOURS: Final = {
    "morning": range(13),
    "afternoon": range(12, 19),
    "evening": range(16, 24),
    "night": (*range(6), *range(19, 24)),
}


class Clock(NamedTuple):
    """What a word for a time of day can mean: one hour, two if it does not say which half of the day, or none."""

    hours: tuple[int, ...]
    minute: int = 0

    @property
    def readings(self) -> list[str]:
        return [f"{hour:02}:{self.minute:02}" for hour in self.hours]


def clock(word: str) -> Clock:
    """The times that a word can mean by itself."""
    if word in _NAMED:
        return Clock((_NAMED[word],))
    match = _WORD.fullmatch(word)
    hour, minute, half = (24, 0, None) if match is None else (count_of(match[1]), int(match[2] or 0), match[3])
    if match is None or hour > 23 or minute > 59 or (half is not None and not 1 <= hour <= 12):
        return Clock(())
    if half is not None:
        return Clock((hour % 12 + 12 * (half == "p"),), minute)
    if match[2] is not None or not 1 <= hour <= 12:
        return Clock((hour,), minute)
    return Clock((hour % 12, hour % 12 + 12))


def clock_in(word: str, part: str | None) -> Clock:
    """The times that a word can mean in this part of the day. A bare hour from 7 to 12 is the hour of the day."""
    said = clock(word)
    if part is not None:
        return said._replace(hours=tuple(hour for hour in said.hours if hour in _HOURS[part]))
    return _as_hour_of_day(said) if _is_hour_of_day(said) else said


def window(first: str, last: str) -> list[tuple[Clock, Clock]]:
    """What `between 9 and 17` can mean: its ends, in order. Midnight at the end is 24:00."""
    begin, end = clock(first), clock(last)
    if _is_hour_of_day(begin):
        begin = _as_hour_of_day(begin)
    elif len(begin.hours) == 2 and _TO_24.fullmatch(last) and len(end.hours) == 1:
        begin = begin._replace(hours=begin.hours[:1])  # `between 6 and 22`
    if len(begin.hours) == 1 and _is_hour_of_day(end) and _hour_of_day(end) > begin.hours[0]:
        end = _as_hour_of_day(end)
    ends = [24 if hour == end.minute == 0 else hour for hour in end.hours]
    return [
        (begin._replace(hours=(one,)), end._replace(hours=(other,)))
        for one in begin.hours
        for other in ends
        if (one, begin.minute) < (other, end.minute)
    ]


def _is_hour_of_day(said: Clock) -> bool:
    return len(said.hours) == 2 and (said.hours[0] >= 7 or said.hours[0] == 0)


def _hour_of_day(said: Clock) -> int:
    return said.hours[0] or 12


def _as_hour_of_day(said: Clock) -> Clock:
    return said._replace(hours=(_hour_of_day(said),))
