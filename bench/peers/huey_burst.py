"""Huey: registrations, then a burst of tasks due at the same instant.

Tasks are put into its schedule, due at once, before the consumer starts. Each is moved from the schedule to the queue,
taken from there, and leaves a result row. There is no way to add in bulk.
"""

import argparse
import time
from datetime import UTC, datetime

from bench.calls import ThreadCalls
from bench.lines import emit
from bench.peers.huey_setup import make_consumer, make_huey
from bench.peers.registering import register


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--store", required=True)
    parser.add_argument("--measure", default="fires")
    parser.add_argument("--workers", type=int, required=True)
    parser.add_argument("--fires", type=int, required=True)
    parser.add_argument("--callers", type=int, default=1, help="register from that many threads")
    parser.add_argument("--seconds", type=float, required=True, help="register no longer than this")
    options = parser.parse_args()
    huey = make_huey(options.store)

    @huey.task()
    def note() -> bool:
        calls.note()
        return True

    due_at = datetime.now(UTC)

    def add(_: int) -> None:
        # `note.schedule` would put it into the queue, for a worker to move it into the schedule: one write more.
        huey.add_schedule(note.s(eta=due_at))

    count = register(add, options.fires, options.seconds, options.callers)
    calls = ThreadCalls(count)
    consumer = make_consumer(huey, options.workers)
    due = time.perf_counter()
    consumer.start()
    calls.wait(120)
    while huey.result_count() < count:
        time.sleep(0.001)
    emit(options.measure, count / (time.perf_counter() - due), count=count)
    consumer.stop(graceful=True)


if __name__ == "__main__":
    main()
