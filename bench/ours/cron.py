"""The next time of a cron expression, repeatedly, each from the previous one."""

import argparse
import time

from bench.expressions import START, ZONE, emit_rate
from wakeful.core.time.timing import Cron, next_after


def walk(expression: str, count: int) -> float:
    timing = Cron(expression, ZONE)
    at = START * 1000
    began = time.perf_counter()
    for _ in range(count):
        following = next_after(timing, at)
        if following is None:
            raise RuntimeError(f"{expression} came to an end")
        at = following
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, required=True)
    emit_rate(walk, parser.parse_args().count)


if __name__ == "__main__":
    main()
