# ruff: noqa: B023 - these are tests: they assert, and they await each lambda where they make it
"""Conformance: the outbox, the inbox, the last interactions, and the incidents."""

import asyncio
from functools import partial
from typing import Any

from conformance.rows import NOW, MakeStore
from wakeful.core.delivery.incidents import Incident
from wakeful.engine.incident_rows import Incidents
from wakeful.ports.inbox import Inbox, InboxItem
from wakeful.ports.interactions import Interaction, Interactions
from wakeful.ports.outbox import (
    ALARM_DELIVERY,
    ALARM_INCIDENT,
    Addressee,
    Addressees,
    Deliveries,
    Delivery,
    NewDelivery,
)
from wakeful.ports.store import Alarm, Store, Tx


def a_delivery(addressee: Addressee, text: str = "hello", **changes: Any) -> NewDelivery:
    """A delivery about to be written."""
    recipient = addressee.recipient or None
    return NewDelivery(
        addressee.addressee_id, addressee.channel, recipient, text, "message", NOW, NOW + 1_000, None, None
    )._replace(**changes)


async def put(store: Store, *texts: str, channel: str = "phone", to: str | None = None, **changes: Any) -> list[int]:
    """Write deliveries to one addressee; returns their ids."""

    def write(tx: Tx) -> list[int]:
        addressee = tx[Addressees].of(channel, to)
        made = [tx[Deliveries].add_new(a_delivery(addressee, text, **changes)) for text in texts]
        return [delivery_id for delivery_id in made if delivery_id is not None]

    return await store.write(write)


async def get(store: Store, delivery_id: int) -> Delivery:
    """A delivery that exists."""
    found = await store.read(lambda tx: tx[Deliveries].get(delivery_id))
    assert found is not None
    return found


