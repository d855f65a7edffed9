"""Huey: how late tasks are called, 50 at a time, once a second. Each task carries the time it was due.

Huey looks at its schedule once a second, so what is measured is mostly where in that second a task is due. The runner
gives each repeat another phase, and the median is that of a task due at any time.
"""

import argparse
import time
from datetime import UTC, datetime, timedelta

from bench.peers.huey_setup import make_consumer, make_huey
from bench.samples import emit_lateness


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--store", required=True)
    parser.add_argument("--workers", type=int, required=True)
    parser.add_argument("--jobs", type=int, required=True)
    parser.add_argument("--seconds", type=int, required=True)
    parser.add_argument(
        "--phase", type=float, default=0.5, help="how long before the first are due the consumer starts"
    )
    options = parser.parse_args()
    huey = make_huey(options.store)
    late: list[float] = []

    @huey.task()
    def note(due: float) -> bool:
        late.append(time.time() - due)
        return True

    # Registering takes its time: the first second is due when all are there.
    first = datetime.now(UTC) + timedelta(seconds=2 + options.jobs * options.seconds / 200)
    for i in range(options.seconds):
        due = first + timedelta(seconds=i)
        for _ in range(options.jobs):
            huey.add_schedule(note.s(due.timestamp(), eta=due))
    left = (first - datetime.now(UTC)).total_seconds()
    if left < 1:
        raise RuntimeError("it took too long to register them")
    time.sleep(left - options.phase)
    consumer = make_consumer(huey, options.workers)
    consumer.start()
    time.sleep(options.phase + options.seconds + 1.5)
    consumer.stop(graceful=True)
    if len(late) != options.jobs * options.seconds:
        raise RuntimeError(f"only {len(late)} tasks were called")
    emit_lateness("lateness", late)


if __name__ == "__main__":
    main()
