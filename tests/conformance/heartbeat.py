"""Conformance: the heartbeat and the system events."""

from typing import Any

from conformance.rows import NOW, MakeStore
from wakeful.core.heartbeat.heartbeat import Heartbeat
from wakeful.ports.heartbeats import Heartbeats, WaitingEvents
from wakeful.ports.store import ALARM_HEARTBEAT, Alarm, NewEvent, Tx


def a_heartbeat(owner_id: int = -1, **changes: Any) -> Heartbeat:
    """A heartbeat that was never woken."""
    return Heartbeat(owner_id, 60_000, NOW, "[]", None, None, None, None, "[]", None)._replace(**changes)


def an_event(key: str | None = "cron:tea", **changes: Any) -> NewEvent:
    """An event about to be raised."""
    return NewEvent(key, "cron", "time for tea", NOW, "tea", None)._replace(**changes)


class TestHeartbeats:
    """The state of the heartbeat is one row, found by its owner or by its alarm."""

    async def test_it_reads_back_as_written(self, make_store: MakeStore) -> None:
        """Every column, empty and filled; adding it again changes nothing."""
        store = await make_store()
        new = a_heartbeat()
        await store.write(lambda tx: tx[Heartbeats].add_first(new))
        assert await store.read(lambda tx: tx[Heartbeats].lock([-1, -9])) == {-1: new}
        full = Heartbeat(-1, 1_000, 7, '[["cron",0,2]]', 1, 2, 3, 4, "[5, 6]", 8)
        await store.write(lambda tx: tx[Heartbeats].save(full))
        await store.write(lambda tx: tx[Heartbeats].add_first(new))
        assert await store.write(lambda tx: tx[Heartbeats].lock([-1])) == {-1: full}

    async def test_it_is_due_when_its_alarm_is(self, make_store: MakeStore) -> None:
        """Not before, and not without one."""
        store = await make_store()

        def put(tx: Tx) -> None:
            tx[Heartbeats].add_first(a_heartbeat(-1))
            tx[Heartbeats].add_first(a_heartbeat(-2))
            tx.alarms.set_many([Alarm(ALARM_HEARTBEAT, -1, NOW, 1, None, 0), Alarm("run", -2, NOW, 1, None, 0)])

        await store.write(put)
        assert await store.write(lambda tx: tx[Heartbeats].due(now=NOW - 1, limit=9)) == []
        assert await store.write(lambda tx: tx[Heartbeats].due(now=NOW, limit=9)) == [a_heartbeat(-1)]
        assert await store.read(lambda tx: tx[Heartbeats].due(now=NOW, limit=9)) == [a_heartbeat(-1)]
        assert await store.read(lambda tx: tx.alarms.next_due_at()) == NOW


class TestSystemEvents:
    """The events that wait for the next turn: one per key, until they are removed."""

    async def test_a_newer_one_takes_the_place_of_the_older_of_its_key(self, make_store: MakeStore) -> None:
        """It keeps the id, and its revision grows; an event without a key replaces nothing."""
        store = await make_store()
        first, none = await store.write(lambda tx: tx[WaitingEvents].add_or_replace(an_event(run_id=3)))
        assert none is None
        assert first[1:] == ("cron:tea", "cron", "time for tea", NOW, 1, "tea", 3, None, None)
        newer = an_event(text="mötley \N{ALARM CLOCK} 'tea'", source="hook", raised_at=NOW + 5, slug=None)
        second, replaced = await store.write(lambda tx: tx[WaitingEvents].add_or_replace(newer))
        assert replaced == first
        assert second == first._replace(
            text=newer.text, source="hook", raised_at=NOW + 5, slug=None, run_id=None, revision=2
        )
        loose = [await store.write(lambda tx: tx[WaitingEvents].add_or_replace(an_event(None))) for _ in range(2)]
        assert [row.context_key for row, _ in loose] == [None, None]
        assert await store.read(lambda tx: tx[WaitingEvents].all()) == [*(row for row, _ in loose), second]

    async def test_it_is_found_by_the_run_that_waits_for_it(self, make_store: MakeStore) -> None:
        """Until another event replaces it."""
        store = await make_store()
        first, _ = await store.write(lambda tx: tx[WaitingEvents].add_or_replace(an_event(run_id=3)))
        assert await store.read(lambda tx: tx[WaitingEvents].of_run(3)) == first
        await store.write(lambda tx: tx[WaitingEvents].add_or_replace(an_event(run_id=4)))
        assert await store.read(lambda tx: tx[WaitingEvents].of_run(3)) is None

    async def test_what_a_run_carried_is_its_own_only_in_that_revision(self, make_store: MakeStore) -> None:
        """A run does not acknowledge an event that changed since, arrived since, or was passed to a later run."""
        store = await make_store()
        for key in ("a", "b", "c"):
            await store.write(lambda tx, key=key: tx[WaitingEvents].add_or_replace(an_event(key)))  # type: ignore[misc]
        given = await store.write(lambda tx: tx[WaitingEvents].carry(7))
        assert [(row.context_key, row.carried_by, row.carried_revision) for row in given] == [
            ("a", 7, 1),
            ("b", 7, 1),
            ("c", 7, 1),
        ]
        await store.write(lambda tx: tx[WaitingEvents].add_or_replace(an_event("b", text="anew")))
        await store.write(lambda tx: tx[WaitingEvents].add_or_replace(an_event("d")))
        carried = await store.write(lambda tx: tx[WaitingEvents].carried(7))
        assert [row.context_key for row in carried] == ["a", "c"]
        await store.write(lambda tx: tx[WaitingEvents].remove_many([carried[0].event_id]))
        assert [row.context_key for row in await store.read(lambda tx: tx[WaitingEvents].all())] == ["b", "c", "d"]
        await store.write(lambda tx: tx[WaitingEvents].carry(8))
        assert await store.read(lambda tx: tx[WaitingEvents].carried(7)) == []
        assert len(await store.read(lambda tx: tx[WaitingEvents].carried(8))) == 3
