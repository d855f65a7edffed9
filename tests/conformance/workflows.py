"""Conformance: workflows, their messages, their sessions."""

from typing import Any

import pytest

from conformance.rows import NOW, MakeStore, a_gap, closed, put_runs
from wakeful.core.workflow.rows import Handler, HandlerRun, Subscription, Topic
from wakeful.features.workflows.feed_rows import Feed, Feeds
from wakeful.features.workflows.loaded_rows import Loaded, LoadedWorkflows
from wakeful.features.workflows.message_rows import Message, Messages, Waiting
from wakeful.features.workflows.pruning import prune_deleted, prune_runs
from wakeful.features.workflows.session_rows import Session, Sessions
from wakeful.features.workflows.state_rows import Handlers, Subscriptions, Topics
from wakeful.ports.handler_runs import HandlerRunDetails
from wakeful.ports.store import Alarm, Store, Tx
from wakeful.ports.workflows import ALARM_WORKFLOW, NewWorkflow, StoredWorkflows


def a_workflow(name: str, **changes: Any) -> NewWorkflow:
    """A workflow about to be written."""
    return NewWorkflow(name, -1, "{}", "rest", "active", NOW)._replace(**changes)


def a_handler(workflow_id: int, name: str, **changes: Any) -> Handler:
    """A consumer that has nothing to do."""
    return Handler(workflow_id, name, "consumer", 0, None, None, None, 0, None, None)._replace(**changes)


def a_message(workflow_id: int, topic: str, message_id: str, place: int, **changes: Any) -> Message:
    """A pending message of consumer c; it was published as many milliseconds after NOW as its place says."""
    at = NOW + place
    return Message(
        workflow_id, topic, "c", message_id, place, place, "1", "pending", 0, None, None, at, at
    )._replace(**changes)  # fmt: skip


def a_subscription(workflow_id: int, topic: str, consumer: str = "c", **changes: Any) -> Subscription:
    """A consumer that has read everything."""
    return Subscription(workflow_id, topic, consumer, 1, 1, 1)._replace(**changes)


def a_handler_run(run_id: int, session_id: int, **changes: Any) -> HandlerRun:
    """A consumer's run that has started."""
    return HandlerRun(
        run_id, 1, session_id, "c", "consumer", "preparing", "{}", None, None, None, 0, 0, 0, 0, None, 0
    )._replace(**changes)  # fmt: skip


def _add(tx: Tx, *names: str) -> list[int]:
    added = [tx[StoredWorkflows].add_new(a_workflow(name)) for name in names]
    return [one for one in added if one is not None]


def _alarm(workflow_id: int, due_at: int | None) -> Alarm:
    return Alarm(ALARM_WORKFLOW, workflow_id, due_at, 1, None, 0)


async def _counts(store: Store, workflow_id: int) -> dict[str, dict[str, int]]:
    counts = await store.read(lambda tx: tx[Messages].counts([workflow_id]))
    return {
        f"{topic}/{consumer}": {str(name): n for name, n in by.items()}
        for (_, topic, consumer), by in sorted(counts.items())
    }


async def _stored_payloads(store: Store) -> list[str]:
    """Every text that is stored as a payload, in rows of messages and shared."""

    def look(tx: Tx) -> list[str]:
        found = tx[Messages]._db.rows("SELECT payload FROM messages UNION ALL SELECT payload FROM payloads")
        return sorted(text for (text,) in found)

    return await store.read(look)


