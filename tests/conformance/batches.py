"""Conformance: batches. A store may write equal rows of a batch together; each row keeps its own values."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import pytest

from conformance.rows import (
    NOW,
    MakeStore,
    a_cadence,
    a_run,
    put_cadences,
    put_runs,
    running,
    schedule_alarm,
)
from wakeful.core.run.runs import Run
from wakeful.core.schedule.cadence import Cadence

T = TypeVar("T")

COUNT = 40
# How rows differ: most equal the first, some differ in one value, each of the last in all.
_ODD = (7, 11, 12, 23)


def _mixed(make: Callable[[int], T], odd: Callable[[int], T], single: Callable[[int], T]) -> list[T]:
    """Rows 1 to COUNT: most are equal, a few are equal among themselves, and the last four all differ."""
    return [
        single(n) if n > COUNT - 4 else odd(n) if n in _ODD else make(n)
        for n in range(1, COUNT + 1)
    ]  # fmt: skip


def _started(run_id: int, **changes: Any) -> Run:
    """A run that starts as it is written; each belongs to another schedule, all to the same instant."""
    columns = {"schedule_id": 100 + run_id, "occurrence": NOW, "planned_at": NOW, "due_at": NOW, "deadline_at": NOW + 9}
    return running(run_id, 3, **columns | changes)


class TestBatches:
    """Rows written together keep their own values."""

    async def test_runs_that_start_together(self, make_store: MakeStore) -> None:
        """Each with its own lane, deadline and version."""
        store = await make_store()
        rows = _mixed(
            _started,
            lambda n: _started(n, deadline_at=NOW + 77, rung="started"),
            lambda n: _started(n, lane=f"lane-{n}", version=n),
        )
        await store.write(lambda tx: put_runs(tx, *rows))
        assert sorted(await store.read(lambda tx: tx.runs.page(limit=99))) == rows

    async def test_runs_that_end_together(self, make_store: MakeStore) -> None:
        """Each with its own outcome and result."""
        store = await make_store()
        await store.write(lambda tx: put_runs(tx, *(_started(n) for n in range(1, COUNT + 2))))

        def ended(run_id: int, **changes: Any) -> Run:
            let_go = {"deadline_at": None, "ended_at": NOW + 5, "outcome": "succeeded"}
            return _started(run_id, **let_go | {"rung": "finished"} | changes)

        rows = _mixed(
            ended,
            lambda n: ended(n, outcome="failed", error="no"),
            lambda n: ended(n, result=f'{{"reply": "{n}"}}', ended_at=NOW + n),
        )
        await store.write(lambda tx: tx.runs.close_many(rows))
        assert sorted(await store.read(lambda tx: tx.runs.page(limit=99))) == [*rows, _started(COUNT + 1)]

    async def test_cadences_that_ring_together(self, make_store: MakeStore) -> None:
        """Each with its own run: one it opened, one it queued, or none."""
        await _saved(
            make_store,
            "save_planned",
            _mixed(
                lambda n: a_cadence(n, planned_through=NOW + 5, next_at=None, open_run_id=500 + n, last_row_id=500 + n),
                lambda n: a_cadence(n, planned_through=NOW + 5, next_at=NOW + 6, last_row_id=500 + n),
                lambda n: a_cadence(n, next_at=NOW + n, open_run_id=300 + n, queued_run_id=n, last_row_id=500 + n),
            ),
        )

    async def test_cadences_whose_runs_end_together(self, make_store: MakeStore) -> None:
        """Each with its own state and its own errors."""
        await _saved(
            make_store,
            "save_settled",
            _mixed(
                lambda n: a_cadence(n, last_run_at=NOW, last_outcome="succeeded", last_success_at=NOW + 1),
                lambda n: a_cadence(n, state="disabled", state_reason="why", consecutive_errors=9, last_error="no"),
                lambda n: a_cadence(n, session_id=f"s{n}", backoff_until=NOW + n, open_run_id=n),
            ),
        )

    async def test_alarms_that_move_together(self, make_store: MakeStore) -> None:
        """Each to its own due time, or to none."""
        store = await make_store()
        refs = range(1, COUNT + 2)
        await store.write(lambda tx: tx.alarms.set_many([schedule_alarm(n) for n in refs]))
        moves = _mixed(lambda n: (n, NOW + 60), lambda n: (n, None), lambda n: (n, NOW + n))
        await store.write(lambda tx: tx.alarms.move_many("schedule", moves))
        alarms = await store.read(lambda tx: tx.alarms.by_refs("schedule", list(refs)))
        assert {ref: alarm.due_at for ref, alarm in alarms.items()} == {**dict(moves), COUNT + 1: NOW}

    async def test_one_that_cannot_be_written_keeps_none(self, make_store: MakeStore) -> None:
        """An instant that already has a row fails the whole batch (L2)."""
        store = await make_store()
        await store.write(lambda tx: put_runs(tx, a_run(50, schedule_id=120, occurrence=NOW)))
        with pytest.raises(Exception, match=r".+"):
            await store.write(lambda tx: tx.runs.add_many([_started(n) for n in range(1, COUNT + 1)]))
        assert [row.run_id for row in await store.read(lambda tx: tx.runs.page(limit=99))] == [50]


async def _saved(make_store: MakeStore, save: str, rows: Sequence[Cadence]) -> None:
    """Save them, and check that each reads back as written and that other rows are unchanged."""
    store = await make_store()
    refs = range(1, len(rows) + 2)
    await store.write(lambda tx: put_cadences(tx, *(a_cadence(n) for n in refs)))
    await store.write(lambda tx: getattr(tx.cadences, save)(rows))
    found = await store.read(lambda tx: tx.cadences.lock(refs))
    assert found == {row.schedule_id: row for row in (*rows, a_cadence(len(rows) + 1))}