class TestOutbox:
    """Deliveries and their addressees."""

    async def test_an_addressee_is_made_once(self, make_store: MakeStore) -> None:
        """Every caller, in any process, gets the same one; no recipient is a separate addressee."""
        one, other = await make_store(), await make_store()
        first = await one.write(lambda tx: tx[Addressees].of("phone", "7"))
        assert first == Addressee(first.addressee_id, "phone", "7", 0, None)
        assert await other.write(lambda tx: tx[Addressees].of("phone", "7")) == first
        others = [("phone", None), ("phone", "8"), ("hook", "7")]
        made = [await one.write(lambda tx: tx[Addressees].of(*who)) for who in others]
        assert len({first.addressee_id, *(row.addressee_id for row in made)}) == 4
        assert made[0].recipient == ""
        found = await one.read(lambda tx: tx[Addressees].lock([first.addressee_id, 999]))
        assert found == {first.addressee_id: first}
        listed = await one.read(lambda tx: tx[Addressees].page(after_id=first.addressee_id, limit=2))
        assert listed == made[:2]

    async def test_what_is_pending_for_an_addressee_may_be_hurried(self, make_store: MakeStore) -> None:
        """None of them waits beyond now; earlier, ended and other addressees' deliveries are unchanged."""
        store = await make_store()
        sooner, later, ended = await put(store, "sooner", "later", "ended")
        (other,) = await put(store, "other", to="7")

        def wait(tx: Tx) -> Addressee:
            for delivery_id, at in ((sooner, NOW - 5), (later, NOW + 500), (other, NOW + 500)):
                row = tx[Deliveries].get(delivery_id)
                assert row is not None
                tx[Deliveries].save(row._replace(next_attempt_at=at))
            row = tx[Deliveries].get(ended)
            assert row is not None
            tx[Deliveries].save(row._replace(status="dead", next_attempt_at=None, ended_at=NOW))
            return tx[Addressees].of("phone", None)

        addressee = await store.write(wait)
        await store.write(lambda tx: tx[Deliveries].hurry(addressee.addressee_id, now=NOW))
        found = [(await get(store, one)).next_attempt_at for one in (sooner, later, ended, other)]
        assert found == [NOW - 5, NOW, None, NOW + 500]

    async def test_many_make_the_same_addressee_at_once(self, make_store: MakeStore) -> None:
        """Only one is created, and deliveries queued for it have ids in the order of their commits."""
        stores = [await make_store() for _ in range(3)]
        written = await asyncio.gather(*(put(store, "x", to="7") for store in stores for _ in range(5)))
        ids = [delivery_id for (delivery_id,) in written]
        rows = [await get(stores[0], delivery_id) for delivery_id in ids]
        assert len(set(ids)) == 15
        assert len({row.addressee_id for row in rows}) == 1

    async def test_a_delivery_reads_back_as_it_was_written(self, make_store: MakeStore) -> None:
        """Pending, due immediately, not tried; and after a change as changed."""
        store = await make_store()
        (delivery_id,) = await put(store, "héllo\n", to="7", run_id=5, slug="daily")
        row = await get(store, delivery_id)
        assert row == Delivery(
            delivery_id, row.addressee_id, "phone", "7", "héllo\n", "message", "pending", 0, 0, None,
            NOW, NOW, NOW + 1_000, None, 5, "daily",
        )  # fmt: skip
        moved = row._replace(
            status="dead", attempts=6, parts_sent=2, last_error="no", next_attempt_at=None, expires_at=NOW, ended_at=NOW
        )
        await store.write(lambda tx: tx[Deliveries].save(moved))
        assert await get(store, delivery_id) == moved
        await store.write(lambda tx: tx[Deliveries].remove(delivery_id))
        assert await store.read(lambda tx: tx[Deliveries].get(delivery_id)) is None

    async def test_ids_are_never_given_twice(self, make_store: MakeStore) -> None:
        """Receivers identify a delivery by its id, so the id of a discarded one is not reused."""
        store = await make_store()
        (first,) = await put(store, "a")
        await store.write(lambda tx: tx[Deliveries].remove(first))
        (second,) = await put(store, "b")
        assert second > first
        assert await store.read(lambda tx: tx[Deliveries].last_id()) == second

    async def test_the_oldest_pending_one_is_first_in_line(self, make_store: MakeStore) -> None:
        """Of its addressee, whatever happened to others."""
        store = await make_store()
        a, b = await put(store, "a", "b")
        await put(store, "other", to="7")
        row = await get(store, a)

        async def head() -> int | None:
            found = await store.read(lambda tx: tx[Deliveries].head(row.addressee_id))
            return None if found is None else found.delivery_id

        assert await head() == a
        await store.write(lambda tx: tx[Deliveries].save(row._replace(status="delivered", ended_at=NOW)))
        assert await head() == b
        await store.write(lambda tx: tx[Deliveries].remove(b))
        assert await head() is None

    async def test_addressees_whose_alarm_is_due_are_found_and_held(self, make_store: MakeStore) -> None:
        """Oldest first, up to the limit, with their claim."""
        store = await make_store()

        def ready(tx: Tx) -> list[Addressee]:
            rows = [tx[Addressees].of("phone", str(n)) for n in range(4)]
            due = (NOW + 1, NOW - 5, NOW - 9, None)
            tx.alarms.set_many(
                [Alarm(ALARM_DELIVERY, row.addressee_id, at, 1, None, 0) for row, at in zip(rows, due, strict=True)]
            )
            tx[Addressees].save(rows[1]._replace(fence=3, claimed_until=NOW + 9))
            return rows

        rows = await store.write(ready)
        claimed = rows[1]._replace(fence=3, claimed_until=NOW + 9)
        assert await store.write(lambda tx: tx[Addressees].due(now=NOW, limit=9)) == [rows[2], claimed]
        assert await store.read(lambda tx: tx[Addressees].due(now=NOW, limit=1)) == [rows[2]]
        assert await store.read(lambda tx: tx.alarms.next_due_at()) == NOW - 9
        assert await store.read(lambda tx: tx.alarms.next_due_at(besides=[ALARM_DELIVERY])) is None

    async def test_lists_are_newest_first(self, make_store: MakeStore) -> None:
        """All or of one status, before an id."""
        store = await make_store()
        a, b, c = await put(store, "a", "b", "c")
        row = await get(store, b)
        await store.write(lambda tx: tx[Deliveries].save(row._replace(status="dead", ended_at=NOW)))

        async def page(**asked: Any) -> list[int]:
            found = await store.read(lambda tx: tx[Deliveries].page(**{"status": None, "before_id": None, **asked}))
            return [one.delivery_id for one in found]

        assert await page(limit=9) == [c, b, a]
        assert await page(limit=1, before_id=c) == [b]
        assert await page(limit=9, status="pending") == [c, a]
        assert await page(limit=9, status="pending", before_id=c) == [a]
        assert await page(limit=9, status="dead") == [b]
        assert await store.read(lambda tx: tx[Deliveries].open_counts()) == {"phone": {"pending": 2, "dead": 1}}

    async def test_what_runs_said_is_found_by_run(self, make_store: MakeStore) -> None:
        """All deliveries, in order."""
        store = await make_store()
        (a,) = await put(store, "a", run_id=5, to="7")
        (c,) = await put(store, "c", run_id=6)
        (b,) = await put(store, "b", run_id=5)
        found = await store.read(lambda tx: tx[Deliveries].of_runs([6, 5, 7]))
        assert {run_id: [row.delivery_id for row in rows] for run_id, rows in found.items()} == {5: [a, b], 6: [c]}
        assert await store.read(lambda tx: tx[Deliveries].of_runs([])) == {}

    async def test_a_run_tells_an_addressee_one_thing_of_each_purpose(self, make_store: MakeStore) -> None:
        """However many times it is requested, also after the first has ended; other runs and addressees are not
        affected."""
        store = await make_store()
        (first,) = await put(store, "reply", run_id=5, to="7")
        assert await put(store, "reply", "another", run_id=5, to="7") == []
        row = await get(store, first)
        await store.write(lambda tx: tx[Deliveries].save(row._replace(status="dead", ended_at=NOW)))
        assert await put(store, "reply", run_id=5, to="7") == []
        others = [
            await put(store, "reply", run_id=5, to="8"),
            await put(store, "reply", run_id=5, to="7", channel="mail"),
            await put(store, "reply", run_id=6, to="7"),
            await put(store, "no reply", run_id=5, to="7", purpose="note"),
            await put(store, "x", "x", to="7"),
        ]
        assert [len(made) for made in others] == [1, 1, 1, 1, 2]

    async def test_of_two_that_tell_at_once_one_does(self, make_store: MakeStore) -> None:
        """Two nodes that settle the same run cannot both write."""
        one, other = await make_store(), await make_store()
        made = await asyncio.gather(*(put(store, "reply", run_id=5, to="7") for store in (one, other) * 8))
        assert len([ids for ids in made if ids]) == 1

    async def test_what_ended_long_ago_is_forgotten_in_steps(self, make_store: MakeStore) -> None:
        """Never pending ones."""
        store = await make_store()
        ids = await put(store, *"abcd")
        for n, delivery_id in enumerate(ids[:3]):
            row = await get(store, delivery_id)
            await store.write(lambda tx: tx[Deliveries].save(row._replace(status="delivered", ended_at=NOW + n)))
        assert await store.write(lambda tx: tx[Deliveries].prune(before=NOW + 2, limit=1)) == 1
        assert await store.write(lambda tx: tx[Deliveries].prune(before=NOW + 2, limit=9)) == 1
        left = await store.read(lambda tx: tx[Deliveries].page(status=None, before_id=None, limit=9))
        assert [row.delivery_id for row in left] == [ids[3], ids[2]]

    async def test_what_has_no_date_is_as_old_as_the_next_one(self, make_store: MakeStore) -> None:
        """Delivered while the clock showed 1970: it is deleted with what was delivered after it."""
        store = await make_store()
        ids = await put(store, *"abc")
        for delivery_id, ended_at in zip(ids, (5, NOW, 6), strict=True):
            row = await get(store, delivery_id)
            ended = row._replace(status="delivered", ended_at=ended_at)
            await store.write(lambda tx: tx[Deliveries].save(ended))

        async def pruned(before: int) -> int:
            return await store.write(lambda tx: tx[Deliveries].prune(before=before, limit=9, since=NOW - 1_000))

        assert await pruned(NOW) == 0
        assert await pruned(NOW + 1) == 2
        assert await get(store, ids[2]) is not None


