"""What people are told: each protection is taken away once, and within a few worlds the judge must notice it."""

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sampling import sampled
from simulation.breaking import caught, is_sound
from wakeful.core.schedule.cadence import due_at
from wakeful.core.time.instants import HOUR, MINUTE
from wakeful.features.schedules import run_views, runs, views
from worlds import performers, world
from worlds.faults import Behaviour, Climate, draw_behaviour, draw_definition

Patch = pytest.MonkeyPatch
SEEDS = 6

BUSY = Climate(
    days=1, outages_per_day=1, steps_per_day=2, deeds_per_day=20, crash_per_commit=0.005, outage_max=HOUR,
    schedules=30, pace=20 * MINUTE,
)  # fmt: skip


def nothing_is_too_late(patch: Patch) -> None:
    """A run that waited for its lane begins, whatever `maxLateness` says."""
    patch.setattr(runs, "begins_too_late", lambda *_: False)


def only_the_last_attempt_is_shown(patch: Patch) -> None:
    """A run is shown as having got as far as its last attempt did."""
    patch.setattr(run_views, "reached_by", lambda run, earlier: run.rung)


def the_alarm_is_shown_as_the_next_run(patch: Patch) -> None:
    """Whatever waits, is excluded, or ran before the clock was set back."""
    patch.setattr(views, "first_start", lambda schedule, cadence, compiled, *_, **__: due_at(cadence, compiled.rules))


@pytest.fixture
def queues(monkeypatch: Patch) -> None:
    """Most attempts take minutes, and many schedules share a lane and may not be late."""

    def slow(rng: random.Random) -> Behaviour:
        behaviour = draw_behaviour(rng)
        return behaviour._replace(takes=behaviour.takes + rng.randrange(10) * MINUTE)

    def strict(rng: random.Random, **options: Any) -> dict[str, Any]:
        written = draw_definition(rng, **options)
        return written if rng.random() < 0.5 else {**written, "lane": "x", "maxLateness": "1m", "timeout": "2h"}

    monkeypatch.setattr(performers, "draw_behaviour", slow)
    monkeypatch.setattr(world, "draw_definition", strict)


@pytest.mark.usefixtures("queues")
@pytest.mark.parametrize("climate", sampled([BUSY, replace(BUSY, nodes=2)], every=2))
def test_the_worlds_are_sound_before_they_are_broken(climate: Climate, tmp_path: Path) -> None:
    """Else what is found below would prove nothing."""
    assert is_sound(climate, tmp_path, [0])


@pytest.mark.usefixtures("queues")
@pytest.mark.parametrize(
    ("sabotage", "law", "climate"),
    sampled(
        [
            pytest.param(nothing_is_too_late, "L4", BUSY, id="nothing is too late"),
            pytest.param(only_the_last_attempt_is_shown, "L8", BUSY, id="only the last attempt is shown"),
            pytest.param(the_alarm_is_shown_as_the_next_run, "L1", BUSY, id="the alarm is shown as the next run"),
        ],
        every=3,
    ),
)
def test_a_broken_word_is_caught_and_named(
    sabotage: Callable[[Patch], None], law: str, climate: Climate, monkeypatch: Patch, tmp_path: Path
) -> None:
    """Within a few seeds, and by its number."""
    found = caught(sabotage, climate, tmp_path, range(SEEDS), monkeypatch)
    assert found is not None, f"a few worlds, and nothing was noticed: {sabotage.__doc__}"
    assert f"  {law} " in found, found
