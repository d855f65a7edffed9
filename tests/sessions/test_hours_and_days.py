"""What takes hours and days: the real engine, the real adapter, a real HTTP server, and a clock set by hand.

The clock runs as the system's does, so that exchanges over the network have their time, and is put forward in between.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from agents.server import AgentServer, serving
from far_away import hour_away
from patience import PATIENCE
from wakeful import RunView, Wakeful, every
from wakeful.core.time.instants import Duration, parse_duration
from wakeful.core.time.timing_builders import cron
from wakeful.engine.clock import SystemClock
from wakeful.integrations.agents.session_server import SessionsSettings
from wakeful.integrations.agents.sessions import SessionsAgent
from wakeful.ports.clock import Moment

pytestmark = pytest.mark.promise


class HandClock:
    """The system's clock and what was added to it."""

    def __init__(self) -> None:
        self._system = SystemClock()
        self._ahead: Duration = 0
        self._moved = asyncio.Event()

    def read(self) -> Moment:
        now, monotonic, slept = self._system.read()
        return Moment(now + self._ahead, monotonic + self._ahead, slept)

    def is_before(self, moment: Moment) -> bool:
        here = self.read()
        return here.now < moment.now and here.monotonic < moment.monotonic

    def put_forward(self, duration: str) -> None:
        """Time passes for everyone who waits."""
        self._ahead += parse_duration(duration)
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()

    async def sleep(self, duration: Duration) -> None:
        await self.wait(asyncio.Event(), duration)

    async def wait(self, bell: asyncio.Event, duration: Duration) -> bool:
        until = self.read().monotonic + duration
        while not bell.is_set():
            left = until - self.read().monotonic
            if left <= 0:
                return False
            moved = self._moved
            waits = [asyncio.create_task(bell.wait()), asyncio.create_task(moved.wait())]
            try:
                await asyncio.wait(waits, timeout=left / 1000, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for wait in waits:
                    wait.cancel()
                await asyncio.gather(*waits, return_exceptions=True)
        return True


class Office:
    """An app whose agent is at a real server, on a clock that is put forward."""

    def __init__(self, folder: Path, server: AgentServer) -> None:
        self.clock = HandClock()
        self.server = server
        self._folder = folder
        self.app = self._app()

    def _app(self) -> Wakeful:
        settings = SessionsSettings(url=self.server.url)
        return Wakeful(
            self._folder / "w.db",
            clock=self.clock,
            timezone="UTC",
            agents=lambda clock, _: {"default": SessionsAgent(settings, clock)},
        )

    @asynccontextmanager
    async def reopened(self, off: str) -> AsyncIterator[Wakeful]:
        """Nobody is there for that long."""
        await self.app.stop()
        self.clock.put_forward(off)
        self.app = self._app()
        await self.app.start()
        yield self.app

    async def until(self, condition: Callable[[list[RunView]], Any], slug: str = "standup") -> list[RunView]:
        """The runs, oldest first, once they are as they should be."""
        async with asyncio.timeout(PATIENCE):
            while not condition(runs := list(reversed(await self.app.runs(slug)))):
                await asyncio.sleep(0.02)
        return runs


@pytest.fixture
async def office(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Office]:
    async with serving(AgentServer()) as server:
        monkeypatch.setenv("HOME", server.environ["HOME"])
        office = Office(tmp_path, server)
        await office.app.start()
        yield office
        await office.app.stop()


async def test_a_busy_session_is_asked_again_after_an_hour(office: Office) -> None:
    """409, "delay 1 hour": not sooner, the same run, the same key, and no error in the count."""
    office.server.statuses = [409, 409]
    await office.app.add("standup", every("6h"), prompt="what is new?")
    office.clock.put_forward("6h")
    await office.until(lambda runs: runs and runs[0].outcome == "waiting")
    office.clock.put_forward("55m")
    await asyncio.sleep(0.3)  # long enough for a message that must not be sent
    assert len(office.server.messages()) == 1
    office.clock.put_forward("6m")
    await office.until(lambda runs: runs[0].attempt == 2 and runs[0].outcome == "waiting")
    assert (await office.app.get("standup")).consecutive_errors == 0
    office.clock.put_forward("61m")
    (run,) = await office.until(lambda runs: runs[0].outcome == "succeeded")
    assert [attempt.outcome for attempt in run.attempts] == ["busy", "busy", "succeeded"]
    assert len({message.body["correlationId"] for message in office.server.messages()}) == 1


async def test_a_failed_resume_is_retried_every_half_hour_until_the_next_regular_time(office: Office) -> None:
    """500, "retry on next 30-min interval": then the instant has failed, and the next one comes at its own time."""
    office.server.statuses = [500] * 3
    await office.app.add("standup", every("2h"), prompt="what is new?")
    office.clock.put_forward("2h")
    for attempt in (1, 2, 3):
        await office.until(
            lambda runs, attempt=attempt: runs and (runs[0].attempt, runs[0].outcome) == (attempt, "waiting")
        )
        office.clock.put_forward("30m")
    (run,) = await office.until(lambda runs: runs[0].outcome == "succeeded")
    assert [attempt.outcome for attempt in run.attempts] == ["failed", "failed", "failed", "succeeded"]
    assert (await office.app.get("standup")).consecutive_errors == 0


async def test_three_days_offline_each_schedule_runs_once(office: Office) -> None:
    """ "If server was offline for 3 days, each enabled schedule runs once on startup": and the rest is counted."""
    await office.app.add("standup", every("6h"), prompt="what is new?")
    await office.app.add("report", cron(f"0 {hour_away()} * * *"), prompt="the report")
    await office.app.add("off", every("6h"), prompt="never", enabled=False)
    async with office.reopened("3d") as app:
        for slug in ("standup", "report"):
            runs = await office.until(lambda runs: [r for r in runs if r.outcome == "succeeded"], slug)
            missed = [run for run in runs if run.outcome == "missed"]
            assert len([run for run in runs if run.outcome == "succeeded"]) == 1
            assert sum(run.count for run in missed) + 1 == (12 if slug == "standup" else 3)
        assert [message.body["scheduleSlug"] for message in office.server.messages()].count("off") == 0
        assert len(office.server.messages()) == 2
        assert [run.outcome for run in await app.runs("off")] in ([], ["skipped"])


async def test_a_check_that_takes_longer_than_the_interval(office: Office) -> None:
    """ "Don't re-queue if still running": the instants that fall on it are skipped, with the run that blocked them."""
    office.server.gate.clear()
    await office.app.add("standup", every("1h"), prompt="what is new?", timeout="5h")
    office.clock.put_forward("1h")
    await office.until(lambda runs: runs and runs[0].rung == "started")
    for instants in (2, 3, 4):
        office.clock.put_forward("1h")
        await office.until(lambda runs, instants=instants: sum(run.count for run in runs) == instants)
    office.server.gate.set()
    runs = await office.until(lambda runs: runs[0].outcome == "succeeded")
    assert {run.outcome for run in runs[1:]} == {"skipped"}
    assert {run.blocked_by for run in runs[1:]} == {runs[0].run_id}
    assert len(office.server.messages()) == 1


async def test_silence_is_unconfirmed_after_five_minutes(office: Office) -> None:
    """The default of `confirm_within`; it is not tried again by itself, because it may have been done."""
    office.server.manner = "lies"
    await office.app.add("standup", every("6h"), prompt="what is new?")
    office.clock.put_forward("6h")
    await office.until(lambda runs: runs and runs[0].rung == "accepted")
    office.clock.put_forward("4m")
    await asyncio.sleep(0.3)
    assert [run.outcome for run in await office.app.runs("standup")] == ["running"]
    office.clock.put_forward("2m")
    (run,) = await office.until(lambda runs: runs[0].outcome != "running")
    assert (run.outcome, len(office.server.messages())) == ("unconfirmed", 1)
