"""Reports of trouble: each protection is taken away once, and within a few worlds the judge must notice it."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sampling import sampled
from simulation.breaking import caught, is_sound
from wakeful.core.delivery import incidents as core_incidents
from wakeful.core.delivery.alert_rules import AlertRule
from wakeful.core.delivery.incidents import Incident, Step, reported
from wakeful.core.time.instants import HOUR, MINUTE
from wakeful.engine.incident_rows import Incidents
from wakeful.features.delivery import incident_watch as watching
from wakeful.features.delivery.incidents import IncidentReporter
from wakeful.ports.outbox import ALARM_INCIDENT
from wakeful.ports.store import Tx
from worlds.faults import Climate

Patch = pytest.MonkeyPatch
SEEDS = 6

TROUBLED = Climate(
    days=2, outages_per_day=1, steps_per_day=1, deeds_per_day=4, crash_per_commit=0.005, outage_max=HOUR,
    schedules=8, pace=20 * MINUTE, inhabitants=frozenset({"outbox"}),
)  # fmt: skip
RARE = replace(TROUBLED, days=10, pace=6 * HOUR)
WRONG_CLOCKS = replace(TROUBLED, wrong_clocks_per_day=6, steps_per_day=4, outages_per_day=0)


def no_alarm_for_what_is_watched(patch: Patch) -> None:
    """The first bad instant sets no alarm: one that stays bad for `within` is reported with the next one only."""
    put = watching.put

    def unwatched(tx: Tx, before: Incident, step: Step) -> None:
        put(tx, before, step)
        after = step.incident
        if after is not None and after.stage == "watched":
            row = tx[Incidents].lock_open([after.name])[after.name]
            tx.alarms.remove_many(ALARM_INCIDENT, [row.incident_id])

    patch.setattr(watching, "put", unwatched)


def errors_are_not_counted(patch: Patch) -> None:
    """However many instants are bad in a row, only the time decides."""
    after_bad = core_incidents.after_bad

    def uncounted(incident: Incident, rule: AlertRule, **options: Any) -> Step:
        return after_bad(incident, replace(rule, errors=10**6), **{**options, "is_urgent": False})

    patch.setattr(watching, "after_bad", uncounted)


def opened_and_not_reported(patch: Patch) -> None:
    """An incident opens, and when its alarm rings nothing is said."""

    def silent(_: watching.IncidentLooks, tx: Tx, name: str, **__: Any) -> None:
        for row in tx[Incidents].lock_open([name]).values():
            watching.put(tx, row, Step(row._replace(look_at=None)))

    patch.setattr(watching.IncidentLooks, "_report", silent)


def reported_and_nobody_told(patch: Patch) -> None:
    """The row says that people were told, and no message was queued."""
    patch.setattr(IncidentReporter, "tell", lambda *_, **__: None)


def reported_again_and_again(patch: Patch) -> None:
    """What was reported is reported again at every look."""

    def again(incident: Incident, text: str, now: int) -> Incident:
        return reported(incident, text, now)._replace(look_at=now + 10 * MINUTE)

    patch.setattr(watching, "reported", again)
    patch.setattr(watching, "is_to_be_reported", lambda incident, now: incident.look_at is not None)


def instants_ahead_of_the_clock_are_waited_for(patch: Patch) -> None:
    """An instant that was claimed on a clock that came back is reported when its own time comes, in years maybe."""
    after_bad = core_incidents.after_bad

    def waited_for(incident: Incident, rule: AlertRule, *, instant: int, now: int, **options: Any) -> Step:
        step = after_bad(incident, rule, instant=instant, now=now, **options)
        after = step.incident
        if after is None or after.look_at is None or after.stage != "watched" or instant <= now:
            return step
        return Step(after._replace(look_at=instant + rule.within))

    patch.setattr(watching, "after_bad", waited_for)


def alarms_of_a_clock_that_was_ahead(patch: Patch) -> None:
    """A clock that comes back leaves reports waiting for the time it said."""
    patch.setattr(watching.IncidentLooks, "clamp", lambda _, __, row, **___: row)


FIRST_SEEDS: dict[Callable[[Patch], None], int] = {
    alarms_of_a_clock_that_was_ahead: 10,
    errors_are_not_counted: 4,
    instants_ahead_of_the_clock_are_waited_for: 8,
}
"""Where the first seeds hold: one whose world finds it soon."""


@pytest.mark.parametrize("climate", sampled([TROUBLED, RARE, WRONG_CLOCKS], every=3, offset=1))
def test_the_worlds_are_sound_before_they_are_broken(climate: Climate, tmp_path: Path) -> None:
    """Else what is found below would prove nothing."""
    assert is_sound(climate, tmp_path, [0])


@pytest.mark.parametrize(
    ("sabotage", "law", "climate"),
    sampled(
        [
            pytest.param(no_alarm_for_what_is_watched, "L9", RARE, id="no alarm for what is watched"),
            pytest.param(errors_are_not_counted, "L9", TROUBLED, id="errors not counted"),
            pytest.param(opened_and_not_reported, "L9", TROUBLED, id="opened, not reported"),
            pytest.param(reported_and_nobody_told, "L8", TROUBLED, id="reported, nobody told"),
            pytest.param(reported_again_and_again, "L4", TROUBLED, id="reported again and again"),
            pytest.param(instants_ahead_of_the_clock_are_waited_for, "L9", WRONG_CLOCKS, id="ahead of the clock"),
            pytest.param(alarms_of_a_clock_that_was_ahead, "L9", WRONG_CLOCKS, id="left to a clock that was ahead"),
        ],
        every=7,
        offset=1,
    ),
)
def test_a_broken_report_is_caught_and_named(
    sabotage: Callable[[Patch], None], law: str, climate: Climate, monkeypatch: Patch, tmp_path: Path
) -> None:
    """Within a few seeds, and by its number."""
    first_seed = FIRST_SEEDS.get(sabotage, 0)
    found = caught(sabotage, climate, tmp_path, range(first_seed, first_seed + SEEDS), monkeypatch)
    assert found is not None, f"a few worlds, and nothing was noticed: {sabotage.__doc__}"
    assert f"  {law} " in found, found
