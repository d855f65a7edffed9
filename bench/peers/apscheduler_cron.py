"""The next time of a cron expression: APScheduler's trigger, each from the previous one."""

import argparse
import time
from datetime import UTC, datetime, timedelta

from apscheduler.triggers.cron import CronTrigger

from bench.expressions import START, ZONE, emit_rate


def walk(expression: str, count: int) -> float:
    trigger = CronTrigger.from_crontab(expression, timezone=ZONE)
    step = timedelta(microseconds=1)
    at = datetime.fromtimestamp(START, UTC)
    began = time.perf_counter()
    for _ in range(count):
        found = trigger.get_next_fire_time(None, at)
        if found is None:
            raise RuntimeError(f"{expression} came to an end")
        at = found + step
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, required=True)
    emit_rate(walk, parser.parse_args().count)


if __name__ == "__main__":
    main()
