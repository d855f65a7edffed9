# ruff: noqa: B023 - these are tests: they assert, and they await each lambda where they make it
"""Conformance: quota slots, their alarms and their readings."""

from typing import Any

from conformance.rows import NOW, MakeStore, a_gap, a_schedule, closed, put_runs
from wakeful.core.slot.slot import Slot, new_slot
from wakeful.ports.owners import Owners
from wakeful.ports.slots import ALARM_POLL, ALARM_STATS, ALARM_WAKE, QuotaSlots, Read, SlotReadings
from wakeful.ports.store import Alarm, Tx


def _full(slot: Slot) -> Slot:
    """The slot with a value in every column."""
    texts = {"definition", "key_mark", "modes", "reading", "error", "stats", "wake_error", "times_served"}
    full: dict[str, Any] = {
        name: f"{name} \N{ALARM CLOCK} 'x'" if name in texts else NOW + place
        for place, name in enumerate(slot._fields)
        if name not in ("slot_id", "name")
    }
    return slot._replace(**full)


class TestSlots:
    """The states of quota slots."""

    async def test_a_new_slot_reads_back_as_written_and_its_name_is_taken(self, make_store: MakeStore) -> None:
        """Whether the settings or a person defined it."""
        store = await make_store()
        added = await store.write(lambda tx: tx[QuotaSlots].add_new("main", '{"é": 1}', now=NOW))
        assert added is not None
        assert added == new_slot(added.slot_id, "main", '{"é": 1}', now=NOW)
        assert await store.write(lambda tx: tx[QuotaSlots].add_new("main", None, now=NOW + 1)) is None
        other = await store.write(lambda tx: tx[QuotaSlots].add_new("alt", None, now=NOW))
        assert other is not None
        assert await store.read(lambda tx: tx[QuotaSlots].all()) == [other, added]
        assert await store.read(lambda tx: tx[QuotaSlots].by_names(["main", "none"])) == {"main": added}
        assert await store.read(lambda tx: tx[QuotaSlots].by_names([])) == {}
        assert await store.write(lambda tx: tx[QuotaSlots].lock([added.slot_id, 99])) == {added.slot_id: added}

    async def test_every_column_is_written_back(self, make_store: MakeStore) -> None:
        """And only of the given rows."""
        store = await make_store()

        def put(tx: Tx) -> tuple[Slot, Slot]:
            one, two = tx[QuotaSlots].add_new("one", None, now=NOW), tx[QuotaSlots].add_new("two", None, now=NOW)
            assert one is not None and two is not None
            tx[QuotaSlots].save_many([_full(one)])
            tx[QuotaSlots].save_many([])
            return one, two

        one, two = await store.write(put)
        assert await store.read(lambda tx: tx[QuotaSlots].all()) == [_full(one), two]

    async def test_rows_that_reach_beyond_an_instant_are_found(self, make_store: MakeStore) -> None:
        """By when they were planned, until when, or when they started; of one slot."""
        store = await make_store()

        def put(tx: Tx) -> None:
            mine, other = tx[Owners].named("slot:main"), tx[Owners].named("slot:other")
            rows = [
                closed(1, NOW, schedule_id=mine, occurrence=-1, planned_at=NOW - 5, started_at=NOW),
                closed(2, NOW, schedule_id=mine, occurrence=-2, planned_at=NOW - 5, started_at=NOW + 1),
                a_gap(3, NOW - 9, NOW + 1, 2, schedule_id=mine, occurrence=-3),
                closed(4, NOW, schedule_id=mine, occurrence=-4, planned_at=NOW + 1, started_at=NOW + 1),
                closed(5, NOW, schedule_id=other, occurrence=-5, planned_at=NOW + 1, started_at=NOW + 1),
            ]
            put_runs(tx, *rows)

        await store.write(put)
        owner = await store.write(lambda tx: tx[Owners].named("slot:main"))
        assert await store.read(lambda tx: tx[QuotaSlots].rows_beyond(owner, after=NOW)) == [2, 3, 4]

    async def test_each_side_is_due_by_its_own_alarm(self, make_store: MakeStore) -> None:
        """Oldest first, up to the limit; an inactive or later alarm does not count."""
        store = await make_store()

        def put(tx: Tx) -> list[int]:
            slots = [tx[QuotaSlots].add_new(f"s{n}", None, now=NOW) for n in range(4)]
            ids = [slot.slot_id for slot in slots if slot is not None]
            due = {ALARM_WAKE: (NOW, NOW - 5, None, NOW + 1), ALARM_POLL: (None, None, NOW - 1, NOW - 2)}
            tx.alarms.set_many(
                [Alarm(kind, ids[n], at, 1, None, 0) for kind, times in due.items() for n, at in enumerate(times)]
            )
            return ids

        ids = await store.write(put)
        for kind, expected in {ALARM_WAKE: [1, 0], ALARM_POLL: [3, 2], ALARM_STATS: []}.items():
            rows = await store.write(lambda tx: tx[QuotaSlots].due_by(kind, now=NOW, limit=9))
            assert [row.slot_id for row in rows] == [ids[n] for n in expected]
            first = await store.read(lambda tx: tx[QuotaSlots].due_by(kind, now=NOW, limit=1))
            assert [row.slot_id for row in first] == [ids[n] for n in expected[:1]]

    async def test_a_removed_slot_is_gone_with_its_readings_and_its_name_is_free(self, make_store: MakeStore) -> None:
        """The next one of that name is a different one."""
        store = await make_store()
        old = await store.write(lambda tx: tx[QuotaSlots].add_new("main", None, now=NOW))
        assert old is not None
        await store.write(lambda tx: tx[SlotReadings].keep(Read(old.slot_id, NOW, "{}"), since=0))
        await store.write(lambda tx: tx[QuotaSlots].remove(old.slot_id))
        assert await store.read(lambda tx: tx[QuotaSlots].all()) == []
        assert await store.read(lambda tx: tx[SlotReadings].newest(old.slot_id, since=0, limit=9)) == []
        new = await store.write(lambda tx: tx[QuotaSlots].add_new("main", None, now=NOW))
        assert new is not None
        assert new.slot_id != old.slot_id

    async def test_readings_are_kept_in_order_and_forgotten_by_age(self, make_store: MakeStore) -> None:
        """The newest ones, oldest first; two of the same millisecond are one; other slots keep theirs."""
        store = await make_store()
        for at, text in ((NOW, "a"), (NOW + 10, "b"), (NOW + 20, "c"), (NOW + 20, "d")):
            await store.write(lambda tx: tx[SlotReadings].keep(Read(1, at, text), since=0))
        await store.write(lambda tx: tx[SlotReadings].keep(Read(2, NOW - 5, "x"), since=0))

        async def kept(slot_id: int, since: int = 0, limit: int = 9) -> list[str]:
            rows = await store.read(lambda tx: tx[SlotReadings].newest(slot_id, since=since, limit=limit))
            return [row.reading for row in rows]

        assert await kept(1) == ["a", "b", "d"]
        assert await kept(1, limit=2) == ["b", "d"]
        assert await kept(1, since=NOW + 11) == ["d"]
        await store.write(lambda tx: tx[SlotReadings].keep(Read(1, NOW + 30, "e"), since=NOW + 10))
        assert (await kept(1), await kept(2)) == (["b", "d", "e"], ["x"])

    async def test_schedules_that_name_a_slot_are_found(self, make_store: MakeStore) -> None:
        """Existing ones whose definition mentions one, in id order, page by page."""
        store = await make_store()
        texts = (
            '{"slot":"main"}',
            '{"slot":null}',
            '{"schedule":{"type":"afterReset","slot":"other"}}',
            '{"lane":"x"}',
        )
        rows = [a_schedule(f"s{n}", definition=text) for n, text in enumerate(texts)]
        ids = [known for known in await store.write(lambda tx: tx.schedules.add_many(rows)) if known is not None]
        found = await store.read(lambda tx: tx.schedules.naming_slot(after_id=0, limit=9))
        assert [row.schedule_id for row in found] == [ids[0], ids[2]]
        rest = await store.read(lambda tx: tx.schedules.naming_slot(after_id=ids[0], limit=1))
        assert [row.slug for row in rest] == ["s2"]

    async def test_schedules_that_wait_for_a_reset_are_found(self, make_store: MakeStore) -> None:
        """Existing ones that mention the kind, in id order, page by page."""
        store = await make_store()
        waiting = '{"schedule":{"type":"afterReset","slot":"main"}}'
        rows = [a_schedule(f"s{n}", **({"definition": waiting} if n % 2 else {})) for n in range(8)]
        ids = [known for known in await store.write(lambda tx: tx.schedules.add_many(rows)) if known is not None]
        removed = (await store.read(lambda tx: tx.schedules.by_ids([ids[3]])))[ids[3]]._replace(deleted_at=NOW)
        await store.write(lambda tx: tx.schedules.save_many([removed]))

        async def found(after_id: int, limit: int) -> list[int]:
            rows = await store.read(lambda tx: tx.schedules.after_reset(after_id=after_id, limit=limit))
            return [row.schedule_id for row in rows]

        assert await found(0, 9) == [ids[1], ids[5], ids[7]]
        assert await found(ids[1], 1) == [ids[5]]
