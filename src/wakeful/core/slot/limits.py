"""Which of a provider's limits matters for a slot.

A coding plan has a rolling token window (`TOKENS_LIMIT`, five hours) and monthly counts of tool calls (`TIME_LIMIT`).
Only the token window can be warm or cold: its reset is present while the window runs, and missing once there were no
requests for a while. The reset of a month has no such meaning, so without a token limit the first limit supplies a
percentage and no reset.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from wakeful.core.time.instants import DAY, HOUR, MINUTE, SECOND, Duration, Instant

TOKENS: Final = "TOKENS_LIMIT"
RESET_AHEAD_MAX: Final[Duration] = 32 * DAY
"""A window that ends later than this is not plausible: no plan has one, and waiting for it would never end."""

# How providers number the units of a limit's length; months vary in length and only matter for statistics.
_UNITS: Final[dict[int, Duration]] = {1: SECOND, 2: MINUTE, 3: HOUR, 4: DAY, 6: 7 * DAY}


class Limit(NamedTuple):
    """One limit as reported by a provider; any field may be missing."""

    kind: str
    percentage: float | None = None
    reset_at: Instant | None = None
    unit: int | None = None
    number: int | None = None
    total: float | None = None
    used: float | None = None


class Window(NamedTuple):
    """What is known about the window that matters."""

    percentage: float | None
    reset_at: Instant | None  # None: cold
    length: Duration | None = None


def pick(limits: Sequence[Limit]) -> Window | None:
    """The token window; without one, only the percentage of the first limit; None if there is no limit."""
    chosen = next((limit for limit in limits if limit.kind == TOKENS), None)
    if chosen is not None:
        return Window(_percentage(chosen), chosen.reset_at, _length(chosen))
    return Window(_percentage(limits[0]), None) if limits else None


def is_plausible(reset_at: Instant | None, now: Instant) -> bool:
    """Whether a window may end at this time. A reset long ago is plausible: the window is cold."""
    return reset_at is None or 0 < reset_at <= now + RESET_AHEAD_MAX


def _percentage(limit: Limit) -> float | None:
    if limit.percentage is not None or not limit.total or limit.used is None:
        return limit.percentage
    return round(100 * limit.used / limit.total, 2)


def _length(limit: Limit) -> Duration | None:
    unit = _UNITS.get(limit.unit or 0)
    return None if unit is None or not limit.number or limit.number < 0 else unit * limit.number
