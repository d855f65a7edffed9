"""Names of 0.2 for programs with a server of their own: they warn, and do what they did."""

from pathlib import Path

import pytest

from wakeful import Wakeful, every
from wakeful.testing import virtual


def work() -> None:
    """Something to run."""


async def test_old_names_of_receipts_work_and_warn(tmp_path: Path) -> None:
    """A process that gives no receipts away refuses them; people's schedules belong to no agent."""
    app = Wakeful(tmp_path / "wakeful.db", timezone="UTC")
    async with virtual(app):
        await app.add("mine", every("1h"), call=work)
        run = await app.run_now("mine", wait=True)
        with pytest.warns(DeprecationWarning, match=r"Wakeful.receive is deprecated.*REST API takes receipts"):
            assert await app.receive(run.run_id, "a-forged-token", "finished") == "forged"
        with pytest.warns(DeprecationWarning, match="knows_token"):
            assert not app.knows_token(run.run_id, "a-forged-token")
        with pytest.warns(DeprecationWarning, match="agent_run_of_session"):
            assert await app.agent_run_of_session(1) is None
        with pytest.warns(DeprecationWarning, match="owned_by_agents"):
            assert await app.owned_by_agents(["mine"]) == frozenset()


async def test_the_receipt_of_a_run_that_has_ended_is_late(tmp_path: Path) -> None:
    """It is taken for the ledger, and changes nothing."""
    app = Wakeful(tmp_path / "wakeful.db", timezone="UTC")
    async with virtual(app):
        await app.add("mine", every("1h"), call=work)
        run = await app.run_now("mine", wait=True)
        with pytest.warns(DeprecationWarning, match="report_run"):
            assert await app.report_run(run.run_id, "finished") == "late"
