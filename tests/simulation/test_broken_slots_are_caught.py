"""Slots that are disabled: each protection is taken away once, and within a few worlds the judge must say which law was
broken."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sampling import sampled
from simulation.breaking import caught, is_sound
from wakeful.core.slot import wakes as slot_wakes
from wakeful.core.time.instants import DAY
from wakeful.features.quota import queries
from wakeful.features.quota.commands import Commands
from wakeful.features.quota.waking import WakeAction
from worlds.faults import Climate

Patch = pytest.MonkeyPatch
SEEDS = range(12)

KEYS = Climate(
    days=2, outages_per_day=1, steps_per_day=1, freezes_per_day=1, deeds_per_day=60, crash_per_commit=0.01,
    outage_max=DAY // 8, schedules=2, pace=DAY, inhabitants=frozenset({"slots"}),
)  # fmt: skip
CALM = replace(KEYS, outages_per_day=0, steps_per_day=0, freezes_per_day=0, crash_per_commit=0)


def wakes_are_sent_after_all(patch: Patch) -> None:
    """The reading before a wake disables the slot, and the wake is sent: its run is left alone."""
    patch.setattr(Commands, "drop_wake", lambda self, tx, slot, *_: slot)
    note = WakeAction._note

    def go_on(self: WakeAction, *given: Any) -> bool:
        note(self, *given)
        return True

    patch.setattr(WakeAction, "_note", go_on)


def wakes_stay_pending(patch: Patch) -> None:
    """What is not confirmed when the slot is disabled stays pending."""
    patch.setattr(slot_wakes, "let_go", lambda slot: slot)


def wakes_go_out_unrecorded(patch: Patch) -> None:
    """A wake is sent before the ledger says so."""
    perform = WakeAction.perform

    async def unrecorded(self: WakeAction, spec: Any, fire: Any, _: Any) -> Any:
        return await perform(self, spec, fire, _Unheard())

    patch.setattr(WakeAction, "perform", unrecorded)


def wakes_in_a_window_are_shown(patch: Patch) -> None:
    """The next time of a wake mode is shown as the next wake, although a window will be open then."""
    patch.setattr(queries, "next_wake", lambda _tx, slot, rules, *, now: slot_wakes.wake_due_at(slot, rules))


class _Unheard:
    async def climb(self, *_: Any, **__: Any) -> None:
        """Says that it was recorded."""


@pytest.mark.parametrize(
    ("sabotage", "law", "climate"),
    sampled(
        [
            pytest.param(wakes_are_sent_after_all, "L2 slot", CALM, id="sent after it was disabled"),
            pytest.param(wakes_stay_pending, "L8 slot", CALM, id="pending after it was disabled"),
            pytest.param(wakes_go_out_unrecorded, "L2 slot", KEYS, id="sent before it is recorded"),
            pytest.param(wakes_in_a_window_are_shown, "L1 slot", CALM, id="shown and not sent"),
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


@pytest.mark.parametrize("climate", sampled([CALM, KEYS], every=2))
def test_the_worlds_are_sound_before_they_are_broken(climate: Climate, tmp_path: Path) -> None:
    """Otherwise it would be no wonder that something is found."""
    assert is_sound(climate, tmp_path, SEEDS[:2])
