"""Conformance: the plain path on random stores writes what the rules decide, run by run."""

import random
from collections.abc import Sequence
from typing import Any, Final

import pytest

from conformance.rows import NOW, MakeStore, a_batch, a_cadence, put_cadences, run_alarm, schedule_alarm
from sampling import sampled
from wakeful.core.run.runs import Run
from wakeful.core.run.transitions import closed
from wakeful.core.schedule.cadence import Cadence
from wakeful.core.schedule.plain import SUCCESS
from wakeful.ports.changes import RunsStarted, RunsSucceeded, SchedulesDone
from wakeful.ports.claims import Batch, Claim
from wakeful.ports.store import Tx

GROUPS: Final = 16
CASES: Final = 100
SCHEDULES: Final = 120
"""At most, in one case: more than one statement writes together."""
NODE, OTHER_NODE = 1, 99
BEGAN, ENDED = NOW + 5, NOW + 9

# What may have happened to a run since its claim, and to its schedule.
_TO_RUNS: Final[tuple[dict[str, Any], ...]] = (
    {"fence": 2},
    {"ladder": "{}"},
    {"process": "{}"},
    {"definition": "{}"},
    {"outcome": "waiting", "owner": None},
    {"owner": OTHER_NODE},
)
_TO_CADENCES: Final[tuple[dict[str, Any], ...]] = (
    {"state": "paused"},
    {"open_run_id": None},
    {"queued_run_id": 9_999},
    {"backoff_until": 1},
    {"catch_up_until": 1},
    {"consecutive_errors": 1},
    {"trouble": 1},
    {"next_at": None},
    {"next_at": NOW + 77},
    {"version": 2},
    {"ran_through": NOW * 2},
)


class _Undo(Exception):
    """Ends a case: nothing of it is kept."""


class TestPlainPathOnRandomStores:
    """Every row is compared with what the rules make of it, also the rows that the plain path must leave alone."""

    @pytest.mark.parametrize("group", sampled(range(GROUPS), every=GROUPS))
    async def test_what_is_written_is_what_the_rules_decide(self, make_store: MakeStore, group: int) -> None:
        """Some of the runs and schedules changed between claim and settlement; some wait for a lane."""
        store = await make_store()
        rng = random.Random(group)
        seen = {"settled": 0, "left": 0}
        for _ in range(CASES):
            state = rng.getstate()

            def case(tx: Tx, state: Any = state) -> None:
                rng.setstate(state)  # an operation may be tried again
                _check(tx, rng, seen)
                raise _Undo

            with pytest.raises(_Undo):
                await store.write(case)
        assert min(seen.values()) > CASES, "a path was hardly taken"


def _check(tx: Tx, rng: random.Random, seen: dict[str, int]) -> None:
    cadences = _put(tx, rng)
    batches = _start(tx, rng, cadences)
    claims = [claim for batch in batches for claim in batch.claims]
    moved = {
        claim.schedule_id: _moved(cadences, claim) for batch in batches for claim in (*batch.claims, *batch.waiting)
    }
    _compare(tx, moved, [claim.run for claim in claims])
    alarms = tx.alarms.by_refs("schedule", sorted(cadences))
    assert {ref: alarm.due_at for ref, alarm in alarms.items()} == {key: row.next_at for key, row in moved.items()}
    if not claims:
        return
    ended = rng.sample(claims, rng.randint(1, len(claims)))
    _meddle(tx, rng, ended)
    before = tx.cadences.lock(sorted(cadences)), tx.runs.lock([claim.run_id for claim in claims])
    results = {claim.run_id: f'{{"output": "{claim.run_id} \'ü\'"}}' for claim in ended if rng.random() < 0.3}
    expected = {claim.run_id: _settled(claim, *before, results.get(claim.run_id)) for claim in ended}
    wanted = {run_id: pair for run_id, pair in expected.items() if pair is not None}
    tx.changes.clear()
    assert tx.plain.settle(NODE, ended, now=ENDED, results=results) == set(wanted)
    after = {cadence.schedule_id: cadence for _, cadence in wanted.values()}
    _compare(tx, before[0] | after, [*(before[1] | {run_id: row for run_id, (row, _) in wanted.items()}).values()])
    done = {row.run_id for row, cadence in wanted.values() if cadence.state == "done"}
    assert _told(tx) == {kind: ids for kind, ids in ((SchedulesDone, done), (RunsSucceeded, set(wanted))) if ids}
    seen["settled"] += len(wanted)
    seen["left"] += len(ended) - len(wanted)


def _told(tx: Tx) -> dict[type[Any], set[int]]:
    """The runs of each change that was recorded."""
    return {
        type(change): {claim.run_id for claim in change.claims}
        for change in tx.changes
        if isinstance(change, RunsStarted | RunsSucceeded | SchedulesDone)
    }


