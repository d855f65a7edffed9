"""The mirror of a daemon hears of commits, and only of schedules that have files or may have had some."""

from pathlib import Path

from mirror.test_watching import eventually
from wakeful import Wakeful, every
from wakeful.server.daemon.mirroring import LiveMirror


async def test_new_schedules_without_files_do_not_wake_the_mirror(tmp_path: Path) -> None:
    """Only agent schedules have files; an edit may give a schedule files, or take them away."""
    app = Wakeful(tmp_path / "wakeful.db", timezone="UTC")
    app.agent()(lambda prompt: "hello")
    async with app:
        live = LiveMirror(tmp_path, app._open, "agent", app._bus.fan_out, is_trusting=lambda: True)
        await live.start()
        mirror = live._mirror
        assert mirror is not None
        await eventually(lambda: not mirror.is_behind)
        await app.add("backup", every("2h"), command=["true"])
        assert not mirror.is_behind
        await app.add("standup", every("2h"), prompt="hi")
        assert mirror.is_behind
        standup, backup = (tmp_path / "schedule" / slug / "definition.json" for slug in ("standup", "backup"))
        await eventually(standup.exists)
        await app.add("backup", every("2h"), prompt="hi")
        await eventually(backup.exists)
        await app.add("standup", every("2h"), command=["true"])
        await eventually(lambda: not standup.exists())
        await live.stop()
