# ruff: noqa: B023 - these are tests: they assert, and they await each lambda where they make it
"""Conformance: the ledger. Runs, their fences, attempts, statistics and pruning."""

import asyncio
from functools import partial

import pytest

from conformance.rows import (
    NOW,
    MakeStore,
    a_cadence,
    a_gap,
    a_node,
    a_run,
    an_attempt,
    closed,
    put_cadences,
    put_runs,
    run_alarm,
    running,
)
from wakeful.core.run.runs import Outcome, Run
from wakeful.core.time.instants import HOUR, MINUTE
from wakeful.engine.run_totals import RunTotals
from wakeful.ports.ledger import GapSummary, RunGlance
from wakeful.ports.meta import Meta
from wakeful.ports.store import Mark, Store, Tx


async def _all(store: Store) -> list[int]:
    """The ids in the ledger, ascending."""
    return sorted(row.run_id for row in await store.read(lambda tx: tx.runs.page(limit=100_000)))


class TestRunsAreWrittenOnce:
    """An instant has one row (L2), and an id is never reused."""

    async def test_ids_ascend_and_are_never_given_twice(self, make_store: MakeStore) -> None:
        """Concurrent callers get different ids, and ids of deleted rows are not assigned again."""
        store = await make_store()

        def reserve(tx: Tx, n: int) -> list[int]:
            return tx.runs.reserve_ids(n)

        batches = await asyncio.gather(*(store.write(partial(reserve, n=n)) for n in range(1, 20)))
        assert all(batch == sorted(batch) for batch in batches)
        given = [run_id for batch in batches for run_id in batch]
        assert len(set(given)) == len(given) == sum(range(1, 20))
        last = max(given)
        await store.write(lambda tx: tx.runs.add_many([a_run(last)]))
        await store.write(lambda tx: tx.runs.remove_many([last]))
        (fresh,) = await store.write(lambda tx: tx.runs.reserve_ids(1))
        assert fresh > last
        assert await store.write(lambda tx: tx.runs.reserve_ids(0)) == []

    async def test_a_row_reads_back_as_written(self, make_store: MakeStore) -> None:
        """Every column, filled and empty, before and after a change."""
        store = await make_store()
        full = Run(
            2, "schedule", 3, NOW + 4, NOW + 4, NOW + 5, 6, NOW + 7, "catchUp", "unknown", "why", "sent", 8, 9, 10, 0,
            "lane", 11, 12, 13, NOW + 14, NOW + 15, NOW + 16, NOW + 17, NOW + 18, "no", '{"reply": "ü"}', "{}", 19,
            '{"pid": 1}', "{}", 1,
        )  # fmt: skip
        await store.write(lambda tx: put_runs(tx, a_run(1), full))
        assert await store.read(lambda tx: tx.runs.lock([2, 1, 9])) == {1: a_run(1), 2: full}
        changed = [
            full._replace(run_id=1, schedule_id=1, occurrence=NOW + 1),
            a_run(2, schedule_id=3, occurrence=NOW + 4),
        ]
        await store.write(lambda tx: tx.runs.save_many(changed))
        assert await store.write(lambda tx: tx.runs.lock([1, 2])) == {1: changed[0], 2: changed[1]}

    async def test_an_occurrence_is_written_once(self, make_store: MakeStore) -> None:
        """A second row for it is an error, and nothing of the operation is stored."""
        store = await make_store()
        await store.write(lambda tx: put_runs(tx, a_run(1, occurrence=NOW)))

        def again(tx: Tx) -> None:
            tx[Meta].set("seen", "yes")
            tx.runs.add_many([a_run(2), a_run(3, occurrence=NOW)])

        with pytest.raises(Exception, match=r".+"):
            await store.write(again)
        assert await _all(store) == [1]
        assert await store.read(lambda tx: tx[Meta].value("seen")) is None
        other_schedule = a_run(4, schedule_id=2, occurrence=NOW)
        await store.write(lambda tx: tx.runs.add_many([other_schedule]))
        assert await _all(store) == [1, 4]

    async def test_of_two_that_claim_an_instant_at_once_one_gets_it(self, make_store: MakeStore) -> None:
        """With any number of concurrent claims, over any number of connections."""
        stores = [await make_store(), await make_store()]

        def claim(tx: Tx) -> int:
            (run_id,) = tx.runs.reserve_ids(1)
            tx.runs.add_many([a_run(run_id, occurrence=NOW)])
            return run_id

        fates = await asyncio.gather(*(stores[n % 2].write(claim) for n in range(20)), return_exceptions=True)
        won = [fate for fate in fates if isinstance(fate, int)]
        assert len(won) == 1
        assert await _all(stores[0]) == won


