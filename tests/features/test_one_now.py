"""One reading of the clock for one request (L10): on a clock that moves with every reading, two would be seen."""

from pathlib import Path

import pytest

from wakeful import Wakeful, cron
from wakeful.engine.clock import SystemClock
from wakeful.ports.clock import Moment


class Hasty(SystemClock):
    """A second passes between any two readings."""

    def __init__(self) -> None:
        self._readings = 0

    def read(self) -> Moment:
        self._readings += 1
        now, monotonic, slept = super().read()
        return Moment(now + self._readings * 1000, monotonic, slept)


@pytest.mark.parametrize("way", ["patch", "update"])
async def test_a_schedule_that_becomes_an_interval_waits_for_one(tmp_path: Path, way: str) -> None:
    """`every` without an anchor begins when it is written, and runs one interval later: not in the act of writing."""
    app = Wakeful(tmp_path / "wakeful.db", tick=False, clock=Hasty())
    async with app:
        await app.add("report", cron("0 9 * * *", tz="UTC"), command=["true"])
        timing = {"type": "every", "every": "2h"}
        if way == "patch":
            await app.schedules.patch("report", {"schedule": timing})
        else:
            await app.update("report", schedule=timing)
        report = await app.get("report")
    assert report.next_run is not None
    assert (report.next_run - report.updated_at).total_seconds() == 7200


async def test_an_interval_that_is_raised_keeps_its_anchor_as_it_was_written(tmp_path: Path) -> None:
    """Read back as written (DESIGN 5.1), but for what had to be changed."""
    app = Wakeful(tmp_path / "wakeful.db", tick=False)
    async with app:
        timing = {"type": "every", "every": "1s", "anchor": "2026-01-01T01:00:00+01:00"}
        written = await app.schedules.put("report", {"schedule": timing, "command": {"argv": ["true"]}})
    assert written.view.to_json()["schedule"] == timing | {"every": "10s"}
