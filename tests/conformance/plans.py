# ruff: noqa: B023 - these are tests: they assert, and they await each lambda where they make it
"""Conformance: schedules, cadences and alarms."""

from typing import Any

from conformance.rows import (
    NOW,
    MakeStore,
    a_cadence,
    a_run,
    a_schedule,
    put_cadences,
    put_runs,
    run_alarm,
    schedule_alarm,
)
from wakeful.core.delivery.incidents import BAD, WELL
from wakeful.core.schedule.cadence import Rules, State, begin
from wakeful.core.time.timing import Every
from wakeful.ports.plans import Beginning, NewSchedule
from wakeful.ports.store import PLANNED_COLUMNS, SETTLED_COLUMNS, Alarm, Schedule, Tx


def _many(n: int) -> list[NewSchedule]:
    return [a_schedule(f"s{number}") for number in range(n)]


class TestSchedules:
    """Existing definitions are found by slug, all of them by id."""

    async def test_each_new_schedule_gets_an_id_and_a_taken_slug_gets_none(self, make_store: MakeStore) -> None:
        """Results are in the order of the arguments; of two with the same slug the first wins, within a batch and
        across."""
        store = await make_store()
        for n in (1, 2, 10, 120):  # stores may write few and many rows differently
            first = await store.write(lambda tx: tx.schedules.add_many([a_schedule(f"{n}-{i}") for i in range(n)]))
            assert None not in first
            assert len(set(first)) == n
            stored = await store.read(lambda tx: tx.schedules.by_ids(first))
            assert [stored[key].slug for key in first] == [f"{n}-{i}" for i in range(n)]
            again = [a_schedule(f"{n}-new"), a_schedule(f"{n}-0"), a_schedule(f"{n}-new"), a_schedule(f"{n}-other")]
            fates = await store.write(lambda tx: tx.schedules.add_many(again))
            assert [fate is None for fate in fates] == [False, True, True, False]
            assert not set(first) & set(fates)

    async def test_a_new_schedule_reads_back_as_written(self, make_store: MakeStore) -> None:
        """It starts with version 1, updated when created, not deleted."""
        store = await make_store()
        new = a_schedule("mötley \N{ALARM CLOCK} 'slug'", definition='{"é": 1}', is_zoned=1)
        (schedule_id,) = await store.write(lambda tx: tx.schedules.add_many([new]))
        assert schedule_id is not None
        expected = Schedule(schedule_id, new.slug, new.definition, 1, 1, NOW, NOW, None)
        assert await store.read(lambda tx: tx.schedules.by_slugs([new.slug, "unknown"])) == {new.slug: expected}
        assert await store.read(lambda tx: tx.schedules.by_ids([schedule_id, 99])) == {schedule_id: expected}

    async def test_a_deleted_slug_is_free_and_its_id_is_not(self, make_store: MakeStore) -> None:
        """The next schedule of that name is a different one; the old one is still found by its id."""
        store = await make_store()
        (old_id,) = await store.write(lambda tx: tx.schedules.add_many([a_schedule("tea")]))
        assert old_id is not None
        old = (await store.read(lambda tx: tx.schedules.by_ids([old_id])))[old_id]._replace(deleted_at=NOW + 1)
        await store.write(lambda tx: tx.schedules.save_many([old]))
        assert await store.read(lambda tx: tx.schedules.by_slugs(["tea"])) == {}
        assert await store.read(lambda tx: tx.schedules.count()) == 0
        (new_id,) = await store.write(lambda tx: tx.schedules.add_many([a_schedule("tea")]))
        assert new_id not in (None, old_id)
        assert (await store.read(lambda tx: tx.schedules.by_ids([old_id])))[old_id] == old
        assert list(await store.read(lambda tx: tx.schedules.by_slugs(["tea"]))) == ["tea"]

    async def test_the_removed_are_found_by_their_slug(self, make_store: MakeStore) -> None:
        """Newest first, up to the limit; the existing one of that name is not included."""
        store = await make_store()
        removed: list[Schedule] = []
        for n in range(3):
            (known,) = await store.write(lambda tx: tx.schedules.add_many([a_schedule("tea")]))
            await store.write(lambda tx: tx.schedules.add_many([a_schedule(f"other-{n}")]))
            assert known is not None
            row = (await store.read(lambda tx: tx.schedules.by_ids([known])))[known]._replace(deleted_at=NOW + n)
            await store.write(lambda tx: tx.schedules.save_many([row]))
            removed.insert(0, row)
        await store.write(lambda tx: tx.schedules.add_many([a_schedule("tea")]))
        assert await store.read(lambda tx: tx.schedules.removed_by_slug("tea", limit=9)) == removed
        assert await store.read(lambda tx: tx.schedules.removed_by_slug("tea", limit=2)) == removed[:2]
        assert await store.read(lambda tx: tx.schedules.removed_by_slug("te", limit=9)) == []
        assert await store.read(lambda tx: tx.schedules.removed_by_slug("other-1", limit=9)) == []

    async def test_a_changed_definition_is_written_back_whole(self, make_store: MakeStore) -> None:
        """Every field that may change is stored, and no other schedule changes."""
        store = await make_store()
        one, two = await store.write(lambda tx: tx.schedules.add_many([a_schedule("a"), a_schedule("b")]))
        assert one is not None
        assert two is not None
        before = await store.read(lambda tx: tx.schedules.by_ids([one, two]))
        changed = before[one]._replace(slug="c", definition="{}", version=2, is_zoned=1, updated_at=NOW + 9)
        await store.write(lambda tx: tx.schedules.save_many([changed]))
        assert await store.read(lambda tx: tx.schedules.by_ids([one, two])) == {one: changed, two: before[two]}

    async def test_pages_tile_the_living_in_slug_order(self, make_store: MakeStore) -> None:
        """Paging by the last slug returns every existing schedule once."""
        store = await make_store()
        slugs = [f"s{n:02}" for n in (7, 3, 9, 1, 5, 8, 2)]
        await store.write(lambda tx: tx.schedules.add_many([a_schedule(slug) for slug in slugs]))
        dead = (await store.read(lambda tx: tx.schedules.by_slugs(["s05"])))["s05"]._replace(deleted_at=NOW)
        await store.write(lambda tx: tx.schedules.save_many([dead]))
        met: list[str] = []
        after: str | None = None
        while page := await store.read(lambda tx: tx.schedules.page(after=after, limit=2)):
            met += [row.slug for row in page]
            after = page[-1].slug
        assert met == ["s01", "s02", "s03", "s07", "s08", "s09"]
        assert await store.read(lambda tx: tx.schedules.count()) == 6

    async def test_a_page_may_keep_slugs_with_a_text_in_them(self, make_store: MakeStore) -> None:
        """The text is taken literally: no character is a wildcard."""
        store = await make_store()
        slugs = ["daily-tea", "tea", "coffee", "t%a", "t_a"]
        await store.write(lambda tx: tx.schedules.add_many([a_schedule(slug) for slug in slugs]))
        for text, found in (("tea", ["daily-tea", "tea"]), ("%", ["t%a"]), ("_", ["t_a"]), ("zzz", [])):
            page = await store.read(lambda tx: tx.schedules.page(after=None, limit=9, contains=text))
            assert [row.slug for row in page] == found
        page = await store.read(lambda tx: tx.schedules.page(after="daily-tea", limit=9, contains="tea"))
        assert [row.slug for row in page] == ["tea"]

    async def test_those_amiss_are_met_in_slug_order(self, make_store: MakeStore) -> None:
        """Existing schedules that are halted or failing, page by page; not healthy ones, nor those that are done."""
        store = await make_store()
        states: dict[str, State] = {
            "paused": "paused", "disabled": "disabled", "invalid": "invalid", "active": "active",
            "done": "done", "failing": "active", "gone": "paused",
        }  # fmt: skip
        ids = await store.write(lambda tx: tx.schedules.add_many([a_schedule(slug) for slug in states]))
        cadences = [
            a_cadence(key)._replace(state=state, trouble=BAD if slug == "failing" else WELL)
            for key, (slug, state) in zip(ids, states.items(), strict=True)
            if key is not None
        ]
        await store.write(lambda tx: tx.cadences.add_many(cadences))
        gone = (await store.read(lambda tx: tx.schedules.by_slugs(["gone"])))["gone"]._replace(deleted_at=NOW)
        await store.write(lambda tx: tx.schedules.save_many([gone]))
        first = await store.read(lambda tx: tx.schedules.amiss(after=None, limit=2))
        rest = await store.read(lambda tx: tx.schedules.amiss(after=first[-1].slug, limit=9))
        assert [row.slug for row in first + rest] == ["disabled", "failing", "invalid", "paused"]

    async def test_zoned_schedules_are_met_in_id_order(self, make_store: MakeStore) -> None:
        """Only existing ones that depend on a zone, page by page after an id."""
        store = await make_store()
        rows = [a_schedule(f"s{n}", is_zoned=n % 2) for n in range(6, 0, -1)]
        ids = await store.write(lambda tx: tx.schedules.add_many(rows))
        zoned = sorted(key for key, row in zip(ids, rows, strict=True) if row.is_zoned and key is not None)
        dead = (await store.read(lambda tx: tx.schedules.by_ids([zoned[1]])))[zoned[1]]._replace(deleted_at=NOW)
        await store.write(lambda tx: tx.schedules.save_many([dead]))
        first = await store.read(lambda tx: tx.schedules.zoned(after_id=0, limit=1))
        rest = await store.read(lambda tx: tx.schedules.zoned(after_id=first[0].schedule_id, limit=9))
        assert [row.schedule_id for row in first + rest] == [zoned[0], zoned[2]]

    async def test_nothing_asked_is_nothing_done(self, make_store: MakeStore) -> None:
        """Empty batches are valid everywhere."""
        store = await make_store()
        assert await store.write(lambda tx: tx.schedules.add_many([])) == []
        await store.write(lambda tx: tx.schedules.save_many([]))
        assert await store.read(lambda tx: (tx.schedules.by_slugs([]), tx.schedules.by_ids([]))) == ({}, {})


