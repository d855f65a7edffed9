"""kill -9 at each durable step: before a commit, when all of it was written, and after it, before anybody was answered.

Every commit the engine makes has its name here; each is died at, the node is started again, and the ledger checker must
have nothing to say (L1, L2, L6, L7).
"""

import pytest

from faults.kit import Field, now, overdue, steady

SCHEDULES = 6


@pytest.mark.parametrize(
    ("operation", "point"),
    [
        ("claim", "after"),
        ("settle", "before"),
        *(
            pytest.param(*death, marks=pytest.mark.torture)
            for death in (
                ("enter", "before"),
                ("enter", "after"),
                ("claim", "before"),
                ("claim", "held"),
                ("settle", "held"),
                ("settle", "after"),
                ("renew", "before"),
                ("renew", "after"),
            )
        ),
    ],
)
def test_a_death_at_a_commit_costs_at_most_one_attempt(field: Field, operation: str, point: str) -> None:
    """The third commit of its kind, or the first where there is only one."""
    field.put(steady(SCHEDULES))
    number = 1 if operation == "enter" else 3
    doomed = field.start(is_ready=False, die=f"{operation}:{point}:{number}", takes=0.1)
    field.died(doomed)
    before = field.closed()
    node = field.start()
    field.until_closed(before + 3 * SCHEDULES)
    field.stop(node)
    verdict = field.audit()
    assert verdict.is_clean, verdict.in_words()
    assert verdict.runs >= before + 3 * SCHEDULES
    rows = field.look(lambda tx: tx.runs.page(limit=10_000))
    assert max(row.attempt for row in rows) <= 2
    assert max(row.crashes for row in rows) <= 1


def test_a_death_at_a_mark_is_no_green(field: Field) -> None:
    """`onCrash: unknown` records that a call began before it begins: died there, nobody says that it ran."""
    field.put(steady(3, on_crash="unknown"))
    doomed = field.start(is_ready=False, die="mark:after:2")
    field.died(doomed)
    node = field.start()
    field.until_closed(12)
    field.stop(node)
    verdict = field.audit()
    assert verdict.is_clean, verdict.in_words()
    rows = field.look(lambda tx: tx.runs.page(limit=10_000))
    assert "unknown" in {row.outcome for row in rows}
    assert {row.attempt for row in rows if row.outcome == "unknown"} == {1}


@pytest.mark.parametrize("schedules", [500, pytest.param(1_000, marks=pytest.mark.torture)])
def test_overdue_schedules_and_five_crashes(field: Field, schedules: int) -> None:
    """A node that dies five times in its first moments neither storms nor repeats: one run each, few attempts.

    There are enough schedules that each start has several commits to die at."""
    field.put(overdue(schedules, at=now() + 3_000))
    field.until(lambda: now() > field.look(lambda tx: tx.cadences.lock([1])[1].next_at or 0) + 100)
    for crash, die in enumerate(
        ["claim:after:2", "settle:before:2", "claim:before:3", "settle:after:2", "claim:after:3"]
    ):
        field.died(field.start(is_ready=False, die=die, takes=0.05 + crash / 100))
    node = field.start()
    field.until_closed(schedules, within=120)
    field.stop(node)
    verdict = field.audit()
    assert verdict.is_clean, verdict.in_words()
    assert verdict.runs == verdict.instants == schedules
    rows = field.look(lambda tx: tx.runs.page(limit=10_000))
    assert max(row.attempt for row in rows) <= 2
    assert {row.outcome for row in rows} <= {"succeeded", "unknown"}
    assert all(row.attempt == 2 for row in rows if row.outcome == "unknown"), "only a second crash is given up"
