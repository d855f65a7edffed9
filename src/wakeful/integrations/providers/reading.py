"""Parses provider responses defensively: anything may be missing, of another type, or implausible."""

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from wakeful.core.errors import Invalid
from wakeful.core.slot.limits import Limit, Window, is_plausible, pick
from wakeful.core.slot.slot import ReadFailure, Reading
from wakeful.core.time.instants import Instant, format_instant, parse_instant

LIMITS_KEPT: Final = 20
_SECONDS_BELOW: Final = 100_000_000_000  # as milliseconds that would be 1973


def number_of(value: Any) -> float | None:
    """A finite number, or a string that contains one."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return value


def instant_of(value: Any) -> Instant | None:
    """A time: milliseconds since 1970, seconds, or a string with an offset; None for null and empty values.

    Raises `ValueError` for anything else."""
    if value is None or value == "":
        return None
    number = number_of(value)
    if number is not None:
        return int(number * 1000) if 0 < number < _SECONDS_BELOW else int(number)
    if isinstance(value, str):
        try:
            return parse_instant(value)
        except Invalid:
            pass
    raise ValueError(f"nextResetTime is not a time: {str(value)[:80]!r}")


def walk(value: Any, path: str) -> Any:
    """The value at a path in JSON, such as `data.quota.0.used`."""
    for part in path.split("."):
        if isinstance(value, Mapping):
            value = value.get(part)
        elif isinstance(value, Sequence) and not isinstance(value, str) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return value


def believed(
    window: Window, now: Instant, *, level: str | None = None, limits: Sequence[Any] = ()
) -> Reading | ReadFailure:
    """The reading, unless its reset time is implausible."""
    if not is_plausible(window.reset_at, now):
        reset_text = "before 1970" if (window.reset_at or 0) <= 0 else _shown(window.reset_at or 0)
        return ReadFailure("unreadable", f"nextResetTime is implausible ({reset_text}); check the provider's response")
    return Reading(window.percentage, window.reset_at, window.length, level, tuple(limits)[:LIMITS_KEPT])


def plain_reading(data: Any, percentage_key: str, reset_key: str, now: Instant) -> Reading | ReadFailure:
    """A reading from any JSON, by the paths of its two values."""
    if not isinstance(data, Mapping | list):
        return ReadFailure("unreadable", "the response is not JSON; return {percentage, nextResetTime}")
    percentage = number_of(walk(data, percentage_key))
    try:
        reset_at = instant_of(walk(data, reset_key))
    except ValueError as error:
        return ReadFailure("unreadable", str(error))
    if percentage is None and reset_at is None:
        what = f"neither a number at '{percentage_key}' nor a time at '{reset_key}'"
        return ReadFailure("unreadable", f"the response has {what}; correct percentage_key and reset_key")
    return believed(Window(percentage, reset_at), now)


def glm_reading(data: Any, now: Instant) -> Reading | ReadFailure:
    """A reading from the envelope of Z.ai and BigModel."""
    if not isinstance(data, Mapping):
        return ReadFailure("unreadable", "the response is not JSON; check base_url")
    code, inner = data.get("code"), data.get("data")
    if code in (401, 403, "401", "403", 1000, 1001, 1002, 1003, 1004):
        return ReadFailure("refused", f"the key was refused (code {code}): {_said(data)}")
    if code != 200:
        return ReadFailure("unreadable", f"the provider returned code {str(code)[:20]}: {_said(data)}")
    limits = inner.get("limits") if isinstance(inner, Mapping) else None
    if not isinstance(inner, Mapping) or not isinstance(limits, list):
        return ReadFailure("unreadable", "the response has no data.limits; check base_url")
    try:
        known = [limit_of(limit) for limit in limits if isinstance(limit, Mapping)]
    except ValueError as error:
        return ReadFailure("unreadable", str(error))
    window = pick(known)
    if window is None:
        return ReadFailure("unreadable", "the response contains no limit; check whether the key has a coding plan")
    level = inner.get("level")
    return believed(window, now, level=level if isinstance(level, str) else None, limits=limits)


def limit_of(written: Mapping[str, Any]) -> Limit:
    """One entry of `limits`. Only the reset of the token limit matters; others are for statistics."""
    kind = str(written.get("type"))
    unit, number = number_of(written.get("unit")), number_of(written.get("number"))
    return Limit(
        kind,
        number_of(written.get("percentage")),
        instant_of(written.get("nextResetTime")) if kind == "TOKENS_LIMIT" else None,
        None if unit is None else int(unit),
        None if number is None else int(number),
        number_of(written.get("usage")),
        number_of(written.get("currentValue")),
    )


def local_text(at: Instant, zone: Any) -> str:
    """The local time without an offset, as the statistics API expects."""
    return datetime.fromtimestamp(at / 1000, zone).strftime("%Y-%m-%d %H:%M:%S")


def _said(data: Mapping[str, Any]) -> str:
    said = data.get("msg") or data.get("message") or "no reason given"
    return " ".join(str(said).split())[:300]


def _shown(at: Instant) -> str:
    try:
        return format_instant(at)
    except Invalid:
        return f"{at} ms after 1970"