class TestCadences:
    """The state of a schedule is one row, found by id or by its alarm."""

    async def test_new_schedules_begin_in_groups(self, make_store: MakeStore) -> None:
        """Each gets the plan of its group and an alarm, whether there are many or one in it."""
        store = await make_store()
        ids = [key for key in await store.write(lambda tx: tx.schedules.add_many(_many(7))) if key is not None]
        active = begin(0, 1, Rules(Every(5, NOW)), now=NOW, state="active", reason=None)
        halted = begin(0, 1, Rules(Every(9, NOW)), now=NOW, state="disabled", reason="by a person")
        groups = [Beginning(active, NOW + 7, ids[:5]), Beginning(halted, None, ids[5:6]), Beginning(active, 3, ids[6:])]
        await store.write(lambda tx: tx.cadences.begin_many(groups))
        expected = {key: one.cadence._replace(schedule_id=key) for one in groups for key in one.schedule_ids}
        assert await store.read(lambda tx: tx.cadences.lock(ids)) == expected
        alarms = await store.read(lambda tx: tx.alarms.by_refs("schedule", ids))
        assert alarms == {key: schedule_alarm(key, one.due_at) for one in groups for key in one.schedule_ids}

    async def test_a_cadence_reads_back_as_written(self, make_store: MakeStore) -> None:
        """Every column, filled and empty, before and after a change."""
        store = await make_store()
        full = a_cadence(2)._replace(
            version=3, state="paused", state_reason="why", state_at=NOW + 1, resume_at=NOW + 2,
            planned_through=NOW + 3, next_at=None, ran_through=NOW + 4, backoff_until=NOW + 5, catch_up_until=NOW + 6,
            open_run_id=7, queued_run_id=8, last_row_id=9, consecutive_errors=10, last_run_at=NOW + 11,
            last_outcome="failed", last_error="no", last_success_at=NOW + 12, session_id="s",
            session_node="node",
        )  # fmt: skip
        await store.write(lambda tx: put_cadences(tx, a_cadence(1), full))
        assert await store.read(lambda tx: tx.cadences.lock([2, 1, 3])) == {1: a_cadence(1), 2: full}
        swapped = [full._replace(schedule_id=1), a_cadence(2)]
        await store.write(lambda tx: tx.cadences.save_many(swapped))
        assert await store.write(lambda tx: tx.cadences.lock(iter([1, 2]))) == {1: swapped[0], 2: swapped[1]}

    async def test_due_cadences_come_oldest_first(self, make_store: MakeStore) -> None:
        """Due means due by now, inclusive; inactive, parked and later ones are left out."""
        store = await make_store()
        alarms = [
            schedule_alarm(1, NOW),
            schedule_alarm(2, NOW - 5),
            schedule_alarm(3, NOW + 1),
            schedule_alarm(4, None),
            schedule_alarm(5, NOW - 9, priority=0),
            schedule_alarm(6, NOW - 7),
            schedule_alarm(7, NOW - 8, parked=1),
        ]
        await store.write(lambda tx: put_cadences(tx, *(a_cadence(n) for n in range(1, 9))))
        await store.write(lambda tx: tx.alarms.set_many(alarms))
        await store.write(lambda tx: tx.alarms.set_many([run_alarm(8, NOW - 99)]))
        due = await store.write(lambda tx: tx.cadences.due(now=NOW, limit=99))
        assert due == [a_cadence(n) for n in (5, 6, 2, 1)]
        assert await store.read(lambda tx: tx.cadences.due(now=NOW, limit=2)) == [a_cadence(5), a_cadence(6)]
        assert await store.read(lambda tx: tx.cadences.due(now=NOW - 10, limit=2)) == []

    async def test_the_lean_saves_write_their_columns_and_leave_the_rest(self, make_store: MakeStore) -> None:
        """Ringing and settling write only the columns they change; concurrent changes to other columns are kept."""
        store = await make_store()
        before = a_cadence(1)
        await store.write(lambda tx: tx.cadences.add_many([before, a_cadence(2)]))
        numbers: dict[str, Any] = {name: 40 + n for n, name in enumerate(PLANNED_COLUMNS)}
        planned = before._replace(**numbers)
        await store.write(
            lambda tx: tx.cadences.save_planned([planned._replace(session_id="not", session_node="written")])
        )
        assert (await store.read(lambda tx: tx.cadences.lock([1])))[1] == planned
        words: dict[str, Any] = {name: 60 + n for n, name in enumerate(SETTLED_COLUMNS)}
        said = {"state": "disabled", "state_reason": "why", "last_outcome": "failed", "last_error": "oh"}
        settled = planned._replace(**words | said | {"session_id": "s"})
        await store.write(lambda tx: tx.cadences.save_settled([settled._replace(session_node="not written")]))
        assert await store.read(lambda tx: tx.cadences.lock([1, 2])) == {1: settled, 2: a_cadence(2)}

    async def test_the_kinds_that_are_due_are_told(self, make_store: MakeStore) -> None:
        """Due by now, inclusive, with any priority; inactive, parked and later ones do not count."""
        store = await make_store()
        alarms = [
            Alarm("a", 1, NOW, 1, None, 0),
            Alarm("b", 1, NOW + 1, 0, None, 0),
            Alarm("b", 2, NOW - 5, 1, None, 0),
            Alarm("c", 1, NOW + 1, 1, None, 0),
            Alarm("d", 1, None, 1, None, 0),
            Alarm("e", 1, NOW - 9, 1, "lane", 1),
        ]
        assert await store.read(lambda tx: tx.alarms.due_kinds(now=NOW)) == set()
        await store.write(lambda tx: tx.alarms.set_many(alarms))
        assert await store.read(lambda tx: tx.alarms.due_kinds(now=NOW)) == {"a", "b"}
        assert await store.write(lambda tx: tx.alarms.due_kinds(now=NOW + 1)) == {"a", "b", "c"}

    async def test_the_first_in_line_is_held_off(self, make_store: MakeStore) -> None:
        """Of its kind, manual runs first, then the oldest; it rings later, and nothing else changes."""
        store = await make_store()
        rows = [
            Alarm("run", 1, NOW - 9, 1, None, 0),
            Alarm("run", 2, NOW - 5, 0, None, 0),
            Alarm("run", 3, NOW - 7, 1, "lane", 1),
            Alarm("run", 4, NOW + 1, 0, None, 0),
            Alarm("schedule", 2, NOW - 20, 1, None, 0),
        ]
        await store.write(lambda tx: tx.alarms.set_many(rows))
        held = [
            await store.write(lambda tx: tx.alarms.hold_off_first("run", now=NOW, until=NOW + 60)) for _ in range(3)
        ]
        assert held == [2, 1, None]
        found = await store.read(lambda tx: tx.alarms.by_refs("run", [1, 2, 3, 4]))
        assert found == {
            1: rows[0]._replace(due_at=NOW + 60),
            2: rows[1]._replace(due_at=NOW + 60),
            3: rows[2],
            4: rows[3],
        }
        assert await store.read(lambda tx: tx.alarms.by_refs("schedule", [2])) == {2: rows[4]}

    async def test_moving_an_alarm_changes_its_due_time_alone(self, make_store: MakeStore) -> None:
        """Alarms of that kind ring at another time, or not at all; one of another kind with the same ref is
        unchanged."""
        store = await make_store()
        rows = [
            Alarm("schedule", 1, NOW, 1, None, 0),
            Alarm("schedule", 2, NOW, 1, None, 0),
            Alarm("run", 1, NOW, 0, "l", 1),
        ]
        await store.write(lambda tx: tx.alarms.set_many(rows))
        await store.write(lambda tx: tx.alarms.move_many("schedule", [(1, NOW + 9), (2, None)]))
        found = await store.read(lambda tx: tx.alarms.by_refs("schedule", [1, 2]))
        assert found == {1: rows[0]._replace(due_at=NOW + 9), 2: rows[1]._replace(due_at=None)}
        assert await store.read(lambda tx: tx.alarms.by_refs("run", [1])) == {1: rows[2]}

    async def test_cadences_ahead_of_the_clock_come_in_id_order(self, make_store: MakeStore) -> None:
        """Planned strictly beyond now, up to the limit."""
        store = await make_store()
        rows = [a_cadence(n, planned_through=NOW + n - 3) for n in (6, 2, 5, 3, 4)]
        await store.write(lambda tx: put_cadences(tx, *rows))
        ahead = await store.write(lambda tx: tx.cadences.ahead_of(NOW, after_id=0, limit=2))
        assert [row.schedule_id for row in ahead] == [4, 5]
        ahead = await store.write(lambda tx: tx.cadences.ahead_of(NOW, after_id=0, limit=9))
        assert [row.schedule_id for row in ahead] == [4, 5, 6]


