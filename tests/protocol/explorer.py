"""The explorer: visits every state that can be reached, breadth first, so that what it finds it finds in few steps.

States that differ only in which process is which are visited once. A state is remembered as the numbers of its parts,
of which there are few; the way to it as the state before, so that a trace can be told.
"""

from array import array
from collections import deque
from typing import NamedTuple

from protocol.actions import FUNCTIONS, Action, Protocol, tidied
from protocol.laws import broken_by, broken_in
from protocol.state import Process, State


class Found(NamedTuple):
    """A law that does not hold, and how it came about."""

    law: str
    trace: list[Action]


class Report(NamedTuple):
    """How much was visited, and what was found first."""

    states: int
    steps: int
    actions: set[str]
    found: Found | None


class Visited:
    """The states that are known, and how each was reached first."""

    def __init__(self) -> None:
        self._parts: dict[object, int] = {}
        self._known: dict[tuple[int, ...], int] = {}
        self._before = array("q")

    def __len__(self) -> int:
        return len(self._before)

    def add(self, state: State, before: int) -> int | None:
        """The number of a new state; None if it is known."""
        key = self._key(state)
        if key in self._known:
            return None
        number = self._known[key] = len(self._before)
        self._before.append(before)
        return number

    def number_of(self, state: State) -> int | None:
        """The number of a known state."""
        return self._known.get(self._key(state))

    def way_to(self, number: int) -> list[int]:
        """The numbers of the states from the start to this one."""
        way = [number]
        while way[-1]:
            way.append(self._before[way[-1]])
        return way[::-1]

    def _key(self, state: State) -> tuple[int, ...]:
        one, other = state.processes
        if self._number(_anonymous(other)) < self._number(_anonymous(one)):
            state = tidied(state._replace(processes=(other, one)))
        return tuple(map(self._number, (*state.processes, *state[1:])))

    def _number(self, part: object) -> int:
        return self._parts.setdefault(part, len(self._parts))


def explore(protocol: Protocol, *, states_max: int = 10_000_000) -> Report:
    """Visit all states, or stop at the first that breaks a law."""
    visited, steps, names = Visited(), 0, set[str]()
    visited.add(protocol.start, 0)
    ahead = deque([(0, protocol.start)])
    while ahead:
        number, state = ahead.popleft()
        for action, after in protocol.next(state):
            steps += 1
            names.add(action.name)
            law = next(broken_by(state, action, after, protocol), None)
            known = tidied(after)
            new = visited.add(known, number) if law is None else None
            if new is not None:
                law = next(broken_in(known, protocol), None)
                ahead.append((new, known))
            if law is not None:
                found = Found(law, [*_trace(protocol, visited, number), action])
                return Report(len(visited), steps, names, found)
        if len(visited) > states_max:
            raise MemoryError(f"more than {states_max} states")
    return Report(len(visited), steps, names, None)


def _trace(protocol: Protocol, visited: Visited, number: int) -> list[Action]:
    """The actions on the way to a state: the way is taken once more."""
    state, trace = protocol.start, []
    for step in visited.way_to(number)[1:]:
        action, state = next(
            (action, known)
            for action, after in protocol.next(state)
            if visited.number_of(known := tidied(after)) == step
        )
        trace.append(action)
    return trace


def _anonymous(process: Process) -> Process:
    """Without the number of its node, which depends on the order of the processes."""
    return process if process.node_id is None else process._replace(node_id=0)


def told(found: Found, protocol: Protocol) -> str:
    """What happened, step by step, with the functions of the code."""
    lines = []
    for number, (name, process, run) in enumerate(found.trace, start=1):
        who = "" if process is None else f"{'AB'[process]}: "
        what = who + (name if run is None else f"{name} {protocol.name(run)}")
        lines.append(f"{number:>3}. {what:<32}{FUNCTIONS.get(name, '')}".rstrip())
    return "\n".join([*lines, found.law])
