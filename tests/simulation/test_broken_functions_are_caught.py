"""Boots that have not loaded the functions of a workflow: each protection is taken away once, and within a few worlds
the judge must say that a node claimed a run it has no function for."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from sampling import sampled
from simulation.breaking import caught, is_sound
from wakeful.core.time.instants import DAY, HOUR
from wakeful.features.workflows.functions import Functions
from worlds.faults import Climate
from worlds.workflows import FLOW

Patch = pytest.MonkeyPatch
SEEDS = range(6)

ELSEWHERE = Climate(
    days=2, outages_per_day=6, steps_per_day=1, freezes_per_day=1, deeds_per_day=60, crash_per_commit=0.02,
    outage_max=DAY // 8, schedules=2, pace=HOUR, inhabitants=frozenset({"workflows", "functions"}),
)  # fmt: skip
SHARED = replace(ELSEWHERE, nodes=2)


def runs_are_claimed_without_functions(patch: Patch) -> None:
    """A run that was rescued is claimed by whoever ticks."""
    patch.setattr(Functions, "has", lambda *_: True)


def workflows_ring_without_functions(patch: Patch) -> None:
    """Every process takes every workflow for its own."""
    patch.setattr(Functions, "has", lambda *_: True)
    patch.setattr(Functions, "names", [FLOW])


@pytest.mark.parametrize(
    ("sabotage", "climate"),
    sampled(
        [
            pytest.param(workflows_ring_without_functions, ELSEWHERE, id="rings"),
            pytest.param(runs_are_claimed_without_functions, ELSEWHERE, id="claims"),
            pytest.param(workflows_ring_without_functions, SHARED, id="rings on two nodes"),
            pytest.param(runs_are_claimed_without_functions, SHARED, id="claims on two nodes"),
        ],
        every=4,
        offset=0,
    ),
)
def test_a_run_without_its_function_is_caught(
    sabotage: Callable[[Patch], None], climate: Climate, monkeypatch: Patch, tmp_path: Path
) -> None:
    """Within a few worlds."""
    found = caught(sabotage, climate, tmp_path, SEEDS, monkeypatch)
    assert found is not None, f"six worlds, and nothing was found: {sabotage.__doc__}"
    assert "  L9 functions" in found, found


@pytest.mark.parametrize("climate", [ELSEWHERE, SHARED], ids=["one node", "two nodes"])
def test_the_worlds_are_sound_before_they_are_broken(climate: Climate, tmp_path: Path) -> None:
    """Every message is handled in the end, by a boot that has the functions."""
    assert is_sound(climate, tmp_path, [0, 1])
