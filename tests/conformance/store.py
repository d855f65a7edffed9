# ruff: noqa: B023 - these are tests: they assert, and they await each lambda where they make it
"""Conformance: lanes, nodes, values, and the guarantees of a transaction."""

import asyncio
from functools import partial
from typing import Literal

import pytest

from conformance.rows import (
    NOW,
    MakeStore,
    a_node,
    a_run,
    a_schedule,
    closed,
    put_runs,
    run_alarm,
    running,
    schedule_alarm,
)
from wakeful.api.login_rows import Login
from wakeful.api.login_rows import Logins as LoginRows
from wakeful.ports.meta import Meta
from wakeful.ports.owners import Owners
from wakeful.ports.releases import RELEASE
from wakeful.ports.store import Node, Store, StoreUnavailable, Tx
from wakeful.server.http.kept_rows import Answer, Answers


async def _parked(store: Store) -> list[int]:
    """Which of the first hundred run alarms are parked."""
    alarms = await store.read(lambda tx: tx.alarms.by_refs("run", range(100)))
    return sorted(ref for ref, alarm in alarms.items() if alarm.parked)


class TestLanes:
    """One run at a time per lane (L5)."""

    async def test_the_first_in_order_gets_a_free_lane(self, make_store: MakeStore) -> None:
        """Requesting a held lane returns nothing, and its holder keeps it."""
        store = await make_store()
        wanted = [("b", 5), ("a", 9), ("b", 1), ("a", 2)]
        assert await store.write(lambda tx: tx.lanes.take_many(wanted)) == {5, 9}
        assert await store.read(lambda tx: tx.lanes.holders()) == {"a": 9, "b": 5}
        assert await store.write(lambda tx: tx.lanes.take_many([("a", 3), ("c", 4), ("a", 9)])) == {4, 9}
        assert await store.read(lambda tx: tx.lanes.holders()) == {"a": 9, "b": 5, "c": 4}
        assert await store.write(lambda tx: tx.lanes.take_many([])) == set()

    async def test_a_lane_is_freed_by_its_holder_only(self, make_store: MakeStore) -> None:
        """A late free of another run's lane changes nothing and unparks nothing."""
        store = await make_store()

        def put(tx: Tx) -> None:
            tx.lanes.take_many([("a", 1), ("b", 2)])
            tx.alarms.set_many([run_alarm(3, lane="a", parked=1)])

        await store.write(put)
        await store.write(lambda tx: tx.lanes.free_many([("a", 9), ("b", 2), ("zzz", 7)]))
        assert await store.read(lambda tx: tx.lanes.holders()) == {"a": 1}
        assert await _parked(store) == [3]
        await store.write(lambda tx: tx.lanes.free_many([]))

    async def test_freeing_a_lane_lets_the_best_one_ring(self, make_store: MakeStore) -> None:
        """Manual runs first, then the oldest due, then the lowest id; one at a time, of that lane only."""
        store = await make_store()
        parked = [
            run_alarm(4, NOW - 5, lane="a", parked=1),
            run_alarm(3, NOW - 5, lane="a", parked=1),
            run_alarm(5, NOW - 9, lane="a", parked=1),
            run_alarm(6, NOW, lane="a", parked=1, priority=0),
            run_alarm(7, NOW - 99, lane="b", parked=1),
        ]
        await store.write(lambda tx: tx.alarms.set_many(parked))
        await store.write(lambda tx: put_runs(tx, *(a_run(n, lane="a", priority=int(n != 6)) for n in range(3, 7))))
        holder = 1
        for expected in (6, 5, 3, 4):
            assert await store.write(lambda tx: tx.lanes.take_many([("a", holder)])) == {holder}
            await store.write(lambda tx: tx.lanes.free_many([("a", holder)]))
            due = await store.write(lambda tx: tx.runs.due(now=NOW, limit=9))
            assert [row.run_id for row in due] == [expected]
            await store.write(lambda tx: tx.alarms.remove_many("run", [expected]))
            holder = expected
        assert await _parked(store) == [7]

    async def test_a_run_that_leaves_without_its_lane_lets_the_next_one_ring(self, make_store: MakeStore) -> None:
        """Freeing a lane that is not held still unparks its head: otherwise those behind would be parked forever."""
        store = await make_store()
        await store.write(lambda tx: tx.lanes.take_many([("a", 1)]))
        parked = [run_alarm(n, NOW + n, lane="a", parked=1) for n in (2, 3, 4)]
        await store.write(lambda tx: tx.alarms.set_many(parked))
        await store.write(lambda tx: tx.lanes.free_many([("a", 1)]))
        assert await _parked(store) == [3, 4]
        await store.write(lambda tx: tx.lanes.free_many([("a", 2), ("a", 2)]))
        assert await _parked(store) == [4]

    async def test_a_lane_freed_and_taken_again_in_one_transaction(self, make_store: MakeStore) -> None:
        """Settling and claiming may happen in one operation."""
        store = await make_store()
        await store.write(lambda tx: tx.lanes.take_many([("a", 1)]))

        def hand_over(tx: Tx) -> set[int]:
            tx.lanes.free_many([("a", 1)])
            return tx.lanes.take_many([("a", 2), ("a", 1)])

        assert await store.write(hand_over) == {2}
        assert await store.read(lambda tx: tx.lanes.holders()) == {"a": 2}

    async def test_a_lane_is_never_held_twice_whoever_asks(self, make_store: MakeStore) -> None:
        """Many claim and free concurrently over two connections; a lane never has more than one holder."""
        stores = [await make_store(), await make_store()]
        inside: dict[str, int] = {}
        turns = 0

        async def worker(run_id: int) -> None:
            nonlocal turns
            store = stores[run_id % 2]
            lane = f"lane-{run_id % 3}"
            for _ in range(12):
                if run_id in await store.write(lambda tx: tx.lanes.take_many([(lane, run_id)])):
                    assert inside.setdefault(lane, run_id) == run_id
                    turns += 1
                    await asyncio.sleep(0)
                    del inside[lane]
                    await store.write(lambda tx: tx.lanes.free_many([(lane, run_id)]))

        await asyncio.gather(*(worker(n) for n in range(1, 13)))
        assert turns >= 3
        assert await stores[0].read(lambda tx: tx.lanes.holders()) == {}


