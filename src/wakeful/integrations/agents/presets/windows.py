"""Figures of usage windows, as programs report them; implausible ones are left out."""

import math
from typing import Final

from wakeful.core.time.instants import SECOND, Instant

_PERCENTAGE_MAX: Final = 1_000.0
_SECONDS_MAX: Final = 10**11  # the year 5138


def percentage_of(value: object, *, times: float = 1.0) -> float | None:
    """A percentage, if it is plausible."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    share = value * times
    return round(share, 2) if 0 <= share <= _PERCENTAGE_MAX else None


def instant_of(value: object) -> Instant | None:
    """Seconds since 1970 as an instant."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < _SECONDS_MAX:
        return None
    return value * SECOND
