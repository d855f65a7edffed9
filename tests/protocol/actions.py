"""The actions of the model: those of a process are transactions of the code, or steps between two of them."""

from collections.abc import Iterator
from typing import Final, NamedTuple, TypeAlias

from protocol.state import (
    CRASHES_MAX,
    SETTLED,
    Attempt,
    Bounds,
    Node,
    Process,
    Renewal,
    Run,
    Schedule,
    State,
    is_sure,
)

FUNCTIONS: Final = {
    "enter": "wakeful.engine.membership.Membership.enter",
    "check clock": "wakeful.engine.engine.Engine._check_clock",
    "renew": "wakeful.engine.membership.Membership.renew",
    "rescue": "wakeful.engine.recovery.rescue",
    "claim": "wakeful.engine.claiming.claim",
    "perform": "wakeful.engine.running.Runner._perform",
    "climb": "wakeful.engine.running.RunLadder.climb",
    "confirm": "wakeful.engine.lease.Lease.confirm",
    "settle": "wakeful.engine.settling.settle",
    "settle and claim": "wakeful.engine.settling.settle_and_claim",
}
"""What a process does, and the function of the code that does it."""

WORLD: Final = ("time passes", "crash", "clock forward", "clock back")
"""What happens to it."""


class Action(NamedTuple):
    """What happened: by which process (None: to all), and to which run."""

    name: str
    process: int | None = None
    run: int | None = None


Next: TypeAlias = tuple[Action, State]