class TestNodes:
    """Leases belong to incarnations."""

    async def test_a_new_incarnation_is_known_as_registered(self, make_store: MakeStore) -> None:
        """It starts idle, ticking now, with its lease; every registration is another incarnation."""
        store = await make_store()
        first = await store.write(a_node)
        second = await store.write(lambda tx: a_node(tx, name="b", host="there", pid=2, now=NOW + 1, capacity=3))
        assert second > first
        assert await store.read(lambda tx: tx.nodes.all()) == [
            Node(first, "a", "here", 1, NOW, NOW + 60_000, NOW, 0, 0, 8, None, release=RELEASE),
            Node(second, "b", "there", 2, NOW + 1, NOW + 60_000, NOW + 1, 0, 0, 3, None, release=RELEASE),
        ]

    async def test_a_lease_is_held_until_it_is_taken(self, make_store: MakeStore) -> None:
        """Checked before every claim: a node that was declared dead claims nothing more."""
        store = await make_store()
        node_id = await store.write(a_node)
        assert await store.write(lambda tx: tx.nodes.hold(node_id))
        assert not await store.write(lambda tx: tx.nodes.hold(node_id + 1))
        await store.write(lambda tx: tx.nodes.void([node_id], now=NOW))
        assert not await store.write(lambda tx: tx.nodes.hold(node_id))

    async def test_renewing_pushes_the_lease_out_until_it_is_taken(self, make_store: MakeStore) -> None:
        """After that the call returns False, and its row is unchanged."""
        store = await make_store()
        node_id = await store.write(a_node)

        def renew(tx: Tx, at: int) -> bool:
            return tx.nodes.renew(node_id, now=at, lease_until=at + 10, lag=3, running=2, capacity=5)

        assert await store.write(lambda tx: renew(tx, NOW + 50))
        expected = Node(node_id, "a", "here", 1, NOW, NOW + 60, NOW + 50, 3, 2, 5, None, release=RELEASE)
        assert await store.read(lambda tx: tx.nodes.all()) == [expected]
        await store.write(lambda tx: tx.nodes.void([node_id], now=NOW + 70))
        assert not await store.write(lambda tx: renew(tx, NOW + 80))
        assert await store.read(lambda tx: tx.nodes.all()) == [expected._replace(voided_at=NOW + 70)]
        assert not await store.write(
            lambda tx: tx.nodes.renew(99, now=NOW, lease_until=NOW, lag=0, running=0, capacity=5)
        )

    async def test_a_lease_is_over_at_its_end(self, make_store: MakeStore) -> None:
        """Expired are nodes that are not voided and whose lease has ended, or ends implausibly late."""
        store = await make_store()
        ids = [await store.write(lambda tx: a_node(tx, lease_until=NOW + n)) for n in (1, 2, 3)]
        for now, expected in ((NOW, []), (NOW + 1, ids[:1]), (NOW + 3, ids)):
            expired = await store.read(lambda tx: tx.nodes.expired(now=now))
            assert [node.node_id for node in expired] == expected
        ahead = await store.read(lambda tx: tx.nodes.expired(now=NOW, beyond=NOW + 2))
        assert [node.node_id for node in ahead] == ids[2:]
        await store.write(lambda tx: tx.nodes.void([ids[1]], now=NOW))
        assert [n.node_id for n in await store.read(lambda tx: tx.nodes.expired(now=NOW + 9))] == [ids[0], ids[2]]

    async def test_a_lease_is_taken_once(self, make_store: MakeStore) -> None:
        """Voiding returns those that were not voided before, so two rescuers never handle the same node."""
        store = await make_store()
        ids = [await store.write(a_node) for _ in range(3)]
        assert sorted(await store.write(lambda tx: tx.nodes.void(ids[:2], now=NOW))) == ids[:2]
        assert await store.write(lambda tx: tx.nodes.void([*ids, 99], now=NOW + 5)) == [ids[2]]
        voided = {n.node_id: n.voided_at for n in await store.read(lambda tx: tx.nodes.all())}
        assert voided == {ids[0]: NOW, ids[1]: NOW, ids[2]: NOW + 5}
        assert await store.write(lambda tx: tx.nodes.void([], now=NOW)) == []

    async def test_leftovers_are_what_voided_nodes_still_own(self, make_store: MakeStore) -> None:
        """Running and stuck runs count, closed ones do not, nor do those of live nodes."""
        store = await make_store()
        ids = [await store.write(a_node) for _ in range(4)]
        rows = [
            running(1, ids[0]),
            closed(2, NOW, owner=ids[1]),
            closed(3, NOW, owner=ids[2], outcome="unknown", stuck=1),
            running(4, ids[3]),
        ]
        await store.write(lambda tx: put_runs(tx, *rows))
        assert await store.read(lambda tx: tx.nodes.with_leftovers()) == []
        await store.write(lambda tx: tx.nodes.void(ids[:3], now=NOW))
        assert await store.read(lambda tx: tx.nodes.with_leftovers()) == [ids[0], ids[2]]


