"""Huey: startup with a full schedule, and the cost of being idle."""

import time

BEGAN = time.perf_counter()

import argparse  # noqa: E402 - the start includes every import

from bench.idle import Idleness  # noqa: E402
from bench.lines import emit  # noqa: E402
from bench.peers.huey_setup import make_consumer, make_huey  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--store", required=True)
    parser.add_argument("--workers", type=int, required=True)
    parser.add_argument("--jobs", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    options = parser.parse_args()
    huey = make_huey(options.store)
    if huey.scheduled_count() != options.jobs:
        raise RuntimeError("the schedule is not full")
    consumer = make_consumer(huey, options.workers)
    consumer.start()
    emit("start", time.perf_counter() - BEGAN, jobs=options.jobs)
    time.sleep(1)
    idleness = Idleness()
    time.sleep(options.seconds)
    idleness.emit(options.jobs)
    consumer.stop(graceful=True)


if __name__ == "__main__":
    main()
