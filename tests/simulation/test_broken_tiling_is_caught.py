"""The rows of producers and of slots tile time, also if the clock goes back, and what is shown as next is next: each
protection is taken away once, and within a few worlds the judge must say which law was broken."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sampling import sampled
from simulation.breaking import caught, is_sound
from wakeful.core.slot import wakes as slot_wakes
from wakeful.core.time.instants import DAY, HOUR, Instant
from wakeful.core.workflow.rules import WorkflowState, rings_at
from wakeful.features.quota import wakes
from wakeful.features.workflows import alarms as workflow_alarms
from wakeful.features.workflows import clock_steps, queries
from worlds.faults import Climate

Patch = pytest.MonkeyPatch
SEEDS = range(12)

FLOWS = Climate(
    days=2, outages_per_day=3, steps_per_day=6, deeds_per_day=20, crash_per_commit=0.01, outage_max=DAY // 4,
    schedules=2, pace=HOUR, inhabitants=frozenset({"workflows"}),
)  # fmt: skip
CALM_FLOWS = replace(FLOWS, steps_per_day=0, crash_per_commit=0)


def producers_repeat_themselves(patch: Patch) -> None:
    """What ran before the clock went back is planned again."""
    patch.setattr(clock_steps, "taken", lambda *_, **__: frozenset())
    patch.setattr(workflow_alarms, "taken", lambda *_, **__: frozenset())


def skipped_times_stay(patch: Patch) -> None:
    """Rows of times that did not run and lie ahead again are kept, and the times run all the same."""
    patch.setattr(clock_steps, "_void_gaps", lambda *_: None)


def missed_times_leave_no_row(patch: Patch) -> None:
    """Of several times that are due only the one that runs is written down."""
    patch.setattr(workflow_alarms, "_skipped_times", lambda *_: None)


def waiting_runs_are_not_shown(patch: Patch) -> None:
    """What a workflow does next is not known while a run of it waits for its next attempt."""

    def next_start(_tx: Any, flow: WorkflowState, _known: Any, _run: Any, _alarm: Any, now: Instant) -> Instant | None:
        rings = rings_at(flow, now)
        return None if rings is None else max(rings, now)

    patch.setattr(queries, "next_start", next_start)


KEYS = Climate(
    days=3, outages_per_day=2, steps_per_day=8, deeds_per_day=20, crash_per_commit=0.01, outage_max=DAY // 4,
    schedules=2, pace=DAY, inhabitants=frozenset({"slots"}),
)  # fmt: skip
CALM_KEYS = replace(KEYS, steps_per_day=0, outages_per_day=4, crash_per_commit=0)
# A time of day repeats itself only if the clock goes back over one whose wake was sent: that takes many steps, and few
# deeds, which keep windows running or disable the slots.
STEPPED_KEYS = replace(KEYS, steps_per_day=24, deeds_per_day=4)


def slots_repeat_themselves(patch: Patch) -> None:
    """The times of day that a wake served before the clock went back are served again."""
    patch.setattr(slot_wakes, "served_ahead", lambda _: frozenset())


def rows_of_slots_stay(patch: Patch) -> None:
    """Rows of times of day that sent nothing and lie ahead again are kept, and the times are decided all the same."""
    patch.setattr(wakes, "_void_rows", lambda _tx, slot, *_: (slot, set()))


def missed_times_of_day_leave_no_row(patch: Patch) -> None:
    """What is too late to be woken for is not written down."""
    late = slot_wakes._late_times
    patch.setattr(slot_wakes, "_late_times", lambda *given: (late(*given)[0], ()))


@pytest.mark.parametrize(
    ("sabotage", "law", "climate"),
    sampled(
        [
            pytest.param(producers_repeat_themselves, "L2 producer", FLOWS, id="producers repeat themselves"),
            pytest.param(skipped_times_stay, "L2 producer", FLOWS, id="skipped times stay"),
            pytest.param(missed_times_leave_no_row, "L1 producer", CALM_FLOWS, id="missed times leave no row"),
            pytest.param(waiting_runs_are_not_shown, "L1 workflow", CALM_FLOWS, id="waiting runs are not shown"),
            pytest.param(slots_repeat_themselves, "L2 slot:", STEPPED_KEYS, id="slots repeat themselves"),
            pytest.param(rows_of_slots_stay, "L2 slot:", KEYS, id="rows of slots stay"),
            pytest.param(missed_times_of_day_leave_no_row, "L1 slot:", CALM_KEYS, id="missed times of day, no row"),
        ],
        every=3,
    ),
)
def test_a_broken_law_is_caught_and_named(
    sabotage: Callable[[Patch], None], law: str, climate: Climate, monkeypatch: Patch, tmp_path: Path
) -> None:
    """Within a dozen worlds, and by its number."""
    found = caught(sabotage, climate, tmp_path, SEEDS, monkeypatch)
    assert found is not None, f"a dozen worlds, and nothing was noticed: {sabotage.__doc__}"
    assert f"  {law}" in found, found


@pytest.mark.parametrize("climate", sampled([FLOWS, CALM_FLOWS, KEYS, CALM_KEYS, STEPPED_KEYS], every=2))
def test_the_worlds_are_sound_before_they_are_broken(climate: Climate, tmp_path: Path) -> None:
    """Otherwise it would be no wonder that something is found."""
    assert is_sound(climate, tmp_path, SEEDS[:2])
