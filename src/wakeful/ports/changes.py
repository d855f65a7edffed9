"""What a transaction changed. The write methods of a store record it as they are called (`Tx.changes`).

Records hold the written rows by reference, so recording costs one append per statement. After the commit
`observe.facts` turns them into facts for the listeners. Records of a failed operation are dropped.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

from wakeful.core.run.runs import Attempt, Run
from wakeful.core.schedule.cadence import Cadence
from wakeful.core.time.instants import Instant
from wakeful.ports.ledger import Mark
from wakeful.ports.plans import Beginning, NewSchedule, Schedule


class RunsAdded(NamedTuple):
    """New ledger rows."""

    runs: Sequence[Run]


class RunsSaved(NamedTuple):
    """Ledger rows whose state changed. `grown`: for gaps, how many instants each covers more than before."""

    runs: Sequence[Run]
    grown: Sequence[int] | None = None


class RunsSucceeded(NamedTuple):
    """Plain successes (`core.schedule.plain`): the rows as they were claimed, and when they ended. The rows as they
    were written are built only if someone listens."""

    runs: Sequence[Run]
    ended_at: Instant


class RunsAnnotated(NamedTuple):
    """Ledger rows that were written again in the same state, such as with a copy of a definition."""

    runs: Sequence[Run]


class RunsMarked(NamedTuple):
    """Rungs that runs reached."""

    marks: Sequence[Mark]


class AttemptsAdded(NamedTuple):
    """Attempts that ended while their runs continue."""

    attempts: Sequence[Attempt]


class RunsLost(NamedTuple):
    """Running rows of a dead node that are about to be settled."""

    run_ids: Collection[int]


class RunsRemoved(NamedTuple):
    """Rows deleted from the ledger because they lay ahead of the clock."""

    run_ids: Sequence[int]


class SchedulesAdded(NamedTuple):
    """New schedules, and the id of each; None: its slug was taken."""

    rows: Sequence[NewSchedule]
    schedule_ids: Sequence[int | None]


class SchedulesSaved(NamedTuple):
    """Schedules that were edited or removed."""

    rows: Sequence[Schedule]


class CadencesBegun(NamedTuple):
    """The states of new schedules."""

    beginnings: Sequence[Beginning]


class CadencesSaved(NamedTuple):
    """States of schedules. `turned`: those that were halted or resumed, or whose pause ends at another time."""

    rows: Sequence[Cadence]
    turned: Sequence[Cadence]


class SchedulesDone(NamedTuple):
    """Schedules that are done because these runs, their last ones, succeeded."""

    runs: Sequence[Run]


class NodeRegistered(NamedTuple):
    """A process took the clock."""

    at: Instant
    node_id: int
    name: str
    host: str
    pid: int


class NodesVoided(NamedTuple):
    """Nodes whose lease was given up, or taken from them."""

    node_ids: Sequence[int]


class Report(NamedTuple):
    """Something a feature reports once its transaction is durable: on its own event stream, and as a log line.

    The names in `data` are JSON names; its values are JSON values and never contain secrets."""

    stream: str  # "deliveries"
    what: str  # "delivered"
    data: Mapping[str, object]
    text: str | None = None  # the line in server.log; None: events only
    level: Literal["debug", "info", "warn", "error"] = "info"
    slug: str | None = None
    slot: str | None = None
    action: str | None = None  # its name in the log; None: the stream and `what`


Change: TypeAlias = (
    RunsAdded
    | RunsSaved
    | RunsSucceeded
    | RunsAnnotated
    | RunsMarked
    | AttemptsAdded
    | RunsLost
    | RunsRemoved
    | SchedulesAdded
    | SchedulesSaved
    | CadencesBegun
    | CadencesSaved
    | SchedulesDone
    | NodeRegistered
    | NodesVoided
    | Report
)
