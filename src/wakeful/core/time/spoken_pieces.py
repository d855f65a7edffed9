"""The pieces of what people say about time: `every weekday`, `at 9`, `in Berlin`, `between 9 and 17`.

Theory of operation: each row of the table is one form of a piece. Where several match, the longest counts. A piece ends
where a word ends, so `monday's` and `9am-ish` are no pieces. What pieces mean together is decided in `spoken`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal, TypeAlias
from zoneinfo import available_timezones

from wakeful.core.time.when import DATE
from wakeful.core.time.when_words import COUNT, HOUR_WORD, MONTH, WEEKDAY, WEEKDAY_SHORT, WEEKDAYS

Says: TypeAlias = Literal[
    "days", "date", "step", "open", "time", "part", "window", "length", "count", "delay", "zone", "whole"
]


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece at its place in a text, with the parts of its form."""

    says: Says
    form: str
    begin: int
    end: int
    text: str
    given: dict[str, str]


# In all patterns, a space stands for any white space.
_EACH: Final = "(?:every|each) "
_AND: Final = r"(?:\s*, (?:and )?|\s*,\s*| and )"
_CLOCK: Final = r"(?:\d{1,2}(?:[:.]\d{2})?\s*[ap]\.?m\b\.?|\d{1,2}:\d{2}|\d{1,2} o'clock|noon|midday|midnight)"
_HOUR: Final = rf"(?:{_CLOCK}|\d{{1,2}}\.\d{{2}}|\d{{1,2}}|{HOUR_WORD}(?: o'clock)?)"  # needs a word before it
_HOURS: Final = rf"(?:{_AND}{_CLOCK})*(?:(?:\s*, {_HOUR})*,? and {_HOUR})?"
_NAME: Final = rf"(?:{WEEKDAY}|{WEEKDAY_SHORT})"
_NAMES: Final = rf"(?:(?:{_AND}|\s*-\s*| (?:to|through) ){_NAME})"
_NTH: Final = (
    "(?:the )?(?P<nth>first|1st|second|2nd|third|3rd|fourth|4th|last) "
    f"(?P<name>day|weekday|workday|working day|business day|{'|'.join(WEEKDAYS)})"
)
_NUMBER: Final = r"\d{1,2}(?:st|nd|rd|th)"
_NUMBERS: Final = rf"(?:the )?(?P<numbers>{_NUMBER}(?:{_AND}(?:the )?{_NUMBER})*)"
_OF_MONTH: Final = " (?:(?:day )?(?:of|in) )?(?:the|every|each|a) month"
_MONTHLY: Final = rf"(?:{_EACH}month|monthly|once (?:a|per) month)\s*,? on "
_YEARLY: Final = rf"(?:{_EACH}(?:year,? on )?|(?:yearly|annually|once (?:a|per) year),? on )(?:the )?"
_IN_YEAR: Final = (
    rf"(?P<yearly>(?:{MONTH}) {_NUMBER}|(?:{MONTH}) \d{{1,2}}|{_NUMBER} (?:of )?(?:{MONTH})|\d{{1,2}} (?:{MONTH}))"
)
_WEEKLY: Final = rf"(?:{_EACH}week|weekly|once (?:a|per) week),? on "
_SMALL: Final = "(?:hours?|hrs?|h|minutes?|mins?|m|seconds?|secs?|s|d|w)"
_LENGTH: Final = rf"{COUNT}\s*(?:{_SMALL}|days?|weeks?)\b"
_LENGTHS: Final = rf"{_LENGTH}(?:(?:, | and |\s*){_LENGTH})*|half an hour"
_PART: Final = "(?P<part>morning|afternoon|evening|night)"
_PERIOD: Final = "(?:weeks?|fortnights?|months?|quarters?|years?)"
_CRON: Final = rf"(?:[\d*][\d*/,-]* ){{2}}(?:[\d*?L][\w*/,-]* ){{2}}(?:[\d*?]|{WEEKDAY_SHORT}\b)[\w*/,#-]*"

