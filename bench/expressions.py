"""The cron expressions to measure: common ones, one affected by daylight saving, and a rare one."""

from collections.abc import Callable
from statistics import geometric_mean
from typing import Final

from bench.lines import emit

ZONE: Final = "Europe/Berlin"
START: Final = 1_767_225_600  # 2026-01-01T00:00:00Z
# Days of the week by name: APScheduler numbers them differently from everyone else.
COMMON: Final = ("*/5 * * * *", "0 9 * * mon-fri", "30 2 * * *", "15 8-18 1,15 * *")
RARE: Final = "0 0 29 2 *"
RARE_STEPS: Final = 10  # forty years, repeatedly: as many steps as for the others would go beyond the year 9999


def emit_rate(walk: Callable[[str, int], float], count: int) -> None:
    """Calls per second: the geometric mean over the common expressions, so that none outweighs the others, and the rare
    one separately. `walk` takes that many steps and returns how many seconds that took."""
    each = {expression: count / walk(expression, count) for expression in COMMON}
    emit("next cron", geometric_mean(each.values()), **each)
    rounds = count // RARE_STEPS
    emit("next cron, rare", rounds * RARE_STEPS / sum(walk(RARE, RARE_STEPS) for _ in range(rounds)), expression=RARE)
