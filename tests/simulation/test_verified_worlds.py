"""What `wakeful verify` says of stores that have been through everything: nothing. Worlds whose laws are checked after
each commit are verified at their end, after crashes, edits, pauses, steps of the clock and pruning."""

from pathlib import Path

import pytest

from sampling import sampled
from wakeful.drill.verifying import verify_rows
from wakeful.stores.sqlite.looking import looking
from wakeful.stores.sqlite.verifying import verify_file
from worlds.replay import simulate

WORLDS = [(5, 1), (7, 0.5), (3, 5), (8, 60), (13, 0.5), (16, 300), (4, 30), (24, 300), (37, 1)]


@pytest.mark.parametrize(("seed", "days"), sampled(WORLDS, every=3))
def test_a_world_leaves_an_intact_store(seed: int, days: float, tmp_path: Path) -> None:
    """No false alarm: pages, references and the laws on the ledger."""
    simulate(seed, days=days, folder=tmp_path)
    path = tmp_path / f"world-{seed}.db"
    assert verify_file(path).faults == []
    with looking(path) as tx:
        verdict = verify_rows(tx, ledger_days=90)
    assert verdict.faults == []
    assert verdict.ledger.runs > 0
