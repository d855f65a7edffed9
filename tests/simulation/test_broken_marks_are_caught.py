"""Deliveries whose claim is lost: the protection is taken away once, and within a few worlds the judge must say so."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from sampling import sampled
from simulation.breaking import caught, is_sound
from wakeful.core.time.instants import DAY
from wakeful.ports.outbox import Deliveries, Delivery
from worlds.faults import Climate

Patch = pytest.MonkeyPatch
SEEDS = range(12)

POST = Climate(
    days=2, outages_per_day=3, steps_per_day=1, deeds_per_day=80, crash_per_commit=0.05, outage_max=DAY // 8,
    schedules=2, pace=DAY, inhabitants=frozenset({"outbox"}),
)  # fmt: skip
CRASHING = replace(POST, crash_per_commit=0.2)


def claims_count_as_attempts(patch: Patch) -> None:
    """An attempt is counted when the delivery is claimed, and the mark counts nothing."""
    save = Deliveries.save

    def counting(self: Deliveries, row: Delivery) -> None:
        before = self.get(row.delivery_id)
        assert before is not None
        if row.unsent_claims > before.unsent_claims:
            row = row._replace(attempts=row.attempts + 1)
        elif row.unsent_claims < before.unsent_claims and row.attempts > before.attempts:
            row = row._replace(attempts=before.attempts)
        save(self, row)

    patch.setattr(Deliveries, "save", counting)


@pytest.mark.parametrize(
    ("sabotage", "law", "climate"),
    sampled([pytest.param(claims_count_as_attempts, "L7 outbox", CRASHING, id="claims count as attempts")], every=1),
)
def test_a_broken_law_is_caught_and_named(
    sabotage: Callable[[Patch], None], law: str, climate: Climate, monkeypatch: Patch, tmp_path: Path
) -> None:
    """Within a dozen worlds, and by its number."""
    found = caught(sabotage, climate, tmp_path, SEEDS, monkeypatch)
    assert found is not None, f"a dozen worlds, and nothing was noticed: {sabotage.__doc__}"
    assert f"  {law}" in found, found


@pytest.mark.parametrize("climate", sampled([POST, CRASHING], every=2))
def test_the_worlds_are_sound_before_they_are_broken(climate: Climate, tmp_path: Path) -> None:
    """Otherwise it would be no wonder that something is found."""
    assert is_sound(climate, tmp_path, SEEDS[:2])