class TestWhatNodesPublish:
    """The settings hash of each node."""

    async def test_a_node_says_by_which_settings_it_works(self, make_store: MakeStore) -> None:
        """Empty until it is published; labels with the time since when it has them."""
        store = await make_store()
        node_id = await store.write(a_node)
        assert [node[-4:-1] for node in await store.read(lambda tx: tx.nodes.all())] == [("", "", 0)]
        for now in (NOW, NOW + 5):
            await store.write(lambda tx, now=now: tx.nodes.publish(node_id, terms="abc", labels="eu gpu", now=now))
        assert [node[-4:-1] for node in await store.read(lambda tx: tx.nodes.all())] == [("abc", "eu gpu", NOW)]
        assert await store.read(lambda tx: tx.nodes.names([node_id, 99])) == {node_id: "a"}


class TestMeta:
    """Single values by name."""

    async def test_a_fact_is_what_was_last_written(self, make_store: MakeStore) -> None:
        """Unknown names return None."""
        store = await make_store()
        assert await store.read(lambda tx: tx[Meta].value("x")) is None
        for value in ("1", "", "ümlaut"):
            await store.write(lambda tx: tx[Meta].set("x", value))
            assert await store.read(lambda tx: tx[Meta].value("x")) == value


class TestOwners:
    """Owners of runs other than schedules."""

    async def test_a_name_keeps_its_id(self, make_store: MakeStore) -> None:
        """Negative, assigned on first use, different for different names; a read assigns none."""
        store = await make_store()
        assert await store.read(lambda tx: tx[Owners].find("slot:main")) is None
        first = await store.write(lambda tx: tx[Owners].named("slot:main"))
        other = await store.write(lambda tx: tx[Owners].named("workflow:inbox"))
        assert first < 0
        assert other < 0
        assert first != other
        assert await store.write(lambda tx: tx[Owners].named("slot:main")) == first
        assert await store.read(lambda tx: tx[Owners].find("workflow:inbox")) == other
        names = await store.read(lambda tx: tx[Owners].names([first, other, -99]))
        assert names == {first: "slot:main", other: "workflow:inbox"}

    async def test_askers_at_once_get_the_same(self, make_store: MakeStore) -> None:
        """With any number of concurrent requests for a new name."""
        store = await make_store()
        given = await asyncio.gather(*(store.write(lambda tx: tx[Owners].named("heartbeat")) for _ in range(8)))
        assert len(set(given)) == 1


