"""The laws of the model, numbered as in docs/laws.md: what must hold in every state, and in every step to the next."""

from collections.abc import Iterator

from protocol.actions import Action, Protocol
from protocol.state import CRASHES_MAX, SETTLED, State, is_sure


def broken_in(state: State, protocol: Protocol) -> Iterator[str]:
    """What is wrong with a state."""
    yield from _each_instant_has_one_row(state, protocol)
    yield from _attempts_are_few(state, protocol)
    yield from _the_lane_has_one_holder(state)
    yield from _no_lease_is_believed_that_was_taken(state)


def broken_by(before: State, action: Action, after: State, protocol: Protocol) -> Iterator[str]:
    """What is wrong with a step."""
    for index, (old, new) in enumerate(zip(before.runs, after.runs, strict=True)):
        if old is None or new is None or old == new:
            continue
        if old.outcome in SETTLED:
            what = "runs again" if new.begun != old.begun else "changes again"
            yield f"L2: what is settled is never run again, and {protocol.name(index)} {what}"
        if action.process is None or action.name in ("rescue", "enter"):
            continue
        process = before.processes[action.process]
        if new.begun != old.begun and (old.owner, old.fence) != (process.node_id, new.begun[-1]):
            yield f"L6: {protocol.name(index)} begins on a node that it was taken from"
        if old.outcome == "running" and new.outcome != "running" and old.owner != process.node_id:
            yield f"L6: a late answer is fenced off, and one settles {protocol.name(index)}"
        is_claimed = old.outcome == "waiting" and new.outcome == "running"
        if is_claimed and (process.node_id is None or before.nodes[process.node_id].is_voided):
            yield f"L6: a node without a lease claims {protocol.name(index)}"


def _each_instant_has_one_row(state: State, protocol: Protocol) -> Iterator[str]:
    for number, through in enumerate(state.planned):
        rows = state.runs[number * protocol.instants : (number + 1) * protocol.instants]
        if any((row is None) != (at >= through) for at, row in enumerate(rows)):
            yield f"L1: the cadence of {protocol.schedules[number].name} is past an instant that has no row"


def _attempts_are_few(state: State, protocol: Protocol) -> Iterator[str]:
    for index, run in enumerate(state.runs):
        if run is None or not run.begun:
            continue
        if len(run.begun) > 1 + run.crashes or len(run.begun) > CRASHES_MAX:
            yield f"L2: a crash costs at most one more attempt, and {protocol.name(index)} began {len(run.begun)} times"
        if len(run.begun) > 1 and not protocol.schedule(index).is_retried:
            yield f"L2: {protocol.name(index)} began twice, although it is not to be repeated"
        if list(run.begun) != sorted(set(run.begun)):
            yield f"L2: the attempts of {protocol.name(index)} began in the order {run.begun}"


def _the_lane_has_one_holder(state: State) -> Iterator[str]:
    running = [index for index, run in enumerate(state.runs) if run is not None and run.outcome == "running"]
    if running != ([] if state.lane is None else [state.lane]):
        yield "L5: the lane has one holder, the run in it"


def _no_lease_is_believed_that_was_taken(state: State) -> Iterator[str]:
    for process in state.processes:
        if process.node_id is not None and state.nodes[process.node_id].is_voided and is_sure(state, process):
            yield "L6: a node is sure of its lease, which was taken"