class TestWorkflows:
    """Workflows, handlers, topics."""

    async def test_a_name_is_taken_once_and_free_again_when_its_workflow_is_deleted(
        self, make_store: MakeStore
    ) -> None:
        """A deleted workflow keeps its id and its row."""
        store = await make_store()
        first = await store.write(lambda tx: tx[StoredWorkflows].add_new(a_workflow("inbox")))
        assert first is not None
        assert await store.write(lambda tx: tx[StoredWorkflows].add_new(a_workflow("inbox"))) is None
        row = (await store.read(lambda tx: tx[StoredWorkflows].by_names(["inbox", "none"])))["inbox"]
        assert (row.workflow_id, row.version, row.status, row.error, row.open_run_id) == (
            first,
            1,
            "active",
            None,
            None,
        )
        gone = row._replace(deleted_at=NOW, error="it broke", error_at=NOW, open_run_id=7, session_id=8, freed_at=NOW)
        gone = gone._replace(tried_version=1, window_at=NOW, window_runs=3, limited_until=NOW + 9)
        await store.write(lambda tx: tx[StoredWorkflows].save_many([gone]))
        assert await store.read(lambda tx: tx[StoredWorkflows].by_names(["inbox"])) == {}
        assert await store.read(lambda tx: tx[StoredWorkflows].among([first, 99])) == {first: gone}
        second = await store.write(lambda tx: tx[StoredWorkflows].add_new(a_workflow("inbox")))
        assert second not in (None, first)

    async def test_they_are_listed_by_name_and_walked_by_id(self, make_store: MakeStore) -> None:
        """Names compare byte by byte; deleted ones are left out."""
        store = await make_store()
        ids = await store.write(lambda tx: _add(tx, "b", "a.x", "a-x", "z"))

        def delete(tx: Tx) -> None:
            tx[StoredWorkflows].save_many([tx[StoredWorkflows].lock([ids[3]])[ids[3]]._replace(deleted_at=NOW)])

        await store.write(delete)
        page = await store.read(lambda tx: tx[StoredWorkflows].page(after=None, limit=2))
        assert [row.name for row in page] == ["a-x", "a.x"]
        page = await store.read(lambda tx: tx[StoredWorkflows].page(after="a.x", limit=9))
        assert [row.name for row in page] == ["b"]
        walked = await store.write(lambda tx: tx[StoredWorkflows].after(ids[0], limit=9))
        assert [row.workflow_id for row in walked] == ids[1:3]

    async def test_those_that_wait_for_a_person_are_found(self, make_store: MakeStore) -> None:
        """Active, with an error, and not deleted; a paused one already has a person's attention."""
        store = await make_store()
        ids = await store.write(lambda tx: _add(tx, "well", "b", "a", "paused", "gone"))

        def stop(tx: Tx) -> None:
            rows = tx[StoredWorkflows].lock(ids)
            broken = {key: row._replace(error="it broke", error_at=NOW) for key, row in rows.items() if key != ids[0]}
            broken[ids[3]] = broken[ids[3]]._replace(status="paused")
            broken[ids[4]] = broken[ids[4]]._replace(deleted_at=NOW)
            tx[StoredWorkflows].save_many([broken[key] for key in sorted(broken)])

        await store.write(stop)
        assert [row.name for row in await store.read(lambda tx: tx[StoredWorkflows].stopped(limit=9))] == ["a", "b"]
        assert [row.name for row in await store.read(lambda tx: tx[StoredWorkflows].stopped(limit=1))] == ["a"]

    async def test_those_whose_alarm_is_due_are_found_oldest_first(self, make_store: MakeStore) -> None:
        """Not those without a due time, nor those that are due later."""
        store = await make_store()

        def put(tx: Tx) -> list[int]:
            ids = _add(tx, "a", "b", "c", "d")
            tx.alarms.set_many([_alarm(one, at) for one, at in zip(ids, (NOW, NOW - 5, None, NOW + 1), strict=True)])
            return ids

        ids = await store.write(put)
        due = await store.write(lambda tx: tx[StoredWorkflows].due(now=NOW, limit=9))
        assert [row.workflow_id for row in due] == [ids[1], ids[0]]
        due = await store.write(lambda tx: tx[StoredWorkflows].due(now=NOW, limit=1))
        assert [row.workflow_id for row in due] == [ids[1]]
        assert await store.write(lambda tx: tx[StoredWorkflows].due(now=NOW - 6, limit=9)) == []

    async def test_python_workflows_that_are_not_loaded_here_are_left_to_others(self, make_store: MakeStore) -> None:
        """Those due long enough are not left any longer, and none is in the way of another."""
        store = await make_store()

        def fill(tx: Tx) -> list[int]:
            added = [tx[StoredWorkflows].add_new(a_workflow(name, origin="python")) for name in ("far", "here", "late")]
            added.append(tx[StoredWorkflows].add_new(a_workflow("rest")))
            ids = [one for one in added if one is not None]
            tx.alarms.set_many([_alarm(one, NOW - 5 + n) for n, one in enumerate(ids)])
            return ids

        far, here, late, rest = await store.write(fill)

        async def due(left_by: int, loaded: list[str], limit: int = 9) -> list[int]:
            rows = await store.write(
                lambda tx: tx[StoredWorkflows].due_here(now=NOW, left_by=left_by, loaded=loaded, limit=limit)
            )
            return [row.workflow_id for row in rows]

        assert await due(NOW - 10, []) == [rest]
        assert await due(NOW - 10, ["here", "gone"]) == [here, rest]
        assert await due(NOW - 5, ["here"]) == [far, here, rest]
        assert await due(NOW, []) == [far, here, late, rest]
        assert await due(NOW - 10, ["late"], limit=1) == [late]
        active = await store.read(lambda tx: tx[StoredWorkflows].of_python(limit=2))
        assert [row.name for row in active] == ["far", "here"]

    async def test_processes_that_loaded_workflows_are_known(self, make_store: MakeStore) -> None:
        """One row for each workflow and process, written again when it ends."""
        store = await make_store()
        one = Loaded("inbox", "node", "é", 7, "boot/1", "flows.py", NOW, None)
        other = one._replace(pid=8, loaded_at=NOW - 1)
        await store.write(lambda tx: tx[LoadedWorkflows].put_many([one, other, one._replace(workflow="a")]))
        await store.write(lambda tx: tx[LoadedWorkflows].put_many([one._replace(ended_at=NOW + 5)]))
        rows = await store.read(lambda tx: tx[LoadedWorkflows].all())
        assert rows == [one._replace(workflow="a"), other, one._replace(ended_at=NOW + 5)]
        await store.write(lambda tx: tx[LoadedWorkflows].forget(other))
        assert len(await store.read(lambda tx: tx[LoadedWorkflows].all())) == 2

    async def test_feeds_are_kept_while_they_are_seen(self, make_store: MakeStore) -> None:
        """One row for each consumer and topic."""
        store = await make_store()
        feeds = [Feed(1, "c", 2, "mail", NOW), Feed(2, "c", 1, "é", NOW - 9)]
        await store.write(lambda tx: tx[Feeds].put_many(feeds))
        await store.write(lambda tx: tx[Feeds].put_many([feeds[0]._replace(seen_at=NOW + 1)]))
        assert await store.read(lambda tx: tx[Feeds].seen(since=NOW - 9)) == [
            feeds[0]._replace(seen_at=NOW + 1),
            feeds[1],
        ]
        assert await store.write(lambda tx: tx[Feeds].forget(before=NOW)) == 1
        assert len(await store.read(lambda tx: tx[Feeds].seen(since=0))) == 1

    async def test_handlers_and_topics_are_written_and_written_again(self, make_store: MakeStore) -> None:
        """Handlers are ordered by place, topics by name, separately for each workflow."""
        store = await make_store()
        one, two = await store.write(lambda tx: _add(tx, "one", "two"))
        handlers = [a_handler(one, "z", place=0, kind="producer", next_at=NOW), a_handler(one, "a", place=1)]
        topics = [Topic(one, "mail", 3), Topic(one, "bin", 0)]
        await store.write(lambda tx: tx[Handlers].put_many([*handlers, a_handler(two, "a")]))
        await store.write(lambda tx: tx[Topics].put_many(topics))
        assert await store.read(lambda tx: tx[Handlers].of([one])) == {one: handlers}
        assert await store.read(lambda tx: tx[Topics].of([one, two])) == {one: topics[::-1]}
        changed = handlers[1]._replace(state='{"n":1}', wake_at=NOW + 9, is_flagged=1, last_run_id=4, last_run_at=NOW)
        changed = changed._replace(
            tries=3, held_until=NOW + 7, last_error="no route", turn_topic="mail", turn_place=100
        )
        changed = changed._replace(lap_topic="", lap_place=5)
        await store.write(lambda tx: tx[Handlers].put_many([changed]))
        await store.write(lambda tx: tx[Topics].put_many([topics[0]._replace(published=4)]))
        await store.write(lambda tx: tx[Handlers].remove_named(one, ["z", "none"]))
        assert await store.read(lambda tx: tx[Handlers].of([one, two])) == {
            one: [changed],
            two: [a_handler(two, "a")],
        }
        assert (await store.read(lambda tx: tx[Topics].of([one])))[one][1] == Topic(one, "mail", 4)

    async def test_subscriptions_are_written_and_taken_away_by_topic_and_consumer(self, make_store: MakeStore) -> None:
        """Ordered by topic and consumer, separately for each workflow."""
        store = await make_store()
        one, two = await store.write(lambda tx: _add(tx, "one", "two"))
        rows = [a_subscription(one, "mail", "b"), a_subscription(one, "mail", "a"), a_subscription(one, "bin", "b")]
        await store.write(lambda tx: tx[Subscriptions].put_many([*rows, a_subscription(two, "mail", "a")]))
        assert (await store.read(lambda tx: tx[Subscriptions].of([one])))[one] == rows[::-1]
        changed = rows[0]._replace(published=9, seen=7, is_active=0)
        await store.write(lambda tx: tx[Subscriptions].put_many([changed]))
        await store.write(lambda tx: tx[Subscriptions].remove_one(one, "mail", "a"))
        await store.write(lambda tx: tx[Subscriptions].remove_one(one, "bin", "none"))
        assert await store.read(lambda tx: tx[Subscriptions].of([one, two])) == {
            one: [rows[2], changed],
            two: [a_subscription(two, "mail", "a")],
        }

    async def test_consumers_with_pending_messages_are_found_workflow_by_workflow(self, make_store: MakeStore) -> None:
        """Each once, with any number of messages; unsubscribed consumers and deleted workflows are left out."""
        store = await make_store()

        def put(tx: Tx) -> list[int]:
            ids = _add(tx, "a", "b", "c", "d")
            tx[Subscriptions].put_many([a_subscription(one, "t", "c1") for one in ids])
            tx[Subscriptions].put_many([a_subscription(ids[0], "u", "c2"), a_subscription(ids[0], "v", "c1")])
            tx[Subscriptions].put_many([a_subscription(ids[0], "t", "c3")])
            tx[Subscriptions].put_many([a_subscription(ids[2], "t", "c1", is_active=0)])
            tx[Messages].put_many([a_message(one, "t", f"m{n}", n, consumer="c1") for one in ids for n in (1, 2)])
            tx[Messages].put_many([a_message(ids[0], "u", "x", 1, status="consumed", consumer="c2")])
            tx[Messages].put_many([a_message(ids[0], "v", "y", 1, consumer="c1")])
            tx[StoredWorkflows].save_many([tx[StoredWorkflows].lock([ids[3]])[ids[3]]._replace(deleted_at=NOW)])
            return ids

        ids = await store.write(put)
        found = await store.read(lambda tx: tx[Messages].with_pending(after_id=0, limit=9))
        assert found == {ids[0]: ["c1"], ids[1]: ["c1"]}
        assert await store.read(lambda tx: tx[Messages].with_pending(after_id=0, limit=1)) == {ids[0]: ["c1"]}
        assert await store.read(lambda tx: tx[Messages].with_pending(after_id=ids[0], limit=9)) == {ids[1]: ["c1"]}

    async def test_what_a_deleted_workflow_leaves_is_forgotten_in_steps(self, make_store: MakeStore) -> None:
        """Not while one of its runs is open, and nothing of other workflows."""
        store = await make_store()

        def put(tx: Tx) -> list[int]:
            ids = _add(tx, "dead", "alive", "ending")
            tx[Messages].put_many([a_message(one, "t", f"m{n}", n) for one in ids for n in range(3)])
            tx[Topics].put_many([Topic(one, "t", 2) for one in ids])
            tx[Subscriptions].put_many([a_subscription(one, "t") for one in ids])
            tx[Handlers].put_many([a_handler(one, "c") for one in ids])
            rows = tx[StoredWorkflows].lock(ids)
            tx[StoredWorkflows].save_many([rows[ids[0]]._replace(deleted_at=NOW)])
            tx[StoredWorkflows].save_many([rows[ids[2]]._replace(deleted_at=NOW, open_run_id=5)])
            return ids

        ids = await store.write(put)
        assert await store.write(lambda tx: prune_deleted(tx, limit=2)) == 2
        assert await store.write(lambda tx: prune_deleted(tx, limit=2)) == 4
        assert await store.write(lambda tx: prune_deleted(tx, limit=2)) == 0
        assert set(await store.read(lambda tx: tx[Topics].of(ids))) == set(ids[1:])
        assert set(await store.read(lambda tx: tx[Subscriptions].of(ids))) == set(ids[1:])
        assert await _counts(store, ids[1]) == {"t/c": {"pending": 3}}


