"""The laws of money are worth as much as they would find: each protection is taken away once, and within a few worlds
the judge must say which law was broken."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sampling import sampled
from simulation.breaking import caught, is_sound
from wakeful.core.money import charges as core_charges
from wakeful.core.money.charges import Charge
from wakeful.core.time.instants import DAY, HOUR
from wakeful.features.money import booking, reserving, spending
from wakeful.features.money.budget_rows import BudgetPeriods
from wakeful.ports.charges import Charges
from worlds.faults import Climate

Patch = pytest.MonkeyPatch
Sabotage = Callable[[Patch], None]
SEEDS = 12
PURSE = Climate(
    days=3, outages_per_day=2, steps_per_day=0.5, deeds_per_day=8, crash_per_commit=0.03, outage_max=DAY // 8,
    schedules=12, pace=HOUR, inhabitants=frozenset({"money"}),
)  # fmt: skip


LONG = replace(PURSE, days=9, schedules=24)  # an agent is silent only after three turns
WRONG_CLOCKS = replace(PURSE, wrong_clocks_per_day=2, steps_per_day=3)


def everything_fits(patch: Patch) -> None:
    """A run starts whatever was spent and reserved."""
    patch.setattr(reserving, "fit", lambda *_: "fits")


def nothing_is_reserved(patch: Patch) -> None:
    """Runs that start together do not know of each other."""
    patch.setattr(reserving, "amount_needed", lambda *_: 0)


def the_unknown_is_free(patch: Patch) -> None:
    """A report that was lost counts as nothing."""
    counted = booking._counted
    patch.setattr(booking, "_counted", lambda charge, *rest: 0 if charge.cost is None else counted(charge, *rest))


def crashes_free_money(patch: Patch) -> None:
    """What a dead node had spent is forgotten."""
    patch.setattr(booking, "never_asked", lambda *_: True)


def figures_change(patch: Patch) -> None:
    """Half of what was reported is charged."""

    def halved(charge: Charge, usage: Any, now: int) -> Charge:
        after = core_charges.settled(charge, usage, now)
        return after if after.tokens is None else after._replace(tokens=after.tokens // 2)

    patch.setattr(booking, "settled", halved)


def reservations_stay(patch: Patch) -> None:
    """What ended keeps what it had reserved."""
    patch.setattr(
        booking.Booking, "_free", lambda self, charge: self._tx[Charges].remove_attempt(charge.run_id, charge.attempt)
    )


def sums_stand_still(patch: Patch) -> None:
    """Lists show what was spent first."""
    patch.setattr(spending, "added_cost", lambda *_: 0)


def a_day_begins_with_nothing(patch: Patch) -> None:
    """A clock that comes back leaves what was spent on the days ahead."""
    patch.setattr(
        reserving, "_recount", lambda tx, _owner_ids, _zone, **given: tx[BudgetPeriods].remove_misdated(**given)
    )


def an_unset_clock_dates_what_was_spent(patch: Patch) -> None:
    """A machine that boots in 1970 dates every charge 1970."""
    patch.setattr(reserving, "kept_since", lambda _: 0)


def the_unknown_uses_up_everything(patch: Patch) -> None:
    """A report that was lost counts as everything that was left."""
    patch.setattr(booking, "with_assumption", lambda _tx, charge, _budget, **_: charge)


def silent_agents_reserve_forever(patch: Patch) -> None:
    """An agent that never reports a cost keeps others from running."""
    patch.setattr(reserving, "is_priced", lambda *_: True)


def every_agent_is_unpriced(patch: Patch) -> None:
    """An agent of known cost is outside all limits."""
    patch.setattr(reserving, "is_priced", lambda *_: False)


@pytest.mark.parametrize(
    ("sabotage", "law", "climate"),
    sampled(
        [
            pytest.param(everything_fits, "L4 money", PURSE, id="everything fits"),
            pytest.param(nothing_is_reserved, "L4 money", PURSE, id="nothing reserved"),
            pytest.param(the_unknown_is_free, "L7 money", PURSE, id="unknown is free"),
            pytest.param(crashes_free_money, "L7 money", PURSE, id="crashes free money"),
            pytest.param(figures_change, "L7 money", PURSE, id="figures change"),
            pytest.param(reservations_stay, "L7 money", PURSE, id="reservations stay"),
            pytest.param(sums_stand_still, "L7 money", PURSE, id="sums stand still"),
            pytest.param(the_unknown_uses_up_everything, "L4 unknown cost", PURSE, id="unknown uses up"),
            pytest.param(silent_agents_reserve_forever, "L4 unknown cost", LONG, id="silent agents"),
            pytest.param(every_agent_is_unpriced, "L4 unknown cost", PURSE, id="all unpriced"),
            pytest.param(a_day_begins_with_nothing, "L7 money", WRONG_CLOCKS, id="clock came back"),
            pytest.param(an_unset_clock_dates_what_was_spent, "L7 money", WRONG_CLOCKS, id="clock not set"),
        ],
        every=12,
    ),
)
def test_a_broken_protection_is_caught(
    sabotage: Sabotage, law: str, climate: Climate, monkeypatch: Patch, tmp_path: Path
) -> None:
    """By a law of money, within a dozen worlds."""
    found = caught(sabotage, climate, tmp_path, range(SEEDS), monkeypatch)
    assert found is not None, f"a dozen worlds, and nobody noticed: {sabotage.__doc__}"
    assert f"  {law}" in found, found


@pytest.mark.parametrize("climate", sampled([PURSE, WRONG_CLOCKS], every=2))
def test_the_worlds_are_sound_before_they_are_broken(climate: Climate, tmp_path: Path) -> None:
    """Otherwise it would be no wonder that something is found."""
    assert is_sound(climate, tmp_path, [0])
