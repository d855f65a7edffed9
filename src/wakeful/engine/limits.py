"""The engine's limits, with what each is for."""

from dataclasses import dataclass

from wakeful.core.schedule.policies import HOUR, MINUTE, SECOND
from wakeful.core.time.instants import Duration


@dataclass(frozen=True, slots=True)
class Limits:
    """How much at once, how long at most."""

    concurrency_max: int = 64
    lease: Duration = 30 * SECOND
    renew_every: Duration = 10 * SECOND
    sleep_max: Duration = MINUTE  # a wake-up is only a hint, and clocks jump: look at least this often
    shutdown_grace: Duration = 30 * SECOND
    ending_grace: Duration = 15 * SECOND  # for what was told to end, on top of the action's own patience
    store_grace: Duration = 10 * SECOND  # at shutdown, for a store that takes its time
    poll: Duration | None = None  # how often to look whether another process wrote; None: nobody else can
    ledger_days: int = 90
    prune_every: Duration = HOUR  # how often to look for what the ledger need not keep


# Runs that are due are left unrung while there is no room for them, so that a burst costs one write each and not two;
# but never so long that being late because of our own queue could count as a misfire.
HELD_BACK_MAX: Duration = 30 * SECOND
RING_BATCH = 200
DEFERRED_MIN: Duration = SECOND
# A wall clock that went back by more than this was wrong before: plan anew. Less is put up with.
STEP_BACK_MIN: Duration = MINUTE
# Wall and monotonic time that drift apart by more than this between two ticks mean a jump or a suspend.
JUMP_MIN: Duration = 2 * SECOND
