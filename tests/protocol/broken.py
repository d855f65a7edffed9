"""Variants of the protocol that lack one protection each. The laws must notice every one of them."""

from collections.abc import Iterator
from typing import Final

from protocol.actions import Next, Protocol, freed, moved_on
from protocol.state import Attempt, Node, Process, Renewal, Run, State


class NoFence(Protocol):
    """The answer of any node settles a run."""

    def is_held(self, run: Run, process: Process, attempt: Attempt) -> bool:
        return run.outcome == "running"


class SettledRunsAreSettledAgain(Protocol):
    """An answer counts even if the run is already settled."""

    def is_held(self, run: Run, process: Process, attempt: Attempt) -> bool:
        return run.owner in (None, process.node_id) and run.fence == attempt.fence


class LeaseNotCheckedByClaim(Protocol):
    """A claim does not ask the store whether the node has its lease."""

    def has_lease(self, state: State, process: Process) -> bool:
        return True


class LeaseNotCheckedBeforeAttempt(Protocol):
    """A node that stood still goes on with what it had claimed."""

    def holds(self, state: State, process: Process) -> bool:
        return True


class RescueDoesNotWait(Protocol):
    """A renewal voids all other nodes, as on a database that only one process can tick on."""

    def is_over(self, node: Node, process: Process, renewal: Renewal) -> bool:
        return True


class RescueOfTheLiving(Protocol):
    """What another node runs is rescued, whether it was voided or not."""

    def is_lost(self, state: State, run: Run | None) -> bool:
        return run is not None and run.outcome == "running"


class LeaseCountsFromTheCommit(Protocol):
    """The lease of a node that stood still during its renewal ends later for itself than for the others."""

    def lease_after(self, renewal: Renewal) -> int:
        return self.lease

    def holds(self, state: State, process: Process) -> bool:
        return process.lease > 0


class LateRenewalsJudge(Protocol):
    """A renewal that waited for long takes leases written meanwhile for those of a clock that was ahead."""

    def is_late(self, renewal: Renewal) -> bool:
        return False


class OldTimeCounts(Protocol):
    """A renewal goes by the time it read, although the server's clock was stepped since."""

    def was_clock_set(self, state: State, process: Process) -> bool:
        return False


class OnlyStepsBackAreDoubted(Protocol):
    """After a step forward, the first node to notice it takes the leases of the others."""

    def is_doubtful(self, jumped: int) -> bool:
        return jumped < 0


class SentBeforeRecorded(Protocol):
    """An attempt has its effect before its row says that it is sent."""

    def climb(self, state: State, who: int, attempt: Attempt) -> State:
        if attempt.phase == "claimed":
            state = self.begin(state, who, attempt)
            attempt = attempt._replace(phase="begun")
        return state


class CadenceMovesAlone(Protocol):
    """The cadence moves in one transaction, and the run of its instant is written in the next one."""

    def claim_new(self, state: State, who: int, number: int) -> State:
        return moved_on(state, number)


class LaneFreedByAnyone(Protocol):
    """A late answer is not counted, but frees the lane."""

    def ignore(self, state: State, attempt: Attempt) -> State:
        return freed(state, attempt.run)


class SuccessorWithoutLane(Protocol):
    """Settling hands the lane on and frees it as well."""

    def _ended(self, state: State, who: int, attempt: Attempt) -> Iterator[Next]:
        for action, after in super()._ended(state, who, attempt):
            yield action, after._replace(lane=None) if action.name == "settle and claim" else after


class CrashesNotCounted(Protocol):
    """Rescued runs are tried again without end."""

    def after_loss(self, run: Run, schedule: object) -> Run:
        return run._replace(owner=None, outcome="waiting", is_sent=False)


BROKEN: Final = (
    NoFence,
    SettledRunsAreSettledAgain,
    LeaseNotCheckedByClaim,
    LeaseNotCheckedBeforeAttempt,
    RescueDoesNotWait,
    RescueOfTheLiving,
    LeaseCountsFromTheCommit,
    LateRenewalsJudge,
    OldTimeCounts,
    OnlyStepsBackAreDoubted,
    SentBeforeRecorded,
    CadenceMovesAlone,
    LaneFreedByAnyone,
    SuccessorWithoutLane,
    CrashesNotCounted,
)
