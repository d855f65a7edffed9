"""kill -9 while thousands of instants are due on one file: none is lost, none runs twice by mistake (L1, L2, L5)."""

import random

import pytest

from faults.kit import Field, now
from wakeful.core.schedule.actions import Call
from wakeful.core.schedule.definition import Definition
from wakeful.core.time.instants import DAY, Instant
from wakeful.core.time.timing import Every, Once

LANES = 32


def _definition(n: int, at: Instant) -> Definition:
    """A third are daily, a third run once, and a third share lanes."""
    lane = f"lane{n % LANES}" if n % 3 == 0 else None
    timing = Every(DAY, at) if n % 3 == 1 else Once(at)
    slug = f"s{n}" if lane is None else f"{lane}-{n}"
    return Definition(slug, timing, Call("target", {}), lane=lane, errors_max=0)


@pytest.mark.timeout(1_800)
@pytest.mark.parametrize(
    ("instants", "deaths"), [(300, 2), pytest.param(10_000, 12, marks=pytest.mark.torture)], ids=["short", "long"]
)
def test_a_node_killed_among_many_due_instants(field: Field, instants: int, deaths: int) -> None:
    """Whatever it was doing: claiming, passing a lane on, settling. The next start goes on with the rest."""
    dice = random.Random(18)
    at = now() + 10_000 + instants  # still ahead when a slow machine has written all of them
    field.put([_definition(n, at) for n in range(instants)])
    node = field.start(takes=0.01)
    for death in range(deaths):
        field.until_closed(instants * (death + 1) // (deaths + 2) + dice.randrange(20), within=600)
        field.kill(node)
        node = field.start(takes=0.01)
    field.until_closed(instants, within=600)
    field.stop(node)
    verdict = field.audit()
    assert verdict.is_clean, verdict.in_words()
    assert verdict.runs == verdict.instants == instants
    rows = field.look(lambda tx: tx.runs.page(limit=100_000))
    assert max(row.attempt for row in rows) <= 2
    assert {row.outcome for row in rows} <= {"succeeded", "unknown"}
    assert all(row.attempt == 2 for row in rows if row.outcome == "unknown"), "only a second crash is given up"
    assert field.look(lambda tx: tx.lanes.holders()) == {}