class TestDueRuns:
    """Waiting runs are returned when their alarm is due."""

    async def test_persons_come_first_then_the_oldest(self, make_store: MakeStore) -> None:
        """Within the limit, over both priorities; due exactly now counts as due."""
        store = await make_store()
        due = [(1, 1, NOW), (2, 1, NOW - 9), (3, 0, NOW), (4, 0, NOW - 5), (5, 1, NOW + 1), (6, 0, NOW + 1)]

        def put(tx: Tx) -> None:
            put_runs(tx, *(a_run(run_id, priority=priority) for run_id, priority, _ in due))
            tx.alarms.set_many([run_alarm(run_id, at, priority=priority) for run_id, priority, at in due])

        await store.write(put)
        for limit, expected in ((9, [4, 3, 2, 1]), (3, [4, 3, 2]), (2, [4, 3]), (1, [4])):
            found = await store.write(lambda tx: tx.runs.due(now=NOW, limit=limit))
            assert [row.run_id for row in found] == expected

    async def test_at_most_so_many_manual_ones_are_taken(self, make_store: MakeStore) -> None:
        """The rest of the limit is for planned ones."""
        store = await make_store()

        def put(tx: Tx) -> None:
            put_runs(tx, *(a_run(n) for n in range(1, 8)))
            tx.alarms.set_many([run_alarm(n, NOW - n, priority=0 if n < 5 else 1) for n in range(1, 8)])

        await store.write(put)
        choices = ((None, [4, 3, 2, 1, 7]), (9, [4, 3, 2, 1, 7]), (2, [4, 3, 7, 6, 5]), (0, [7, 6, 5]))
        for most, expected in choices:
            found = await store.write(lambda tx: tx.runs.due(now=NOW, limit=5, manual_max=most))
            assert [run.run_id for run in found] == expected
            assert await store.read(lambda tx: tx.runs.due(now=NOW, limit=5, manual_max=most)) == found

    async def test_planned_ones_after_a_time_without_a_lane(self, make_store: MakeStore) -> None:
        """Later than that, and not those that people requested, nor past instants."""
        store = await make_store()

        def put(tx: Tx) -> None:
            put_runs(
                tx, *(a_run(n, priority={5: 0, 6: 2}.get(n, 1), lane="l" if n == 4 else None) for n in range(1, 8))
            )
            alarms = [run_alarm(n, NOW - n, priority={5: 0, 6: 2}.get(n, 1)) for n in (1, 2, 3, 5, 6)]
            tx.alarms.set_many([*alarms, run_alarm(4, NOW - 1, lane="l"), run_alarm(7, NOW + 1)])

        await store.write(put)
        for after, limit, expected in ((NOW - 3, 9, [2, 1]), (NOW - 4, 9, [3, 2, 1]), (NOW - 9, 2, [3, 2])):
            found = await store.write(
                lambda tx, after=after, limit=limit: tx.runs.due(now=NOW, limit=limit, after=after)
            )
            assert [run.run_id for run in found] == expected
            assert await store.read(lambda tx, after=after: tx.runs.due(now=NOW, limit=limit, after=after)) == found

    async def test_what_does_not_wait_is_not_due(self, make_store: MakeStore) -> None:
        """Parked and inactive alarms do not ring, nor does one whose run no longer waits."""
        store = await make_store()

        def put(tx: Tx) -> None:
            put_runs(tx, a_run(1), a_run(2), running(3, 1), a_run(4), closed(5, NOW))
            alarms = [run_alarm(1, NOW, parked=1, lane="l"), run_alarm(2, None), run_alarm(3), run_alarm(4)]
            tx.alarms.set_many([*alarms, run_alarm(5)])

        await store.write(put)
        assert await store.read(lambda tx: tx.runs.due(now=NOW, limit=9)) == [a_run(4)]


