"""A count limited by time, so that a slow disk does not make a run endless."""

import time
from collections.abc import Iterator


def within(count: int, seconds: float) -> Iterator[int]:
    """Yield 1, 2, 3 and so on until the count or the time limit is reached."""
    began = time.perf_counter()
    number = 0
    while number < count and time.perf_counter() - began < seconds:
        number += 1
        yield number