def _login(digest: str, kind: Literal["code", "session"] = "code", *, created_at: int = NOW) -> Login:
    return Login(digest, kind, "admin", "link", "", created_at, created_at + 100)


def _add_login(login: Login, tx: Tx) -> None:
    tx[LoginRows].add(login)


class TestLogins:
    """One-time codes and sessions of the page."""

    async def test_a_code_is_taken_once(self, make_store: MakeStore) -> None:
        """Of several concurrent processes one gets it; not as another kind, and not after it has expired."""
        stores = [await make_store() for _ in range(3)]
        await stores[0].write(lambda tx: tx[LoginRows].add(_login("a")))
        assert await stores[1].read(lambda tx: tx[LoginRows].get("a")) == _login("a")
        assert await stores[1].write(lambda tx: tx[LoginRows].take("a", kind="session", now=NOW)) is None
        assert await stores[1].write(lambda tx: tx[LoginRows].take("a", kind="code", now=NOW + 100)) is None
        taken = await asyncio.gather(
            *(stores[n % 3].write(lambda tx: tx[LoginRows].take("a", kind="code", now=NOW)) for n in range(9))
        )
        assert [one for one in taken if one is not None] == [_login("a")]
        assert await stores[2].read(lambda tx: tx[LoginRows].get("a")) is None

    async def test_what_has_expired_or_is_too_much_is_removed(self, make_store: MakeStore) -> None:
        """The newest are kept; all can be ended together."""
        store = await make_store()
        for n in range(6):
            login = _login(f"s{n}", "session", created_at=NOW + n)
            await store.write(partial(_add_login, login))
        assert await store.write(lambda tx: tx[LoginRows].prune_to(now=NOW + 101, most=3)) == 3
        left = await store.read(lambda tx: [n for n in range(6) if tx[LoginRows].get(f"s{n}") is not None])
        assert left == [3, 4, 5]
        assert await store.write(lambda tx: tx[LoginRows].clear()) == 3


def _answer(key: str, answered_at: int = NOW, *, size: int = 10) -> Answer:
    return Answer(key, "asked", '{"status": 200, "body": "ü"}', size, answered_at)


class TestAnswers:
    """Responses stored by key, returned again for repeated requests."""

    async def test_an_answer_is_what_was_last_kept(self, make_store: MakeStore) -> None:
        """By its key only; another one with the same key replaces it."""
        store = await make_store()
        assert await store.read(lambda tx: tx[Answers].get("k")) is None
        await store.write(lambda tx: tx[Answers].put(_answer("k")))
        assert await store.read(lambda tx: tx[Answers].get("k")) == _answer("k")
        assert await store.read(lambda tx: tx[Answers].get("K")) is None
        another = Answer("k", "else", "{}", 2, NOW + 1)
        await store.write(lambda tx: tx[Answers].put(another))
        assert await store.read(lambda tx: tx[Answers].get("k")) == another

    async def test_one_of_many_begins(self, make_store: MakeStore) -> None:
        """Of several concurrent processes, one gets the key; the next one when it is released, or has expired."""
        stores = [await make_store() for _ in range(3)]

        async def begun(n: int, now: int = NOW) -> bool:
            return await stores[n % 3].write(lambda tx: tx[Answers].begin("k", f"asker {n}", now=now, until=now + 10))

        told = await asyncio.gather(*(begun(n) for n in range(12)))
        assert sum(told) == 1
        first = told.index(True)
        another = (first + 1) % 12
        assert await begun(first, NOW + 5)
        assert not await begun(another, NOW + 15)
        assert await begun(another, NOW + 16)
        await stores[0].write(lambda tx: tx[Answers].release("k", f"asker {first}"))
        assert not await begun(first, NOW + 20)
        await stores[0].write(lambda tx: tx[Answers].release("k", f"asker {another}"))
        assert await begun(first, NOW + 20)
        await stores[1].write(lambda tx: tx[Answers].prune_to(before=NOW + 30, most=1, size_max=1))
        assert await begun(another, NOW + 20)

    async def test_the_old_and_what_is_too_much_is_forgotten(self, make_store: MakeStore) -> None:
        """Up to a time; then the oldest, until number and size are within their limits."""
        store = await make_store()
        for n in range(10):
            await store.write(lambda tx: tx[Answers].put(_answer(f"k{n}", NOW + n)))

        async def left() -> list[int]:
            kept = [await store.read(lambda tx: tx[Answers].get(f"k{n}")) for n in range(10)]
            return [n for n, one in enumerate(kept) if one is not None]

        assert await store.write(lambda tx: tx[Answers].prune_to(before=NOW - 1, most=10, size_max=100)) == 0
        assert await store.write(lambda tx: tx[Answers].prune_to(before=NOW + 1, most=10, size_max=100)) == 2
        assert await left() == [2, 3, 4, 5, 6, 7, 8, 9]
        assert await store.write(lambda tx: tx[Answers].prune_to(before=0, most=6, size_max=100)) == 2
        assert await left() == [4, 5, 6, 7, 8, 9]
        assert await store.write(lambda tx: tx[Answers].prune_to(before=0, most=6, size_max=39)) == 3
        assert await left() == [7, 8, 9]