class TestAlarms:
    """Everything that must happen later is an alarm."""

    async def test_an_alarm_is_known_by_what_it_rings(self, make_store: MakeStore) -> None:
        """Setting it again moves it; the same ref under another kind is another alarm."""
        store = await make_store()
        await store.write(lambda tx: tx.alarms.set_many([run_alarm(1), schedule_alarm(1), run_alarm(2)]))
        moved = run_alarm(1, NOW + 5, priority=0, lane="l", parked=1)
        resting = run_alarm(2, None)
        await store.write(lambda tx: tx.alarms.set_many([moved, resting]))
        assert await store.read(lambda tx: tx.alarms.by_refs("run", [1, 2, 3])) == {1: moved, 2: resting}
        assert await store.read(lambda tx: tx.alarms.by_refs("schedule", [1, 2])) == {1: schedule_alarm(1)}

    async def test_a_removed_alarm_never_rings(self, make_store: MakeStore) -> None:
        """Deletes the named ones of that kind, and ignores missing ones."""
        store = await make_store()
        await store.write(lambda tx: tx.alarms.set_many([run_alarm(1), run_alarm(2), schedule_alarm(1)]))
        await store.write(lambda tx: tx.alarms.remove_many("run", [1, 7]))
        assert await store.read(lambda tx: tx.alarms.by_refs("run", [1, 2])) == {2: run_alarm(2)}
        assert await store.read(lambda tx: tx.alarms.by_refs("schedule", [1])) == {1: schedule_alarm(1)}
        await store.write(lambda tx: tx.alarms.remove_many("run", []))

    async def test_the_next_due_time_is_the_earliest_of_all(self, make_store: MakeStore) -> None:
        """Of any kind and priority, unless it is parked or inactive."""
        store = await make_store()
        assert await store.read(lambda tx: tx.alarms.next_due_at()) is None
        alarms = [run_alarm(1, None), run_alarm(2, NOW - 99, parked=1, lane="l")]
        await store.write(lambda tx: tx.alarms.set_many(alarms))
        assert await store.read(lambda tx: tx.alarms.next_due_at()) is None
        for earlier, alarm in enumerate(
            (
                schedule_alarm(1),
                run_alarm(3),
                run_alarm(4, priority=0),
                schedule_alarm(2, priority=0),
                schedule_alarm(3)._replace(kind="zebra"),
                schedule_alarm(3)._replace(kind="ant"),
            )
        ):
            due_at = NOW - earlier
            await store.write(lambda tx: tx.alarms.set_many([alarm._replace(due_at=due_at)]))
            assert await store.read(lambda tx: tx.alarms.next_due_at()) == due_at

    async def test_waiting_runs_can_be_brought_nearer(self, make_store: MakeStore) -> None:
        """Only run alarms: due strictly beyond, parked, or with an instant that lies ahead. Returns how many."""
        store = await make_store()
        alarms = [run_alarm(1, NOW), run_alarm(2, NOW + 1), run_alarm(3, NOW + 500, priority=0), run_alarm(4, None)]
        alarms += [run_alarm(6, NOW - 9, lane="l", parked=1), schedule_alarm(5, NOW + 500)]
        alarms += [run_alarm(7, NOW - 5), run_alarm(8, NOW - 5)]
        await store.write(lambda tx: put_runs(tx, a_run(7, due_at=NOW - 40), a_run(8, due_at=NOW - 60)))
        await store.write(lambda tx: tx.alarms.set_many(alarms))
        assert await store.write(lambda tx: tx.alarms.shift_waiting(by=400, beyond=NOW, now=NOW - 50)) == 4
        found = await store.read(lambda tx: tx.alarms.by_refs("run", range(9)))
        expected = {1: NOW, 2: NOW - 399, 3: NOW + 100, 4: None, 6: NOW - 409, 7: NOW - 405, 8: NOW - 5}
        assert {ref: alarm.due_at for ref, alarm in found.items()} == expected
        assert (await store.read(lambda tx: tx.alarms.by_refs("schedule", [5])))[5].due_at == NOW + 500

    async def test_due_is_seen_in_the_same_transaction(self, make_store: MakeStore) -> None:
        """An alarm that an operation has set is due for its next statement."""
        store = await make_store()

        def operation(tx: Tx) -> tuple[list[int], int | None]:
            put_runs(tx, a_run(1))
            tx.alarms.set_many([run_alarm(1, NOW)])
            return [row.run_id for row in tx.runs.due(now=NOW, limit=5)], tx.alarms.next_due_at()

        assert await store.write(operation) == ([1], NOW)
