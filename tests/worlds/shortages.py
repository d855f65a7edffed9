"""Shortages: a machine has no descriptors, memory or processes left for a run, for a while."""

import random
from typing import Final

from wakeful.core.time.instants import HOUR, MINUTE, SECOND, Duration

LENGTHS: Final[tuple[Duration, ...]] = (SECOND, 20 * SECOND, 10 * MINUTE, 50 * MINUTE, 3 * HOUR)


class Shortages:
    """Which runs find no room, and until when. `share`: how many of them."""

    def __init__(self, rng: random.Random, share: float) -> None:
        self._rng = rng
        self._share = share
        self._until: dict[int, int] = {}  # true time, by run

    def refuses(self, run_id: int, true_time: int) -> bool:
        if not self._share:
            return False
        if run_id not in self._until:
            is_short = self._rng.random() < self._share
            self._until[run_id] = true_time + self._rng.choice(LENGTHS) if is_short else 0
        return true_time < self._until[run_id]
