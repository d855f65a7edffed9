"""Cancel: a run that is running or waiting is ended by a person. It is no error, and it is not tried again."""

import asyncio
from typing import Any

import pytest

from features.kit import Bench, Bot, World, ledger, virtual
from wakeful import Conflict, NotFound, RunView, Wakeful, cron, every, once
from wakeful.core.run.results import Busy, Done, Failed
from wakeful.core.schedule.actions import Http
from wakeful.core.time.instants import HOUR
from wakeful.ports.action import Detached, Fire, Ladder, StillRunning


class Remote:
    """A remote target: when its connection is closed, it may go on."""

    is_local = False

    def __init__(self, how: str) -> None:
        self.how = how
        self.fires = 0
        self.ended: asyncio.Future[None] | None = None

    def proves(self, spec: Any) -> Any:
        return "finished"

    def check(self, spec: Any) -> None:
        return None

    async def perform(self, spec: Any, fire: Fire, ladder: Ladder) -> Any:
        self.fires += 1
        await ladder.climb("sent")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if self.how == "detached":
                raise Detached from None
            if self.how == "stuck":
                self.ended = asyncio.get_running_loop().create_future()
                raise StillRunning("it does not stop", self.ended) from None
            raise

    async def close(self) -> None: ...


async def _only(app: Wakeful, slug: str) -> RunView:
    (run,) = await app.runs(slug)
    return run


@virtual
async def test_a_running_run_is_cancelled_and_the_schedule_goes_on(world: World) -> None:
    """Cancelled is not bad: no error is counted, nobody is told, and the next instant runs."""
    bot = Bot(world, usual=60_000)
    app = await world.open(bot)
    await app.add("report", every("10m"), retry={"times": 3, "delay": "1m"})
    await world.sleep("10m1s")
    run = await _only(app, "report")
    answered = await app.cancel(run.run_id, by="ops")
    assert (answered.outcome, answered.cancel_requested_at is not None) == ("running", True)
    await world.sleep("1s")
    assert (await _only(app, "report")).outcome == "cancelled"
    assert bot.running == 0
    view = await app.get("report")
    assert (view.status, view.health, view.consecutive_errors, view.last_result) == ("idle", "ok", 0, None)
    bot.usual = None
    await world.sleep("10m")
    assert [row.outcome for row in await app.runs("report")] == ["succeeded", "cancelled"]
    assert world.reported() == []
    with pytest.raises(Conflict, match="already ended: succeeded"):
        await app.cancel((await app.runs("report"))[0].run_id)
    assert (await app.cancel(run.run_id)).outcome == "cancelled", "cancelling twice is harmless"
    with pytest.raises(NotFound):
        await app.cancel(4711)


@virtual
async def test_five_cancels_disable_nothing(world: World) -> None:
    bot = Bot(world, usual=3_600_000)
    app = await world.open(bot)
    await app.add("report", every("10m"), max_consecutive_errors=5)
    for _ in range(6):
        await world.sleep("10m1s")
        (run, *_) = await app.runs("report")
        await app.cancel(run.run_id)
        await world.sleep("5s")
    view = await app.get("report")
    assert (view.status, view.consecutive_errors, view.health) == ("idle", 0, "ok")
    assert {row.outcome for row in await app.runs("report")} == {"cancelled"}


@virtual
async def test_a_run_that_waits_for_a_retry_is_cancelled_at_once(world: World) -> None:
    """The incident that is only watched because of the failed attempt ends with it."""
    bot = Bot(world, usual=Failed("no"))
    app = await world.open(bot)
    await app.add("report", cron("0 1 * * *", tz="UTC"), retry={"times": 5, "delay": "30m"})
    await world.until("01-01 01:00:01")
    (run, *_) = await app.runs("report")
    assert run.outcome == "waiting"
    assert (await app.cancel(run.run_id)).outcome == "cancelled"
    fired = len(bot.fires)
    await world.sleep("4h")
    assert len(bot.fires) == fired
    assert (await app.get("report")).health == "ok"
    assert world.reported() == []


@virtual
async def test_a_busy_wait_and_a_queued_run_are_cancelled(world: World) -> None:
    bot = Bot(world, usual=3_600_000)
    app = await world.open(bot)
    await app.add("report", every("10m"), overlap="queue", timeout="2h")
    await world.sleep("20m1s")
    queued, running = await app.runs("report")
    assert (queued.outcome, running.outcome) == ("waiting", "running")
    assert (await app.cancel(queued.run_id)).outcome == "cancelled"
    await app.cancel(running.run_id)
    bot.usual = Busy("later")
    await world.sleep("10m")
    busy = (await app.runs("report"))[0]
    assert (busy.outcome, busy.reason) == ("waiting", "busy")
    assert (await app.cancel(busy.run_id)).outcome == "cancelled"
    assert (await app.get("report")).open_run_id is None


