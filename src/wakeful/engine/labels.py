"""What a node may claim because of its labels, in addition to alarms that need none.

A node without labels asks for nothing more. A node with labels merges what is due in its queues with what needs no
label, by due time, so that neither keeps the other waiting.
"""

from collections.abc import Sequence

from wakeful.core.run.runs import PRIORITY_PERSON, Run
from wakeful.core.schedule.labels import may_take
from wakeful.core.time.instants import Instant
from wakeful.ports.store import Tx, run_alarm


def queues_for(tx: Tx, labels: frozenset[str]) -> list[str]:
    """The queues that a node with these labels may take from."""
    return [queue for queue in tx.labelled.queues() if may_take(queue, labels)] if labels else []


def due_kinds(tx: Tx, queues: Sequence[str], *, now: Instant) -> set[str]:
    """The kinds with an alarm that is due for this node."""
    kinds = tx.alarms.due_kinds(now=now)
    return kinds | tx.labelled.due_kinds(queues, now=now) if queues else kinds


def next_due_at(tx: Tx, queues: Sequence[str], *, besides: Sequence[str] = ()) -> Instant | None:
    """The earliest due time of an alarm that this node may ring."""
    earliest = tx.alarms.next_due_at(besides=besides)
    labelled = tx.labelled.next_due_at(queues, besides=besides) if queues else None
    return min((due_at for due_at in (earliest, labelled) if due_at is not None), default=None)


def due_runs(
    tx: Tx,
    queues: Sequence[str],
    labels: frozenset[str],
    *,
    now: Instant,
    limit: int,
    manual_max: int | None,
    after: Instant | None = None,
) -> list[Run]:
    """Waiting runs that are due and that this node may begin; like `Runs.due`, plus the runs in its queues."""
    rows = tx.runs.due(now=now, limit=limit, manual_max=manual_max, after=after)
    if any(run.run_on is not None for run in rows):
        rows = _kept(tx, rows, labels)
    if not queues:
        return rows
    merged = sorted([*rows, *tx.labelled.due_runs(queues, now=now, limit=limit, after=after)], key=by_turn)
    manual = [run for run in merged if run.priority == PRIORITY_PERSON][:manual_max]
    return [*manual, *(run for run in merged if run.priority != PRIORITY_PERSON)][:limit]


def _kept(tx: Tx, rows: Sequence[Run], labels: frozenset[str]) -> list[Run]:
    """The runs that need no label, or one that this node has. Their alarms were written by a node that knows no
    labels; the row decides, and its alarm is corrected."""
    left = [run for run in rows if not may_take(run.run_on, labels)]
    tx.alarms.set_many([run_alarm(run, run.next_attempt_at or run.due_at) for run in sorted(left)])
    return [run for run in rows if may_take(run.run_on, labels)]


def hold_off_first(tx: Tx, queues: Sequence[str], kind: str, *, now: Instant, until: Instant) -> int | None:
    """Postpone the first due alarm of a kind; returns its ref, or None if none is due."""
    ref = tx.labelled.hold_off_first(queues, kind, now=now, until=until) if queues else None
    return tx.alarms.hold_off_first(kind, now=now, until=until) if ref is None else ref


def by_turn(run: Run) -> tuple[int, Instant, int]:
    """The order in which waiting runs begin."""
    return run.priority, run.due_at if run.next_attempt_at is None else run.next_attempt_at, run.run_id