class TestMessages:
    """The messages of topics."""

    async def test_pending_ones_come_oldest_first_by_the_place_they_have_had_from_the_start(
        self, make_store: MakeStore
    ) -> None:
        """Publishing again or releasing changes the sequence but not the place."""
        store = await make_store()
        (one,) = await store.write(lambda tx: _add(tx, "a"))
        rows = [a_message(one, "t", f"m{n}", n) for n in (3, 1, 2)]
        await store.write(lambda tx: tx[Messages].put_many(rows))
        again = rows[1]._replace(seq=9, payload='"é\\n"', attempt=2, updated_at=NOW + 99)
        await store.write(lambda tx: tx[Messages].put_many([again, a_message(one, "u", "m1", 1, payload='"other"')]))
        await store.write(lambda tx: tx[Messages].put_many([rows[1]._replace(consumer="d")]))
        found = await store.read(lambda tx: tx[Messages].pending(one, "t", "c", limit=2))
        assert found == [again, rows[2]]
        found = await store.read(lambda tx: tx[Messages].pending(one, "t", "c", after_place=2, limit=2))
        assert found == [rows[0]]
        assert await store.read(lambda tx: tx[Messages].pending(one, "t", "d", limit=9)) == [
            rows[1]._replace(consumer="d")
        ]
        keys = [("t", "m1"), ("u", "m1"), ("t", "none"), ("t", "m1")]
        known = await store.read(lambda tx: tx[Messages].by_ids(one, keys))
        assert set(known) == {("t", "m1"), ("u", "m1")}
        assert known["t", "m1"] == {"c": again, "d": rows[1]._replace(consumer="d")}
        assert await store.read(lambda tx: tx[Messages].by_ids(one, [])) == {}

    async def test_what_becomes_of_a_message_is_written_back_by_its_key(self, make_store: MakeStore) -> None:
        """Status, attempt, sequence and run; its place, its payload and others with the same id are unchanged."""
        store = await make_store()
        one, two = await store.write(lambda tx: _add(tx, "a", "b"))
        same = [a_message(one, "t", "m", 1), a_message(one, "u", "m", 1), a_message(two, "t", "m", 1)]
        other = same[0]._replace(consumer="d")
        await store.write(lambda tx: tx[Messages].put_many([*same, other]))
        moved = same[0]._replace(status="reserved", run_id=5, attempt=2, seq=9, updated_at=NOW + 50)
        await store.write(lambda tx: tx[Messages].save_many([moved]))
        await store.write(lambda tx: tx[Messages].save_many([]))
        assert await store.read(lambda tx: tx[Messages].by_ids(one, [("t", "m"), ("u", "m")])) == {
            ("t", "m"): {"c": moved, "d": other},
            ("u", "m"): {"c": same[1]},
        }
        assert await store.read(lambda tx: tx[Messages].pending(two, "t", "c", limit=9)) == [same[2]]

    async def test_a_payload_is_stored_once_for_all_consumers(self, make_store: MakeStore) -> None:
        """Every way of reading shows it; whatever becomes of one consumer's message, the others keep it."""
        store = await make_store()
        (one,) = await store.write(lambda tx: _add(tx, "a"))
        rows = [a_message(one, "t", "m", n, consumer=name, payload='"long"') for n, name in enumerate("cde", start=1)]
        await store.write(lambda tx: tx[Messages].put_many([*rows, a_message(one, "t", "n", 4, payload='"own"')]))
        assert await _stored_payloads(store) == ["", "", "", '"long"', '"own"']
        assert await store.read(lambda tx: tx[Messages].page(one, "t", after_place=0, limit=3)) == rows
        assert await store.read(lambda tx: tx[Messages].pending(one, "t", "d", limit=9)) == [rows[1]]
        held = rows[0]._replace(status="reserved", run_id=5)
        await store.write(lambda tx: tx[Messages].save_many([held]))
        assert await store.read(lambda tx: tx[Messages].of_run(5)) == [held]
        await store.write(lambda tx: tx[Messages].hand_over(one, "t", "e", "f"))
        assert await store.read(lambda tx: tx[Messages].pending(one, "t", "f", limit=9)) == [
            rows[2]._replace(consumer="f")
        ]
        assert await _stored_payloads(store) == ["", "", "", '"long"', '"own"']

    async def test_another_payload_is_stored_beside_the_first_while_a_consumer_has_that(
        self, make_store: MakeStore
    ) -> None:
        """Publishing again changes what is pending; what no row refers to any more is deleted."""
        store = await make_store()
        (one,) = await store.write(lambda tx: _add(tx, "a"))
        rows = [a_message(one, "t", "m", n, consumer=name, payload='"first"') for n, name in enumerate("cde", start=1)]
        await store.write(lambda tx: tx[Messages].put_many(rows))
        second = [row._replace(seq=row.seq + 3, payload='"second"') for row in rows[1:]]
        await store.write(lambda tx: tx[Messages].put_many(second))
        assert await store.read(lambda tx: tx[Messages].page(one, "t", after_place=0, limit=9)) == [rows[0], *second]
        assert await _stored_payloads(store) == ["", "", "", '"first"', '"second"']
        third = [row._replace(seq=row.seq + 6, payload='"third"') for row in rows]
        await store.write(lambda tx: tx[Messages].put_many(third))
        assert await _stored_payloads(store) == ["", "", "", '"third"']
        alone = [row._replace(seq=row.seq + 9, payload=f'"{row.consumer}"') for row in rows]
        await store.write(lambda tx: tx[Messages].put_many(alone))
        assert await store.read(lambda tx: tx[Messages].page(one, "t", after_place=0, limit=9)) == alone
        assert await _stored_payloads(store) == ['"c"', '"d"', '"e"']

    async def test_a_shared_payload_is_deleted_with_its_last_message(self, make_store: MakeStore) -> None:
        """By the pruning of runs, and with a deleted workflow."""
        store = await make_store()

        def put(tx: Tx) -> list[int]:
            ids = _add(tx, "kept", "deleted")
            session = tx[Sessions].start(ids[0], "event", producers_left="[]", now=NOW)
            tx[HandlerRunDetails].add_many([a_handler_run(run_id, session) for run_id in (1, 2)])
            for workflow_id in ids:
                rows = [a_message(workflow_id, "t", "m", n, consumer=f"c{n}", payload='"long"') for n in (1, 2)]
                tx[Messages].put_many([row._replace(status="consumed", run_id=row.place) for row in rows])
            return ids

        _, deleted = await store.write(put)
        assert await _stored_payloads(store) == ["", "", "", "", '"long"', '"long"']
        await store.write(lambda tx: prune_runs(tx, limit=1))
        assert await _stored_payloads(store) == ["", "", '"long"', '"long"']
        await store.write(
            lambda tx: tx[StoredWorkflows].save_many(
                [tx[StoredWorkflows].lock([deleted])[deleted]._replace(deleted_at=NOW)]
            )
        )
        await store.write(lambda tx: prune_deleted(tx, limit=1))
        assert await _stored_payloads(store) == ["", '"long"']
        await store.write(lambda tx: prune_runs(tx, limit=1))
        assert await _stored_payloads(store) == []

    async def test_messages_are_handed_over_to_another_consumer(self, make_store: MakeStore) -> None:
        """In any status; the messages the other one already has are unchanged, and so are other topics."""
        store = await make_store()
        (one,) = await store.write(lambda tx: _add(tx, "a"))
        rows = [a_message(one, "t", "m1", 1), a_message(one, "t", "m2", 2, status="consumed", run_id=1)]
        both = [a_message(one, "t", "m3", 3), a_message(one, "t", "m3", 4, consumer="d", status="skipped")]
        await store.write(lambda tx: tx[Messages].put_many([*rows, *both, a_message(one, "u", "m1", 5)]))
        assert await store.write(lambda tx: tx[Messages].hand_over(one, "t", "c", "d")) == 1
        assert await _counts(store, one) == {
            "t/c": {"pending": 1},
            "t/d": {"consumed": 1, "pending": 1, "skipped": 1},
            "u/c": {"pending": 1},
        }

    async def test_what_a_run_holds_is_what_it_has_reserved(self, make_store: MakeStore) -> None:
        """Consumed messages are no longer held."""
        store = await make_store()
        (one,) = await store.write(lambda tx: _add(tx, "a"))
        held = [a_message(one, "t", f"m{n}", n, status="reserved", run_id=5, attempt=1) for n in (2, 1)]
        others = [
            a_message(one, "t", "x", 7, status="consumed", run_id=5),
            a_message(one, "t", "y", 8, status="reserved", run_id=6),
        ]
        await store.write(lambda tx: tx[Messages].put_many([*held, *others]))
        assert await store.read(lambda tx: tx[Messages].of_run(5)) == held[::-1]

    async def test_the_oldest_pending_one_and_the_counts_of_all_topics_take_one_query_each(
        self, make_store: MakeStore
    ) -> None:
        """Topics without pending messages are left out of the first, those without messages of the second."""
        store = await make_store()
        one, two = await store.write(lambda tx: _add(tx, "a", "b"))
        rows = [
            a_message(one, "t", "m1", 1, status="consumed", run_id=1),
            a_message(one, "t", "m2", 2),
            a_message(one, "t", "m3", 3),
            a_message(one, "u", "m1", 1, status="skipped", run_id=1),
            a_message(two, "t", "m1", 7),
        ]
        rows += [a_message(one, "t", "m3", 9, consumer="d")]
        subscriptions = [a_subscription(one, "t"), a_subscription(one, "u"), a_subscription(two, "t")]
        subscriptions += [a_subscription(one, "t", "d", is_active=0)]
        await store.write(lambda tx: tx[Subscriptions].put_many(subscriptions))
        await store.write(lambda tx: tx[Messages].put_many(rows))
        oldest = await store.read(lambda tx: tx[Messages].oldest([one, two]))
        assert oldest == {(one, "t", "c"): NOW + 2, (one, "t", "d"): NOW + 9, (two, "t", "c"): NOW + 7}
        assert await _counts(store, one) == {
            "t/c": {"consumed": 1, "pending": 2},
            "t/d": {"pending": 1},
            "u/c": {"skipped": 1},
        }

    async def test_messages_are_listed_by_place_and_by_status_and_consumer(self, make_store: MakeStore) -> None:
        """Page by page, filtered."""
        store = await make_store()
        (one,) = await store.write(lambda tx: _add(tx, "a"))
        rows = [
            a_message(one, "t", "m1", 1, status="consumed", run_id=1),
            a_message(one, "t", "m1", 2, consumer="d"),
            a_message(one, "t", "m2", 3),
            a_message(one, "u", "m1", 4),
        ]
        await store.write(lambda tx: tx[Messages].put_many(rows))
        page = await store.read(lambda tx: tx[Messages].page(one, "t", after_place=1, limit=1))
        assert page == [rows[1]]
        page = await store.read(lambda tx: tx[Messages].page(one, "t", after_place=0, limit=9, status="pending"))
        assert page == [rows[1], rows[2]]
        page = await store.read(lambda tx: tx[Messages].page(one, "t", after_place=0, limit=9, consumer="c"))
        assert page == [rows[0], rows[2]]
        page = await store.read(
            lambda tx: tx[Messages].page(one, "t", after_place=0, limit=9, status="skipped", consumer="c")
        )
        assert page == []

    async def test_subscriptions_whose_messages_wait_for_long_are_found_oldest_first(
        self, make_store: MakeStore
    ) -> None:
        """Only of active workflows; including those of an unsubscribed consumer."""
        store = await make_store()

        def put(tx: Tx) -> None:
            ids = _add(tx, "a", "b", "paused")
            tx[Subscriptions].put_many([a_subscription(one, "t") for one in ids])
            tx[Subscriptions].put_many([a_subscription(ids[1], "u", "d", is_active=0)])
            rows = [a_message(ids[0], "t", "m1", 5), a_message(ids[0], "t", "m2", 6), a_message(ids[1], "t", "m", 9)]
            rows += [a_message(ids[1], "u", "m", 2, consumer="d"), a_message(ids[2], "t", "m", 1)]
            tx[Messages].put_many([*rows, a_message(ids[0], "t", "m0", 1, status="consumed", run_id=1)])
            tx[StoredWorkflows].save_many([tx[StoredWorkflows].lock([ids[2]])[ids[2]]._replace(status="paused")])

        await store.write(put)
        found = await store.read(lambda tx: tx[Messages].waiting_since(before=NOW + 9, limit=9))
        assert found == [Waiting("b", "u", "d", 0, NOW + 2), Waiting("a", "t", "c", 1, NOW + 5)]
        assert await store.read(lambda tx: tx[Messages].waiting_since(before=NOW + 9, limit=1)) == found[:1]