class TestChannels:
    """The last interaction on each channel."""

    async def test_the_last_word_counts_whatever_the_clock_says(self, make_store: MakeStore) -> None:
        """One per channel, newest first, and it survives a restart."""
        store = await make_store()
        assert await store.read(lambda tx: tx[Interactions].newest_first()) == []
        await store.write(lambda tx: tx[Interactions].touch("phone", "7", at=NOW))
        await store.write(lambda tx: tx[Interactions].touch("hook", None, at=NOW - 5))
        again = await make_store()
        phone, hook = Interaction("phone", "7", NOW), Interaction("hook", None, NOW - 5)
        assert await again.read(lambda tx: tx[Interactions].newest_first()) == [hook, phone]
        await again.write(lambda tx: tx[Interactions].touch("phone", "8", at=NOW - 9))
        moved = Interaction("phone", "8", NOW - 9)
        assert await store.read(lambda tx: tx[Interactions].newest_first()) == [moved, hook]


class TestInbox:
    """The inbox of the page."""

    async def test_a_delivery_lies_there_once(self, make_store: MakeStore) -> None:
        """Sent again, it is unchanged."""
        store = await make_store()

        def add(tx: Tx) -> None:
            tx[Inbox].add_item(delivery_id=5, text="hello", slug="daily", run_id=3, at=NOW)

        await store.write(add)
        await store.write(add)
        (item,) = await store.read(lambda tx: tx[Inbox].page(is_unread=False, before_id=None, limit=9))
        assert item == InboxItem(item.item_id, 5, "hello", "daily", 3, NOW, None)
        assert await store.read(lambda tx: tx[Inbox].get(item.item_id)) == item

    async def test_items_are_read_and_taken_away(self, make_store: MakeStore) -> None:
        """And marked unread again; a missing item is reported."""
        store = await make_store()
        for n in range(3):
            await store.write(
                lambda tx: tx[Inbox].add_item(delivery_id=n, text=str(n), slug=None, run_id=None, at=NOW + n)
            )

        async def page(**asked: Any) -> list[int]:
            found = await store.read(lambda tx: tx[Inbox].page(**{"is_unread": False, "before_id": None, **asked}))
            return [one.item_id for one in found]

        c, b, a = await page(limit=9)
        assert await page(limit=1, before_id=c) == [b]
        assert await store.write(lambda tx: tx[Inbox].mark_read(b, at=NOW)) is True
        assert await page(limit=9, is_unread=True) == [c, a]
        assert await page(limit=9, is_unread=True, before_id=c) == [a]
        assert await store.read(lambda tx: tx[Inbox].unread()) == 2
        assert await store.write(lambda tx: tx[Inbox].mark_read(b, at=None)) is True
        assert await store.read(lambda tx: tx[Inbox].unread()) == 3
        assert await store.write(lambda tx: tx[Inbox].mark_read(999, at=NOW)) is False
        assert await store.write(lambda tx: tx[Inbox].mark_all_read(at=NOW)) == 3
        assert await store.write(lambda tx: tx[Inbox].mark_all_read(at=NOW)) == 0
        assert await store.read(lambda tx: tx[Inbox].unread()) == 0
        assert await store.write(lambda tx: tx[Inbox].remove(c)) is True
        assert await store.write(lambda tx: tx[Inbox].remove(c)) is False
        assert await store.write(lambda tx: tx[Inbox].prune(before=NOW + 1, limit=9)) == 1
        assert await page(limit=9) == [b]