def _put(tx: Tx, rng: random.Random) -> dict[int, Cadence]:
    """Clear cadences whose alarms are due."""
    number = rng.choice((1, 2, 7, 8, 9, 50, 51, SCHEDULES))
    rows = [
        a_cadence(
            schedule_id,
            next_at=NOW,
            planned_through=NOW - 10,
            ran_through=NOW - 10,
            last_outcome=rng.choice((None, "failed", "succeeded")),
            last_error=rng.choice((None, "x")),
        )
        for schedule_id in range(1, number + 1)
    ]
    put_cadences(tx, *rows)
    tx.alarms.set_many([schedule_alarm(row.schedule_id) for row in rows])
    tx.runs.reserve_ids(rng.randrange(1, 1000))
    return {row.schedule_id: row for row in rows}


def _start(tx: Tx, rng: random.Random, cadences: dict[int, Cadence]) -> list[Batch]:
    """Start a run of each, in batches that were decided alike; some wait for a lane."""
    order = sorted(cadences)
    rng.shuffle(order)
    batches: list[Batch] = []
    while order:
        size = rng.choice((1, 3, 8, 30, 200))
        of_batch, order = order[:size], order[size:]
        next_at = rng.choice((None, NOW + 60_000))
        batch = a_batch(
            *zip(tx.runs.reserve_ids(len(of_batch)), of_batch, strict=True),
            next_at=next_at,
            next_due_at=next_at,
            timeout=rng.choice((1_000, 7_200_000)),
            version=rng.choice((1, 3)),
            rung=rng.choice(("claimed", "started")),
            lane=rng.choice((None, "a")),
            claimed_at=BEGAN,
            node_id=NODE,
        )
        has_lanes, has_timeouts = rng.random() < 0.3, rng.random() < 0.3
        for claim in batch.claims:
            claim.lane = rng.choice((None, "b", "c")) if has_lanes else claim.lane
            claim.timeout = rng.randrange(1_000, 9_000) if has_timeouts else claim.timeout
        if rng.random() < 0.3:
            batch.put_apart({claim.run_id for claim in batch.claims if rng.random() < 0.5})
        batches.append(batch)
    tx.changes.clear()
    tx.plain.start(batches)
    started = {claim.run_id for batch in batches for claim in batch.claims}
    assert _told(tx) == ({RunsStarted: started} if started else {})
    return batches


def _moved(cadences: dict[int, Cadence], claim: Claim) -> Cadence:
    batch, run_id = claim.batch, claim.run_id
    return cadences[claim.schedule_id]._replace(
        planned_through=batch.planned_at, next_at=batch.next_at, open_run_id=run_id, last_row_id=run_id
    )


def _meddle(tx: Tx, rng: random.Random, ended: Sequence[Claim]) -> None:
    """Something else happens to some of these runs and to their schedules, or to a run that it has no right to."""
    if rng.random() < 0.4:
        return
    for run in rng.sample(ended, min(len(ended), rng.choice((1, 1, 2, len(ended))))):
        if rng.random() < 0.5:
            row = tx.runs.lock([run.run_id])[run.run_id]
            tx.runs.save_many([row._replace(**rng.choice(_TO_RUNS))])
        else:
            cadence = tx.cadences.lock([run.schedule_id])[run.schedule_id]
            change = rng.choice((*_TO_CADENCES, {"open_run_id": rng.choice(ended).run_id}))
            tx.cadences.save_many([cadence._replace(**change)])
    if rng.random() < 0.2:
        tx.alarms.set_many([run_alarm(ended[0].run_id, None)])  # has no say in it


def _settled(
    claim: Claim, cadences: dict[int, Cadence], runs: dict[int, Run], result: str | None
) -> tuple[Run, Cadence] | None:
    """The rows after the success of a run; None: the plain path leaves it alone."""
    row, cadence = runs[claim.run_id], cadences[claim.schedule_id]
    is_held = row.outcome == "running" and row.owner == NODE and row.fence == claim.batch.fence
    is_untouched = row.ladder is None and row.process is None and row.definition is None
    is_in_order = (
        cadence.state == "active"
        and cadence.open_run_id == claim.run_id
        and (cadence.queued_run_id, cadence.backoff_until, cadence.catch_up_until) == (None, None, None)
        and (cadence.consecutive_errors, cadence.trouble) == (0, 0)
        and cadence.ran_through <= cadence.planned_through
    )
    if not (is_held and is_untouched and is_in_order):
        return None
    after = cadence._replace(
        open_run_id=None,
        last_error=None,
        last_outcome="succeeded",
        last_run_at=row.started_at,
        last_success_at=ENDED,
    )
    if cadence.next_at is None:
        after = after._replace(state="done", state_reason=None, state_at=ENDED)
    return closed(row, SUCCESS, now=ENDED, result=result), after


def _compare(tx: Tx, cadences: dict[int, Cadence], runs: Sequence[Run]) -> None:
    assert tx.cadences.lock(sorted(cadences)) == cadences
    assert tx.runs.lock([run.run_id for run in runs]) == {run.run_id: run for run in runs}