class TestClockSteps:
    """What is asked of the ledger when the clock went back."""

    async def test_times_that_ran_are_told_by_handler(self, make_store: MakeStore) -> None:
        """Those in the span, besides runs that are tried again; and the gaps that reach beyond an instant."""
        store = await make_store()

        def put(tx: Tx) -> None:
            rows = [
                closed(1, NOW, schedule_id=-1, occurrence=-1, planned_at=NOW),
                closed(2, NOW, schedule_id=-1, occurrence=-2, planned_at=NOW + 5),
                closed(3, NOW, schedule_id=-1, occurrence=-3, planned_at=NOW + 5, outcome="failed"),
                closed(4, NOW, schedule_id=-1, occurrence=-4, planned_at=NOW + 7, outcome="unknown"),
                closed(5, NOW, schedule_id=-1, occurrence=-5, planned_at=NOW + 8),
                closed(6, NOW, schedule_id=-1, occurrence=-6, planned_at=NOW + 9),
                a_gap(7, NOW - 9, NOW, 2, schedule_id=-1, occurrence=-7),
                a_gap(8, NOW - 9, NOW + 1, 2, schedule_id=-1, occurrence=-8),
            ]
            put_runs(tx, *rows)
            tx[HandlerRunDetails].add_many(
                [a_handler_run(row.run_id, 1, handler="d" if row.run_id == 5 else "c") for row in rows[:6]]
            )

        await store.write(put)
        found = await store.read(lambda tx: tx[HandlerRunDetails].taken(-1, "c", since=NOW + 1, until=NOW + 8))
        assert found == frozenset({NOW + 5})
        assert await store.read(lambda tx: tx[HandlerRunDetails].gaps_ahead(-1, after=NOW)) == [8]


