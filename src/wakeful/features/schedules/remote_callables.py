"""Callables that exist only on another node: their runs are left to it for a while.

When several nodes share a store, a callable registered by name exists only in the processes that registered it. A node
without it defers such a run briefly, so that a node with it can claim it. If none has after half a minute, the run is
claimed anyway, and fails with an error that names the callable.
"""

from collections.abc import Callable
from typing import Final

from wakeful.core.run.runs import Run
from wakeful.core.schedule.actions import Call
from wakeful.core.schedule.gates import ELSEWHERE, Decision, Defer
from wakeful.core.time.instants import SECOND, Duration, Instant
from wakeful.features.schedules.compiled import Compilations, Compiled
from wakeful.ports.handlers import Gate
from wakeful.ports.store import Tx

LEFT_FOR: Final[Duration] = 30 * SECOND
ASKED_AGAIN: Final[Duration] = SECOND


def remote_callables_gate(compilations: Compilations, is_here: Callable[[Call], bool]) -> Gate:
    """A gate for nodes that share their store."""

    def gate(tx: Tx, run: Run, now: Instant) -> Decision:
        if now - run.due_at >= LEFT_FOR:
            return None
        known = compilations.of_run(tx, run)
        action = known.model.action if isinstance(known, Compiled) else None
        if not isinstance(action, Call) or is_here(action):
            return None
        alive = sum(node.voided_at is None and node.lease_until > now for node in tx.nodes.all())
        return Defer(now + ASKED_AGAIN, ELSEWHERE) if alive > 1 else None

    return gate
