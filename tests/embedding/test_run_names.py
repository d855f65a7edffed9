"""Names of 0.2 for runs: they warn, and do what the operations of `app.ledger` do."""

from pathlib import Path

import pytest

from wakeful import Wakeful, every
from wakeful.testing import virtual

LAST_YEAR = "2025-01-01T00:00:00Z"


async def test_old_names_of_runs_work_and_warn(tmp_path: Path) -> None:
    """What 0.2 called on the app returns what it returned."""
    app = Wakeful(tmp_path / "wakeful.db", timezone="UTC")
    async with virtual(app, on_command=lambda command: None):
        await app.add("report", every("2h"), command=["true"])
        with pytest.warns(DeprecationWarning, match=r"Wakeful.request_run is deprecated.*use app.schedules.run"):
            run_id = await app.request_run("report")
        ended = await app.wait_for(run_id)
        with pytest.warns(DeprecationWarning, match=r"use app.ledger.get"):
            assert await app.get_run(run_id) == ended
        with pytest.warns(DeprecationWarning, match=r"use app.ledger.replay\("):
            assert await app.check_replay(run_id) == "report"
        with pytest.warns(DeprecationWarning, match=r"use app.ledger.replay_missed"):
            assert await app.replay_missed(LAST_YEAR, "report", by="ops") == {}
        with pytest.warns(DeprecationWarning, match=r"use app.ledger.stop_backfill"):
            assert await app.stop_backfill("report") == 0
        with pytest.warns(DeprecationWarning, match=r"use app.ledger.backfill"):
            assert await app.estimated_cost({"report": 3}) == 0.0
