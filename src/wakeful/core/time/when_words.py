"""The words in a `when` string: times of day, lengths, weekdays, months, and what to say if one has two meanings."""

from __future__ import annotations

import re
from typing import Final, NoReturn

from wakeful.core.errors import FieldError, Invalid, refuse
from wakeful.core.time.instants import DAY, HOUR, MINUTE, SECOND, WEEK, Duration, parse_duration

WEEKDAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
MONTHS: Final = (
    *("january", "february", "march", "april", "may", "june", "july"),
    *("august", "september", "october", "november", "december"),
)
LENGTH_MAX: Final[Duration] = 100 * 365 * DAY
ORDINALS: Final = {"first": 1, "second": 2, "third": 3, "fourth": 4}

_COUNTS: Final = {
    word: count
    for count, words in enumerate(
        (
            *("", "a an one", "two", "three", "four", "five", "six"),
            *("seven", "eight", "nine", "ten", "eleven", "twelve"),
        )
    )
    for word in words.split()
}
_UNITS: Final = (
    ("w wk wks week weeks", WEEK),
    ("d day days", DAY),
    ("h hr hrs hour hours", HOUR),
    ("m min mins minute minutes", MINUTE),
    ("s sec secs second seconds", SECOND),
)
_UNIT: Final = {word: unit for words, unit in _UNITS for word in words.split()}
COUNT: Final = rf"(?:\d+|{'|'.join(_COUNTS)})"
HOUR_WORD: Final = "(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)"
_PART: Final = re.compile(rf"(\d+|{'|'.join(_COUNTS)})\s*({'|'.join(sorted(_UNIT, key=len, reverse=True))})\b")

TIME: Final = r"(?:\d{1,2}(?::\d{2})?\s*[ap]\.?m\.?|\d{1,2}:\d{2}|noon|midnight|\d{1,2}(?![\d:/.-]))"
TIMES: Final = rf"{TIME}(?:(?:\s*,\s*(?:and\s+)?|\s+and\s+){TIME})*"
_ONE_TIME: Final = re.compile(r"(\d{1,2})(?::(\d{2}))?\s*(am|pm)?")
WEEKDAY: Final = rf"(?:{'|'.join(f'{day}s?' for day in WEEKDAYS)})"
WEEKDAY_SHORT: Final = rf"(?:{'|'.join(f'{day[:3]}s?' for day in WEEKDAYS)}|thur|thurs)"
_DAY: Final = "|".join(f"{day}s?|{day[:3]}s?" for day in WEEKDAYS) + "|tues|thur|thurs|weds"
DAYS: Final = (
    rf"(?:(?:every|each)\s+)?(?:day|daily|weekdays?|weekends?|(?:{_DAY})"
    rf"(?:(?:\s*,\s*(?:and\s+)?|\s+and\s+|\s*-\s*|\s+(?:to|through)\s+)(?:{_DAY}))*)"
)
MONTH: Final = "|".join(f"{month}|{month[:3]}" for month in MONTHS) + "|sept"


class TwoMeanings(Invalid):
    """Text that can be read in two ways; `readings` are texts for both."""

    def __init__(self, field: str, text: str, first: str, second: str) -> None:
        super().__init__(FieldError(field, f"'{text}' has two meanings; write '{first}' or '{second}'"))
        self.readings = (first, second)


def two_meanings(field: str, text: str, first: str, second: str) -> NoReturn:
    """Refuse text that can be read in two ways, naming both."""
    raise TwoMeanings(field, text, first, second)


def length_of(text: str) -> Duration | None:
    """A length such as `20m`, `1h30m`, `20 minutes`, `an hour and 30 minutes`; None if the text is not a length, or not
    one that a schedule can have."""
    parts = re.split(r"\s*,\s*(?:and\s+)?|\s+and\s+|(?<=[a-z])\s+(?=\d)", text.strip())
    matches = [_PART.fullmatch(part) for part in parts]
    lengths = [count_of(part[1]) * _UNIT[part[2]] for part in matches if part is not None]
    total = sum(lengths) if len(lengths) == len(parts) else _short_form(text)
    return total if total is not None and 0 < total <= LENGTH_MAX else None


def _short_form(text: str) -> Duration | None:
    try:
        return parse_duration(text.replace(" ", ""))
    except (Invalid, ValueError):
        return None


def count_of(word: str) -> int:
    """The number that a word or digits stand for."""
    return _COUNTS[word] if word in _COUNTS else int(word[:12])


def times_of(text: str, around: tuple[str, str], field: str) -> list[str]:
    """The times of day in a list, as `HH:MM`, in order, without duplicates; `around` is the text before and after."""
    words = re.split(r"(\s*,\s*(?:and\s+)?|\s+and\s+)", text.strip())
    times = set()
    for place in range(0, len(words), 2):
        readings = _time(words[place], f"{around[0]}{text}{around[1]}", field)
        if len(readings) > 1:
            whole = [
                f"{around[0]}{''.join([*words[:place], time, *words[place + 1 :]])}{around[1]}" for time in readings
            ]
            two_meanings(field, f"{around[0]}{text}{around[1]}", whole[0], whole[1])
        times.add(readings[0])
    return sorted(times)


def _time(word: str, whole: str, field: str) -> tuple[str, ...]:
    """The times that a word can mean."""
    if word in ("noon", "midnight"):
        return ("12:00" if word == "noon" else "00:00",)
    match = _ONE_TIME.fullmatch(word.replace(".", ""))
    hour, minute, half = (24, 0, None) if match is None else (int(match[1]), int(match[2] or 0), match[3])
    if match is None or minute > 59 or hour > 23 or (half and not 1 <= hour <= 12):
        refuse(field, f"'{word}' in '{whole}' is not a time of day; write it like 9:00 or 21:30")
    if half:
        hour = hour % 12 + (12 if half == "pm" else 0)
    elif match[2] is None and 1 <= hour <= 12:
        return f"{hour % 12:02}:00", f"{hour % 12 + 12:02}:00"
    return (f"{hour:02}:{minute:02}",)


def weekdays_of(text: str, whole: str, field: str) -> list[int]:
    """The weekdays in a list, Monday is 0; a range may go over the end of the week."""
    weekdays: set[int] = set()
    for part in re.split(r"\s*,\s*(?:and\s+)?|\s+and\s+", text.strip()):
        ends = [_weekday(word) for word in re.split(r"\s*-\s*|\s+(?:to|through)\s+", part)]
        if len(ends) > 2:
            refuse(field, f"'{whole}' has a range of more than two days; write it like mon-fri")
        span = (ends[-1] - ends[0]) % 7
        weekdays |= {(ends[0] + step) % 7 for step in range(span + 1)}
    return sorted(weekdays)


def _weekday(word: str) -> int:
    return next(index for index, day in enumerate(WEEKDAYS) if word.startswith(day[:3]))


def month_of(word: str) -> int:
    """The number of a month by its name."""
    return next(index for index, month in enumerate(MONTHS, 1) if word.startswith(month[:3]))