class TestSessions:
    """Sessions and handler runs."""

    async def test_sessions_are_kept_newest_first_with_their_runs(self, make_store: MakeStore) -> None:
        """A row reads back as written."""
        store = await make_store()
        ids = [
            await store.write(lambda tx: tx[Sessions].start(1, "schedule", producers_left='["p"]', now=NOW))
            for _ in range(3)
        ]
        assert ids == sorted(set(ids))
        ended = Session(ids[0], 1, "schedule", NOW, NOW + 5, "failed", "no", "[]", 4)
        await store.write(lambda tx: tx[Sessions].save_many([ended]))
        assert await store.read(lambda tx: tx[Sessions].among(ids[:1])) == {ids[0]: ended}
        page = await store.read(lambda tx: tx[Sessions].page(1, before_id=ids[2], limit=9))
        assert [row.session_id for row in page] == ids[1::-1]
        assert [
            row.session_id for row in await store.read(lambda tx: tx[Sessions].page(1, before_id=None, limit=1))
        ] == [ids[2]]
        runs = [a_handler_run(n, ids[0]) for n in (2, 1)] + [a_handler_run(3, ids[1], kind="producer")]
        await store.write(lambda tx: tx[HandlerRunDetails].add_many(runs))
        moved = runs[0]._replace(phase="mutated", prepared="{}", mutation="applied", result='{"a":1}', reserved=3)
        moved = moved._replace(prepares=1, tries=2, awaits="uncertain", published=5, phases='{"mutated":1}')
        await store.write(lambda tx: tx[HandlerRunDetails].save_many([moved]))
        assert await store.read(lambda tx: tx[HandlerRunDetails].among([2, 9])) == {2: moved}
        assert await store.read(lambda tx: dict(tx[HandlerRunDetails].of_sessions(ids))) == {
            ids[0]: [runs[1], moved],
            ids[1]: [runs[2]],
        }

    @pytest.mark.parametrize("limit", [1, 9])
    async def test_history_is_forgotten_with_the_ledger(self, make_store: MakeStore, limit: int) -> None:
        """The messages a run settled are deleted with it, and its session once that has ended; open ones are kept."""
        store = await make_store()

        def put(tx: Tx) -> list[int]:
            _add(tx, "a")
            ids = [tx[Sessions].start(1, "event", producers_left="[]", now=NOW) for _ in range(2)]
            tx[Sessions].save_many([Session(ids[0], 1, "event", NOW, NOW, "completed", None, "[]", 1)])
            tx[HandlerRunDetails].add_many(
                [a_handler_run(1, ids[0]), a_handler_run(2, ids[1]), a_handler_run(3, ids[1])]
            )
            put_runs(tx, closed(3, NOW))
            tx[Messages].put_many(
                [
                    a_message(1, "t", "m1", 1, status="consumed", run_id=1),
                    a_message(1, "t", "m2", 2, status="skipped", run_id=2),
                    a_message(1, "t", "m3", 3, status="consumed", run_id=3),
                    a_message(1, "t", "m4", 4),
                ]
            )
            return ids

        ids = await store.write(put)
        gone = 0
        for _ in range(5):
            gone += await store.write(lambda tx: prune_runs(tx, limit=limit))
        assert gone == 2
        assert set(await store.read(lambda tx: tx[HandlerRunDetails].among([1, 2, 3]))) == {3}
        assert set(await store.read(lambda tx: tx[Sessions].among(ids))) == {ids[1]}
        assert await _counts(store, 1) == {"t/c": {"consumed": 1, "pending": 1}}