class Protocol:
    """What can happen next. The protections are methods of their own, so that `broken` can remove them one by one."""

    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds
        self.schedules, self.instants, self.crashes, self.clock_steps, self.lease = bounds

    @property
    def start(self) -> State:
        """Two processes that are about to enter."""
        number = len(self.schedules)
        runs = (None,) * (self.instants * number)
        return State((Process(), Process()), (), runs, (0,) * number, None, 0, self.crashes, self.clock_steps)

    def schedule(self, index: int) -> Schedule:
        """The schedule of a run."""
        return self.schedules[index // self.instants]

    def name(self, index: int) -> str:
        """A run, as people read it: its schedule and which instant."""
        return f"{self.schedule(index).name} {index % self.instants + 1}"

    def next(self, state: State) -> Iterator[Next]:
        """All that can happen in a state."""
        for who, process in enumerate(state.processes):
            if process.node_id is None:
                yield Action("enter", who), self.enter(state, who)
                continue
            yield from self._membership(state, who, process)
            yield from self._claims(state, who, process)
            for attempt in process.attempts:
                yield from self._attempt(state, who, attempt)
            if state.crashes_left:
                down = with_process(state, who, Process())
                yield Action("crash", who), down._replace(crashes_left=state.crashes_left - 1)
        yield Action("time passes"), self.later(state)
        if state.clock_steps_left:
            less = state._replace(clock_steps_left=state.clock_steps_left - 1)
            yield Action("clock forward"), less._replace(offset=state.offset + 1)
            yield Action("clock back"), less._replace(offset=state.offset - 1)

    def later(self, state: State) -> State:
        """One step of time."""
        return state._replace(
            nodes=tuple(node._replace(left=max(node.left - 1, 1 - self.lease)) for node in state.nodes),
            processes=tuple(
                process._replace(
                    lease=max(0, process.lease - 1),
                    doubt=max(0, process.doubt - 1),
                    renewal=None if process.renewal is None else _aged(process.renewal),
                )
                for process in state.processes
            ),
        )

    # --- membership --------------------------------------------------------------------------------------------------

    def enter(self, state: State, who: int) -> State:
        """Register a new incarnation."""
        process = Process(len(state.nodes), self.lease, state.offset, state.offset, doubt=self.lease)
        return with_process(state, who, process)._replace(nodes=(*state.nodes, Node(self.lease, state.offset)))

    def _membership(self, state: State, who: int, process: Process) -> Iterator[Next]:
        if process.renewal is not None:
            yield Action("renew", who), self.renew(state, who, process, process.renewal)
        else:
            yield Action("check clock", who), self.check_clock(state, who, process)
        lost = [index for index, run in enumerate(state.runs) if self.is_lost(state, run)]
        if lost:
            yield Action("rescue", who), self.rescue(state, lost)

    def check_clock(self, state: State, who: int, process: Process) -> State:
        """Read the clock; a renewal begins."""
        if self.is_doubtful(process.offset - process.seen):
            process = process._replace(doubt=self.lease)
        renewal = Renewal(self.lease, may_judge=not process.doubt)
        return with_process(state, who, process._replace(seen=process.offset, renewal=renewal))

    def is_doubtful(self, jumped: int) -> bool:
        """Whether leases in the store are unreliable after the clock jumped."""
        return jumped != 0

    def renew(self, state: State, who: int, process: Process, renewal: Renewal) -> State:
        """Extend the lease, ask the server for its time, and void the nodes whose leases are over."""
        assert process.node_id is not None
        if state.nodes[process.node_id].is_voided:
            return with_process(state, who, Process())
        if self.was_clock_set(state, process):
            return with_process(state, who, process._replace(offset=state.offset, renewal=None))
        nodes = tuple(
            Node(renewal.left, process.offset)
            if node_id == process.node_id
            else node._replace(is_voided=node.is_voided or self.is_over(node, process, renewal))
            for node_id, node in enumerate(state.nodes)
        )
        process = process._replace(lease=self.lease_after(renewal), offset=state.offset, renewal=None)
        return with_process(state, who, process)._replace(nodes=nodes)

    def was_clock_set(self, state: State, process: Process) -> bool:
        """Whether the server's clock was stepped since it was last asked: then the renewal is done again."""
        return process.offset != state.offset

    def is_over(self, node: Node, process: Process, renewal: Renewal) -> bool:
        """Whether a renewal voids another node: its lease is over, or further ahead than one could be."""
        if not renewal.may_judge or self.is_late(renewal):
            return False
        if node.offset != process.offset or not renewal.left:  # by a clock that was read long ago, all are far ahead
            return True
        return node.left <= renewal.left - self.lease

    def is_late(self, renewal: Renewal) -> bool:
        """Whether the renewal waited for longer than a lease."""
        return not renewal.left

    def lease_after(self, renewal: Renewal) -> int:
        """What is left of the lease when its renewal is committed: it counts from the reading of the clock."""
        return max(0, renewal.left)

    def is_lost(self, state: State, run: Run | None) -> bool:
        """Whether a run is to be rescued: a voided node owns it."""
        return run is not None and run.outcome == "running" and _owner(state, run).is_voided

    def rescue(self, state: State, lost: list[int]) -> State:
        """Settle the runs of voided nodes."""
        for index in lost:
            run = state.runs[index]
            assert run is not None
            after = self.after_loss(run, self.schedule(index))
            state = with_run(state, index, after)
            state = freed(state, index)
        return state

    def after_loss(self, run: Run, schedule: Schedule) -> Run:
        """Whether it is tried again (`core.schedule.policies.after_crash`)."""
        run = run._replace(owner=None, crashes=run.crashes + 1)
        if run.crashes >= CRASHES_MAX or (run.is_sent and not schedule.is_retried):
            return run._replace(outcome="unknown")
        return run._replace(outcome="waiting", is_sent=False)

    # --- claiming and running ----------------------------------------------------------------------------------------

    def has_lease(self, state: State, process: Process) -> bool:
        """Whether the store says that this node has its lease (`Nodes.hold`)."""
        assert process.node_id is not None
        return not state.nodes[process.node_id].is_voided

    def _claims(self, state: State, who: int, process: Process) -> Iterator[Next]:
        """One run at a time: so runs are claimed in every order, and by both nodes."""
        if not self.has_lease(state, process):
            return
        for number, through in enumerate(state.planned):
            first = number * self.instants
            if through < self.instants and not any(map(_is_open, state.runs[first : first + through])):
                yield Action("claim", who, first + through), self.claim_new(state, who, number)
        if state.lane is None:
            for index in _waiting(state):
                yield Action("claim", who, index), self.claim_known(state, who, index)

    def claim_new(self, state: State, who: int, number: int) -> State:
        """The alarm of a schedule rings: its cadence moves on, and the run of the instant starts or waits."""
        index = number * self.instants + state.planned[number]
        state = with_run(moved_on(state, number), index, Run("waiting"))
        return self.claim_known(state, who, index) if state.lane is None else state

    def claim_known(self, state: State, who: int, index: int) -> State:
        """A run that waits starts on this node, under a new fence."""
        run, process = state.runs[index], state.processes[who]
        assert run is not None
        is_local = self.schedule(index).is_local
        claimed = run._replace(outcome="running", owner=process.node_id, fence=run.fence + 1, is_sent=is_local)
        process = process._replace(attempts=(*process.attempts, Attempt(index, claimed.fence)))
        return with_process(with_run(state, index, claimed), who, process)._replace(lane=index)

    def holds(self, state: State, process: Process) -> bool:
        """Whether the lease is certainly valid, by both clocks of the process (`Lease.holds`)."""
        return is_sure(state, process)

    def _attempt(self, state: State, who: int, attempt: Attempt) -> Iterator[Next]:
        process, is_local = state.processes[who], self.schedule(attempt.run).is_local
        if attempt.phase == "begun":
            yield from self._ended(state, who, attempt)
        elif self.holds(state, process):
            if attempt.phase == "marked" or is_local:
                name = "perform" if is_local else "confirm"
                yield Action(name, who, attempt.run), self.begin(state, who, attempt)
            else:
                yield Action("climb", who, attempt.run), self.climb(state, who, attempt)

    def climb(self, state: State, who: int, attempt: Attempt) -> State:
        """Record that the attempt is about to be sent; without the fence it is over."""
        process, run = state.processes[who], state.runs[attempt.run]
        if run is None or not self.is_held(run, process, attempt):
            return with_process(state, who, without(process, attempt))
        state = with_run(state, attempt.run, run._replace(is_sent=True))
        return with_process(state, who, with_attempt(process, attempt, attempt._replace(phase="marked")))

    def begin(self, state: State, who: int, attempt: Attempt) -> State:
        """The attempt has its first effect outside."""
        run = state.runs[attempt.run]
        assert run is not None
        state = with_run(state, attempt.run, run._replace(begun=(*run.begun, attempt.fence)))
        begun = with_attempt(state.processes[who], attempt, attempt._replace(phase="begun"))
        return with_process(state, who, begun)

    # --- settling ----------------------------------------------------------------------------------------------------

    def is_held(self, run: Run, process: Process, attempt: Attempt) -> bool:
        """Whether the run is still this node's, under the fence of the attempt."""
        return run.outcome == "running" and run.owner == process.node_id and run.fence == attempt.fence

    def _ended(self, state: State, who: int, attempt: Attempt) -> Iterator[Next]:
        process, run = state.processes[who], state.runs[attempt.run]
        assert run is not None
        left = with_process(state, who, without(process, attempt))
        if not self.is_held(run, process, attempt):
            yield Action("settle", who, attempt.run), self.ignore(left, attempt)
            return
        closed = with_run(left, attempt.run, run._replace(outcome="succeeded", owner=None))
        yield Action("settle", who, attempt.run), freed(closed, attempt.run)
        if self.has_lease(state, process):
            for index in _waiting(closed):
                yield Action("settle and claim", who, index), self.claim_known(closed, who, index)

    def ignore(self, state: State, attempt: Attempt) -> State:
        """A late answer changes nothing."""
        return state


def moved_on(state: State, number: int) -> State:
    """With the cadence of a schedule past its next instant."""
    planned = state.planned
    return state._replace(planned=(*planned[:number], planned[number] + 1, *planned[number + 1 :]))


def tidied(state: State) -> State:
    """The state with its node ids in the order of their use, and without those that nothing refers to."""
    state = _forgotten(state)
    used: dict[int, int] = {}
    for process in state.processes:
        if process.node_id is not None:
            used.setdefault(process.node_id, len(used))
    for run in state.runs:
        if run is not None and run.owner is not None:
            used.setdefault(run.owner, len(used))
    if list(used) == list(range(len(state.nodes))):
        return state
    return state._replace(
        nodes=tuple(state.nodes[node_id] for node_id in used),
        processes=tuple(
            process if process.node_id is None else process._replace(node_id=used[process.node_id])
            for process in state.processes
        ),
        runs=tuple(
            run if run is None or run.owner is None else run._replace(owner=used[run.owner]) for run in state.runs
        ),
    )


def _forgotten(state: State) -> State:
    """Without the history of runs that are settled, and of which no process has an attempt: nothing can happen to them,
    and if it does, it is noticed."""
    tried = {attempt.run for process in state.processes for attempt in process.attempts}
    runs = tuple(
        Run(run.outcome) if run is not None and run.outcome in SETTLED and index not in tried else run
        for index, run in enumerate(state.runs)
    )
    return state if runs == state.runs else state._replace(runs=runs)


def _aged(renewal: Renewal) -> Renewal:
    return renewal._replace(left=max(renewal.left - 1, 0))


def _owner(state: State, run: Run) -> Node:
    assert run.owner is not None
    return state.nodes[run.owner]


def _is_open(run: Run | None) -> bool:
    return run is not None and run.outcome in ("waiting", "running")


def _waiting(state: State) -> list[int]:
    return [index for index, run in enumerate(state.runs) if run is not None and run.outcome == "waiting"]


def freed(state: State, index: int) -> State:
    return state._replace(lane=None) if state.lane == index else state


def with_run(state: State, index: int, run: Run) -> State:
    return state._replace(runs=(*state.runs[:index], run, *state.runs[index + 1 :]))


def with_process(state: State, who: int, process: Process) -> State:
    return state._replace(processes=(*state.processes[:who], process, *state.processes[who + 1 :]))


def with_attempt(process: Process, old: Attempt, new: Attempt) -> Process:
    return process._replace(attempts=tuple(new if one == old else one for one in process.attempts))


def without(process: Process, attempt: Attempt) -> Process:
    return process._replace(attempts=tuple(one for one in process.attempts if one != attempt))
