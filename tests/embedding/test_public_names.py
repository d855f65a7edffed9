"""The names of `Wakeful`: those that programs are told of, and the deprecated ones, each of which warns."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from wakeful import Wakeful, every, sync
from wakeful.api import old_names, old_process, old_receipts, old_schedules, old_self_scheduling
from wakeful.core.refusals import NotStarted

NOUNS = {"schedules", "ledger", "people", "turns", "workflows", "slots", "money", "system"}
PROMISED = {
    *("add", "add_many", "update", "remove", "pause", "resume", "get", "list", "on_due", "start", "stop", "run"),
    *("run_now", "runs", "stats", "next_times", "why", "request_wake", "on", "on_stream", "register_channel", "touch"),
    *("find", "workflow", "job", "agent", "cancel", "replay", "backfill", "simulate", "forecast", "cost"),
}
CLOCK = {"now", "sleep"}  # for code that is tested on a virtual clock
WAITING = {"wait_for"}  # for the end of a run that was cancelled or repeated
DEPRECATED = (
    old_names.OldNames,
    old_process.OldProcess,
    old_receipts.OldReceipts,
    old_schedules.OldSchedules,
    old_self_scheduling.OldSelfScheduling,
)


def public(of: object) -> Iterator[str]:
    return (name for name in dir(of) if not name.startswith("_"))


def test_the_app_has_few_names() -> None:
    """Besides the deprecated ones there are the nouns, the methods that are promised, and what a clock needs."""
    deprecated = {name for old in DEPRECATED for name in public(old)}
    assert set(public(Wakeful)) - deprecated == NOUNS | PROMISED | CLOCK | WAITING
    assert not deprecated & (NOUNS | PROMISED | CLOCK | WAITING)


def test_the_blocking_app_has_the_same_nouns() -> None:
    """What is not a noun or needs another form is the method of the other app, which waits."""
    own = set(public(sync.Wakeful)) - {"inner", "portal"}
    assert own >= NOUNS
    assert own <= NOUNS | PROMISED | WAITING


async def test_old_names_of_the_process_work_and_warn(tmp_path: Path) -> None:
    """What 0.2 called on the app returns what it returned."""
    path = tmp_path / "wakeful.db"
    app = Wakeful(path)
    with pytest.warns(DeprecationWarning, match=r"Wakeful.address is deprecated.*keep the path or URL"):
        assert app.address == str(path)
    with pytest.warns(DeprecationWarning, match=r"raises NotStarted"):
        assert not app.is_started
    with pytest.raises(NotStarted):
        await app.get("report")
    async with app:
        with pytest.warns(DeprecationWarning, match=r"use app.system.nodes"):
            assert app.is_ticking
        with pytest.warns(DeprecationWarning, match=r"use app.now"):
            assert app.moment().now > 0
        with pytest.warns(DeprecationWarning, match=r"use the operations of app.schedules"):
            assert await app.store.read(lambda tx: tx.schedules.count()) == 0
        with pytest.warns(DeprecationWarning, match=r"start one with the other settings"):
            await app.change(timezone="Asia/Tokyo")
        with pytest.warns(DeprecationWarning, match=r"keep the timezone"):
            assert app.default_zone == "Asia/Tokyo"
        with pytest.warns(DeprecationWarning, match=r"keep the settings"):
            assert app.terms.default_zone == "Asia/Tokyo"
        with pytest.warns(DeprecationWarning, match=r"recognises runs by their tokens"):
            assert await app.run_of_token("unknown") is None
        with pytest.warns(DeprecationWarning, match=r"start one with the other settings"):
            await app.change_otel(None)
        await app.add("report", every("2h"), command=["true"])
        with pytest.warns(DeprecationWarning, match=r"the cost of what app.get returns"):
            assert await app.cost_of(await app.get("report")) is None
