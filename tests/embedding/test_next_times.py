"""The next times of a schedule are those at which it runs."""

from pathlib import Path

from wakeful import Wakeful, every
from wakeful.core.time.timing_builders import as_instant
from wakeful.testing import virtual

START = "2026-03-28T12:30Z"


async def test_next_times_in_python_have_the_stagger(tmp_path: Path) -> None:
    """The same times as `upcoming` and `next_run`, and those at which it runs."""
    app, ran = Wakeful(tmp_path / "wakeful.db", timezone="UTC"), []
    async with virtual(app, start=START, on_command=lambda command: ran.append(app.now)) as time:
        await app.add("it", every("1h"), command=["true"], stagger="50m")
        times = await app.next_times("it", 3)
        assert times[0] != (await app.schedules.upcoming(times[0])).instants[0].planned_at
        ahead = (await app.schedules.upcoming(times[-1])).instants
        assert [as_instant(at, "at") for at in times] == [instant.due_at for instant in ahead]
        assert (await app.get("it")).next_run == times[0]
        assert await app.next_times("it", 2, after=times[0]) == times[1:]
        assert await app.next_times("it", 3, after="2026-03-28T12:00Z") == times
        assert await app.next_times("it", 1, after=times[2]) == [times[2] + (times[2] - times[1])]
        await app.pause("it", until=times[0])
        assert (await app.next_times("it", 1))[0] == (await app.get("it")).next_run == times[1]
        await app.resume("it")
        await time.advance("4h")
    assert ran == times
