"""How much is measured: enough for stable figures, or enough for a run of less than three minutes."""

from dataclasses import dataclass
from typing import Final

REPEATS_STEADY: Final = 5


@dataclass(frozen=True, slots=True)
class Sizes:
    """Counts and times. Peers get as many jobs as they process in about the same time as Wakeful."""

    process_seconds: float  # a process that takes longer is killed
    repeats: int
    register_seconds: float  # how long a peer registers jobs, at most
    fires: int
    fires_postgres: int
    singles: int
    singles_postgres: int
    fires_apscheduler: int
    fires_huey: int
    fires_procrastinate: int
    fires_in_lanes: int
    fires_in_shared_lanes: int
    lateness_repeats: int
    lateness_seconds: int
    idle_jobs: int
    idle_jobs_peers: int
    idle_seconds: int
    idle_seconds_peers: int
    rest_seconds: float  # for each kind of request
    ledger_rows: tuple[int, ...]
    messages: int
    idle_workflows: int
    simulated_fires: int
    cron_steps: int
    cron_repeats: int

    @property
    def note(self) -> str:
        """A note for readers of the table."""
        full = f"{self.idle_jobs:,} schedules (peers: {self.idle_jobs_peers:,} jobs)"
        look = "" if self.repeats >= REPEATS_STEADY else "Quick run: few and short repeats, not for comparing runs. "
        return f"{look}Idle, memory and start are measured with {full}."


FULL: Final = Sizes(
    process_seconds=600,
    repeats=5,
    register_seconds=10.0,
    fires=50_000,
    fires_postgres=20_000,
    singles=20_000,
    singles_postgres=10_000,
    fires_apscheduler=2_000,
    fires_huey=4_000,
    fires_procrastinate=1_500,
    fires_in_lanes=10_000,
    fires_in_shared_lanes=2_000,
    lateness_repeats=3,
    lateness_seconds=10,
    idle_jobs=1_000_000,
    idle_jobs_peers=100_000,
    idle_seconds=20,
    idle_seconds_peers=20,
    rest_seconds=10,
    ledger_rows=(10_000, 100_000, 1_000_000, 5_000_000),
    messages=40_000,
    idle_workflows=10_000,
    simulated_fires=100_000,
    cron_steps=20_000,
    cron_repeats=3,
)

QUICK: Final = Sizes(
    process_seconds=45,
    repeats=2,
    register_seconds=0.4,
    fires=5_000,
    fires_postgres=2_000,
    singles=3_000,
    singles_postgres=1_000,
    fires_apscheduler=250,
    fires_huey=400,
    fires_procrastinate=100,
    fires_in_lanes=1_500,
    fires_in_shared_lanes=1_000,
    lateness_repeats=1,
    lateness_seconds=2,
    idle_jobs=50_000,
    idle_jobs_peers=5_000,
    idle_seconds=4,
    idle_seconds_peers=2,
    rest_seconds=1.5,
    ledger_rows=(10_000, 100_000),
    messages=10_000,
    idle_workflows=10_000,
    simulated_fires=30_000,
    cron_steps=2_000,
    cron_repeats=1,
)
