"""One claim: what starts runs is called from one place each, whatever brought the runs."""

from typing import Final

import pytest

from callers import callers, replaced

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

CHORES: Final = {
    "ports.handlers.SideTask": {"engine.chores.ChoreAlarms._claim"},
    "engine.chores.ChoreAlarms": {"app.bootstrap.assembling._handlers"},
    "_chore.begin": {"engine.chores.ChoreAlarms._look"},
    "_chore.end": {"engine.chores.ChoreAlarms._note"},
    "_chore.late": {"engine.chores.ChoreAlarms._note"},
    "_chore.clamp": {"engine.chores.ChoreAlarms.turn_back"},
}
"""The same for work that leaves no row in the ledger."""

CLAIM_COLUMNS: Final = {"claimed_until", "poll_until", "stats_until", "poll_fence"}
"""Where subjects of chores keep their claims; a subject that is given up gets another fence."""

INSERTED_BY_ENGINE: Final = {"engine.claim_steps._write", "engine.planning.record", "engine.planning.add_gaps"}
"""Features insert requests, which do not start at once, and planning inserts gaps. Only a claim inserts runs."""


@pytest.mark.parametrize("called", CALLERS)
def test_a_run_starts_in_one_place(called: str) -> None:
    """A second one would be a second claim, with rules of its own."""
    assert callers()[called] == CALLERS[called]


@pytest.mark.parametrize("called", CHORES)
def test_a_chore_is_claimed_in_one_place(called: str) -> None:
    """A chore that makes side tasks itself would have a claim of its own."""
    assert callers()[called] == CHORES[called]


def test_only_the_claim_of_a_chore_writes_its_columns() -> None:
    """They change in `save_claim`, which only the engine calls, and with the key of a slot."""
    writers = {caller for caller, name in replaced() if name in CLAIM_COLUMNS}
    assert writers == {
        "core.slot.slot.with_key",
        "features.delivery.attempts.Attempts.save_claim",
        "features.quota.polls.Polls.save_claim",
        "features.quota.polls.Statistics.save_claim",
    }
    assert callers()["_chore.save_claim"] == {
        f"engine.chores.ChoreAlarms.{name}" for name in ("_claim", "_look", "_note", "recover", "turn_back")
    }


def test_the_engine_inserts_runs_in_one_place() -> None:
    """New runs are written by the claim that decides whether they start; gaps by the planning that decided them."""
    assert {caller for caller in callers()["runs.add_many"] if caller.startswith("engine.")} == INSERTED_BY_ENGINE
