"""The law of resources is worth as much as it would find: each protection is taken away once, and within a few worlds
the judge must say that it was broken."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sampling import sampled
from simulation.breaking import caught, is_sound
from wakeful.core.run import resources, settlement
from wakeful.core.run.results import Failed
from wakeful.core.run.settlement import Wait
from wakeful.core.time.instants import DAY, HOUR
from wakeful.engine.running import Runner
from worlds.faults import Climate

Patch = pytest.MonkeyPatch
SEEDS = 12
CROWDED = Climate(
    days=3, outages_per_day=1, steps_per_day=0, wrong_clocks_per_day=0, deeds_per_day=3, crash_per_commit=0.005,
    outage_max=DAY // 8, schedules=10, pace=HOUR, shortages=0.3,
)  # fmt: skip


def a_refusal_is_a_failure(patch: Patch) -> None:
    """As it was: the run fails with the error of the system."""
    patch.setattr(Runner, "_not_begun", lambda _self, _run, error: Failed(error))


def a_refusal_is_an_attempt(patch: Patch) -> None:
    """It waits, and is counted."""
    not_begun = settlement.not_begun

    def counted(*given: Any, **more: Any) -> Any:
        made = not_begun(*given, **more)
        return made._replace(is_attempt=True) if isinstance(made, Wait) else made

    patch.setattr(settlement, "not_begun", counted)


def nobody_waits(patch: Patch) -> None:
    """It fails as soon as another run has begun."""
    patch.setattr(resources, "GIVE_UP_AFTER", 0)


def a_refusal_is_an_error_in_a_row(patch: Patch) -> None:
    """It brings the schedule closer to being disabled."""
    after = settlement.after_failed_attempt

    def counted(cadence: Any, rules: Any, policy: Any, run: Any, wait: Wait) -> Any:
        moved, effects = after(cadence, rules, policy, run, wait)
        is_refused = wait.reason == resources.RESOURCES
        return moved._replace(consecutive_errors=moved.consecutive_errors + is_refused), effects

    patch.setattr(settlement, "after_failed_attempt", counted)


@pytest.mark.parametrize(
    "sabotage",
    sampled([a_refusal_is_a_failure, a_refusal_is_an_attempt, nobody_waits, a_refusal_is_an_error_in_a_row], every=2),
)
def test_a_broken_protection_is_caught(sabotage: Callable[[Patch], None], monkeypatch: Patch, tmp_path: Path) -> None:
    """By the law of resources, within a dozen worlds."""
    found = caught(sabotage, CROWDED, tmp_path, range(SEEDS), monkeypatch)
    assert found is not None, f"a dozen worlds, and nothing was noticed: {sabotage.__doc__}"
    assert "  L8" in found, found


def test_the_worlds_are_sound_before_they_are_broken(tmp_path: Path) -> None:
    """Otherwise it would be no wonder that something is found."""
    assert is_sound(CROWDED, tmp_path, [0, 1])
