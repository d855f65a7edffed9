"""Old work does not starve new.

After an outage a hundred thousand instants may be overdue. Oldest first, what is due now would wait behind all of them.
So of the free places the larger half goes to what is due within the grace, and the rest to what is older, each oldest
first; what one side does not need, the other takes. If only one place is free, the sides take turns, whatever was
claimed: a retry is on time by its alarm and old by its instant, so that a claim does not tell which side it was of.

The order by due time stays within a schedule, which has one open run at a time, and within a lane: a run that needs a
lane takes its turn among all that is due.
"""

from collections.abc import Sequence
from typing import NamedTuple

from wakeful.core.run.runs import PRIORITY_PLANNED, Run
from wakeful.core.schedule.policies import GRACE
from wakeful.core.time.instants import Instant
from wakeful.engine.labels import by_turn, due_runs
from wakeful.ports.store import Tx


class DueRuns(NamedTuple):
    """Waiting runs that are due, chosen for the free places."""

    runs: list[Run]
    has_late: bool = False  # some that are older than the grace wait
    is_more: bool = False  # more are due than there are places


def late_max(room: int, *, is_turn_of_late: bool) -> int:
    """How many of the free places what is older than the grace gets, if what is on time needs the others."""
    return int(is_turn_of_late) if room == 1 else room // 2


def waiting_runs(
    tx: Tx,
    queues: Sequence[str],
    labels: frozenset[str],
    *,
    now: Instant,
    room: int,
    manual_max: int | None,
    is_turn_of_late: bool,
) -> DueRuns:
    """Waiting runs that are due and that this node may begin, at most `room`."""
    due = due_runs(tx, queues, labels, now=now, limit=room + 1, manual_max=manual_max)
    chosen, border = due[:room], now - GRACE
    late = [run for run in chosen if _is_late(run, border)]
    most = late_max(room, is_turn_of_late=is_turn_of_late)
    if len(late) > most:
        on_time = due_runs(tx, queues, labels, now=now, limit=room, manual_max=0, after=border)
        # The alarm of a run may be later than the run says, as after a crash: then it is on time, and taken once.
        known = {run.run_id for run in on_time}
        late = [run for run in late if run.run_id not in known]
        known |= {run.run_id for run in late}
        others = [run for run in chosen if run.run_id not in known]
        others += on_time[: max(0, room - min(most, len(late)) - len(others))]
        chosen = sorted([*others, *late[: room - len(others)]], key=by_turn)  # in a lane the oldest comes first
    return DueRuns(chosen, bool(late), len(due) > len(chosen))


def _is_late(run: Run, border: Instant) -> bool:
    due_at = run.due_at if run.next_attempt_at is None else run.next_attempt_at
    return run.priority == PRIORITY_PLANNED and due_at <= border
