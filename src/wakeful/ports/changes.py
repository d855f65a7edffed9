"""What a transaction changed. The write methods of a store record it as they are called (`Tx.changes`).

Records hold the written rows by reference, so recording costs one append per statement. After the commit
`observe.facts` turns them into facts for the listeners. Records of a failed operation are dropped.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Generic, Literal, NamedTuple, TypeAlias, TypeVar

from wakeful.core.run.runs import Attempt, Run
from wakeful.core.schedule.cadence import Cadence
from wakeful.core.time.instants import Instant
from wakeful.ports.claims import Claim
from wakeful.ports.event import EventKind
from wakeful.ports.ledger import Mark
from wakeful.ports.plans import Beginning, NewSchedule, Schedule

T = TypeVar("T")


class RunsAdded(NamedTuple):
    """New ledger rows."""

    runs: Sequence[Run]


class RunsSaved(NamedTuple):
    """Ledger rows whose state changed. `grown`: for gaps, how many instants each covers more than before."""

    runs: Sequence[Run]
    grown: Sequence[int] | None = None


class RunsStarted(NamedTuple):
    """New ledger rows of runs that start as they are written. The rows are made only if someone listens."""

    claims: Sequence[Claim]


class RunsSucceeded(NamedTuple):
    """Plain successes (`core.schedule.plain`) and when they ended. The rows are made only if someone listens."""

    claims: Sequence[Claim]
    ended_at: Instant
    results: Mapping[int, str]  # of those that left something behind, by run id


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

    claims: Sequence[Claim]


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


class Report(NamedTuple, Generic[T]):
    """Something a feature reports once its transaction is durable: on its own event stream, and as a log line.

    Its data never contains secrets."""

    event: EventKind[T]
    about: T
    text: str | None = None  # the line in server.log; None: events only
    level: Literal["debug", "info", "warn", "error"] = "info"
    slug: str | None = None
    slot: str | None = None
    action: str | None = None  # its name in the log; None: the stream and `what`

    @property
    def stream(self) -> str:
        return self.event.stream

    @property
    def what(self) -> str:
        return self.event.what

    @property
    def data(self) -> Mapping[str, object]:
        """The data in JSON."""
        return self.event.json(self.about)


Change: TypeAlias = (
    RunsAdded
    | RunsStarted
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
    | Report[Any]
)
