"""A range of one value with a step was read to the end of its field; what was planned like that is planned again."""

import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from edges.cli.kit import daemon
from wakeful import Produced, Wakeful, cron, every
from wakeful.core.time.timing_builders import as_instant
from wakeful.testing import virtual

START = "2026-03-28T12:30Z"
MISREAD = datetime(2026, 3, 28, 13, tzinfo=UTC)  # in `7-7/1`, if it is read as 7 to 23
RIGHT = datetime(2026, 3, 29, 7, tzinfo=UTC)


def app_of(tmp_path: Path) -> Wakeful:
    app = Wakeful(tmp_path / "wakeful.db", timezone="UTC")
    inbox = app.workflow("inbox")

    @inbox.producer(cron("0 7-7/1 * * *"))
    async def poll(context: Any) -> Produced:
        return Produced()

    return app


async def planned_by_0_2(tmp_path: Path) -> None:
    """A store as 0.2 leaves it: planned for the wrong hour, and without a word about cron."""
    app = app_of(tmp_path)
    async with virtual(app, start=START, on_command=print) as time:
        await time.advance("1s")  # a producer first runs when it is deployed
        await app.add("first", cron("0 7-7/1 * * *"), command=["true"])
        await app.add("second", cron("0 7-7/1 * * *", tz="Europe/Berlin"), command=["true"])
        await app.add("right", cron("0 7 * * *"), command=["true"])
        await app.add("other", every("1h"), command=["true"])
        await app.pause("second")
    wrong = as_instant(MISREAD, "wrong")
    with sqlite3.connect(tmp_path / "wakeful.db") as store:
        store.execute("DELETE FROM meta WHERE name IN ('cron_rules', 'cron_replanned')")
        store.execute(
            "UPDATE cadences SET next_at = ? WHERE schedule_id IN "
            "(SELECT schedule_id FROM schedules WHERE slug = 'first')",
            (wrong,),
        )
        store.execute("UPDATE alarms SET due_at = ? WHERE due_at > ?", (wrong, wrong))
        store.execute("UPDATE workflow_handlers SET next_at = ? WHERE next_at IS NOT NULL", (wrong,))
    store.close()


async def finding_of(app: Wakeful) -> Any:
    found = [finding for finding in (await app.system.health()).findings if finding.name == "cron"]
    return found[0] if found else None


async def test_what_was_misread_is_replanned_at_start_with_one_finding(tmp_path: Path) -> None:
    """Schedules and producers, once; the finding lists them until they say what they mean."""
    await planned_by_0_2(tmp_path)
    app, ran = app_of(tmp_path), []
    async with virtual(app, on_command=lambda command, fire: ran.append((fire.slug, fire.planned_at))) as time:
        assert (await app.get("first")).next_run == RIGHT
        assert (await app.schedules.upcoming(as_instant(RIGHT, "until"))).instants[-1].due_at == as_instant(
            RIGHT, "until"
        )
        producers = (await app.workflow("inbox").get())["producers"]
        assert producers["poll"]["nextRun"] == "2026-03-29T07:00:00.000Z"
        finding = await finding_of(app)
        assert finding.level == "warn" and list(finding.slugs) == ["first", "second", "workflow:inbox"]
        assert "7-7/1 is 7, not 7 to 23" in finding.sentence and "wakeful next" in finding.cure
        await time.advance("20h")
        assert [at for slug, at in ran if slug == "first"] == [RIGHT]
        await app.update("first", schedule=cron("0 7 * * *"))
        assert list((await finding_of(app)).slugs) == ["second", "workflow:inbox"]
        await app.remove("second")
        assert list((await finding_of(app)).slugs) == ["workflow:inbox"]


def test_status_and_doctor_show_the_finding(tmp_path: Path) -> None:
    """With the command that shows the times."""
    with daemon(tmp_path) as cli:
        assert cli.ask("add", "first", "--cron", "0 7-7/1 * * *", "--command", "true").code == 0
    with closing(sqlite3.connect(tmp_path / "wakeful.db")) as store, store:
        store.execute("DELETE FROM meta WHERE name IN ('cron_rules', 'cron_replanned')")
    with daemon(tmp_path) as cli:
        words = "what has one was replanned: first"
        assert words in " ".join(cli.ask("status").out.split())
        (found,) = [one for one in cli.ask("doctor", "-o", "json").json["findings"] if one["what"] == "cron"]
        assert words in found["words"] and "wakeful next" in found["cure"]


async def test_a_new_expression_is_no_finding(tmp_path: Path) -> None:
    """Who writes it now gets what it says."""
    app = app_of(tmp_path)
    async with virtual(app, start=START, on_command=print):
        await app.add("new", cron("0 7-7/1 * * *"), command=["true"])
        assert (await app.get("new")).next_run == RIGHT
        assert await finding_of(app) is None
    async with virtual(app):
        assert await finding_of(app) is None
