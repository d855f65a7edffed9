"""Conformance: backfills and their runs."""

from conformance.rows import NOW, MakeStore, a_run, put_runs
from wakeful.core.run.runs import PRIORITY_BACKFILL
from wakeful.ports.backfills import ALARM_BACKFILL, Backfill, BackfilledRun, BackfilledRuns, Backfills
from wakeful.ports.store import ALARM_RUN, Alarm, Tx


def _backfill(schedule_id: int) -> Backfill:
    return Backfill(0, schedule_id, "backfill", "[1, 2]", 0, None, "active", "é'", NOW, None)


class TestBackfills:
    """Past instants that are run on request."""

    async def test_a_request_is_found_by_its_alarm_until_it_is_finished(self, make_store: MakeStore) -> None:
        """Every column is read back; what is fixed stays."""
        store = await make_store()

        def put(tx: Tx) -> list[int]:
            ids = [tx[Backfills].add_new(_backfill(schedule_id)) for schedule_id in (1, 1, 2)]
            tx.alarms.set_many([Alarm(ALARM_BACKFILL, n, NOW + index, 1, None, 0) for index, n in enumerate(ids)])
            return ids

        first, second, third = await store.write(put)
        assert await store.write(lambda tx: tx[Backfills].due(now=NOW + 1, limit=9)) == [
            _backfill(1)._replace(backfill_id=first),
            _backfill(1)._replace(backfill_id=second),
        ]
        moved = _backfill(1)._replace(backfill_id=first, cursor=1, open_run_id=7, state="stopped", ended_at=NOW + 5)
        await store.write(lambda tx: tx[Backfills].save(moved))
        assert [row.backfill_id for row in await store.write(lambda tx: tx[Backfills].lock_active(1))] == [second]
        assert await store.read(lambda tx: tx[Backfills].active()) == [second, third]

    async def test_open_runs_are_counted_and_found_by_their_instants(self, make_store: MakeStore) -> None:
        """Only of requests that are not finished."""
        store = await make_store()

        def put(tx: Tx) -> None:
            put_runs(tx, a_run(1, outcome="running"), a_run(2, outcome="succeeded"), a_run(3, outcome="waiting"))
            for run_id in (1, 2, 3):
                backfill_id = tx[Backfills].add_new(_backfill(1))
                state = "stopped" if run_id == 3 else "active"
                row = _backfill(1)._replace(backfill_id=backfill_id, open_run_id=run_id, state=state)
                tx[Backfills].save(row)
                tx[BackfilledRuns].add(BackfilledRun(run_id, 1, NOW + run_id, 9 if run_id == 2 else None))

        await store.write(put)
        assert await store.read(lambda tx: tx[Backfills].open_runs()) == 1
        assert await store.read(lambda tx: tx[BackfilledRuns].among([2, 8])) == {2: BackfilledRun(2, 1, NOW + 2, 9)}
        between = await store.read(lambda tx: tx[BackfilledRuns].between(1, first=NOW + 2, last=NOW + 3))
        assert [row.run_id for row in between] == [2, 3]
        assert await store.read(lambda tx: tx[BackfilledRuns].between(2, first=0, last=NOW + 3)) == []

    async def test_finished_requests_and_runs_without_a_row_are_pruned(self, make_store: MakeStore) -> None:
        """What is active stays, however old, and so does what ended recently."""
        store = await make_store()

        def put(tx: Tx) -> list[int]:
            put_runs(tx, a_run(2, outcome="succeeded"))
            for run_id in (1, 2, 3):
                tx[BackfilledRuns].add(BackfilledRun(run_id, 1, NOW + run_id, None))
            ids = [tx[Backfills].add_new(_backfill(1)) for _ in range(3)]
            for backfill_id, ended_at in zip(ids[1:], (NOW + 1, NOW + 9), strict=True):
                tx[Backfills].save(
                    _backfill(1)._replace(backfill_id=backfill_id, state="done", cursor=2, ended_at=ended_at)
                )
            return ids

        active, _, recent = await store.write(put)
        for runs, requests in ((2, 1), (0, 0)):
            assert await store.write(lambda tx: tx[BackfilledRuns].prune(before=NOW + 5, limit=9)) == runs
            assert await store.write(lambda tx: tx[Backfills].prune(before=NOW + 5, limit=9)) == requests
        assert await store.read(lambda tx: tx[BackfilledRuns].among([1, 2, 3])) == {
            2: BackfilledRun(2, 1, NOW + 2, None)
        }
        assert await store.read(lambda tx: tx[Backfills].active()) == [active]
        assert await store.write(lambda tx: tx[Backfills].prune(before=NOW + 10, limit=9)) == 1, recent

    async def test_their_runs_come_last(self, make_store: MakeStore) -> None:
        """Runs of people first, then planned ones, then these, whatever the time."""
        store = await make_store()

        def put(tx: Tx) -> None:
            rows = [a_run(n, outcome="waiting", owner=None) for n in (1, 2, 3)]
            priorities = {1: PRIORITY_BACKFILL, 2: 1, 3: 0}
            put_runs(tx, *(row._replace(priority=priorities[row.run_id]) for row in rows))
            tx.alarms.set_many(
                [Alarm(ALARM_RUN, row.run_id, NOW + row.run_id, priorities[row.run_id], None, 0) for row in rows]
            )

        await store.write(put)
        assert [row.run_id for row in await store.write(lambda tx: tx.runs.due(now=NOW + 9, limit=9))] == [3, 2, 1]
        assert [row.run_id for row in await store.write(lambda tx: tx.runs.due(now=NOW + 9, limit=2))] == [3, 2]
        assert await store.read(lambda tx: tx.alarms.next_due_at()) == NOW + 1