def _count_up(tx: Tx) -> int:
    counted = int(tx[Meta].value("n") or 0) + 1
    tx[Meta].set("n", str(counted))
    return counted


class TestTransactions:
    """The guarantees of `write` and `read`."""

    async def test_an_operation_that_raises_is_undone_alone(self, make_store: MakeStore) -> None:
        """Its caller gets the original exception; other operations of the group are committed."""
        store = await make_store()

        def operation(tx: Tx, n: int) -> int:
            tx[Meta].set(f"k{n}", "kept")
            tx.alarms.set_many([schedule_alarm(n)])
            if n % 3 == 0:
                raise LookupError(n)
            return n

        fates = await asyncio.gather(
            *(store.write(partial(operation, n=n)) for n in range(1, 31)), return_exceptions=True
        )
        for n, fate in enumerate(fates, start=1):
            kept = await store.read(lambda tx: (tx[Meta].value(f"k{n}"), tx.alarms.by_refs("schedule", [n])))
            if n % 3:
                assert fate == n
                assert kept == ("kept", {n: schedule_alarm(n)})
            else:
                assert isinstance(fate, LookupError)
                assert kept == (None, {})

    async def test_an_error_of_the_database_is_undone_alone_too(self, make_store: MakeStore) -> None:
        """A constraint violation in one operation does not affect others, in the same group or later."""
        store = await make_store()
        await store.write(lambda tx: put_runs(tx, a_run(1)))

        def broken(tx: Tx) -> None:
            tx[Meta].set("broken", "yes")
            tx.runs.add_many([a_run(1)])

        fates = await asyncio.gather(
            store.write(_count_up), store.write(broken), store.write(_count_up), return_exceptions=True
        )
        assert {fates[0], fates[2]} == {1, 2}
        assert isinstance(fates[1], Exception)
        assert await store.write(_count_up) == 3
        assert await store.read(lambda tx: tx[Meta].value("broken")) is None

    async def test_nothing_is_lost_among_many_writers(self, make_store: MakeStore) -> None:
        """Read, add one, write: two hundred concurrent operations over two connections end at two hundred."""
        stores = [await make_store(), await make_store()]
        counted = await asyncio.gather(*(stores[n % 2].write(_count_up) for n in range(200)))
        assert sorted(counted) == list(range(1, 201))

    async def test_what_was_answered_is_there_for_everybody(self, make_store: MakeStore) -> None:
        """Commit before acknowledging (L7): another process sees each write as soon as its caller has the result."""
        ours, theirs = await make_store(), await make_store()
        for n in range(20):
            await ours.write(lambda tx: tx[Meta].set("x", str(n)))
            assert await theirs.read(lambda tx: tx[Meta].value("x")) == str(n)

    async def test_what_was_answered_is_there_after_reopening(self, make_store: MakeStore) -> None:
        """In every table."""
        store = await make_store()

        def put(tx: Tx) -> None:
            tx.schedules.add_many([a_schedule("s")])
            put_runs(tx, running(1, a_node(tx)))
            tx.lanes.take_many([("a", 1)])
            tx.alarms.set_many([run_alarm(1, lane="a", parked=1)])
            tx[Meta].set("x", "y")

        def everything(tx: Tx) -> tuple[object, ...]:
            rows = (tx.runs.page(limit=9), tx.lanes.holders(), tx.alarms.by_refs("run", [1]), tx[Meta].value("x"))
            return (tx.schedules.page(after=None, limit=9), tx.nodes.all(), *rows)

        await store.write(put)
        before = await store.read(everything)
        await store.close()
        again = await make_store()
        assert await again.read(everything) == before
        assert await again.write(lambda tx: tx.runs.reserve_ids(1)) == [2]

    async def test_a_read_sees_one_moment(self, make_store: MakeStore) -> None:
        """Two values that are always written together never differ in a read, with any number of concurrent writers."""
        store = await make_store()

        def write(tx: Tx, n: int) -> None:
            tx[Meta].set("left", str(n))
            tx[Meta].set("right", str(n))

        def look(tx: Tx) -> bool:
            first = tx[Meta].value("left")
            return all((tx[Meta].value("left"), tx[Meta].value("right")) == (first, first) for _ in range(5))

        async def reader() -> None:
            for _ in range(25):
                assert await store.read(look)

        await asyncio.gather(reader(), reader(), *(store.write(partial(write, n=n)) for n in range(100)))

    async def test_a_read_changes_nothing(self, make_store: MakeStore) -> None:
        """A write in a read is refused, and later reads work."""
        store = await make_store()
        with pytest.raises(Exception, match=r".+"):
            await store.read(lambda tx: tx[Meta].set("x", "y"))
        with pytest.raises(LookupError):
            await store.read(lambda tx: tx.lanes.holders()["nobody's lane"])
        assert await store.read(lambda tx: tx[Meta].value("x")) is None
        await store.write(lambda tx: tx[Meta].set("x", "z"))
        assert await store.read(lambda tx: tx[Meta].value("x")) == "z"

    async def test_looking_never_changes_what_is_planned(self, make_store: MakeStore) -> None:
        """Reading what is due, or locking, in a read leaves it due (L1)."""
        store = await make_store()

        def put(tx: Tx) -> None:
            put_runs(tx, a_run(1))
            tx.alarms.set_many([run_alarm(1)])

        await store.write(put)
        for _ in range(3):
            assert await store.read(lambda tx: tx.runs.due(now=NOW, limit=5)) == [a_run(1)]
            assert await store.read(lambda tx: tx.runs.lock([1])) == {1: a_run(1)}
            assert await store.read(lambda tx: tx.alarms.next_due_at()) == NOW

    async def test_a_caller_that_goes_away_disturbs_nobody(self, make_store: MakeStore) -> None:
        """Cancelled callers get no result; the others do, and the store continues."""
        store = await make_store()
        tasks = [asyncio.create_task(store.write(_count_up)) for _ in range(20)]
        reads = [asyncio.create_task(store.read(lambda tx: tx[Meta].value("n"))) for _ in range(20)]
        await asyncio.sleep(0)
        for task in (*tasks[::2], *reads[::2]):
            task.cancel()
        await asyncio.gather(*tasks[1::2], *reads[1::2])
        await asyncio.wait([*tasks, *reads])
        assert await store.write(_count_up) >= 11

    async def test_a_closed_store_says_so(self, make_store: MakeStore) -> None:
        """Submitted operations finish, later ones are refused, closing twice is harmless."""
        store = await make_store()
        asked = [asyncio.create_task(store.write(_count_up)) for _ in range(10)]
        await asyncio.sleep(0)
        await store.close()
        assert sorted(await asyncio.gather(*asked)) == list(range(1, 11))
        await store.close()
        with pytest.raises(StoreUnavailable):
            await store.write(_count_up)
        with pytest.raises(StoreUnavailable):
            await store.read(lambda tx: tx[Meta].value("n"))


class TestTheClock:
    """Which process may tick."""

    async def test_an_exclusive_clock_is_held_by_one(self, make_store: MakeStore) -> None:
        """If holding the clock proves to be alone, a second holder is refused until the first releases it or is
        closed."""
        one, two = await make_store(), await make_store()
        assert await one.hold_clock()
        assert await one.hold_clock()
        assert await two.hold_clock() is not two.is_exclusive
        await two.release_clock()
        assert await two.hold_clock() is not two.is_exclusive
        await one.release_clock()
        assert await two.hold_clock()
        await two.close()
        assert await one.hold_clock()

    async def test_a_write_of_another_process_is_noticed(self, make_store: MakeStore) -> None:
        """The hint may come too many times, but is never missed."""
        one, two = await make_store(), await make_store()
        await one.changed()
        for _ in range(3):
            await two.write(_count_up)
            assert await one.changed()
