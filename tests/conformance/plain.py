"""Conformance: the plain path, which claims and settles what needs no decision."""

from typing import Any

import pytest

from conformance.rows import (
    NOW,
    MakeStore,
    a_batch,
    a_cadence,
    a_claim,
    a_node,
    a_run,
    put_cadences,
    put_runs,
    run_alarm,
    running,
    schedule_alarm,
)
from wakeful.core.run.runs import Run
from wakeful.core.schedule.cadence import Cadence
from wakeful.core.schedule.plain import is_clear
from wakeful.ports.claims import Claim
from wakeful.ports.plain import DueSchedule
from wakeful.ports.store import Store, Tx

# At least as many rows as one statement writes.
MANY = 50

# What makes a cadence not clear.
NOT_CLEAR: tuple[dict[str, Any], ...] = (
    {"state": "paused"},
    {"state": "disabled"},
    {"next_at": None},
    {"open_run_id": 7},
    {"queued_run_id": 7},
    {"backoff_until": NOW - 1},
    {"catch_up_until": NOW - 1},
    {"ran_through": NOW + 1},
)

# What keeps a success from being settled by the plain path, of the schedule and of the run.
NOT_IN_ORDER: tuple[dict[str, Any], ...] = (
    {"state": "paused"},
    {"open_run_id": 99},
    {"open_run_id": None},
    {"queued_run_id": 99},
    {"backoff_until": NOW + 1},
    {"catch_up_until": NOW + 1},
    {"consecutive_errors": 1},
    {"trouble": 1},
)
TOUCHED: tuple[dict[str, Any], ...] = (
    {"fence": 2},
    {"ladder": '{"accepted": 1}'},
    {"process": "{}"},
    {"definition": "{}"},
    {"outcome": "waiting", "owner": None},
    {"owner": 99},
)

# Why lanes are not passed on at once.
NOT_PASSED_ON = (
    "another run is due",
    "a run with a label waits for the lane",
    "another run holds the lane",
    "the first in line is not due",
    "the first in line does not wait",
)