class TestIncidents:
    """The incidents people were alerted about."""

    async def test_an_incident_is_written_moved_and_found_again(self, make_store: MakeStore) -> None:
        """One per name is open at a time; closed ones are found by name and by their end."""
        store = await make_store()
        row = Incident(0, "failing:7", "boom", NOW, NOW, 1, None, "watched", 7, 70, 1, 0, NOW + 5, channel="phone")
        first = await store.write(lambda tx: tx[Incidents].add_unless_open(row))
        assert first is not None
        assert await store.write(lambda tx: tx[Incidents].add_unless_open(row)) is None
        written = row._replace(incident_id=first)
        assert await store.read(lambda tx: tx[Incidents].get(first)) == written
        assert await store.write(lambda tx: tx[Incidents].lock_open(["failing:7", "failing:8"])) == {
            "failing:7": written
        }
        closed = written._replace(stage="reported", told_at=NOW + 5, closed_at=NOW + 9, quiet_until=NOW + 99, good=2)
        await store.write(lambda tx: tx[Incidents].save(closed))
        assert await store.read(lambda tx: tx[Incidents].lock_open(["failing:7"])) == {}
        second = await store.write(lambda tx: tx[Incidents].add_unless_open(row))
        assert second is not None
        later = row._replace(incident_id=second, closed_at=NOW + 20)
        await store.write(lambda tx: tx[Incidents].save(later))
        assert await store.read(lambda tx: tx[Incidents].last_over("failing:7", now=NOW + 20)) == later
        assert await store.read(lambda tx: tx[Incidents].last_over("failing:7", now=NOW + 19)) == closed
        assert await store.read(lambda tx: tx[Incidents].last_over("failing:8", now=NOW + 20)) is None
        assert await store.read(lambda tx: tx[Incidents].recent(limit=9)) == [later, closed]
        assert await store.read(lambda tx: tx[Incidents].recent(limit=1)) == [later]
        await store.write(lambda tx: tx[Incidents].remove(second))
        assert await store.read(lambda tx: tx[Incidents].get(second)) is None

    async def test_an_incident_rings_by_its_alarm(self, make_store: MakeStore) -> None:
        """Those that are due, oldest first, up to the limit."""
        store = await make_store()
        alarms = []
        for n in (3, 1, 2):
            row = Incident(0, f"x:{n}", "no", NOW, NOW, 1, None, "watched", look_at=NOW + n)
            added = await store.write(partial(_add_incident, row=row))
            alarms.append(Alarm(ALARM_INCIDENT, added, NOW + n, 1, None, 0))
        await store.write(lambda tx: tx.alarms.set_many(alarms))
        due = await store.write(lambda tx: tx[Incidents].due(now=NOW + 2, limit=9))
        assert [row.name for row in due] == ["x:1", "x:2"]
        assert [row.name for row in await store.read(lambda tx: tx[Incidents].due(now=NOW + 9, limit=1))] == ["x:1"]

    async def test_an_incident_is_told_once(self, make_store: MakeStore) -> None:
        """Raised again it is counted; once it is closed, it can be opened again."""
        store = await make_store()
        assert await store.write(lambda tx: tx[Incidents].note("x:1", "no", at=NOW)) is True
        assert await store.write(lambda tx: tx[Incidents].note("x:1", "never", at=NOW + 1)) is False
        assert await store.write(lambda tx: tx[Incidents].note("x:2", "no", at=NOW)) is True
        first, second = await store.read(lambda tx: tx[Incidents].open())
        assert first == Incident(first.incident_id, "x:1", "no", NOW, NOW + 1, 2, None, told_at=NOW)
        assert await store.write(lambda tx: tx[Incidents].close(["x:1", "x:9"], at=NOW + 2)) == [first]
        assert await store.write(lambda tx: tx[Incidents].close(["x:1"], at=NOW + 3)) == []
        assert await store.read(lambda tx: tx[Incidents].open()) == [second]
        assert await store.write(lambda tx: tx[Incidents].note("x:1", "no", at=NOW + 4)) is True
        assert await store.write(lambda tx: tx[Incidents].prune(before=NOW + 2, limit=9)) == 0
        assert await store.write(lambda tx: tx[Incidents].prune(before=NOW + 3, limit=9)) == 1
        assert len(await store.read(lambda tx: tx[Incidents].open())) == 2

    async def test_of_many_that_raise_it_one_opens_it(self, make_store: MakeStore) -> None:
        """On several nodes at the same time."""
        stores = [await make_store() for _ in range(3)]
        told = await asyncio.gather(
            *(store.write(lambda tx: tx[Incidents].note("x", "no", at=NOW)) for store in stores for _ in range(4))
        )
        assert sorted(told) == [False] * 11 + [True]


def _add_incident(tx: Tx, row: Incident) -> int:
    added = tx[Incidents].add_unless_open(row)
    assert added is not None
    return added
