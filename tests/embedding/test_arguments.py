"""The methods of the app that are operations take arguments as functions do."""

from pathlib import Path

import pytest

from wakeful import Wakeful, every
from wakeful.sync import Wakeful as BlockingWakeful


async def test_wrong_arguments_are_refused_as_by_any_function(tmp_path: Path) -> None:
    """Nothing that a program gives is dropped silently."""
    async with Wakeful(tmp_path / "wakeful.db") as app:
        await app.add("report", every("2h"), command=["true"])
        with pytest.raises(TypeError, match="missing a required argument: 'slug'"):
            await app.get()  # type: ignore[call-arg]
        with pytest.raises(TypeError, match="too many positional arguments"):
            await app.get("report", 1)  # type: ignore[call-arg]
        with pytest.raises(TypeError, match="unexpected keyword argument 'form'"):
            await app.schedules.get("report", form="short")  # type: ignore[call-arg]
        assert (await app.get(slug="report")).slug == "report"


def test_a_blocking_app_refuses_them_too(tmp_path: Path) -> None:
    """Both forms of an operation take the same arguments."""
    with BlockingWakeful(tmp_path / "wakeful.db") as app:
        app.add("report", every("2h"), command=["true"])
        assert app.next_times("report", 2) == app.next_times("report", count=2)
        with pytest.raises(TypeError, match="too many positional arguments"):
            app.stats("report", "2026-01-01T00:00:00Z")  # type: ignore[call-arg]
