"""APScheduler 3: startup on a full store, and the cost of being idle on it."""

import time

BEGAN = time.perf_counter()

import argparse  # noqa: E402 - the start includes every import

from bench.idle import Idleness  # noqa: E402
from bench.lines import emit  # noqa: E402
from bench.peers.apscheduler_setup import make_scheduler  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--store", required=True)
    parser.add_argument("--jobs", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    options = parser.parse_args()
    scheduler = make_scheduler(options.store, "threads")
    scheduler.start()
    emit("start", time.perf_counter() - BEGAN, jobs=options.jobs)
    time.sleep(1)
    idleness = Idleness()
    time.sleep(options.seconds)
    idleness.emit(options.jobs)
    scheduler.shutdown()


if __name__ == "__main__":
    main()