class TestPlainPath:
    """Narrow statements, with the same result as the whole rows."""

    async def test_due_schedules_come_oldest_first_and_say_whether_they_are_clear(self, make_store: MakeStore) -> None:
        """Due means due by now, inclusive; inactive, parked and later ones are left out."""
        store = await make_store()
        alarms = [
            schedule_alarm(1, NOW),
            schedule_alarm(2, NOW - 5),
            schedule_alarm(3, NOW + 1),
            schedule_alarm(4, None),
            schedule_alarm(5, NOW - 9),
            schedule_alarm(6, NOW - 7, parked=1),
        ]
        rows = [a_cadence(n, version=n, next_at=NOW - n) for n in range(1, 8)]
        await store.write(lambda tx: put_cadences(tx, *rows))
        await store.write(lambda tx: tx.alarms.set_many([*alarms, run_alarm(7, NOW - 99)]))
        expected = [
            DueSchedule(5, 5, NOW - 5, NOW - 9, 1),
            DueSchedule(2, 2, NOW - 2, NOW - 5, 1),
            DueSchedule(1, 1, NOW - 1, NOW, 1),
        ]
        assert await store.write(lambda tx: tx.plain.due(now=NOW, limit=99)) == expected
        assert await store.read(lambda tx: tx.plain.due(now=NOW, limit=2)) == expected[:2]
        assert await store.read(lambda tx: tx.plain.due(now=NOW - 10, limit=2)) == []
        assert await store.write(lambda tx: tx.plain.due(now=NOW, limit=99, after=NOW - 5)) == expected[2:]
        assert await store.read(lambda tx: tx.plain.due(now=NOW, limit=1, after=NOW - 9)) == expected[1:2]

    async def test_a_cadence_with_anything_to_decide_is_not_clear(self, make_store: MakeStore) -> None:
        """Each of these alone is enough."""
        store = await make_store()
        rows = [a_cadence(1), *(a_cadence(n, **change) for n, change in enumerate(NOT_CLEAR, start=2))]
        await store.write(lambda tx: put_cadences(tx, *rows))
        await store.write(lambda tx: tx.alarms.set_many([schedule_alarm(row.schedule_id) for row in rows]))
        due = await store.read(lambda tx: tx.plain.due(now=NOW, limit=99))
        assert [(one.schedule_id, one.is_clear) for one in due] == [(1, 1)] + [
            (row.schedule_id, 0) for row in rows if row.schedule_id != 1
        ]
        assert [is_clear(row) for row in rows] == [bool(one.is_clear) for one in due]

    async def test_advancing_moves_the_cadence_and_its_alarm_and_nothing_else(self, make_store: MakeStore) -> None:
        """The run becomes the open one and the newest row."""
        store = await make_store()
        rows = [a_cadence(n, last_outcome="succeeded", session_id=f"s{n}") for n in range(1, 5)]
        await store.write(lambda tx: put_cadences(tx, *rows))
        await store.write(lambda tx: tx.alarms.set_many([schedule_alarm(n) for n in range(1, 5)]))
        batches = [
            a_batch((500 + n, n), planned_at=NOW + n, next_at=NOW + 10 * n, next_due_at=NOW + 11 * n) for n in (1, 3, 4)
        ]
        await store.write(lambda tx: tx.plain.start(batches))
        after = await store.read(lambda tx: tx.cadences.lock(range(1, 5)))
        assert after == {2: rows[1]} | {
            n: rows[n - 1]._replace(
                planned_through=NOW + n, next_at=NOW + 10 * n, open_run_id=500 + n, last_row_id=500 + n
            )
            for n in (1, 3, 4)
        }
        alarms = await store.read(lambda tx: tx.alarms.by_refs("schedule", range(1, 5)))
        assert {ref: alarm.due_at for ref, alarm in alarms.items()} == {
            1: NOW + 11, 2: NOW, 3: NOW + 33, 4: NOW + 44,
        }  # fmt: skip

    async def test_a_started_run_reads_back_whole(self, make_store: MakeStore) -> None:
        """Also one that is claimed and not yet started; an instant that has a row is refused."""
        store = await make_store()
        await store.write(lambda tx: _put_due(tx, 3))
        batches = [
            a_batch((1, 1), node_id=5, rung="started"),
            a_batch((2, 2), (3, 3), node_id=5, version=3, timeout=8, lane="a", claimed_at=NOW + 1),
        ]
        await store.write(lambda tx: tx.plain.start(batches))
        rows = [claim.run for batch in batches for claim in batch.claims]
        assert sorted(await store.read(lambda tx: tx.runs.page(limit=9))) == rows
        with pytest.raises(Exception):  # noqa: B017 - each database has its own
            await store.write(lambda tx: tx.plain.start([a_batch((4, 1))]))
        assert len(await store.read(lambda tx: tx.runs.page(limit=9))) == 3

    async def test_many_at_once_are_written_like_each_alone(self, make_store: MakeStore) -> None:
        """A burst: batches of equal decisions, and many that differ. Each row has values of its own."""
        store = await make_store()
        count = 4 * MANY + 7
        await store.write(lambda tx: _put_due(tx, count))
        before = await store.read(lambda tx: tx.cadences.lock(range(1, count + 1)))
        batches = [
            a_batch(*((n, n) for n in range(1, MANY + 1))),
            a_batch(*((n, n) for n in range(MANY + 1, 2 * MANY))),
        ]
        batches[1].next_at = batches[1].next_due_at = None
        for claim in batches[1].claims:
            claim.lane, claim.timeout = f"own{claim.run_id}" if claim.run_id % 2 else None, claim.run_id
        batches += [
            a_batch(
                (n, n), version=n, lane=f"l{n}" if n % 3 else None, timeout=n, next_at=NOW + n, next_due_at=NOW + 2 * n
            )
            for n in range(2 * MANY, count)
        ]
        batches.append(a_batch((count, count)))
        batches[0].put_apart({7})
        await store.write(lambda tx: tx.plain.start(batches))
        moved = {
            claim.schedule_id: before[claim.schedule_id]._replace(
                planned_through=NOW, next_at=batch.next_at, open_run_id=claim.run_id, last_row_id=claim.run_id
            )
            for batch in batches
            for claim in (*batch.claims, *batch.waiting)
        }
        assert await store.read(lambda tx: tx.cadences.lock(range(1, count + 1))) == moved
        alarms = await store.read(lambda tx: tx.alarms.by_refs("schedule", range(1, count + 1)))
        assert {ref: alarm.due_at for ref, alarm in alarms.items()} == {
            claim.schedule_id: batch.next_due_at for batch in batches for claim in (*batch.claims, *batch.waiting)
        }
        runs = [claim.run for batch in batches for claim in batch.claims]
        assert sorted(await store.read(lambda tx: tx.runs.page(limit=count))) == runs

    async def test_one_instant_that_has_a_row_refuses_all_of_a_burst(self, make_store: MakeStore) -> None:
        """Then nothing of it is written, and the engine claims one alarm at a time."""
        store = await make_store()
        await store.write(lambda tx: _put_due(tx, MANY))
        first = a_batch((MANY // 2, MANY // 2))
        await store.write(lambda tx: tx.plain.start([first]))
        again = a_batch(*((100 + n, n) for n in range(1, MANY + 1)))
        with pytest.raises(Exception):  # noqa: B017 - each database has its own
            await store.write(lambda tx: tx.plain.start([again]))
        assert await store.read(lambda tx: tx.runs.page(limit=9)) == [first.claims[0].run]

    async def test_a_success_closes_the_run_and_frees_the_schedule(self, make_store: MakeStore) -> None:
        """The whole rows, as the general path would write them."""
        store = await make_store()
        node_id = await _held(store, [a_cadence(1, open_run_id=1), a_cadence(2, open_run_id=2, last_error="old")])
        held = [_claimed(n, node_id) for n in (1, 2)]
        assert await store.write(lambda tx: tx.plain.settle(node_id, held, now=NOW + 5)) == {1, 2}
        assert sorted(await store.read(lambda tx: tx.runs.page(limit=9))) == [_closed(claim.run) for claim in held]
        free = {"last_run_at": NOW, "last_outcome": "succeeded", "last_success_at": NOW + 5}
        assert await store.read(lambda tx: tx.cadences.lock([1, 2])) == {n: a_cadence(n, **free) for n in (1, 2)}

    async def test_a_success_may_have_a_result(self, make_store: MakeStore) -> None:
        """Each its own; another one of the same batch has none, and a run that is left alone gets none."""
        store = await make_store()
        count = MANY + 3
        node_id = await _held(store, [a_cadence(n, open_run_id=n) for n in range(1, count + 1)])
        await store.write(lambda tx: tx.cadences.save_many([a_cadence(7, state="paused", open_run_id=7)]))
        results = {n: f'{{"output": "ü {n}, \'\\"{{}}"}}' for n in range(3, count + 1)}
        claims = [_claimed(n, node_id) for n in range(1, count + 1)]
        settled = await store.write(lambda tx: tx.plain.settle(node_id, claims, now=NOW + 5, results=results))
        assert settled == set(range(1, count + 1)) - {7}
        rows = await store.read(lambda tx: tx.runs.lock(range(1, count + 1)))
        assert rows.pop(7) == claims[6].run
        assert rows == {
            claim.run_id: _closed(claim.run)._replace(result=results.get(claim.run_id))
            for claim in claims
            if claim.run_id != 7
        }

    async def test_the_last_success_finishes_the_schedule(self, make_store: MakeStore) -> None:
        """It has no next instant; another one of the same batch has."""
        store = await make_store()
        node_id = await _held(store, [a_cadence(1, open_run_id=1, next_at=None), a_cadence(2, open_run_id=2)])
        held = [_claimed(n, node_id) for n in (1, 2)]
        assert await store.write(lambda tx: tx.plain.settle(node_id, held, now=NOW + 5)) == {1, 2}
        last = {"last_run_at": NOW, "last_outcome": "succeeded", "last_success_at": NOW + 5}
        assert await store.read(lambda tx: tx.cadences.lock([1, 2])) == {
            1: a_cadence(1, **last, next_at=None, state="done", state_at=NOW + 5),
            2: a_cadence(2, **last),
        }

    async def test_the_last_instant_leaves_no_alarm(self, make_store: MakeStore) -> None:
        """The alarm stays as a row, and is not due."""
        store = await make_store()
        await store.write(lambda tx: put_cadences(tx, a_cadence(1)))
        await store.write(lambda tx: tx.alarms.set_many([schedule_alarm(1)]))
        await store.write(lambda tx: tx.plain.start([a_batch((500, 1), next_at=None, next_due_at=None)]))
        cadence = (await store.read(lambda tx: tx.cadences.lock([1])))[1]
        assert cadence == a_cadence(1, planned_through=NOW, next_at=None, open_run_id=500, last_row_id=500)
        assert (await store.read(lambda tx: tx.alarms.by_refs("schedule", [1])))[1].due_at is None

    @pytest.mark.parametrize("change", NOT_IN_ORDER, ids=lambda change: next(iter(change)))
    async def test_a_schedule_that_is_not_in_order_is_left_alone(
        self, make_store: MakeStore, change: dict[str, Any]
    ) -> None:
        """And so is its run; others of the same batch are settled."""
        store = await make_store()
        odd = a_cadence(1, open_run_id=1)._replace(**change)
        node_id = await _held(store, [odd, a_cadence(2, open_run_id=2)])
        held = [_claimed(n, node_id) for n in (1, 2)]
        assert await store.write(lambda tx: tx.plain.settle(node_id, held, now=NOW + 5)) == {2}
        assert (await store.read(lambda tx: tx.runs.lock([1])))[1] == running(1, node_id, deadline_at=NOW + 9)
        assert (await store.read(lambda tx: tx.cadences.lock([1])))[1] == odd

    @pytest.mark.parametrize("change", TOUCHED, ids=lambda change: next(iter(change)))
    async def test_a_run_that_changed_since_its_claim_is_left_alone(
        self, make_store: MakeStore, change: dict[str, Any]
    ) -> None:
        """Another node took it, it waits, or it has something to say."""
        store = await make_store()
        cadences = [a_cadence(1, open_run_id=1), a_cadence(2, open_run_id=2)]
        node_id = await _held(store, cadences)
        touched = running(1, node_id, deadline_at=NOW + 9)._replace(**change)
        await store.write(lambda tx: tx.runs.save_many([touched]))
        held = [_claimed(n, node_id) for n in (1, 2)]
        assert await store.write(lambda tx: tx.plain.settle(node_id, held, now=NOW + 5)) == {2}
        assert (await store.read(lambda tx: tx.runs.lock([1])))[1] == touched
        assert (await store.read(lambda tx: tx.cadences.lock([1])))[1] == cadences[0]

    async def test_a_lane_is_passed_on_to_the_run_that_is_first_in_line(self, make_store: MakeStore) -> None:
        """People first, then by due time. A lane that no run waits for becomes free; others stay as they are."""
        store = await make_store()
        node_id = await store.write(_queue)
        successors = await store.write(lambda tx: tx.plain.successors({"a": 1, "b": 2}, now=NOW))
        assert successors == [a_run(5, lane="a", occurrence=-5, priority=0)]
        claimed = [running(5, node_id, lane="a", occurrence=-5, priority=0, deadline_at=NOW + 9)]

        def pass_on(tx: Tx) -> None:
            tx.plain.successors({"a": 1, "b": 2}, now=NOW)
            tx.plain.claim(claimed, {"a": 1, "b": 2})

        await store.write(pass_on)
        assert await store.read(lambda tx: tx.lanes.holders()) == {"a": 5, "c": 3}
        assert await store.read(lambda tx: tx.runs.lock([5])) == {5: claimed[0]}
        assert set(await store.read(lambda tx: tx.alarms.by_refs("run", [4, 5, 6]))) == {4, 6}

    async def test_lanes_without_a_successor_become_free(self, make_store: MakeStore) -> None:
        """Nothing waits for them, so nothing is claimed."""
        store = await make_store()
        await store.write(_queue)

        def pass_on(tx: Tx) -> None:
            assert tx.plain.successors({"b": 2}, now=NOW) == []
            tx.plain.claim([], {"b": 2})

        await store.write(pass_on)
        assert await store.read(lambda tx: tx.lanes.holders()) == {"a": 1, "c": 3}

    @pytest.mark.parametrize("odd", NOT_PASSED_ON)
    async def test_a_lane_is_not_passed_on_if_something_else_may_come_first(
        self, make_store: MakeStore, odd: str
    ) -> None:
        """Then all that is due must be compared."""
        store = await make_store()
        await store.write(_queue)
        held = {"a": 1, "b": 2}

        def change(tx: Tx) -> None:
            match odd:
                case "another run is due":
                    tx.runs.add_many([a_run(7)])
                    tx.alarms.set_many([run_alarm(7)])
                case "a run with a label waits for the lane":
                    tx.runs.add_many([a_run(7, lane="b", run_on="gpu")])
                    tx.alarms.set_many([run_alarm(7, lane="b", parked=1, run_on="gpu")])
                case "another run holds the lane":
                    tx.lanes.free_many([("a", 1)])
                    tx.alarms.set_many([run_alarm(5, NOW - 1, lane="a", parked=1, priority=0)])
                    tx.lanes.take_many([("a", 4)])
                case "the first in line is not due":
                    tx.alarms.set_many([run_alarm(5, NOW + 1, lane="a", parked=1, priority=0)])
                case "the first in line does not wait":
                    tx.runs.save_many([a_run(5, lane="a", occurrence=-5, priority=0, outcome="cancelled")])

        await store.write(change)
        assert await store.write(lambda tx: tx.plain.successors(held, now=NOW)) is None


def _queue(tx: Tx) -> int:
    """Three lanes that runs hold, and runs that wait for the first: a person's is due last. Returns the node."""
    node_id = a_node(tx)
    waiting = [a_run(4, lane="a"), a_run(5, lane="a", occurrence=-5, priority=0), a_run(6, lane="a")]
    put_runs(tx, *(running(n, node_id, lane=lane) for n, lane in enumerate("abc", start=1)), *waiting)
    tx.lanes.take_many([("a", 1), ("b", 2), ("c", 3)])
    due = {4: NOW - 9, 5: NOW - 1, 6: NOW - 5}
    tx.alarms.set_many(
        [run_alarm(run.run_id, due[run.run_id], lane="a", parked=1, priority=run.priority) for run in waiting]
    )
    return node_id


async def _held(store: Store, cadences: list[Cadence]) -> int:
    """These cadences, and a run of each that a node holds; returns the node."""

    def put(tx: Tx) -> int:
        node_id = a_node(tx)
        put_cadences(tx, *cadences)
        tx.runs.reserve_ids(len(cadences))
        tx.runs.add_many(
            [running(one.schedule_id, node_id, schedule_id=one.schedule_id, deadline_at=NOW + 9) for one in cadences]
        )
        return node_id

    return await store.write(put)


def _put_due(tx: Tx, count: int) -> None:
    """Clear cadences whose alarms are due."""
    put_cadences(tx, *(a_cadence(n, session_id=f"s{n}") for n in range(1, count + 1)))
    tx.alarms.set_many([schedule_alarm(n) for n in range(1, count + 1)])
    tx.runs.reserve_ids(count)


def _claimed(run_id: int, node_id: int) -> Claim:
    """Such a run, as it was claimed."""
    return a_claim(running(run_id, node_id, schedule_id=run_id, deadline_at=NOW + 9))


def _closed(run: Run) -> Run:
    """The row after its success."""
    return run._replace(outcome="succeeded", rung="finished", ended_at=NOW + 5, deadline_at=None)
