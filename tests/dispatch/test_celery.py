"""Dispatch to Celery, with a real Redis and real workers: however a run ends, the ledger says what is known."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from climbing import RecordingLadder, ladder
from dispatch.conftest import Redis, Workers
from patience import PATIENCE
from wakeful import Wakeful, every, once
from wakeful.core.run.results import Done
from wakeful.core.schedule.definition_json import action_from_json
from wakeful.engine.clock import SystemClock
from wakeful.features.schedules.run_views import RunView
from wakeful.integrations.actions import celery_fleet
from wakeful.integrations.actions.dispatch import DispatchAction
from wakeful.integrations.actions.receipts import Receipts
from wakeful.ports.action import Fire

__all__ = ["ladder"]
# Celery calls redis in a way that redis calls deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:Call to deprecated:DeprecationWarning")


def _task(redis: Redis, *, task: str = "fleet.work", backend: bool = True, **more: Any) -> dict[str, Any]:
    return {"celery": {"broker": redis.url, **({"backend": redis.url} if backend else {}), "task": task, **more}}


@asynccontextmanager
async def _app(folder: Path, **settings: Any) -> AsyncIterator[Wakeful]:
    async with Wakeful(folder / "wakeful.db", timezone="UTC", every_min="1s", **settings) as app:
        yield app


async def _until(question: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not question():
            await asyncio.sleep(0.05)


async def _ended(app: Wakeful, slug: str) -> RunView:
    return await app.run_now(slug, wait=True, within=f"{PATIENCE:.0f}s")


def _rungs(run: RunView) -> list[str]:
    return [rung for rung, _ in run.ladder]


async def test_a_task_is_sent_watched_and_proven(redis: Redis, workers: Workers, tmp_path: Path) -> None:
    """All rungs, the result as output, the key as task id and in the headers; a failed task is failed."""
    workers.start("one")
    async with _app(tmp_path) as app:
        await app.add("good", every("1d"), dispatch=_task(redis, kwargs={"seconds": 0.5}))
        await app.add("bad", every("1d"), dispatch=_task(redis, args=[0], kwargs={"fail": "no paper"}))
        await app.add("sent", every("1d"), dispatch=_task(redis, backend=False))
        good, bad, sent = [await _ended(app, slug) for slug in ("good", "bad", "sent")]
        assert (good.outcome, good.error, good.rung, good.output) == ("succeeded", None, "finished", '{"took": 0.5}')
        assert _rungs(good) == ["sent", "accepted", "started"]
        assert (bad.outcome, bad.error) == ("failed", "ValueError: no paper")
        assert "Traceback" in (bad.output or "")
        assert (sent.outcome, sent.rung) == ("succeeded", "accepted")
        await _until(lambda: len(workers.lines("end")) == 2)
        assert all(key == task_id and attempt == "1" for _, key, attempt, task_id in workers.lines("begin"))


async def test_a_receipt_proves_the_end_without_a_backend(
    redis: Redis, workers: Workers, ladder: RecordingLadder
) -> None:
    """The task finds the URL in its headers, and the run waits for it."""
    workers.start("one")
    held: list[Receipts] = []

    async def take(request: web.Request) -> web.Response:
        run_id, body = int(request.match_info["run"]), await request.json()
        return web.Response(text=await held[0].post(run_id, request.query["token"], **body))

    server = web.Application()
    server.router.add_post("/api/runs/{run}/receipt", take)
    runner = web.AppRunner(server)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    receipts = Receipts(b"0" * 32, f"http://127.0.0.1:{runner.addresses[0][1]}")
    held.append(receipts)
    action = DispatchAction(SystemClock(), receipts)
    spec = action_from_json("dispatch", _task(redis, task="fleet.receipted", backend=False, receipt=True))
    fire = Fire(7, 1, "report", 0, 0, "manual", 1, "key-7", receipts.url(7))
    try:
        assert (action.proves(spec), action.check(spec)) == ("finished", None)
        result = await asyncio.wait_for(action.perform(spec, fire, ladder), PATIENCE)
    finally:
        await action.close()
        await runner.cleanup()
    assert result == Done(reply="done by receipt")
    assert ladder.rungs == ["sent", "accepted"]


async def test_an_unreachable_broker_fails_and_nothing_was_sent(redis: Redis, workers: Workers, tmp_path: Path) -> None:
    """The attempt fails and is retried by the schedule's policy; the run succeeds when the broker is back."""
    redis.stop()
    async with _app(tmp_path) as app:
        await app.add("report", once("+1s"), dispatch=_task(redis), retry={"times": 50, "delay": "1s"})

        async def failed() -> RunView | None:
            runs = await app.runs("report")
            return runs[0] if runs and runs[0].attempts and runs[0].error else None

        async with asyncio.timeout(PATIENCE):
            while (run := await failed()) is None:
                await asyncio.sleep(0.1)
        assert "cannot be reached" in (run.error or "")
        redis.start()
        workers.start("one")
        run = await app.wait_for(run.run_id, within=f"{PATIENCE:.0f}s")
        assert run.outcome == "succeeded"
    assert len(workers.lines("end")) == 1


