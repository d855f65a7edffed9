"""Names of 0.2 for what is planned: they warn, and do what the operations of `app.schedules` do."""

import json
from datetime import timedelta
from pathlib import Path

import pytest

from wakeful import Wakeful, every
from wakeful.testing import virtual


async def test_old_names_of_what_is_planned_work_and_warn(tmp_path: Path) -> None:
    """What 0.2 called on the app returns what it returned."""
    app = Wakeful(tmp_path / "wakeful.db", timezone="UTC")
    async with virtual(app, on_command=lambda command: None):
        await app.add("report", every("2h"), command=["true"])
        until = app.now + timedelta(days=1)
        with pytest.warns(DeprecationWarning, match=r"Wakeful.upcoming is deprecated.*use app.schedules.upcoming"):
            assert await app.upcoming(until) == await app.schedules.upcoming(until)
        definition = {"schedule": "every 3h", "command": {"argv": ["true"]}}
        with pytest.warns(DeprecationWarning, match=r"use app.schedules.put"):
            assert (await app.put("report", definition)).version == 2
        with pytest.warns(DeprecationWarning, match=r"use app.schedules.put"):
            assert (await app.write("report", definition, is_rehearsal=True)).view.version == 2
        with pytest.warns(DeprecationWarning, match=r"use app.schedules.put"):
            assert await app.put_all({"report": definition}, then=lambda tx, _: tx.schedules.count()) == 1
        with pytest.warns(DeprecationWarning, match=r"use app.schedules.patch"):
            assert (await app.patch("report", {"timeout": "5m"})).view.version == 3
        with pytest.warns(DeprecationWarning, match=r"use app.schedules.put"):
            assert app.checked("report", definition).slug == "report"
        with pytest.warns(DeprecationWarning, match=r"use app.schedules.timeline"):
            assert await app.timeline_of_others(since=app.now, until=until) == []
        with pytest.warns(DeprecationWarning, match=r"use app.schedules.upcoming"):
            entries, store_id = await app.calendar()
        assert entries.entries[0].title.startswith("report") and store_id
        with pytest.warns(DeprecationWarning, match=r"use app.schedules.renew_calendar_key"):
            key = await app.renew_calendar_key()
        with pytest.warns(DeprecationWarning, match=r"use app.schedules.calendar_key"):
            assert await app.calendar_key() == key == (await app.schedules.calendar_key()).key
        with pytest.warns(DeprecationWarning, match=r"use app.schedules.calendar_key"):
            assert await app.is_calendar_key(key)
        with pytest.warns(DeprecationWarning, match=r"use app.schedules.forecast"):
            assert app.latest_forecast(2) is None
        with pytest.warns(DeprecationWarning, match=r"use app.simulate"):
            assert json.loads(await app.simulate_json({"days": 1}))["seed"] == 0
        with pytest.warns(DeprecationWarning, match=r"use app.schedules.pause_all"):
            assert await app.pause_all(by="ops") == ["report"]
        with pytest.warns(DeprecationWarning, match=r"use app.schedules.resume_all"):
            assert await app.resume_all() == ["report"]
