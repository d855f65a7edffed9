"""The laws of unknown cost, as questions about the rows of a store: an agent whose cost cannot be known neither uses up
a budget nor hides behind one that could count it."""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from worlds.money_laws import Rows

SILENT_MIN: Final = 3


class Reported(NamedTuple):
    """What is known of an agent."""

    silent: int  # turns that finished without a cost
    known: int  # attempts of known cost


def reported_by(rows: Rows) -> dict[str, Reported]:
    """What is known of each agent."""
    return {agent: Reported(silent, known) for agent, silent, known in rows(_REPORTED)}


def attempts_open(rows: Rows) -> dict[tuple[int, int], tuple[str, bool]]:
    """The attempts in progress: their agents, and whether they are marked as unpriced."""
    return {(run_id, attempt): (agent, basis == "unpriced") for run_id, attempt, agent, basis in rows(_OPEN)}


def is_marked(
    opened: Mapping[tuple[int, int], tuple[str, bool]],
    before: Mapping[str, Reported],
    after: Mapping[str, Reported],
) -> Iterator[str]:
    """An attempt is outside limits in dollars if and only if its agent finished three turns and never reported a cost.
    `before` and `after` are the states around the commit that claimed it."""
    for key, (agent, is_unpriced) in opened.items():
        states = [known.get(agent, Reported(0, 0)) for known in (before, after)]
        if all((state.silent >= SILENT_MIN and state.known == 0) != is_unpriced for state in states):
            words = "is" if is_unpriced else "is not"
            yield f"L4 unknown cost: attempt {key} of {agent} {words} marked as unpriced: {states[0]}, then {states[1]}"


def is_modest(rows: Rows) -> Iterator[str]:
    """What is assumed for an attempt of unknown cost is at most what a run of its agent has cost, or was estimated."""
    for run_id, attempt, assumed, dearest in rows(_ASSUMED):
        if assumed > dearest:
            yield f"L4 unknown cost: {assumed} assumed for attempt {run_id, attempt}; runs cost {dearest} at most"


_REPORTED: Final = """
SELECT agent, sum(CASE WHEN cost IS NULL AND priced = 'silent' THEN 1 ELSE 0 END), count(cost) FROM charges
WHERE agent IS NOT NULL AND settled_at IS NOT NULL GROUP BY agent
"""
_OPEN: Final = """
SELECT run_id, attempt, agent, basis FROM charges WHERE agent IS NOT NULL AND settled_at IS NULL
"""
_ASSUMED: Final = """
SELECT run_id, attempt, held_cost,
  (SELECT coalesce(max(cost), 0) FROM charges AS c WHERE c.agent = charges.agent OR c.owner_id = charges.owner_id)
FROM charges WHERE cost IS NULL AND settled_at IS NOT NULL AND held_cost > 0
"""
