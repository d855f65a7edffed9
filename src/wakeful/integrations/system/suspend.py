"""How long the machine was suspended: the difference between CLOCK_BOOTTIME and CLOCK_MONOTONIC."""

import time
from typing import Final

_BOOTTIME: Final[int | None] = getattr(time, "CLOCK_BOOTTIME", None)


def slept_ms(monotonic_ns: int) -> int:
    """The total since boot, in milliseconds; 0 where the system does not provide it (macOS)."""
    return 0 if _BOOTTIME is None else max(time.clock_gettime_ns(_BOOTTIME) - monotonic_ns, 0) // 1_000_000
