"""Random worlds of mixed schedules, with every trouble there is: all laws hold after every commit and every tick.

`make test` runs a few short ones; `make torture` runs ten thousand days, and many more seeds.
A failure names its seed and the command that replays it, with everything that happened, in order.
"""

import pytest

from sampling import sampled
from worlds.plain_law import SETTLED, STARTED, WITH_REPLY, WITH_RESULT
from worlds.population import EVERYBODY
from worlds.replay import climate_of, simulate

SHORT_WORLDS: dict[int, float] = {13: 0.05, 5: 0.2, 51: 0.1, 111: 0.05, 16: 30}
"""Days by seed. Together: every kind of world, every inhabitant, and one, two and three nodes."""
MANY_DUE: dict[int, float] = {13: 0.1, 29: 0.05, 5: 0.3, 0: 20, 16: 30}
"""Days by seed of worlds in which many schedules are due together."""
SEEDS = range(45)
DAYS_MIN = 10_000


@pytest.mark.parametrize("seeds", [SEEDS, SHORT_WORLDS], ids=["all", "short"])
def test_everybody_lives_in_some_of_them(seeds: range | dict[int, float]) -> None:
    """And in one of them all live together; they are of one, two and three nodes."""
    worlds = [climate_of(seed)[0] for seed in seeds]
    inhabitants = [world.inhabitants for world in worlds]
    assert frozenset().union(*inhabitants) == EVERYBODY
    assert EVERYBODY in inhabitants
    assert {world.nodes for world in worlds} == {1, 2, 3}


def test_all_seeds_together_are_ten_thousand_days() -> None:
    """The number is part of the promise."""
    assert sum(climate_of(seed)[0].days for seed in SEEDS) >= DAYS_MIN


@pytest.mark.parametrize(("seed", "days"), SHORT_WORLDS.items())
def test_all_laws_hold_in_short_worlds(seed: int, days: float) -> None:
    """One world, from its first boot to its last day."""
    _assert_laws_hold(seed, days)


@pytest.mark.torture
@pytest.mark.parametrize("seed", SEEDS)
def test_all_laws_hold(seed: int) -> None:
    """Ten thousand days."""
    _assert_laws_hold(seed)


def _assert_laws_hold(seed: int, days: float | None = None) -> None:
    report = simulate(seed, days=days)
    assert report.attempts > 0, "a world in which nothing runs proves nothing"
    assert report.commits > 0


@pytest.mark.parametrize(("seed", "days"), MANY_DUE.items())
def test_all_laws_hold_where_many_are_due_together(seed: int, days: float) -> None:
    """Their runs start and are settled in batches: a world in which they never are proves nothing about it."""
    report = simulate(seed, days=days, has_alike=True)
    assert report.outside[STARTED] > 0
    assert report.outside[SETTLED] > 0


def test_batches_with_results_are_settled_in_some_of_them() -> None:
    """What is stored of a run is its own."""
    assert simulate(16, days=30, has_alike=True).outside[WITH_RESULT] > 0


def test_batches_with_replies_are_settled_in_some_of_them() -> None:
    """Where the output of each run is delivered."""
    with_outbox = frozenset({"outbox"})
    assert simulate(4, days=4, nodes=1, inhabitants=with_outbox, has_alike=True).outside[WITH_REPLY] > 0


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(2_000, 2_060))
def test_all_laws_hold_where_many_are_due_together_for_more_seeds(seed: int) -> None:
    """Batches are not counted here: in some of these worlds only a few runs have room at a time."""
    simulate(seed, days=min(climate_of(seed)[0].days, 20), has_alike=True)


@pytest.mark.parametrize("seed", [0, 3, 5, 7, 13])
def test_a_world_is_replayed_by_the_command_that_a_failure_prints(seed: int) -> None:
    """It names days, nodes and inhabitants: with what the seed had chosen anyway, it is the same world."""
    climate, limits = climate_of(seed)
    assert climate_of(seed, days=climate.days, nodes=climate.nodes, inhabitants=climate.inhabitants) == (
        climate,
        limits,
    )


@pytest.mark.parametrize(("seed", "days"), sampled([(23, 0.05), (23, 0.2), (3, 0.2), (5, 0.2)], every=4))
def test_a_world_is_a_function_of_its_seed(seed: int, days: float) -> None:
    """What happens in two runs of one seed is the same, to the millisecond."""

    def trace() -> list[str]:
        told: list[str] = []
        simulate(seed, days=days, say=told.append)
        return told

    first = trace()
    assert len(first) > 50
    assert first == trace()


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(1_000, 1_400))
def test_all_laws_hold_for_many_more_seeds(seed: int) -> None:
    """A hundred thousand days and more."""
    simulate(seed)
