"""The state of the model: one store, two processes that know parts of it, and the clock of the server.

All times are relative to now, so that time can pass without end while the number of states stays finite.
"""

from typing import Final, Literal, NamedTuple, TypeAlias

Outcome: TypeAlias = Literal["waiting", "running", "succeeded", "unknown"]
SETTLED: Final = ("succeeded", "unknown")
Phase: TypeAlias = Literal["claimed", "marked", "begun"]

CRASHES_MAX: Final = 2


class Schedule(NamedTuple):
    """What is planned. All schedules of the model are in one lane."""

    name: str
    is_local: bool  # a call: its row says `started` from the claim on
    is_retried: bool  # `onCrash`


CALL: Final = Schedule("call", is_local=True, is_retried=True)
TURN: Final = Schedule("turn", is_local=False, is_retried=False)


class Bounds(NamedTuple):
    """What is bounded. Time and freezes are not."""

    schedules: tuple[Schedule, ...] = (CALL, TURN)
    instants: int = 1  # of each schedule
    crashes: int = 0
    clock_steps: int = 0
    lease: int = 1  # its length, in steps of time

    def __str__(self) -> str:
        """As the report names them."""
        names = " and ".join(schedule.name for schedule in self.schedules)
        return (
            f"{names}, instants: {self.instants}, crashes: {self.crashes}, clock steps: {self.clock_steps}, "
            f"lease: {self.lease}"
        )


class Node(NamedTuple):
    """A row of `nodes`: one incarnation of a process."""

    left: int  # of its lease
    offset: int  # of the server's clock, as its process knew it
    is_voided: bool = False


class Run(NamedTuple):
    """A row of the ledger, and what the world has seen of it."""

    outcome: Outcome
    owner: int | None = None
    fence: int = 0
    crashes: int = 0
    is_sent: bool = False  # its rung is above `claimed`
    begun: tuple[int, ...] = ()  # the attempts that had an effect, by their fences


class Attempt(NamedTuple):
    """An attempt in progress in a process."""

    run: int
    fence: int
    phase: Phase = "claimed"


class Renewal(NamedTuple):
    """A renewal between the reading of the clock and the commit."""

    left: int  # of the lease that it asks for
    may_judge: bool  # whether the leases of others were reliable then


class Process(NamedTuple):
    """A process, and what it believes."""

    node_id: int | None = None  # None: it is down, or has lost its lease
    lease: int = 0  # what is left of it, by the monotonic clock
    offset: int = 0  # of the server's clock, when it was last asked
    seen: int = 0  # the offset at the last check of the clock
    doubt: int = 0  # how long leases in the store are unreliable
    renewal: Renewal | None = None
    attempts: tuple[Attempt, ...] = ()


class State(NamedTuple):
    """Everything."""

    processes: tuple[Process, ...]
    nodes: tuple[Node, ...]
    runs: tuple[Run | None, ...]  # for each schedule its instants in order; None: not planned yet
    planned: tuple[int, ...]  # how many instants of each schedule are decided
    lane: int | None  # the run that holds it
    offset: int  # of the server's clock
    crashes_left: int
    clock_steps_left: int


def is_sure(state: State, process: Process) -> bool:
    """Whether a process believes that its lease is certainly valid, by both of its clocks (`Lease.holds`)."""
    if process.node_id is None or not process.lease:
        return False
    node = state.nodes[process.node_id]
    return node.offset > process.offset or (node.offset == process.offset and node.left > 0)
