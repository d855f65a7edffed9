"""How long the machine was suspended: what CLOCK_BOOTTIME counts and CLOCK_MONOTONIC does not."""

import time
from typing import Final

_BOOTTIME: Final[int | None] = getattr(time, "CLOCK_BOOTTIME", None)


def slept_ms(monotonic_ns: int) -> int:
    """In all since it was booted, in milliseconds; 0 where the system does not tell (macOS)."""
    return 0 if _BOOTTIME is None else max(time.clock_gettime_ns(_BOOTTIME) - monotonic_ns, 0) // 1_000_000
