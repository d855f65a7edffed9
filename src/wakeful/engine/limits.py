"""The engine's limits, and what each is for."""

from dataclasses import dataclass

from wakeful.core.time.instants import HOUR, MINUTE, SECOND, Duration


@dataclass(frozen=True, slots=True)
class Limits:
    """Capacity limits and time limits."""

    concurrency_max: int = 64
    lease: Duration = 30 * SECOND
    renew_every: Duration = 10 * SECOND
    sleep_max: Duration = MINUTE  # a wake-up is only a hint, and clocks jump: tick at least this often
    shutdown_grace: Duration = 30 * SECOND
    ending_grace: Duration = 15 * SECOND  # for cancelled attempts, on top of the action's own kill timeout
    store_grace: Duration = 10 * SECOND  # at shutdown, for a slow store
    poll: Duration | None = None  # how often to check whether another process wrote; None: no other process can
    ledger_days: int = 90
    labels: frozenset[str] = frozenset()  # of this node; schedules with `runOn` need one of them
    prune_every: Duration = HOUR  # how often to delete what is past the ledger's retention


def manual_max(concurrency_max: int) -> int:
    """How many of the concurrent runs may be manual: a quarter of the capacity is kept for what schedules start, so
    that people and programs that start many runs do not delay them. A capacity of one cannot be divided."""
    return concurrency_max - max(concurrency_max // 4, 1) if concurrency_max > 1 else concurrency_max


# How soon to try again what the store or a tick refused.
TRY_AGAIN: Duration = SECOND
# Due runs are not rung while there is no capacity for them, so that a burst costs one write each instead of two;
# but never so long that a delay caused by our own queue could count as a misfire.
HELD_BACK_MAX: Duration = 30 * SECOND
# What is on time is held back only this long while older runs wait.
TURN_NEEDS_ROW: Duration = 1
RING_BATCH = 200
DEFERRED_MIN: Duration = SECOND
# A wall clock that went back by more than this was wrong before: plan again. Smaller steps are ignored.
STEP_BACK_MIN: Duration = MINUTE
# If wall and monotonic time diverge by more than this between two ticks, the clock jumped or the machine slept.
JUMP_MIN: Duration = 2 * SECOND