# If two forms match as much, the first counts: `every second day` is every other day.
_FORMS: Final[tuple[tuple[Says, str, str], ...]] = (
    ("step", "days", rf"{_EACH}(?:other|second|2nd|alternate) day|every (?P<count>{COUNT}) days"),
    ("step", "weeks", f"(?:on )?every (?:other|alternate) (?P<name>{_NAME})"),
    ("step", "weeks", f"every (?:other week|second week|(?P<count>{COUNT}) weeks),? on (?P<name>{_NAME})"),
    ("days", "daily", f"{_EACH}(?:single )?day|everyday|once (?:a|per|every) day|once daily|daily"),
    ("days", "weekdays", f"(?:on )?(?:all )?(?:week-?days|workdays)|(?:on )?{_EACH}(?:week[ -]?day|workday)"),
    ("days", "working days", f"(?:on )?(?:working|business) days|(?:on )?{_EACH}(?:working|business) day"),
    ("days", "weekends", f"(?:(?:on|at) )?(?:the )?weekends|{_EACH}weekend"),
    ("days", "names", f"(?:on )?(?P<each>{_EACH})(?P<days>{_NAME}{_NAMES}*)"),
    ("days", "names", f"(?P<each>{_WEEKLY})(?P<days>{_NAME}{_NAMES}*)"),
    ("days", "names", f"(?:on |from )?(?P<days>{_NAME}{_NAMES}+)"),
    ("days", "names", f"(?P<days>{WEEKDAY})|on (?P<day>{_NAME})"),
    ("days", "next", f"(?:on )?next (?P<name>{'|'.join(WEEKDAYS)})"),
    ("days", "nth", f"(?:on )?(?:{_EACH})?{_NTH}{_OF_MONTH}|{_MONTHLY}{_NTH.replace('P<n', 'P<of_n')}"),
    ("days", "nth", "(?:on )?(?:the )?(?P<nth>first|last) of (?:the|every|each) month"),
    ("days", "every nth", f"(?:on )?{_EACH}{_NTH}"),
    ("days", "on nth", f"on {_NTH}"),
    ("days", "numbers", f"(?:on )?(?:{_EACH})?{_NUMBERS}{_OF_MONTH}"),
    ("days", "numbers", f"{_MONTHLY}{_NUMBERS.replace('P<n', 'P<of_n')}"),
    ("days", "every number", rf"(?:on )?{_EACH}(?:the )?(?P<number>\d{{1,2}})(?:st|nd|rd|th)"),
    ("days", "on number", r"on (?:the )?(?P<number>\d{1,2})(?:st|nd|rd|th)"),
    ("days", "yearly", f"{_YEARLY}{_IN_YEAR}"),
    ("open", "period", f"{_EACH}{_PERIOD}|once (?:a|per|every) {_PERIOD}|weekly|monthly|quarterly|yearly|annually"),
    ("open", "several", f"every (?:{COUNT}|other|second) {_PERIOD}|fortnightly|bi-?weekly|bi-?monthly"),
    ("open", "often", f"(?:twice|{COUNT} times) (?:a|per|every) (?:week|month|year|hour)"),
    ("date", "today", "(?P<night>tonight)|this (?P<part>morning|afternoon|evening)"),
    ("date", "date", f"(?:(?:on|at) )?(?:the )?(?P<date>{re.sub('[?]P<[a-z0-9]+>', '?:', DATE)})"),
    ("time", "times", rf"(?:at|@)\s*(?P<times>{_HOUR}{_HOURS})"),
    ("time", "times", f"(?P<times>{_CLOCK}{_HOURS})"),
    ("time", "every", f"every (?P<times>{_CLOCK}{_HOURS})"),
    ("part", "every", f"{_EACH}{_PART}|(?P<several>mornings|afternoons|evenings)"),
    ("part", "in", f"(?:in the|at) {_PART}"),
    ("part", "after", _PART),
    ("window", "window", rf"(?:between|from) (?P<from>{_HOUR})\s*(?:and|to|until|till|-)\s*(?P<to>{_HOUR})"),
    ("length", "length", rf"{_EACH}(?P<length>{COUNT}\s*{_SMALL})|{_EACH}(?P<unit>hour|minute)|hourly"),
    ("length", "other", "every (?:other|second|2nd) (?P<unit>hour|minute)"),
    ("length", "half", f"{_EACH}half(?: an)? hour"),
    ("count", "count", "(?P<count>twice|(?:two|three|four|2|3|4) times) (?:(?:a|per|each|every) day|daily)"),
    ("delay", "delay", f"in (?P<length>{_LENGTHS})|(?P<ahead>{_LENGTHS}) from now"),
    ("zone", "named", r"(?:in )?\(?(?P<zone>[A-Za-z]+(?:/[A-Za-z0-9_+-]+)+|UTC|GMT)\)?"),
    ("zone", "time of", r"(?P<city>[A-Za-z]+(?:[ -][A-Za-z]+)?) time"),
    ("zone", "in", "in (?P<city>[A-Za-z]+(?:[ -][A-Za-z]+){2})"),
    ("zone", "in", "in (?P<city>[A-Za-z]+[ -][A-Za-z]+)"),
    ("zone", "in", "in (?P<city>[A-Za-z]+)"),
    ("whole", "cron", f"(?P<cron>{_CRON})|(?P<named>@[a-z]+)"),
    ("whole", "exact", r"(?:at |on )?(?P<at>\d{4}-\d\d-\d\d[T ]\d\d:\d\d\S*)"),
)  # fmt: skip
_ENDS: Final = r"(?!'?\w|-\w|[:.+]\d|/\w)"
_AREAS: Final = ("Africa/", "America/", "Asia/", "Atlantic/", "Australia/", "Europe/", "Indian/", "Pacific/")
_TELLS_A_DAY: Final = ("days", "date", "time", "part", "step")