@pytest.mark.parametrize(
    ("how", "outcome", "reason", "stuck"),
    [
        ("proven", "cancelled", None, False),
        ("detached", "unknown", "cancelled", False),
        ("stuck", "unknown", "cancelled", True),
    ],
)
@virtual
async def test_a_remote_target_that_does_not_confirm_leaves_it_unknown(
    world: World, how: str, outcome: str, reason: str | None, stuck: bool
) -> None:
    """Unknown by a cancel is neither an error nor an alert, and it is never tried again."""
    remote = Remote(how)
    app = await world.open(actions={Http: remote})
    await app.add("report", every("10m"), http="http://localhost/x", retry={"times": 3, "delay": "1m"}, overlap="skip")
    await world.sleep("10m1s")
    await app.cancel((await _only(app, "report")).run_id)
    await world.sleep("20s")
    run = await _only(app, "report")
    assert (run.outcome, run.reason, run.is_stuck) == (outcome, reason, stuck)
    view = await app.get("report")
    assert (view.consecutive_errors, view.health) == (0, "ok")
    assert remote.fires == 1
    assert world.reported() == [] == app.alerted
    if remote.ended is not None:
        remote.ended.set_result(None)
        await world.sleep("1s")
        run = await _only(app, "report")
        assert (run.outcome, run.is_stuck) == ("cancelled", False)


@virtual
async def test_a_node_that_dies_after_the_request_does_not_try_again(world: World) -> None:
    """Rescue never retries a run with a cancel request (L2)."""
    remote = Remote("proven")
    app = await world.open(actions={Http: remote})
    await app.add("report", every("10m"), http="http://localhost/x")
    await world.sleep("10m1s")
    run = await _only(app, "report")
    app.engine._runner.cancel = lambda *_: None  # type: ignore[method-assign]  # it dies before it can end anything
    await app.cancel(run.run_id)
    await app.kill()
    app = await world.open(actions={Http: remote})
    await world.sleep("1m")
    run = await app.ledger.get(run.run_id)
    assert (run.outcome, run.reason, remote.fires) == ("unknown", "cancelled", 1)
    assert world.reported() == []


@pytest.mark.parametrize("commits", range(3))
@virtual
async def test_a_crash_at_every_commit_of_a_cancel_keeps_the_request_or_the_run(world: World, commits: int) -> None:
    """L2 and L7: before the first commit nobody was told of it, and the run is tried again as after any crash;
    afterwards it never is."""
    bot = Bot(world, usual=HOUR)
    app = await world.open(bot)
    await app.add("report", every("4h"))
    await world.sleep("4h1s")
    run = await _only(app, "report")
    app.store.last = app.store.writes + commits
    app.machine.start(app.cancel(run.run_id))
    await world.sleep("10s")
    await app.kill()
    app = await world.open(bot)
    await world.sleep("2h")
    run = await app.ledger.get(run.run_id)
    if commits == 0:
        assert (run.outcome, len(bot.fires)) == ("succeeded", 2)
    else:
        assert run.outcome in ("cancelled", "unknown")
        assert (run.reason in (None, "cancelled"), len(bot.fires)) == (True, 1)
    assert ((await app.get("report")).consecutive_errors, world.reported()) == (0, [])


@virtual
async def test_on_several_nodes_the_owner_ends_it(world: World) -> None:
    """The request goes to another node than the one that runs it."""
    bot = Bot(world, usual=3_600_000)
    limits = {"poll": 1_000, "lease": 30_000, "renew_every": 10_000}
    first: Bench = await world.open(bot, name="first", is_shared=True, limits=limits)
    await first.add("report", every("10m"))
    await world.sleep("10m1s")
    second = await world.open(bot, name="second", is_shared=True, limits=limits)
    run = await _only(second, "report")
    await second.cancel(run.run_id)
    await world.sleep("5s")
    assert (await second.ledger.get(run.run_id)).outcome == "cancelled"
    assert bot.running == 0


@virtual
async def test_an_answer_that_was_settled_first_wins(world: World) -> None:
    """The target finished while the request was on its way."""
    bot = Bot(world, usual=Done(reply="ok"))
    app = await world.open(bot)
    await app.add("report", every("10m"))
    await world.sleep("10m")
    with pytest.raises(Conflict, match="succeeded"):
        await app.cancel((await _only(app, "report")).run_id)
    assert (await _only(app, "report")).cancel_requested_at is None


@virtual
async def test_a_cancelled_one_shot_is_done(world: World) -> None:
    bot = Bot(world, usual=3_600_000)
    app = await world.open(bot)
    await app.add("one", once("2026-01-01T00:30:00Z"))
    await world.until("01-01 00:30:01")
    await app.cancel((await _only(app, "one")).run_id)
    await world.sleep("5s")
    view = await app.get("one")
    assert (view.status, view.health) == ("done", "off")
    assert await ledger(app, "one") == ["01-01 00:30:00 cancelled"]
    assert world.reported() == []
