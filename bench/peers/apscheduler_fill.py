"""An APScheduler 3 store with many jobs of which none is due for days.

Written straight into its table, in the very form its own `add_job` writes: one by one it would take many minutes.
"""

import argparse
import pickle
from datetime import UTC, datetime, timedelta
from typing import Any

from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.util import datetime_to_utc_timestamp

from bench.peers.apscheduler_setup import DEFAULTS, job_store

CHUNK = 10_000


def nothing() -> None:
    raise RuntimeError("nothing was due")


def fill(store: str, count: int) -> None:
    scheduler = BackgroundScheduler(job_defaults=DEFAULTS, timezone="UTC")
    scheduler.start(paused=True)
    target = job_store(store)
    target.start(scheduler, "default")
    due = datetime.now(UTC) + timedelta(days=1)
    for start in range(0, count, CHUNK):
        rows = [_row(scheduler, f"idle-{i}", due) for i in range(start, min(start + CHUNK, count))]
        with target.engine.begin() as connection:
            connection.execute(target.jobs_t.insert(), rows)
        scheduler.remove_all_jobs()
    scheduler.shutdown()


def _row(scheduler: BackgroundScheduler, name: str, due: datetime) -> dict[str, Any]:
    job = scheduler.add_job("bench.peers.apscheduler_fill:nothing", "interval", hours=24, id=name, next_run_time=due)
    return {
        "id": name,
        "next_run_time": datetime_to_utc_timestamp(due),
        "job_state": pickle.dumps(job.__getstate__(), pickle.HIGHEST_PROTOCOL),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--store", required=True)
    parser.add_argument("--jobs", type=int, required=True)
    options = parser.parse_args()
    fill(options.store, options.jobs)


if __name__ == "__main__":
    main()
