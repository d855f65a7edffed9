"""Agents that schedule themselves, and jobs that are taken over from another scheduler: each protection is taken away
once, and within a few worlds the judge must say which law was broken."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sampling import sampled
from simulation.breaking import caught, is_sound
from wakeful.core.self_scheduling import limits
from wakeful.core.time.instants import DAY, HOUR
from wakeful.features.moving.handover import Handovers, next_handover_at
from wakeful.features.moving.handover_rows import Handover
from wakeful.features.schedules import owned
from worlds import scheduling
from worlds.faults import Climate

Patch = pytest.MonkeyPatch
Sabotage = Callable[[Patch], None]
SEEDS = 12

MOVING = Climate(
    days=1, outages_per_day=2, freezes_per_day=4, deeds_per_day=20, crash_per_commit=0.08, outage_max=HOUR,
    schedules=2, lease=HOUR, pace=DAY, inhabitants=frozenset({"source"}),
)  # fmt: skip
CRASHING = replace(MOVING, crash_per_commit=0.3)
AGENTS = Climate(
    days=3, outages_per_day=1, deeds_per_day=60, crash_per_commit=0.005, outage_max=HOUR, schedules=2, pace=HOUR,
    inhabitants=frozenset({"agents"}),
)  # fmt: skip


def a_slow_switch_is_not_noticed(patch: Patch) -> None:
    """What the source ran while it was being switched off runs here too."""
    patch.setattr(Handovers, "_after_switching", lambda self, row: row)


def a_failed_switch_is_forgotten(patch: Patch) -> None:
    """It went off, the answer was lost, and the handover begins again as if it were on."""
    save = Handovers._save

    async def forget(self: Handovers, row: Handover) -> Handover:
        if row.problem is not None and row.stage == "switching":
            hand_at = next_handover_at(self._clock.read().now)
            row = row._replace(stage="written", hand_at=hand_at, off_at=None, problem=None)
        return await save(self, row)

    patch.setattr(Handovers, "_save", forget)


def nothing_is_continued(patch: Patch) -> None:
    """A restart leaves the journal as it is."""

    async def start(self: Handovers) -> None: ...

    patch.setattr(Handovers, "start", start)


def nobody_looks_at_the_source(patch: Patch) -> None:
    """It counts as off."""

    async def is_off(self: Handovers, row: Handover) -> bool:
        return True

    patch.setattr(Handovers, "_is_off", is_off)


def nothing_is_asked(patch: Patch) -> None:
    """No person is asked."""
    patch.setattr(limits, "needs_approval", lambda *_: False)


def any_number(patch: Patch) -> None:
    """An agent has as many schedules as it likes."""
    patch.setattr(limits, "check_number", lambda *_: None)


def any_depth(patch: Patch) -> None:
    """A chain does not end."""
    patch.setattr(limits, "check_depth", lambda *_: None)


def any_wakes(patch: Patch) -> None:
    """An agent wakes itself as often as it likes."""
    patch.setattr(limits, "check_wakes", lambda *_: None)


def removals_are_forgotten(patch: Patch) -> None:
    """What a person removed is created again."""
    patch.setattr(owned, "needs_person", lambda *_, **__: False)


def no_namespaces(patch: Patch) -> None:
    """A name is what it says, whoever says it, and owners are not compared."""
    patch.setattr(scheduling, "owned_slug", lambda agent, slug: slug)
    patch.setattr(owned, "find", lambda tx, agent, slug: tx.schedules.by_slugs([slug]).get(slug))


CASES: list[Any] = [
    pytest.param(a_slow_switch_is_not_noticed, "L2 m", MOVING, id="a slow switch"),
    pytest.param(a_failed_switch_is_forgotten, "L1 m", MOVING, id="a failed switch"),
    pytest.param(nothing_is_continued, "L1 m", CRASHING, id="not continued"),
    pytest.param(nobody_looks_at_the_source, "L2 m", MOVING, id="the source still on"),
    pytest.param(nothing_is_asked, "S1 ", AGENTS, id="nothing is asked"),
    pytest.param(removals_are_forgotten, "S2 ", AGENTS, id="removals are forgotten"),
    pytest.param(any_number, "S3 ", AGENTS, id="any number"),
    pytest.param(any_wakes, "S3 ", AGENTS, id="any wakes"),
    pytest.param(any_depth, "S4 ", AGENTS, id="any depth"),
    pytest.param(no_namespaces, "S5 ", AGENTS, id="no namespaces"),
]


FIRST_SEEDS: dict[Sabotage, int] = {a_slow_switch_is_not_noticed: 8, nothing_is_continued: 42}
"""Where the first seeds hold: one whose world finds it soon."""


@pytest.mark.parametrize(("sabotage", "law", "climate"), sampled(CASES, every=5))
def test_a_broken_law_is_caught_and_named(
    sabotage: Sabotage, law: str, climate: Climate, monkeypatch: Patch, tmp_path: Path
) -> None:
    """Within a dozen worlds, by its name and by whose it is."""
    first_seed = FIRST_SEEDS.get(sabotage, 0)
    found = caught(sabotage, climate, tmp_path, range(first_seed, first_seed + SEEDS), monkeypatch)
    assert found is not None, f"a dozen worlds, and nobody noticed: {sabotage.__doc__}"
    assert f"  {law}" in found, found


@pytest.mark.parametrize(
    "climate", sampled([pytest.param(MOVING, id="source"), pytest.param(AGENTS, id="agents")], every=2)
)
def test_the_worlds_are_sound_before_they_are_broken(climate: Climate, tmp_path: Path) -> None:
    """Otherwise it would be no wonder that something is found."""
    assert is_sound(climate, tmp_path, range(2))