def pieces_at(text: str, begin: int) -> list[Piece]:
    """The pieces that follow one another from here, with nothing but spaces and commas between them."""
    found: list[Piece] = []
    while (piece := piece_at(text, begin, found[-1] if found else None)) is not None:
        found.append(piece)
        between = re.compile(r"\s*,\s*|\s+").match(text, piece.end)
        begin = piece.end if between is None else between.end()
    return found


def piece_at(text: str, begin: int, before: Piece | None = None) -> Piece | None:
    """The longest piece that begins here, after the piece before it."""
    longest: Piece | None = None
    for says, form, pattern in _compiled():
        match = pattern.match(text, begin)
        if match is None or (longest is not None and match.end() <= longest.end):
            continue
        if form == "after" and (before is None or before.says not in _TELLS_A_DAY):
            continue  # `morning` alone may be an adjective
        given = {
            name.removeprefix("of_"): " ".join(value.lower().split())
            for name, value in match.groupdict().items()
            if value is not None
        }
        if says == "zone" and zone_named(given) is None:
            continue
        longest = Piece(says, form, begin, match.end(), match[0], given)
    return longest


@lru_cache(maxsize=1)
def _compiled() -> tuple[tuple[Says, str, re.Pattern[str]], ...]:
    """Compiled when the first sentence is read: most processes never read one."""
    flags = re.ASCII | re.IGNORECASE
    return tuple(
        (says, form, re.compile(f"(?:{pattern}){_ENDS}".replace(" ", r"\s+").replace(r"[\s+-]", "[ -]"), flags))
        for says, form, pattern in _FORMS
    )


def zone_named(given: dict[str, str]) -> str | None:
    """The zone that a piece names, by its IANA name or by a city."""
    name = given.get("zone") or given.get("city", "")
    return "UTC" if name in ("utc", "gmt") else _zones().get(name.replace(" ", "_").replace("-", "_"))


@lru_cache(maxsize=1)
def _zones() -> dict[str, str]:
    """The zones by their names and by their cities, in lower case."""
    named = sorted(zone for zone in available_timezones() if zone.startswith(_AREAS))
    cities = [(zone.rpartition("/")[2], zone) for zone in named]
    return {name.lower().replace("-", "_"): zone for name, zone in (*cities, *zip(named, named, strict=True))}
