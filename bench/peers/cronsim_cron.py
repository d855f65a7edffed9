"""The next time of a cron expression: cronsim, iterating."""

import argparse
import time
from datetime import datetime
from zoneinfo import ZoneInfo

from cronsim import CronSim

from bench.expressions import START, ZONE, emit_rate


def walk(expression: str, count: int) -> float:
    steps = CronSim(expression, datetime.fromtimestamp(START, ZoneInfo(ZONE)))
    began = time.perf_counter()
    for _ in range(count):
        next(steps)
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, required=True)
    emit_rate(walk, parser.parse_args().count)


if __name__ == "__main__":
    main()
