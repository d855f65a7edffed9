"""Conformance: what a store records of its writes, for the listeners of a commit."""

from collections.abc import Callable
from contextlib import suppress

from conformance.rows import (
    NOW,
    MakeStore,
    a_batch,
    a_cadence,
    a_gap,
    a_node,
    a_run,
    a_schedule,
    an_attempt,
    closed,
    put_cadences,
    put_runs,
    running,
)
from wakeful.core.run.runs import Run
from wakeful.ports import events
from wakeful.ports.changes import (
    AttemptsAdded,
    CadencesBegun,
    CadencesSaved,
    Change,
    NodeRegistered,
    NodesVoided,
    Report,
    RunsAdded,
    RunsAnnotated,
    RunsMarked,
    RunsRemoved,
    RunsSaved,
    RunsStarted,
    RunsSucceeded,
    SchedulesAdded,
    SchedulesSaved,
)
from wakeful.ports.event_data import RunNamed
from wakeful.ports.plans import Beginning
from wakeful.ports.store import Mark, Store, Tx


async def _changes(store: Store, operation: Callable[[Tx], object]) -> list[Change]:
    """What a transaction with this operation recorded."""

    def recorded(tx: Tx) -> list[Change]:
        operation(tx)
        return list(tx.changes)

    return await store.write(recorded)


class TestChanges:
    """Changes are recorded where rows are written, in the order of the writes."""

    async def test_runs(self, make_store: MakeStore) -> None:
        """Added, claimed, grown, closed and removed rows, as they were written."""
        store = await make_store()
        gap = a_gap(2, NOW - 10, NOW - 5, 2)
        assert await _changes(store, lambda tx: put_runs(tx, a_run(1), gap)) == [RunsAdded((a_run(1), gap))]
        claimed = [running(1, 7)]
        assert await _changes(store, lambda tx: tx.runs.save_many(claimed)) == [RunsSaved(claimed)]
        longer = [gap._replace(instants=5, planned_until=NOW - 1)]
        assert await _changes(store, lambda tx: tx.runs.save_many(longer, grown=[3])) == [RunsSaved(longer, [3])]
        ended = [closed(1, NOW + 9, fence=1)]
        assert await _changes(store, lambda tx: tx.runs.close_many(ended)) == [RunsSaved(ended)]
        tried = [an_attempt(1, 1)]
        assert await _changes(store, lambda tx: tx.runs.add_attempts(tried)) == [AttemptsAdded(tried)]
        assert await _changes(store, lambda tx: tx.runs.remove_many([2])) == [RunsRemoved([2])]

    async def test_runs_of_the_plain_path(self, make_store: MakeStore) -> None:
        """Started and settled rows, without those that it left alone."""
        store = await make_store()
        batch = a_batch((1, 1), node_id=7, rung="started")
        begun = list(batch.claims)
        await store.write(lambda tx: put_cadences(tx, a_cadence(1)))
        await store.write(lambda tx: tx.runs.reserve_ids(1))
        assert await _changes(store, lambda tx: tx.plain.start([batch])) == [RunsStarted(begun)]
        assert await _changes(store, lambda tx: tx.plain.settle(8, begun, now=NOW + 9)) == []
        settled = [RunsSucceeded(begun, NOW + 9, {1: "{}"})]
        assert await _changes(store, lambda tx: tx.plain.settle(7, begun, now=NOW + 9, results={1: "{}"})) == settled

    async def test_a_row_in_the_same_state_is_only_annotated(self, make_store: MakeStore) -> None:
        """It is written like any other."""
        store = await make_store()
        await store.write(lambda tx: put_runs(tx, a_run(1)))
        copied: list[Run] = [a_run(1)._replace(definition="{}")]
        assert await _changes(store, lambda tx: tx.runs.annotate_many(copied)) == [RunsAnnotated(copied)]
        assert await store.read(lambda tx: tx.runs.lock([1])) == {1: copied[0]}

    async def test_only_marks_that_count_are_recorded(self, make_store: MakeStore) -> None:
        """Those of a run that another node holds by now are not."""
        store = await make_store()
        await store.write(lambda tx: put_runs(tx, running(1, 7), running(2, 8)))
        ours, theirs = Mark(1, 1, "sent", "{}", None), Mark(2, 1, "sent", "{}", None)
        assert await _changes(store, lambda tx: tx.runs.mark_many(7, [ours, theirs])) == [RunsMarked([ours])]
        assert await _changes(store, lambda tx: tx.runs.mark_many(7, [theirs])) == []

    async def test_schedules_and_their_states(self, make_store: MakeStore) -> None:
        """Created with their ids, edited, and halted or not as the caller says."""
        store = await make_store()
        new, cadence = a_schedule("s0001"), a_cadence(1)
        assert await _changes(store, lambda tx: put_cadences(tx, cadence)) == [SchedulesAdded([new], [1])]
        begun = [Beginning(cadence, NOW, [2, 3])]
        assert await _changes(store, lambda tx: tx.cadences.begin_many(begun)) == [CadencesBegun(begun)]
        edited = await store.read(lambda tx: list(tx.schedules.by_ids([1]).values()))
        assert await _changes(store, lambda tx: tx.schedules.save_many(edited)) == [SchedulesSaved(edited)]
        paused = [cadence._replace(state="paused")]
        assert await _changes(store, lambda tx: tx.cadences.save_many(paused)) == [CadencesSaved(paused, ())]
        saved = await _changes(store, lambda tx: tx.cadences.save_many(paused, turned=paused))
        assert saved == [CadencesSaved(paused, paused)]
        settled = await _changes(store, lambda tx: tx.cadences.save_settled(paused, turned=paused))
        assert settled == [CadencesSaved(paused, paused)]
        assert await _changes(store, lambda tx: tx.cadences.save_settled(paused)) == []

    async def test_nodes_and_reports(self, make_store: MakeStore) -> None:
        """A node that is voided twice leaves once."""
        store = await make_store()
        (entered,) = await _changes(store, a_node)
        assert isinstance(entered, NodeRegistered)
        assert await _changes(store, lambda tx: tx.nodes.void([entered.node_id], now=NOW)) == [
            NodesVoided([entered.node_id])
        ]
        assert await _changes(store, lambda tx: tx.nodes.void([entered.node_id], now=NOW)) == []
        report = Report(events.RUN_VOIDED, RunNamed(1))
        assert await _changes(store, lambda tx: tx.report(report)) == [report]

    async def test_each_transaction_starts_without_records(self, make_store: MakeStore) -> None:
        """Also after one that failed; pruning and reading record nothing."""
        store = await make_store()
        await store.write(lambda tx: put_runs(tx, closed(1, NOW - 100)))

        def broken(tx: Tx) -> None:
            tx.report(Report(events.RUN_VOIDED, RunNamed(1)))
            raise LookupError("no")

        with suppress(LookupError):
            await store.write(broken)
        assert await _changes(store, lambda tx: tx.runs.prune(before=NOW, limit=9)) == []
        assert await store.read(lambda tx: tx.runs.lock([1])) == {}
