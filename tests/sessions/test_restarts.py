"""What only a restart shows: persistence, startup, missed runs, the forced run, and a crash in the middle.

One home, one story: a daemon is killed with everything under way, another is started, ended, and a third one started.
"""

import asyncio
import json
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from aiohttp import web

from agents.server import AgentServer, Handler
from far_away import hour_away
from patience import PATIENCE
from sessions.kit import Desk, Town, at, daemon, desk_of, make_home, until

pytestmark = pytest.mark.promise

PAST = "2026-01-01T00:00:00.000Z"


class Story(NamedTuple):
    """What was seen, by chapter."""

    before: dict[str, Any]  # when the first daemon was killed
    after: dict[str, Any]  # by the second
    third: dict[str, Any]  # by the third
    messages: dict[str, list[Any]]  # what the agent was sent in all


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory, town: Town) -> Iterator[Story]:
    server = town.server()
    home = make_home(tmp_path_factory.mktemp("restarts") / "home", server.url)
    with daemon(home, environ=server.environ) as one, desk_of(one, server, town, "default", "kept") as desk:
        before = _first(desk, server)
        one.process.kill()
        one.process.wait(PATIENCE)
    server.raw = {}
    town.let_go(server)
    until(lambda: not any(session.is_busy for session in server.sessions.values()))
    until(lambda: time.time() > at(before["overdue"]["nextRun"]).timestamp())
    with daemon(home, environ=server.environ) as one, desk_of(one, server, town, "default", "kept") as desk:
        after = _second(desk)
        assert one.end() == 0
    told = json.loads((home / "schedule" / "kept" / "last-run.json").read_text())
    (home / "schedule" / "kept" / "last-run.json").write_text(json.dumps({**told, "nextRun": PAST}))
    with daemon(home, environ=server.environ) as one, desk_of(one, server, town, "default", "kept") as desk:
        third = _third(desk)
    slugs = ("kept", "overdue", "finished", "lost", "off")
    yield Story(before, after, third, {slug: desk.messages(slug) for slug in slugs})


def _first(desk: Desk, server: AgentServer) -> dict[str, Any]:
    """One to be kept, one disabled, one at work, one whose message is on its way, one due while nobody is there."""
    kept = desk.put({"type": "cron", "expression": f"0 {hour_away()} * * *", "timezone": "UTC"})
    off = desk.put(slug="off", enabled=False)
    desk.hold()
    desk.due("finished", agent="a1")
    until(lambda: [run["rung"] for run in desk.runs("finished")] in (["accepted"], ["started"]))
    server.raw["messages"] = _swallow(server)
    desk.due("lost", agent="a2")
    until(lambda: [run["rung"] for run in desk.runs("lost")] == ["sent"])
    until(lambda: len(desk.messages("lost")) == 1)
    return {"kept": kept, "off": off, "overdue": desk.due("overdue", after=10, agent="a3")}


def _swallow(server: AgentServer) -> Handler:
    """No answer while this lasts, and the agent never gets the message."""

    async def swallow(request: web.Request) -> web.StreamResponse:
        while "messages" in server.raw:
            await asyncio.sleep(0.05)
        return web.Response(status=500)

    return swallow


def _second(desk: Desk) -> dict[str, Any]:
    slugs = ("overdue", "finished", "lost")
    until(lambda: all(run["outcome"] == "succeeded" for slug in slugs for run in desk.runs(slug)[:1]))
    return {slug: {"state": desk.get(slug), "runs": desk.runs(slug)} for slug in (*slugs, "kept", "off")}


def _third(desk: Desk) -> dict[str, Any]:
    until(lambda: [run["outcome"] for run in desk.runs("kept")] == ["succeeded"])
    slugs = ("kept", "overdue", "finished", "lost", "off")
    return {slug: {"state": desk.get(slug), "runs": desk.runs(slug)} for slug in slugs}


def test_schedules_survive_server_restarts(story: Story) -> None:
    """Success criterion 2, with kill -9: everything that was answered is there, and as it was."""
    written = story.before["kept"]
    assert {name: story.after["kept"]["state"][name] for name in written} == written
    assert story.after["kept"]["runs"] == []


def test_missed_tasks_run_on_startup_but_only_once(story: Story) -> None:
    """Success criterion 4, "Run once on startup, don't backfill": the second start does not repeat it."""
    for seen in (story.after, story.third):
        (run,) = seen["overdue"]["runs"]
        assert run["plannedAt"] == story.before["overdue"]["nextRun"]
    assert len(story.messages["overdue"]) == 1


def test_startup_checks_at_once(story: Story) -> None:
    """ "Immediately calls checkSchedules()": not at the next half hour."""
    (run,) = story.after["overdue"]["runs"]
    assert (at(run["startedAt"]) - at(run["plannedAt"])).total_seconds() < 1_500


def test_a_disabled_schedule_never_fires(story: Story) -> None:
    """ "each enabled schedule runs once": not this one."""
    assert story.third["off"]["runs"] == [] and story.messages["off"] == []


def test_a_turn_that_finished_while_we_were_dead_is_not_sent_again(story: Story) -> None:
    """Killed after accepted: the agent is asked first, and what it had done is on record with its reply."""
    (run,) = story.after["finished"]["runs"]
    assert (run["outcome"], run["reply"], run["attempt"]) == ("succeeded", "all is well", 1)
    assert run["sessionId"] == story.after["finished"]["state"]["sessionId"] is not None
    assert len(story.messages["finished"]) == 1


def test_a_message_that_never_arrived_is_sent_once_more(story: Story) -> None:
    """Killed after sent: one more attempt of the same run, under the same key."""
    (run,) = story.after["lost"]["runs"]
    assert [one["outcome"] for one in run["attempts"]] == ["crashed", "succeeded"]
    assert len(story.messages["lost"]) == 2
    assert len({message.headers["Idempotency-Key"] for message in story.messages["lost"]}) == 1


def test_a_run_forced_in_the_file_while_it_was_down(story: Story) -> None:
    """ "Set nextRun to the past", "Restart server to trigger overdue check": one run, the cadence as before."""
    (run,) = story.third["kept"]["runs"]
    assert run["outcome"] == "succeeded" and len(story.messages["kept"]) == 1
    assert story.third["kept"]["state"]["nextRun"] == story.before["kept"]["nextRun"]


def test_nothing_else_ran_again(story: Story) -> None:
    """A restart never re-runs what is settled."""
    for slug in ("overdue", "finished", "lost"):
        assert story.third[slug]["runs"] == story.after[slug]["runs"]
