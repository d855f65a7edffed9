"""One claim: what starts runs is called from one place each, whatever brought the runs."""

from typing import Final

import pytest

from callers import callers

CALLERS: Final = {
    # Write runs that start: new ones of a batch, and ones that waited.
    "plain.start": {"engine.claim_steps._write"},
    "plain.claim": {"engine.claim_steps._write"},
    # Make the row of a run that starts.
    "core.run.transitions.claimed": {"engine.claim_steps._own"},
    "core.run.transitions.started": {"ports.claims.Claim.run"},
    # The steps before and after.
    "keepers.admit": {"engine.claim_steps._admit"},
    "lanes.take_many": {"engine.claim_steps._take_lanes"},
    "accounts.reserve": {"engine.claim_steps.reserve"},
    # All steps together: for what is due, and for what follows a run.
    "engine.claim_steps.claim_candidates": {"engine.claiming.claim", "engine.claiming.claim_next"},
    "engine.claim_steps.reserve": {"engine.claiming.claim", "engine.claiming.claim_next"},
    "engine.claiming.claim": {"engine.engine.Engine._claim", "engine.claiming_one_by_one.claim_one_by_one"},
    "engine.claiming.claim_next": {"engine.settling.settle_and_claim"},
}
"""What may be called from where: functions by their module, methods by the name of what they are called on."""

INSERTED_BY_ENGINE: Final = {"engine.claim_steps._write", "engine.planning.record", "engine.planning.add_gaps"}
"""Features insert requests, which do not start at once, and planning inserts gaps. Only a claim inserts runs."""


@pytest.mark.parametrize("called", CALLERS)
def test_a_run_starts_in_one_place(called: str) -> None:
    """A second one would be a second claim, with rules of its own."""
    assert callers()[called] == CALLERS[called]


def test_the_engine_inserts_runs_in_one_place() -> None:
    """New runs are written by the claim that decides whether they start; gaps by the planning that decided them."""
    assert {caller for caller in callers()["runs.add_many"] if caller.startswith("engine.")} == INSERTED_BY_ENGINE
