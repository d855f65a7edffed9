"""The pieces that a person said, and what is asked of them: their times of day, their days, the time zone.

What is left out and nearly always the same is noted in `assumed`. What could mean two things is raised as `Unclear`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Final, NoReturn

from wakeful.core.time.instants import SECOND, Instant
from wakeful.core.time.spoken_clock import clock_in
from wakeful.core.time.spoken_pieces import Piece, Says, zone_named
from wakeful.core.time.timing import Timing
from wakeful.core.time.when import read_when
from wakeful.core.time.when_words import WEEKDAYS, TwoMeanings, weekdays_of
from wakeful.core.time.zones import segment_at

_USUAL: Final = {None: "08:00", "morning": "08:00", "afternoon": "14:00", "evening": "19:00"}
_LIST: Final = re.compile(r"\s*,\s*(?:and\s+)?|\s+and\s+")


class Unclear(Exception):
    """A question about a part of the text, and texts of which one may be meant."""

    def __init__(self, text: str, question: str, *readings: str) -> None:
        super().__init__(question)
        self.text, self.question, self.readings = text, question, readings


class Saying:
    """The pieces by what they say, and what is assumed when they are put together."""

    def __init__(self, pieces: Sequence[Piece], now: Instant, zone: str) -> None:
        self.pieces, self.now = pieces, now
        self.assumed: list[str] = []
        self.by: dict[Says, Piece] = {}
        for piece in pieces:
            if piece.says in self.by:
                refuse_together(self.by[piece.says], piece)
            self.by[piece.says] = piece
        named = self.by.get("zone")
        self.zone = zone if named is None else zone_named(named.given) or zone
        if named is not None and "zone" not in named.given:
            self.assumed.append(f"'{named.text}' is the time zone {self.zone}")

    @property
    def text(self) -> str:
        return " ".join(piece.text for piece in self.pieces)

    def read(self, text: str) -> Timing:
        """What a strict text means; its question if it means two things."""
        try:
            return read_when(text, now=self.now, default_zone=self.zone)
        except TwoMeanings as two:
            both = " or ".join(f"'{reading}'" for reading in two.readings)
            raise Unclear(self.text, f"'{self.text}' can mean {both}; which one?", *self.zoned(two.readings)) from two

    def zoned(self, texts: Sequence[str]) -> list[str]:
        return [f"{text} {self.zone}" if "zone" in self.by else text for text in texts]

    def replacing(self, piece: Piece, texts: Sequence[str]) -> list[str]:
        """The pieces with each of these texts in place of one of them."""
        return [" ".join(text if one is piece else one.text for one in self.pieces) for text in texts]

    def times(self) -> str:
        """The times of day, as `09:00 and 17:30`."""
        time, part = self.by.get("time"), self._part_of_day()
        if time is not None:
            return " and ".join(sorted({self._time(word, time, part) for word in _LIST.split(time.given["times"])}))
        if part == "night":
            piece = self.by.get("part") or self.by["date"]
            nights = ("22:00",) if "date" in self.by else ("22:00", "02:00")
            days = {"every": "every day ", "today": "today "}.get(piece.form, "")
            readings = self.replacing(piece, [f"{days}at {night}" for night in nights])
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
        raise Unclear(piece.text, question, *self.replacing(piece, clear))

    def one_time(self) -> str:
        times = self.times()
        if " and " in times:
            raise Unclear(self.text, f"'{self.text}' has several times, which no single schedule has; give one")
        return times

    def day_words(self, piece: Piece) -> str:
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

    @property
    def wall(self) -> datetime:
        return datetime.fromtimestamp(self.now // SECOND + segment_at(self.zone, self.now // SECOND).offset, UTC)

    @property
    def today(self) -> date:
        return self.wall.date()

    def next_day(self, is_meant: Callable[[date], bool], after: str = "24:00") -> date:
        """The first day like this from today on; today only if this time of day is still to come."""
        days = (self.today + timedelta(days=ahead) for ahead in range(64))
        is_over = after == "24:00" or after <= f"{self.wall:%H:%M}"
        return next(day for day in days if is_meant(day) and not (is_over and day == self.today))


def refuse_together(one: Piece, other: Piece) -> NoReturn:
    """Ask about two pieces that cannot stand together."""
    question = f"'{one.text}' and '{other.text}' are not one timing; is one of them part of the task?"
    raise Unclear(other.text, question)