@pytest.mark.torture
async def test_a_timeout_and_a_cancel_revoke_the_task(redis: Redis, workers: Workers, tmp_path: Path) -> None:
    """A worker confirms that it stopped: only then the run has timed out, or is cancelled."""
    workers.start("one")
    async with _app(tmp_path) as app:
        for slug, timeout in (("slow", "15s"), ("unwanted", "1h")):
            await app.add(slug, every("1d"), dispatch=_task(redis, kwargs={"seconds": 600}), timeout=timeout)
        slow = await _ended(app, "slow")
        assert (slow.outcome, slow.rung) == ("timedOut", "started")
        run = await app.run_now("unwanted")
        await _until(lambda: len(workers.lines("begin")) == 2)
        await app.cancel(run.run_id)
        assert (await app.wait_for(run.run_id, within=f"{PATIENCE:.0f}s")).outcome == "cancelled"
    assert workers.lines("end") == []


@pytest.mark.torture
async def test_a_task_that_no_worker_takes_is_not_said_to_have_ended(redis: Redis, tmp_path: Path) -> None:
    """It was revoked, and nobody confirms it: the run is unknown, and says so."""
    async with _app(tmp_path, shutdown_grace="0s") as app:
        await app.add("queued", every("1d"), dispatch=_task(redis), timeout="10s")
        run = await _ended(app, "queued")
        assert (run.outcome, run.is_stuck, run.rung) == ("unknown", True, "accepted")
        assert "no worker has confirmed" in (run.error or "")