class TestFences:
    """A node that lost a run cannot change it any more (L6)."""

    async def test_held_are_those_still_running_under_node_and_fence(self, make_store: MakeStore) -> None:
        """Another owner, another fence or an ending is enough to be left out."""
        store = await make_store()
        mine = running(1, 7, fence=3)
        others = [running(2, 8, fence=3), running(3, 7, fence=4), closed(4, NOW, owner=7, fence=3), a_run(5, fence=3)]
        await store.write(lambda tx: put_runs(tx, mine, *others))
        fences = dict.fromkeys(range(1, 10), 3)
        assert await store.write(lambda tx: tx.runs.held(7, fences)) == {1: mine}
        assert await store.write(lambda tx: tx.runs.held(7, {})) == {}

    async def test_held_rows_are_as_they_are_now(self, make_store: MakeStore) -> None:
        """Settling sees what was written to a run since its claim (a rung, a copy of the definition)."""
        store = await make_store()
        climbing, edited, plain = running(1, 7), running(2, 7), running(3, 7)
        await store.write(lambda tx: put_runs(tx, climbing, edited, plain))
        await store.write(lambda tx: tx.runs.mark_many(7, [Mark(1, climbing.fence, "started", '{"started":1}', None)]))
        await store.write(lambda tx: tx.runs.save_many([edited._replace(definition="{}")]))
        fences = {run.run_id: run.fence for run in (climbing, edited, plain)}
        assert await store.write(lambda tx: tx.runs.held(7, fences)) == {
            1: climbing._replace(rung="started", ladder='{"started":1}'),
            2: edited._replace(definition="{}"),
            3: plain,
        }

    async def test_closing_writes_what_closing_changes(self, make_store: MakeStore) -> None:
        """A closed run has no deadline, next attempt or process, and keeps everything else."""
        store = await make_store()
        run = running(1, 7)._replace(process='{"pid":1}', deadline_at=NOW + 5, ladder='{"sent":1}', definition="{}")
        await store.write(lambda tx: put_runs(tx, run))
        ended = run._replace(
            outcome="failed", reason="because", rung="started", ended_at=NOW + 1, error="oh", result='{"output":"x"}',
            deadline_at=None, next_attempt_at=None, process=None, stuck=0,
        )  # fmt: skip
        await store.write(lambda tx: tx.runs.close_many([ended]))
        assert await store.read(lambda tx: tx.runs.lock([1])) == {1: ended}

    async def test_a_mark_counts_only_under_the_fence(self, make_store: MakeStore) -> None:
        """Results are in the order of the marks; a late mark leaves the row unchanged."""
        store = await make_store()
        rows = [
            running(1, 7, fence=2),
            running(2, 8, fence=2),
            running(3, 7, fence=3),
            closed(4, NOW, owner=7, fence=2),
        ]
        await store.write(lambda tx: put_runs(tx, *rows))
        marks = [Mark(n, 2, "accepted", '{"accepted": 1}', '{"pid": 5}') for n in (4, 1, 3, 9, 2)]
        fates = await store.write(lambda tx: tx.runs.mark_many(7, marks))
        assert fates == [False, True, False, False, False]
        marked = rows[0]._replace(rung="accepted", ladder='{"accepted": 1}', process='{"pid": 5}')
        found = await store.read(lambda tx: tx.runs.lock([1, 2, 3, 4]))
        assert found == {1: marked, 2: rows[1], 3: rows[2], 4: rows[3]}
        assert await store.write(lambda tx: tx.runs.mark_many(7, [])) == []

    async def test_a_mark_without_a_process_keeps_the_known_one(self, make_store: MakeStore) -> None:
        """The process that a rescue needs to end is kept; of two marks in a batch the last one counts."""
        store = await make_store()
        await store.write(lambda tx: put_runs(tx, running(1, 7)))
        marks = [Mark(1, 1, "sent", "{}", '{"pid": 5}'), Mark(1, 1, "started", '{"started": 2}', None)]
        assert await store.write(lambda tx: tx.runs.mark_many(7, marks)) == [True, True]
        row = (await store.read(lambda tx: tx.runs.lock([1])))[1]
        assert (row.rung, row.ladder, row.process) == ("started", '{"started": 2}', '{"pid": 5}')

    async def test_what_nodes_hold_is_running_or_stuck(self, make_store: MakeStore) -> None:
        """In id order, up to the limit; a closed row keeps its owner without being held."""
        store = await make_store()
        rows = [
            running(5, 7),
            closed(4, NOW, owner=7),
            closed(3, NOW, owner=7, outcome="unknown", stuck=1),
            running(2, 8),
            running(1, 9),
        ]
        await store.write(lambda tx: put_runs(tx, *rows))
        assert [r.run_id for r in await store.write(lambda tx: tx.runs.of_nodes([7, 8], limit=9))] == [2, 3, 5]
        assert [r.run_id for r in await store.write(lambda tx: tx.runs.of_nodes([7, 8], limit=2))] == [2, 3]
        assert await store.write(lambda tx: tx.runs.of_nodes([], limit=9)) == []
        freed = [rows[0]._replace(outcome="succeeded"), rows[2]._replace(stuck=0)]
        await store.write(lambda tx: tx.runs.save_many(freed))
        assert [r.run_id for r in await store.read(lambda tx: tx.runs.of_nodes([7], limit=9))] == []


