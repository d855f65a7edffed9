"""APScheduler 3: how late jobs are called, 50 at a time, once a second. Each job carries the time it was due."""

import argparse
import time
from datetime import UTC, datetime, timedelta

from bench.peers.apscheduler_setup import make_scheduler
from bench.samples import emit_lateness

late: list[float] = []


def note(due: float) -> None:
    late.append(time.time() - due)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--store", required=True)
    parser.add_argument("--jobs", type=int, required=True)
    parser.add_argument("--seconds", type=int, required=True)
    parser.add_argument("--phase", type=float, default=0.0, help="it sleeps until a job is due: no phase to choose")
    options = parser.parse_args()
    scheduler = make_scheduler(options.store, "threads")
    scheduler.start(paused=True)
    # Registering takes its time: the first second is due when all are there.
    first = datetime.now(UTC) + timedelta(seconds=1 + options.jobs * options.seconds / 100)
    rounds = [first + timedelta(seconds=i) for i in range(options.seconds)]
    for due in rounds:
        for _ in range(options.jobs):
            scheduler.add_job(note, "date", run_date=due, args=(due.timestamp(),))
    if datetime.now(UTC) >= rounds[0]:
        raise RuntimeError("it took too long to register them")
    scheduler.resume()
    time.sleep((rounds[-1] - datetime.now(UTC)).total_seconds() + 1.5)
    scheduler.shutdown()
    if len(late) != options.jobs * options.seconds:
        raise RuntimeError(f"only {len(late)} jobs were called")
    emit_lateness("lateness", late)


if __name__ == "__main__":
    main()
