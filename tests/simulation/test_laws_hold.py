"""Ten thousand days of mixed schedules, with every trouble there is: all laws hold after every commit and every tick.

A failure names its seed and the command that replays it, with everything that happened, in order.
"""

import pytest

from worlds.population import EVERYBODY
from worlds.replay import climate_of, simulate

SEEDS = range(45)
DAYS_MIN = 10_000


def test_the_seeds_below_are_ten_thousand_days() -> None:
    """The number is part of the promise."""
    assert sum(climate_of(seed)[0].days for seed in SEEDS) >= DAYS_MIN


def test_everybody_lives_in_some_of_them() -> None:
    """And in one of them all live together."""
    worlds = [climate_of(seed)[0].inhabitants for seed in SEEDS]
    assert frozenset().union(*worlds) == EVERYBODY
    assert EVERYBODY in worlds


@pytest.mark.parametrize("seed", SEEDS)
def test_all_laws_hold(seed: int) -> None:
    """One world, from its first boot to its last day."""
    report = simulate(seed)
    assert report.attempts > 0, "a world in which nothing runs proves nothing"
    assert report.commits > 0


@pytest.mark.parametrize("seed", [0, 3, 5, 7, 13])
def test_a_world_is_replayed_by_the_command_that_a_failure_prints(seed: int) -> None:
    """It names days, nodes and inhabitants: with what the seed had chosen anyway, it is the same world."""
    climate, limits = climate_of(seed)
    assert climate_of(seed, days=climate.days, nodes=climate.nodes, inhabitants=climate.inhabitants) == (
        climate,
        limits,
    )


@pytest.mark.parametrize("seed", [3, 5])
def test_a_world_is_a_function_of_its_seed(seed: int) -> None:
    """What happens in two runs of one seed is the same, to the millisecond."""

    def trace() -> list[str]:
        told: list[str] = []
        simulate(seed, days=2, say=told.append)
        return told

    first = trace()
    assert len(first) > 50
    assert first == trace()


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(1_000, 1_400))
def test_all_laws_hold_for_many_more_seeds(seed: int) -> None:
    """A hundred thousand days and more."""
    simulate(seed)