@pytest.mark.torture
async def test_a_lost_result_is_unknown_or_retried(
    redis: Redis, workers: Workers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The backend was emptied during the task: `onCrash` decides, and it is never green by itself."""
    monkeypatch.setattr(celery_fleet, "POLL_MAX", 0.2)
    workers.start("one")
    async with _app(tmp_path) as app:
        task = _task(redis, kwargs={"seconds": 600})
        await app.add("lost", every("1d"), dispatch=task, on_crash="unknown")
        run = await app.run_now("lost")
        async with asyncio.timeout(PATIENCE):
            while (await app.ledger.get(run.run_id)).rung != "started":
                await asyncio.sleep(0.05)
        import redis as client

        client.Redis(port=redis.port).flushall()
        run = await app.wait_for(run.run_id, within=f"{PATIENCE:.0f}s")
        assert (run.outcome, run.reason) == ("unknown", "worker")
        assert "record in the result backend is gone" in (run.error or "")


@pytest.mark.torture
async def test_what_a_dead_node_sent_is_asked_for(redis: Redis, workers: Workers, tmp_path: Path) -> None:
    """A daemon that stops, or dies, while a task works: the next one asks the backend by the task's id, and does not
    send it again."""
    workers.start("one")
    async with _app(tmp_path, shutdown_grace="0s") as app:
        await app.add("long", every("1d"), dispatch=_task(redis, kwargs={"seconds": 4}))
        run = await app.run_now("long")
        await _until(lambda: len(workers.lines("begin")) == 1)
    async with _app(tmp_path) as app:
        run = await app.wait_for(run.run_id, within=f"{PATIENCE:.0f}s")
        assert (run.outcome, run.output, run.attempt) == ("succeeded", '{"took": 4}', 1)
    assert len(workers.lines("begin")) == 1


@pytest.mark.torture
@pytest.mark.parametrize("moment", ["begin", "end"])
async def test_a_worker_that_dies_before_it_was_ever_asked(
    redis: Redis, workers: Workers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """As a task begins, or has ended and has no result yet: noticed all the same, and `onCrash` decides."""
    monkeypatch.setattr(celery_fleet, "ASK_EVERY", 0.5)
    for name in ("one", "two"):
        workers.start(name)
    async with _app(tmp_path) as app:
        await app.add("first", every("1d"), dispatch=_task(redis, kwargs={"seconds": 3}))
        assert (await _ended(app, "first")).outcome == "succeeded"  # meanwhile both have told their pool
        task = _task(redis, kwargs={"dies_at": moment})
        await app.add("lost", every("1d"), dispatch=task, on_crash="unknown")
        run = await _ended(app, "lost")
        assert (run.outcome, run.reason, run.attempt) == ("unknown", "worker", 1)
        assert "@test no longer responds" in (run.error or "")
        await app.add("again", once("+1s"), dispatch=task, on_crash="retry")
        await _until(lambda: len(workers.lines("begin")) == 3)
        workers.start("three")
        (begun,) = await app.runs("again")
        run = await app.wait_for(begun.run_id, within=f"{PATIENCE:.0f}s")
        assert (run.outcome, run.attempt, run.output) == ("succeeded", 2, '{"took": 0.0}')


@pytest.mark.torture
async def test_what_a_dead_worker_had_only_received_goes_to_another(
    redis: Redis, workers: Workers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The task was not begun, so its run is not lost: it waits until the broker hands it out again."""
    monkeypatch.setattr(celery_fleet, "ASK_EVERY", 0.5)
    workers.start("one", concurrency=1)
    async with _app(tmp_path) as app:
        await app.add("held", every("1d"), dispatch=_task(redis, kwargs={"seconds": 600}), on_crash="unknown")
        await app.add("received", every("1d"), dispatch=_task(redis), on_crash="unknown")
        held = await app.run_now("held")
        await _until(lambda: len(workers.lines("begin")) == 1)
        received = await app.run_now("received")
        import redis as client

        await _until(lambda: client.Redis(port=redis.port).hlen("unacked") == 1)
        workers.kill("one")
        workers.start("two")
        for run_id, outcome in ((held.run_id, "unknown"), (received.run_id, "succeeded")):
            assert (await app.wait_for(run_id, within=f"{PATIENCE:.0f}s")).outcome == outcome


@pytest.mark.torture
async def test_a_worker_with_the_solo_pool_is_not_taken_for_dead(
    redis: Redis, workers: Workers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It answers between its tasks, and not while it works."""
    monkeypatch.setattr(celery_fleet, "ASK_EVERY", 0.1)
    workers.start("one", pool="solo")
    async with _app(tmp_path) as app:
        for slug, seconds in (("short", 1), ("long", 10)):
            await app.add(slug, every("1d"), dispatch=_task(redis, kwargs={"seconds": seconds}), on_crash="unknown")
            run = await _ended(app, slug)
            assert (run.outcome, run.output) == ("succeeded", f'{{"took": {seconds}}}')


@pytest.mark.torture
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("count", [40, 500])
async def test_a_worker_is_killed_in_the_middle(
    redis: Redis, workers: Workers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    """Every run ends with the truth: what succeeded did end, what a task refused failed, and what the killed worker had
    begun was done once more (`retry`) or is unknown (`unknown`)."""
    monkeypatch.setattr(celery_fleet, "ASK_EVERY", 0.5)
    for name in ("one", "two"):
        workers.start(name)
    async with _app(tmp_path, concurrency_max=16) as app:
        soon = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=3 + count / 10)
        for number in range(count):
            kwargs = {"seconds": 0.3, **({"fail": "on purpose"} if number % 10 == 0 else {})}
            crash = "unknown" if number % 2 else "retry"
            task = _task(redis, kwargs=kwargs)
            at = soon + timedelta(milliseconds=number)  # so that the keys tell the runs apart
            await app.add(f"s{number}", once(at), dispatch=task, on_crash=crash, timeout="5m")
        await _until(lambda: len(workers.lines("end")) >= count // 4)
        workers.kill("one")
        runs: dict[str, RunView] = {}
        async with asyncio.timeout(5 * PATIENCE):
            while len(runs) < count:
                found = [run for run in await app.runs(limit=2 * count) if run.outcome not in ("running", "waiting")]
                runs = {run.slug: run for run in found}
                await asyncio.sleep(0.2)
    ended = Counter(key for _, key, *_ in workers.lines("end"))
    begun = Counter(key for _, key, *_ in workers.lines("begin"))
    outcomes = Counter(run.outcome for run in runs.values())
    print(outcomes, Counter(run.attempt for run in runs.values()))
    assert set(outcomes) <= {"succeeded", "failed", "unknown"}
    assert max(begun.values()) <= 2
    for slug, run in runs.items():
        number = int(slug[1:])
        times = sum(count for key, count in ended.items() if key.endswith(f"-{_ms(run.planned_at)}"))
        match run.outcome:
            case "succeeded":
                assert number % 10 and times == 1, slug
            case "failed":
                assert number % 10 == 0 and run.error == "ValueError: on purpose", slug
            case _:
                assert run.reason == "worker" and (number % 2 or run.attempt == 2), slug
    assert outcomes["failed"] >= count // 10 - outcomes["unknown"]


def _ms(at: datetime) -> int:
    return round(at.timestamp() * 1000)
