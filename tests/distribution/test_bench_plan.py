"""The benchmark's plan: every figure it asks for is declared, and every target can be judged."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def _root_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))


def test_plan_measures_and_targets_agree() -> None:
    """A group measures declared figures, in modules that exist; a target names a figure that some group measures."""
    from bench.measures import MEASURES
    from bench.plan import plan
    from bench.sizes import FULL, QUICK
    from bench.targets import TARGETS

    for sizes in (FULL, QUICK):
        groups = plan(sizes)
        assert {name for group in groups for name in group.measures} <= MEASURES.keys()
        measured = {(name, group.store) for group in groups for name in group.measures}
        assert {(target.measure, target.store) for target in TARGETS} <= measured
        for module in {case.module for group in groups for case in group.cases}:
            assert (ROOT / "bench" / f"{module.replace('.', '/')}.py").is_file(), module


def test_targets_are_judged_by_the_best_setup_of_a_peer() -> None:
    """A ratio is ours divided by the best of theirs."""
    from bench.lines import Figure
    from bench.results import Results, verdicts

    results = Results()
    for subject, value in (("wakeful", 1200.0), ("apscheduler, threads", 100.0), ("apscheduler, asyncio", 50.0)):
        results.add("sqlite", subject, Figure("fires", value, {}))
    (judged,) = [
        verdict
        for verdict in verdicts(results)
        if (verdict.target.measure, verdict.target.store, verdict.target.peer) == ("fires", "sqlite", "apscheduler")
    ]
    assert (judged.reached, judged.is_reached) == (12.0, True)
