"""Intervals as people say them: `every 15 minutes between 9 and 17`, `every other day at 7`.

An interval that is bound to hours or days becomes a cron expression if it fits into them. One of several days becomes
an interval with an anchor, because cron begins again with each month.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wakeful.core.time.instants import DAY, HOUR, MINUTE, SECOND, WEEK, Duration, format_duration, parse_instant
from wakeful.core.time.spoken_clock import window
from wakeful.core.time.spoken_pieces import Piece
from wakeful.core.time.spoken_saying import Saying, Unclear, refuse_together
from wakeful.core.time.timing import Cron, Every, Timing
from wakeful.core.time.when_words import length_of, weekdays_of
from wakeful.core.time.zones import segment_at


def in_days(saying: Saying, piece: Piece) -> Timing:
    """Every so many days, at a time of day: an interval with an anchor."""
    count = piece.given.get("count", "2")
    length = (length_of(f"{count} days") or 0) * (7 if piece.form == "weeks" else 1)
    time = saying.one_time()
    if length == DAY or not length:
        return saying.read(f"every day at {time}")
    name = piece.given.get("name")
    weekday = None if name is None else weekdays_of(name, name, "when")[0]
    first = saying.next_day(lambda day: weekday in (None, day.weekday()), after=time)
    anchor = f"{first}T{time}"
    saying.assumed.append(f"the first time is on {first}")
    _say_clock_changes(saying)
    written = f"{length // DAY}d"
    return Every(length, parse_instant(anchor, saying.zone), saying.zone, written=written, anchor_written=anchor)


def _say_clock_changes(saying: Saying) -> None:
    offsets = {
        segment_at(saying.zone, (saying.now + ahead) // SECOND).offset for ahead in range(0, 52 * WEEK, 4 * WEEK)
    }
    if len(offsets) > 1:
        saying.assumed.append("after a clock change it is an hour earlier or later")


def in_time(saying: Saying, piece: Piece) -> Timing:
    """Every so many minutes or hours, perhaps only on some days or within some hours."""
    length = 30 * MINUTE if piece.form == "half" else _length_of(piece.form, piece.given)
    if not length:
        raise Unclear(piece.text, f"How long is '{piece.text}'?")
    if len(saying.by) == 1:
        return saying.read(f"every {format_duration(length)}")
    if not {"days", "window"} & set(saying.by):
        refuse_together(piece, saying.by["zone"])
    days = _days_of_week(saying)
    if length % HOUR == 0 and DAY % length == 0:
        return _hourly(saying, length // HOUR, days)
    if length % MINUTE == 0 and HOUR % length == 0:
        return _by_minutes(saying, length // MINUTE, days)
    raise Unclear(piece.text, f"'{piece.text}' does not fit evenly into an hour or a day; what should it be?")


def _hourly(saying: Saying, step: int, days: str) -> Timing:
    begin, end = _window(saying) or ((0, 0), (23, 59))
    if end[1] < begin[1]:
        end = (end[0] - 1, 59)
    hours = range(begin[0], min(end[0], 23) + 1, step)
    saying.assumed.append(f"from {hours[0]:02}:{begin[1]:02} to {hours[-1]:02}:{begin[1]:02}")
    if hours[0] == 0 and len(hours) * step == 24:
        field = "*" if step == 1 else f"*/{step}"
    else:
        field = _span(hours) if step == 1 else ",".join(map(str, hours))
    return saying.read(f"{begin[1]} {field} {days}")


def _by_minutes(saying: Saying, step: int, days: str) -> Timing:
    said = _window(saying)
    begin, end = said or ((0, 0), (24, 0))
    if begin[1] or end[1]:
        text = saying.by["window"].text
        raise Unclear(text, f"'{text}' is not from a full hour to a full hour; which hours should it be?")
    hours = range(begin[0], end[0])
    if said is not None:
        saying.assumed.append(f"from {hours[0]:02}:00 to {hours[-1]:02}:{60 - step:02}")
    return saying.read(f"{'*' if step == 1 else f'*/{step}'} {'*' if len(hours) == 24 else _span(hours)} {days}")


def _window(saying: Saying) -> tuple[tuple[int, int], tuple[int, int]] | None:
    piece = saying.by.get("window")
    if piece is None:
        return None
    found = window(piece.given["from"], piece.given["to"])
    if len(found) == 1:
        (begin, end) = found[0]
        return (begin.hours[0], begin.minute), (end.hours[0], end.minute)
    clear = [f"between {begin.readings[0]} and {end.readings[0]}" for begin, end in found]
    raise Unclear(piece.text, f"From when to when is '{piece.text}'?", *saying.replacing(piece, clear))


def _days_of_week(saying: Saying) -> str:
    """The day fields of a cron expression."""
    piece = saying.by.get("days")
    if piece is None or piece.form == "daily":
        return "* * *"
    if piece.form not in ("weekdays", "working days", "weekends", "names"):
        refuse_together(saying.by["length"], piece)
    timing = saying.read(f"{saying.day_words(piece)} at 00:00")
    if not isinstance(timing, Cron):
        refuse_together(saying.by["length"], piece)
    return timing.expression.removeprefix("0 0 ")


def _length_of(form: str, given: Mapping[str, str]) -> Duration:
    if "unit" in given or not given:
        return length_of(f"{2 if form == 'other' else 1} {given.get('unit', 'hour')}") or 0
    return length_of(given["length"]) or 0


def _span(hours: Sequence[int]) -> str:
    return f"{hours[0]}-{hours[-1]}" if len(hours) > 1 else str(hours[0])
