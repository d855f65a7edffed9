"""Register jobs one by one, from one thread or several."""

import threading
import time
from collections.abc import Callable

from bench.budget import within
from bench.lines import emit


def register(add: Callable[[int], object], count: int, seconds: float, callers: int) -> int:
    """Call `add` with 1, 2, 3 and so on until the count or the time is used up; tell the rate, answer how many it were.

    One caller is the calling thread itself, as a program on an event loop would do it."""
    numbers = within(count, seconds)
    lock = threading.Lock()
    added: list[int] = []

    def call() -> None:
        while True:
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            add(number)
            added.append(number)

    began = time.perf_counter()
    if callers == 1:
        call()
    else:
        threads = [threading.Thread(target=call) for _ in range(callers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    emit("registrations", len(added) / (time.perf_counter() - began), count=len(added), callers=callers)
    return len(added)
