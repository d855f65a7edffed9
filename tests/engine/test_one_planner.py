"""One writer of decisions: gaps are written, extended and voided in one place each, whatever is planned."""

from typing import Final

import pytest

from callers import callers

CALLERS: Final = {
    # The ledger rows of gaps, and what extends them.
    "core.schedule.cadence.stretch_of": {"engine.planning._row"},
    "engine.planning._row": {"engine.planning._with_rows", "engine.planning.add_gaps"},
    "engine.planning.add_gaps": {
        "features.workflows.alarms._runs",
        "features.workflows.settling._count_jumped",
        "features.workflows.commands._after_pause",
        "features.quota.wakes.record_gaps",
    },
    "engine.planning.extend": {"engine.planning.record", "features.quota.wakes.record_gaps"},
    # The plan rows of a ring, and the alarms that follow from them.
    "cadences.save_planned": {"engine.planning.record"},
    # A clock that went back: the plan starts from now, and what lies ahead is voided.
    "core.schedule.cadence.turn_back": {"engine.planning.turned_back"},
    "engine.planning.void_ahead": {
        "features.schedules.alarms._void_gaps",
        "features.heartbeat.alarms._void_gaps",
        "features.workflows.clock_steps._void_gaps",
        "features.quota.wakes._void_rows",
    },
    "runs.remove_many": {"engine.planning.void_ahead", "engine.settling.conclude_all"},
    "engine.planning.turned_back": {
        "features.schedules.alarms.ScheduleAlarms.turn_back",
        "features.heartbeat.alarms.HeartbeatAlarms.turn_back",
    },
    "core.time.timing.anchor_behind": {
        "features.schedules.anchoring.anchored_behind",
        "features.heartbeat.alarms._anchored_behind",
    },
    # What ran ahead of such a clock: when it is decided, and when it is shown.
    "runs.taken": {
        "engine.planning.taken_ahead",
        "engine.planning.turned_back",
        "features.schedules.upcoming.ran_ahead",
    },
}
"""What may be called from where: functions by their module, methods by the name of what they are called on."""


@pytest.mark.parametrize("called", CALLERS)
def test_decisions_are_written_in_one_place(called: str) -> None:
    """A second one would be a second planner, with rules of its own."""
    assert callers()[called] == CALLERS[called]
