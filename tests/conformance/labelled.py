"""Conformance: alarms that need a label of a node."""

import asyncio

from conformance.rows import NOW, MakeStore, a_cadence, a_run, put_runs, run_alarm, schedule_alarm
from wakeful.ports.plain import DueSchedule
from wakeful.ports.plans import Beginning
from wakeful.ports.store import Store, Tx

GPU, ANY = "gpu", "eu gpu"


async def _parked(store: Store, run_ids: list[int]) -> list[int]:
    alarms = await store.read(lambda tx: tx.alarms.by_refs("run", run_ids))
    return sorted(ref for ref, alarm in alarms.items() if alarm.parked)


class TestLabelled:
    """They are found by the labels they need, and by nothing else."""

    async def test_other_queries_do_not_find_them(self, make_store: MakeStore) -> None:
        """Neither as due, nor as the next alarm, nor to postpone."""
        store = await make_store()

        def put(tx: Tx) -> None:
            tx.cadences.add_many([a_cadence(1), a_cadence(2)])
            tx.cadences.begin_many([Beginning(a_cadence(3), NOW - 3, [3], GPU), Beginning(a_cadence(4), None, [4])])
            put_runs(tx, a_run(1, run_on=GPU), a_run(2))
            tx.alarms.set_many([schedule_alarm(1, NOW - 9, run_on=GPU), schedule_alarm(2, NOW - 1)])
            tx.alarms.set_many([run_alarm(1, NOW - 9, run_on=GPU), run_alarm(2, NOW - 1)])

        await store.write(put)
        assert [row.schedule_id for row in await store.write(lambda tx: tx.plain.due(now=NOW, limit=9))] == [2]
        assert [row.schedule_id for row in await store.read(lambda tx: tx.cadences.due(now=NOW, limit=9))] == [2]
        assert [row.run_id for row in await store.write(lambda tx: tx.runs.due(now=NOW, limit=9))] == [2]
        assert await store.read(lambda tx: tx.alarms.next_due_at()) == NOW - 1
        held = await store.write(lambda tx: [tx.alarms.hold_off_first("run", now=NOW, until=NOW + 5) for _ in "12"])
        assert held == [2, None]
        assert await store.read(lambda tx: tx.alarms.by_refs("run", [1])) == {1: run_alarm(1, NOW - 9, run_on=GPU)}
        due = await store.read(lambda tx: tx.labelled.due_schedules([GPU], now=NOW, limit=9))
        assert due == [DueSchedule(n, 1, NOW + 1_000, NOW - at, 0) for n, at in ((1, 9), (3, 3))]
        later = await store.read(lambda tx: tx.labelled.due_schedules([GPU], now=NOW, limit=9, after=NOW - 9))
        assert later == due[1:]
        assert await store.read(lambda tx: tx.labelled.due_runs([GPU], now=NOW, limit=9, after=NOW - 9)) == []
        runs = await store.read(lambda tx: tx.labelled.due_runs([GPU], now=NOW, limit=9, after=NOW - 10))
        assert [run.run_id for run in runs] == [1]

    async def test_they_are_due_by_queue(self, make_store: MakeStore) -> None:
        """Of the queues that are asked for, oldest first, runs of people before others; not those that are parked,
        inactive, later or no longer waiting."""
        store = await make_store()

        def put(tx: Tx) -> None:
            tx.cadences.add_many([a_cadence(n) for n in (1, 2, 3)])
            tx.alarms.set_many([schedule_alarm(n, NOW - n, run_on=q) for n, q in ((1, GPU), (2, ANY), (3, "x"))])
            put_runs(tx, *(a_run(n, run_on=GPU, priority=int(n != 4), next_attempt_at=NOW - n) for n in range(1, 8)))
            tx.alarms.set_many([run_alarm(n, NOW - n, run_on=GPU) for n in (1, 2)])
            tx.alarms.set_many([run_alarm(3, NOW - 3, run_on=ANY), run_alarm(4, NOW - 1, run_on=ANY, priority=0)])
            tx.alarms.set_many([run_alarm(5, NOW + 5, run_on=GPU), run_alarm(6, None, run_on=GPU)])
            tx.alarms.set_many([run_alarm(7, NOW - 7, run_on=GPU, lane="l", parked=1)])
            tx.runs.save_many([a_run(1, run_on=GPU, outcome="running")])

        await store.write(put)
        assert await store.read(lambda tx: tx.labelled.queues()) == [ANY, GPU, "x"]
        both = [ANY, GPU]
        found = await store.write(lambda tx: tx.labelled.due_runs(both, now=NOW, limit=9))
        assert [(run.run_id, run.run_on) for run in found] == [(4, GPU), (3, GPU), (2, GPU)]
        assert [row.schedule_id for row in await _schedules(store, both, limit=9)] == [2, 1]
        assert [row.schedule_id for row in await _schedules(store, both, limit=1)] == [2]
        assert await store.read(lambda tx: tx.labelled.due_runs(["x"], now=NOW, limit=9)) == []
        assert await store.read(lambda tx: tx.labelled.due_kinds(["x"], now=NOW)) == {"schedule"}
        assert await store.read(lambda tx: tx.labelled.due_kinds(both, now=NOW - 3)) == {"run"}
        assert await store.read(lambda tx: tx.labelled.next_due_at(both)) == NOW - 3
        assert await store.read(lambda tx: tx.labelled.next_due_at(both, besides=["run"])) == NOW - 2
        assert await store.read(lambda tx: tx.labelled.next_due_at([])) is None

    async def test_the_first_one_can_be_postponed(self, make_store: MakeStore) -> None:
        """Unless an alarm that needs no label comes first."""
        store = await make_store()
        alarms = [run_alarm(1, NOW - 5, run_on=GPU), run_alarm(2, NOW - 9, run_on="x"), run_alarm(3, NOW - 4)]
        await store.write(lambda tx: tx.alarms.set_many(alarms))

        async def hold_off(kind: str = "run") -> int | None:
            return await store.write(lambda tx: tx.labelled.hold_off_first([GPU], kind, now=NOW, until=NOW + 60))

        assert [await hold_off("schedule"), await hold_off(), await hold_off()] == [None, 1, None]
        await store.write(lambda tx: tx.alarms.set_many([alarms[0], run_alarm(4, NOW, priority=0)]))
        assert await hold_off() is None

    async def test_a_free_lane_unparks_one_for_each_set_of_labels(self, make_store: MakeStore) -> None:
        """Also if another one came first: perhaps no node can run that one."""
        store = await make_store()
        parked = [
            run_alarm(n, NOW + n, lane="a", parked=1, run_on=queue)
            for n, queue in ((1, GPU), (2, GPU), (3, None), (4, None), (5, ANY))
        ]
        parked.append(run_alarm(6, NOW, lane="b", parked=1, run_on=GPU))

        def put(tx: Tx) -> None:
            tx.alarms.set_many(parked)
            tx.lanes.take_many([("a", 9), ("b", 8)])

        await store.write(put)
        assert await store.read(lambda tx: tx.labelled.queues()) == []
        await store.write(lambda tx: tx.lanes.free_many([("a", 9)]))
        assert await _parked(store, [1, 2, 3, 4, 5, 6]) == [2, 4, 6]
        assert await store.read(lambda tx: tx.labelled.queues()) == [ANY, GPU]

    async def test_an_alarm_changes_its_queue(self, make_store: MakeStore) -> None:
        """Between a label, another one and none; a moved alarm keeps it, and so does one the clock brings forward."""
        store = await make_store()
        for queue in (GPU, "x", None, GPU):
            await store.write(lambda tx, queue=queue: tx.alarms.set_many([run_alarm(1, run_on=queue)]))
            assert await store.read(lambda tx: tx.labelled.queues()) == ([] if queue is None else [queue])
            assert await store.read(lambda tx: tx.alarms.next_due_at()) == (NOW if queue is None else None)
        await store.write(lambda tx: tx.alarms.move_many("run", [(1, NOW + 900)]))
        await store.write(lambda tx: tx.alarms.set_many([run_alarm(2, NOW + 900, run_on=GPU, lane="l", parked=1)]))
        assert await store.write(lambda tx: tx.alarms.shift_waiting(by=100, beyond=NOW, now=NOW)) == 2
        alarms = await store.read(lambda tx: tx.alarms.by_refs("run", [1, 2]))
        assert [(alarm.due_at, alarm.run_on, alarm.parked) for alarm in alarms.values()] == [
            (NOW + 800, GPU, 0),
            (NOW + 800, GPU, 1),
        ]

    async def test_one_of_two_nodes_gets_it(self, make_store: MakeStore) -> None:
        """Two claims at the same time never return the same run."""
        first, second = await make_store(), await make_store()

        def put(tx: Tx) -> None:
            put_runs(tx, *(a_run(n, run_on=GPU) for n in range(1, 31)))
            tx.alarms.set_many([run_alarm(n, run_on=GPU) for n in range(1, 31)])

        await first.write(put)

        def take(tx: Tx) -> list[int]:
            runs = tx.labelled.due_runs([GPU], now=NOW, limit=20)
            tx.alarms.remove_many("run", [run.run_id for run in runs])
            tx.runs.save_many([run._replace(outcome="running", owner=1) for run in runs])
            return [run.run_id for run in runs]

        taken = [*await asyncio.gather(*(store.write(take) for store in (first, second, first, second)))]
        every = [run_id for found in taken for run_id in found]
        assert sorted(every) == sorted(set(every))


async def _schedules(store: Store, queues: list[str], limit: int) -> list[DueSchedule]:
    return await store.write(lambda tx: tx.labelled.due_schedules(queues, now=NOW, limit=limit))