class TestReadingTheLedger:
    """Pages, attempts, instants that ran, gaps, statistics."""

    async def test_attempts_are_children_of_their_run(self, make_store: MakeStore) -> None:
        """In order, for the requested runs; deleted with them."""
        store = await make_store()
        attempts = [an_attempt(1, 2, claimed_at=None, rung=None, error=None, owner=None), an_attempt(1, 1)]

        def put(tx: Tx) -> None:
            put_runs(tx, a_run(1), a_run(2), a_run(3))
            tx.runs.add_attempts([*attempts, an_attempt(2, 1)])

        await store.write(put)
        found = await store.read(lambda tx: tx.runs.attempts([3, 1]))
        assert found.get(1) == [attempts[1], attempts[0]]
        assert not found.get(3)
        assert 2 not in found
        await store.write(lambda tx: tx.runs.remove_many([1]))
        assert not (await store.read(lambda tx: tx.runs.attempts([1]))).get(1)
        assert (await store.read(lambda tx: tx.runs.attempts([2])))[2] == [an_attempt(2, 1)]
        assert await _all(store) == [2, 3]

    async def test_taken_instants_are_those_that_have_a_row(self, make_store: MakeStore) -> None:
        """After the first bound, up to and including the second; manual requests and other schedules do not count."""
        store = await make_store()
        rows = [
            closed(1, NOW),
            closed(2, NOW, outcome="failed"),
            a_gap(3, NOW + 3, NOW + 3, 1),
            running(4, 1),
            a_run(5),
            a_run(6),
            closed(7, NOW, occurrence=-7, planned_at=NOW + 3, trigger="manual"),
            closed(8, NOW, schedule_id=2, occurrence=NOW + 3, planned_at=NOW + 3),
        ]
        await store.write(lambda tx: put_runs(tx, *rows))
        taken = await store.read(lambda tx: tx.runs.taken(1, after=NOW + 1, until=NOW + 5))
        assert taken == {NOW + 2, NOW + 3, NOW + 4, NOW + 5}
        assert await store.read(lambda tx: tx.runs.taken(1, after=-100, until=NOW + 1)) == {NOW + 1}
        assert await store.read(lambda tx: tx.runs.taken(3, after=0, until=NOW + 99)) == frozenset()

    async def test_gaps_ahead_reach_beyond_the_instant(self, make_store: MakeStore) -> None:
        """Those that start after it, and the one that spans it; tried runs and other schedules are left out."""
        store = await make_store()
        rows = [
            a_gap(1, NOW + 10, NOW + 20, 3),
            closed(2, NOW, occurrence=NOW + 25, planned_at=NOW + 25),
            a_gap(3, NOW + 30, NOW + 40, 3, outcome="skipped"),
            a_run(4, occurrence=NOW + 45, planned_at=NOW + 45),
            a_gap(5, NOW + 50, NOW + 50, 1),
            a_gap(6, NOW + 30, NOW + 99, 9, schedule_id=2),
            closed(7, NOW, occurrence=-7, planned_at=NOW + 60, trigger="manual", outcome="skipped"),
            closed(8, NOW, occurrence=NOW + 55, planned_at=NOW + 55, outcome="skipped", attempt=1),
        ]
        await store.write(lambda tx: put_runs(tx, *rows))
        for after, expected in ((5, [1, 3, 5]), (15, [1, 3, 5]), (20, [3, 5]), (39, [3, 5]), (40, [5]), (50, [])):
            found = await store.write(lambda tx: tx.runs.gaps_ahead(1, after=NOW + after))
            assert sorted(row.run_id for row in found) == expected
        assert (await store.write(lambda tx: tx.runs.gaps_ahead(1, after=NOW + 45)))[0] == rows[4]

    async def test_a_gap_is_found_across_a_run_that_lies_in_it(self, make_store: MakeStore) -> None:
        """An instant that ran on a clock that was ahead can lie within a stretch that was counted later."""
        store = await make_store()
        ran = closed(1, NOW, occurrence=NOW + 15, planned_at=NOW + 15)
        gap = a_gap(2, NOW + 10, NOW + 40, 3)
        await store.write(lambda tx: put_runs(tx, ran, gap))
        assert await store.write(lambda tx: tx.runs.gaps_ahead(1, after=NOW + 20)) == [gap]

    async def test_pages_tile_the_ledger_newest_first(self, make_store: MakeStore) -> None:
        """Of all schedules and of one, continuing from the last id."""
        store = await make_store()
        await store.write(lambda tx: put_runs(tx, *(a_run(n, schedule_id=1 + n % 2) for n in range(1, 12))))
        for schedule_id, expected in ((None, list(range(11, 0, -1))), (2, [11, 9, 7, 5, 3, 1]), (9, [])):
            met: list[int] = []
            before: int | None = None
            while page := await store.read(lambda tx: tx.runs.page(schedule_id=schedule_id, before_id=before, limit=4)):
                met += [row.run_id for row in page]
                before = page[-1].run_id
            assert met == expected

    async def test_the_newest_rows_of_several_schedules_are_looked_at_together(self, make_store: MakeStore) -> None:
        """Up to the limit for each, newest first, with the columns that charts need."""
        store = await make_store()
        rows = [a_run(n, schedule_id=1 + n % 3)._replace(error="no", reason="why") for n in range(1, 12)]
        await store.write(lambda tx: put_runs(tx, *rows))
        found = await store.read(lambda tx: tx.runs.latest([1, 3, 9], limit=2))
        seen = [RunGlance._make(getattr(row, name) for name in RunGlance._fields) for row in rows]
        assert found == {1: [seen[8], seen[5]], 3: [seen[10], seen[7]], 9: []}
        assert await store.read(lambda tx: tx.runs.latest([], limit=2)) == {}

    async def test_a_page_may_keep_one_outcome(self, make_store: MakeStore) -> None:
        """Every outcome, in the whole ledger and in one schedule, before an id."""
        store = await make_store()
        outcomes: list[Outcome] = [
            "running", "waiting", "succeeded", "failed", "timedOut", "unconfirmed", "unknown", "cancelled", "skipped",
            "missed",
        ]  # fmt: skip

        def put(tx: Tx) -> None:
            rows = [a_run(n, outcome=outcomes[n % 10], schedule_id=1 + n // 10 % 2, owner=1) for n in range(1, 41)]
            put_runs(tx, *(row._replace(owner=None) if row.outcome == "waiting" else row for row in rows))
            tx.alarms.set_many([run_alarm(row.run_id) for row in rows if row.outcome == "waiting"])

        await store.write(put)
        await store.write(lambda tx: tx.runs.save_many([closed(40, NOW, outcome="unknown", stuck=1, owner=1)]))
        for place, outcome in enumerate(outcomes):
            ids = [n for n in range(39, 0, -1) if n % 10 == place]
            ids = [40, *ids] if outcome == "unknown" else ids
            page = await store.read(lambda tx: tx.runs.page(limit=9, outcome=outcome))
            assert [row.run_id for row in page] == ids
            page = await store.read(lambda tx: tx.runs.page(limit=1, outcome=outcome, before_id=ids[1]))
            assert [row.run_id for row in page] == [ids[2]]
            of_one = await store.read(lambda tx: tx.runs.page(limit=9, outcome=outcome, schedule_id=2))
            assert [row.run_id for row in of_one] == [row_id for row_id in ids if row_id // 10 % 2 == 1]

    async def test_statistics_sum_up_what_runs_used(self, make_store: MakeStore) -> None:
        """Also under the names of 0.1; None if no run reported any."""
        store = await make_store()
        kept = ['{"usage": {"total": 10, "cost": 0.5}}', '{"usage": {"totalTokens": 5}}', '{"reply": "x"}']
        rows = [
            closed(number + 1, 5, occurrence=NOW + number, planned_at=NOW + number, result=result)
            for number, result in enumerate(kept)
        ]
        await store.write(lambda tx: put_runs(tx, *rows))
        tallied = await store.read(lambda tx: tx[RunTotals].tallied(1, since=NOW, limit=9))
        assert (tallied.tokens, tallied.cost) == (15, 0.5)
        later = await store.read(lambda tx: tx[RunTotals].tallied(1, since=NOW + 2, limit=9))
        assert (later.tokens, later.cost) == (None, None)

    async def test_statistics_count_instants_since_a_time(self, make_store: MakeStore) -> None:
        """A stretch counts for as many as it covers, also if it started before; durations are of runs that started."""
        store = await make_store()
        at = NOW + 100
        rows = [
            closed(1, NOW + 7, occurrence=NOW + 10, planned_at=NOW + 10),
            a_gap(2, NOW + 20, NOW + 120, 50),
            closed(3, NOW + 30, occurrence=at, planned_at=at),
            closed(4, NOW + 90, occurrence=at + 30, planned_at=at + 30, outcome="failed"),
            a_gap(5, at + 40, at + 50, 4, outcome="skipped"),
            closed(6, NOW + 5, occurrence=-6, planned_at=at + 60, trigger="manual"),
            closed(7, NOW + 5, occurrence=-7, planned_at=NOW, trigger="manual"),
            running(8, 1, occurrence=at + 70, planned_at=at + 70),
            closed(9, NOW + 1, schedule_id=2, occurrence=at, planned_at=at),
        ]
        await store.write(lambda tx: put_runs(tx, *rows))
        tallied = await store.read(lambda tx: tx[RunTotals].tallied(1, since=at, limit=9))
        assert dict(tallied.by_outcome) == {"succeeded": 2, "failed": 1, "missed": 50, "skipped": 4, "running": 1}
        assert list(tallied.durations) == [5, 90, 30]
        assert list(tallied.last_outcomes) == ["succeeded", "failed", "succeeded"]
        bounded = await store.read(lambda tx: tx[RunTotals].tallied(1, since=0, limit=2))
        assert dict(bounded.by_outcome) == {"succeeded": 4, "failed": 1, "missed": 50, "skipped": 4, "running": 1}
        assert list(bounded.last_outcomes) == ["succeeded", "succeeded"]
        empty = await store.read(lambda tx: tx[RunTotals].tallied(3, since=0, limit=2))
        assert (dict(empty.by_outcome), list(empty.durations), list(empty.last_outcomes)) == ({}, [], [])

    async def test_sums_equal_what_is_counted_row_by_row(self, make_store: MakeStore) -> None:
        """Whatever was summed up: rows that were open, that changed afterwards, that were deleted, and new ones."""
        store = await make_store()
        used = '{"usage": {"total": 7, "cost": 0.25}}'
        rows = [
            closed(1, NOW + 7),
            closed(2, NOW + 7, occurrence=NOW + 2, planned_at=NOW + 2)._replace(result=used),
            a_gap(3, NOW + 20, NOW + 120, 50),
            running(4, 1, occurrence=NOW + 200, planned_at=NOW + 200),
            closed(5, NOW + 9, occurrence=NOW + 300, planned_at=NOW + 300, outcome="unknown")._replace(result=used),
            closed(6, NOW + 9, schedule_id=2),
        ]
        await store.write(lambda tx: put_runs(tx, *rows))

        async def advance(later: int = HOUR) -> int:
            return await store.write(lambda tx: tx[RunTotals].advance(now=NOW + later, limit=4))

        async def counts(since: int = 0) -> tuple[dict[Outcome, int], int | None, float | None]:
            found = await store.read(lambda tx: tx[RunTotals].tallied(1, since=since, limit=9))
            return dict(found.by_outcome), found.tokens, found.cost

        before = await counts()
        assert before == ({"succeeded": 2, "missed": 50, "running": 1, "unknown": 1}, 14, 0.5)
        assert await advance(MINUTE) == 0  # written just now: one with a lower id may still be committed
        assert [await advance(), await advance(), await advance()] == [4, 2, 0]
        assert await counts() == await counts(since=1) == before

        def change(tx: Tx) -> None:
            tx.runs.save_many([rows[3]._replace(outcome="failed", ended_at=NOW + 400, owner=None)])
            tx.runs.save_many([rows[4]._replace(outcome="succeeded")])
            tx.runs.remove_many([2])
            put_runs(tx, closed(7, NOW + 8, occurrence=NOW + 500, planned_at=NOW + 500))

        await store.write(change)
        after = ({"succeeded": 3, "missed": 50, "failed": 1}, 7, 0.25)
        assert await counts() == await counts(since=1) == after
        assert [await advance(), await advance()] == [1, 0]
        assert await counts() == await counts(since=1) == after

    async def test_usage_that_is_no_number_neither_counts_nor_blocks(self, make_store: MakeStore) -> None:
        """An older version stored what a program reported: such a row is summed up, changed and deleted like others."""
        store = await make_store()
        texts = ('{"usage": {"total": "many", "cost": "much"}}', '{"usage": {"totalTokens": 1e30}}', '{"usage": 3}')
        rows = [
            closed(number, NOW + 7, occurrence=NOW + number, planned_at=NOW + number)._replace(result=text)
            for number, text in enumerate((*texts, '{"usage": {"total": 7, "cost": 1e-05}}'), start=1)
        ]
        await store.write(lambda tx: put_runs(tx, *rows))
        assert await store.write(lambda tx: tx[RunTotals].advance(now=NOW + HOUR, limit=9)) == 4

        def change(tx: Tx) -> None:
            tx.runs.save_many([rows[0]._replace(outcome="failed")])
            tx.runs.remove_many([2, 3])

        await store.write(change)
        found = await store.read(lambda tx: tx[RunTotals].tallied(1, since=0, limit=9))
        assert dict(found.by_outcome) == {"failed": 1, "succeeded": 1}
        assert (found.tokens, found.cost) == (7, 0.00001)


async def _prune(store: Store, before: int, limit: int = 1_000) -> int:
    """Prune until nothing is left to prune."""
    total = 0
    while pruned := await store.write(lambda tx: tx.runs.prune(before=before, limit=limit)):
        assert pruned <= limit
        total += pruned
    return total


class TestWhatFellIntoAGap:
    """Counting what became due while no node ticked."""

    async def test_missed_instants_and_runs_that_caught_up_are_counted_by_owner(self, make_store: MakeStore) -> None:
        """Of rows that were written after an id, as far as they reach into the requested time."""
        store = await make_store()
        assert await store.read(lambda tx: tx.runs.last_id()) == 0
        rows = [
            a_gap(1, NOW, NOW + 10, 3, schedule_id=1, outcome="missed"),
            a_gap(2, NOW, NOW + 10, 4, schedule_id=1, outcome="missed"),
            a_gap(3, NOW, NOW + 10, 5, schedule_id=2, outcome="skipped", occurrence=NOW + 1),
            a_run(4, schedule_id=1, planned_at=NOW + 20, occurrence=NOW + 20, trigger="catchUp"),
            a_run(5, schedule_id=3, planned_at=NOW + 20, occurrence=NOW + 20, trigger="catchUp"),
            a_run(6, schedule_id=3, planned_at=NOW + 30, occurrence=NOW + 30),
            a_run(7, schedule_id=3, planned_at=NOW + 99, occurrence=NOW + 99, trigger="catchUp"),
        ]
        rows[1] = rows[1]._replace(occurrence=NOW + 2)
        await store.write(lambda tx: put_runs(tx, *rows))
        assert await store.read(lambda tx: tx.runs.last_id()) == 7
        found = await store.read(lambda tx: tx.runs.fallen(after_id=1, since=NOW, until=NOW + 50))
        assert found == [GapSummary(1, 4, 1), GapSummary(3, 0, 1)]
        assert await store.read(lambda tx: tx.runs.fallen(after_id=7, since=NOW, until=NOW + 50)) == []


class TestPruning:
    """Old rows are deleted; rows that are still needed are kept."""

    async def test_closed_rows_that_ended_before_go_with_their_attempts(self, make_store: MakeStore) -> None:
        """Step by step, up to the limit; what ended at that time or later is kept."""
        store = await make_store()

        def put(tx: Tx) -> None:
            put_runs(tx, *(closed(n, NOW + n) for n in range(1, 11)))
            tx.runs.add_attempts([an_attempt(n, 1) for n in range(1, 11)])

        await store.write(put)
        assert await store.write(lambda tx: tx.runs.prune(before=NOW + 8, limit=3)) == 3
        assert await _all(store) == list(range(4, 11))
        assert await _prune(store, NOW + 8, limit=3) == 4
        assert await _all(store) == [8, 9, 10]
        assert sorted(await store.read(lambda tx: tx.runs.attempts(range(1, 11)))) == [8, 9, 10]
        assert await _prune(store, NOW + 8) == 0
        assert await _prune(store, NOW + 11) == 3

    async def test_open_and_stuck_rows_and_what_a_cadence_names_stay(self, make_store: MakeStore) -> None:
        """However old they are: the open run, the queued one, the last row, and what is not proven to have ended."""
        store = await make_store()
        old = NOW - 1_000
        rows = [
            running(1, 1, ended_at=old),
            a_run(2, ended_at=old),
            closed(3, old, outcome="unknown", stuck=1),
            closed(4, old),
            closed(5, old),
            closed(6, old),
            closed(7, old),
            a_gap(8, old, old + 5, 3, ended_at=old),
            closed(9, old, schedule_id=2, occurrence=NOW),
        ]

        def put(tx: Tx) -> None:
            put_cadences(tx, a_cadence(1, open_run_id=4, queued_run_id=5, last_row_id=6), a_cadence(2))
            put_runs(tx, *rows)

        await store.write(put)
        assert await _prune(store, NOW) == 3
        assert await _all(store) == [1, 2, 3, 4, 5, 6]
        await store.write(lambda tx: tx.runs.save_many([closed(1, old)]))
        await store.write(lambda tx: tx.cadences.save_many([a_cadence(1, last_row_id=6)]))
        assert await _prune(store, NOW) == 3
        assert await _all(store) == [2, 3, 6]

    async def test_a_run_that_took_long_is_found_later(self, make_store: MakeStore) -> None:
        """Ids ascend with time but endings need not: an old row that ended late is deleted when it is old enough."""
        store = await make_store()
        await store.write(lambda tx: put_runs(tx, closed(1, NOW + 500), closed(2, NOW + 2), closed(3, NOW + 3)))
        assert await _prune(store, NOW + 100) == 2
        assert await _all(store) == [1]
        await store.write(lambda tx: put_runs(tx, *(closed(n, NOW + n) for n in range(4, 9))))
        assert await _prune(store, NOW + 7) == 3
        assert await _prune(store, NOW + 501) == 3

    async def test_many_rows_go_wherever_they_lie(self, make_store: MakeStore) -> None:
        """In a ledger of thousands, between rows that are kept, and behind rows written while the clock was ahead."""
        store = await make_store()
        ahead = 10 * 365 * 86_400_000

        def put(tx: Tx) -> None:
            wrong = [closed(n, NOW + ahead + n, due_at=NOW + ahead) for n in range(1, 3_001)]
            right = [closed(n, NOW + n) if n % 3 else running(n, 1) for n in range(3_001, 6_001)]
            put_runs(tx, *wrong, *right)

        await store.write(put)
        assert await _prune(store, NOW + 6_001, limit=700) == 2_000
        left = await _all(store)
        assert left == [n for n in range(1, 6_001) if n <= 3_000 or n % 3 == 0]

    async def test_what_ran_ahead_of_the_clock_stays_until_its_time(self, make_store: MakeStore) -> None:
        """Otherwise its instant would be planned a second time: nothing would show that it ran (seed 9521)."""
        store = await make_store()
        await store.write(lambda tx: put_runs(tx, closed(1, NOW, due_at=NOW + 500), closed(2, NOW + 1)))
        assert await _prune(store, NOW + 100) == 1
        assert await _all(store) == [1]
        assert await _prune(store, NOW + 501) == 1

    async def test_what_a_clock_that_was_not_set_ended_is_not_old(self, make_store: MakeStore) -> None:
        """A run of today that ended in 1970 is judged by when it was due (seed 9557)."""
        store = await make_store()
        await store.write(lambda tx: put_runs(tx, closed(1, 5, due_at=NOW + 1), closed(2, NOW + 2)))
        assert await _prune(store, NOW) == 0
        assert await _prune(store, NOW + 2) == 1

    async def test_what_has_no_date_goes_with_the_next_one_that_has(self, make_store: MakeStore) -> None:
        """Due and ended in 1970: it is as old as what was written after it."""
        store = await make_store()
        await store.write(lambda tx: put_runs(tx, closed(1, 5), closed(2, NOW + 50), closed(3, 7)))

        async def pruned(before: int) -> int:
            return await store.write(lambda tx: tx.runs.prune(before=before, limit=9, since=NOW - 1_000))

        assert await pruned(NOW + 10) == 0
        assert await pruned(NOW + 51) == 2
        assert await _all(store) == [3]

    async def test_a_node_that_owns_nothing_is_forgotten(self, make_store: MakeStore) -> None:
        """Voided before, with a lease that ended before, and without runs; its id is not reused."""
        store = await make_store()
        ids = [await store.write(lambda tx: a_node(tx, lease_until=NOW)) for _ in range(4)]
        await store.write(lambda tx: put_runs(tx, running(1, ids[1])))
        await store.write(lambda tx: tx.nodes.void(ids[:2], now=NOW))
        await store.write(lambda tx: tx.nodes.void(ids[3:], now=NOW + 5))
        await store.write(lambda tx: tx.nodes.prune(before=NOW))
        assert [n.node_id for n in await store.read(lambda tx: tx.nodes.all())] == ids
        await store.write(lambda tx: tx.nodes.prune(before=NOW + 6))
        assert [n.node_id for n in await store.read(lambda tx: tx.nodes.all())] == [ids[1], ids[2]]
        assert await store.write(a_node) > ids[3]

    async def test_a_node_voided_by_a_wrong_clock_is_kept_as_long_as_its_lease(self, make_store: MakeStore) -> None:
        """Voided in 1970, with a lease of today: it may be alive, and must still find that its lease was taken."""
        store = await make_store()
        node = await store.write(lambda tx: a_node(tx, lease_until=NOW + 5))
        await store.write(lambda tx: tx.nodes.void([node], now=90_000))
        await store.write(lambda tx: tx.nodes.prune(before=NOW + 5))
        assert [n.node_id for n in await store.read(lambda tx: tx.nodes.all())] == [node]
        await store.write(lambda tx: tx.nodes.prune(before=NOW + 6))
        assert await store.read(lambda tx: tx.nodes.all()) == []
