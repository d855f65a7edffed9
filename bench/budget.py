"""As many as asked for, as far as the time goes: a slow disk must not stretch a run without end."""

import time
from collections.abc import Iterator


def within(count: int, seconds: float) -> Iterator[int]:
    """1, 2, 3 and so on to the count or to the end of the time, whichever comes first."""
    began = time.perf_counter()
    number = 0
    while number < count and time.perf_counter() - began < seconds:
        number += 1
        yield number
