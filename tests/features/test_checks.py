"""Pre-checks: the agent is asked only if there is something to do."""

from typing import Any

from features.kit import Bench, World, ledger, virtual
from features.money_kit import Spender
from wakeful import every, manual
from wakeful.app.money import Budgets
from wakeful.core.run.results import Done, Failed, Result
from wakeful.core.schedule.actions import Command, Prompt
from wakeful.core.time.instants import MINUTE
from wakeful.ports.action import Fire, Ladder

CHECK = {"command": {"argv": ["new-mail"]}}


class Checker:
    """Performs the check; `says` is what the next ones print, None if they fail."""

    is_local = False

    def __init__(self) -> None:
        self.asked = 0
        self.says: dict[int, str | None] = {}
        self.usual: str | None = ""

    def proves(self, spec: Any) -> str:
        return "finished"

    def check(self, spec: Any) -> None:
        return None

    async def perform(self, spec: Any, fire: Fire, ladder: Ladder) -> Result:
        await ladder.climb("sent")
        self.asked += 1
        text = self.says.get(self.asked, self.usual)
        return Failed("exited with 1") if text is None else Done(output=text)

    async def close(self) -> None: ...


async def _open(world: World, agent: Spender, checker: Checker, **settings: Any) -> Bench:
    return await world.open(actions={Prompt: agent, Command: checker}, **settings)


async def _poll(app: Bench, **options: Any) -> None:
    await app.add("poll", every("5m"), prompt="Read the mail.", check=CHECK, **options)


@virtual
async def test_a_day_of_polls_that_find_nothing_is_one_row(world: World) -> None:
    """288 polls ask no model, and are one explained row; every id still resolves."""
    agent, checker = Spender(world), Checker()
    app = await _open(world, agent, checker)
    await _poll(app)
    await world.sleep("1d1m")
    assert (checker.asked, len(agent.fires)) == (288, 0)
    assert await ledger(app, "poll") == ["01-01 00:05:00 skipped (nothing to do) x288"]
    assert "nothing to do" in (await app.why("poll", at="2026-01-01T12:00:00Z")).sentence
    (row,) = await app.runs("poll")
    assert (await app.ledger.get(row.run_id + 7)).run_id == row.run_id
    assert world.query("SELECT count(*) FROM charges") == [(0,)]


@virtual
async def test_an_instant_and_a_replay_are_never_one_row(world: World) -> None:
    """A replay covers no instant of the plan. Where one found nothing between two instants that found nothing either,
    the ledger has three rows, and every instant still has its own."""
    agent, checker = Spender(world), Checker()
    app = await _open(world, agent, checker)
    await _poll(app)
    await world.until("01-01 00:06:00")
    (first,) = await app.runs("poll")
    await app.replay(first.run_id)
    await world.until("01-01 00:11:00")
    assert [row.trigger for row in await app.runs("poll")] == ["schedule", "replay", "schedule"]
    assert await ledger(app, "poll") == [
        "01-01 00:05:00 skipped (nothing to do)",
        "01-01 00:05:00 skipped (nothing to do)",
        "01-01 00:10:00 skipped (nothing to do)",
    ]
    second = (await app.runs("poll"))[0]
    await app.replay(second.run_id)
    await world.until("01-01 00:12:00")
    assert [row.trigger for row in await app.runs("poll")] == ["replay", "schedule", "replay", "schedule"]


@virtual
async def test_what_it_finds_is_given_to_the_agent(world: World) -> None:
    """After the prompt, in a block of its own; retries get it too."""
    agent, checker = Spender(world), Checker()
    agent.fails = 1
    checker.says = {3: "2 new letters\n"}
    app = await _open(world, agent, checker)
    await _poll(app, retry={"times": 2, "delay": "1m"})
    await world.sleep("31m")
    assert agent.prompts == ["Read the mail.\n\n[check]\n2 new letters"] * 2
    assert await ledger(app, "poll") == [
        "01-01 00:05:00 skipped (nothing to do) x2",
        "01-01 00:15:00 succeeded",
        "01-01 00:20:00 skipped (nothing to do) x3",
    ]
    assert [run.attempt for run in await app.runs("poll")] == [1, 2, 1]
    assert checker.asked == 6


@virtual
async def test_a_check_that_fails_wakes_at_most_at_the_interval_of_agents(world: World) -> None:
    """A broken check does not become a wake loop."""
    agent, checker = Spender(world), Checker()
    checker.usual = None
    app = await _open(world, agent, checker)
    await _poll(app)
    await world.sleep("1d")
    assert 22 <= len(agent.fires) <= 24
    assert "the check failed: exited with 1" in agent.prompts[0]


@virtual
async def test_a_check_that_fails_may_be_skipped(world: World) -> None:
    """With `onError: skip` the agent is left alone, and the row says why."""
    agent, checker = Spender(world), Checker()
    checker.usual = None
    app = await _open(world, agent, checker)
    await app.add("poll", every("5m"), prompt="Read the mail.", check={**CHECK, "onError": "skip"})
    await world.sleep("1h1m")
    assert len(agent.fires) == 0
    assert await ledger(app, "poll") == ["01-01 00:05:00 skipped (check failed) x12"]


@virtual
async def test_a_check_needs_no_budget(world: World) -> None:
    """It is asked although the budget is used up; only the turn is refused."""
    agent, checker = Spender(world, 0.9), Checker()
    checker.says = {1: "a", 30: "b"}
    app = await _open(world, agent, checker, budgets=Budgets(day=1.0))
    await _poll(app)
    await world.sleep("4h1m")
    assert (checker.asked, len(agent.fires)) == (48, 1)
    assert "01-01 02:30:00 skipped (budget)" in await ledger(app, "poll")


@virtual
async def test_a_crash_during_a_check_repeats_it(world: World) -> None:
    """Nothing was asked of the agent, so nothing is unknown."""
    agent, checker = Spender(world, takes="30s"), Checker()
    checker.usual = "letters"
    app = await _open(world, agent, checker)
    await app.add("poll", manual(), prompt="Read the mail.", check=CHECK)
    await app.run_now("poll")
    await world.sleep("10s")
    assert len(agent.fires) == 1
    await app.kill()
    app = await _open(world, agent, checker)
    await world.sleep("2m")
    assert checker.asked == 1
    assert (await ledger(app, "poll"))[0].endswith("unknown (crash)")


@virtual
async def test_a_clock_that_comes_back_covers_no_time_twice(world: World) -> None:
    """Polls that were merged on a clock that was ahead are planned again: the row is cut at the present."""
    world.sleep_max = MINUTE
    agent, checker = Spender(world), Checker()
    app = await _open(world, agent, checker)
    await _poll(app)
    await world.sleep("31m")
    assert await ledger(app, "poll") == ["01-01 00:05:00 skipped (nothing to do) x6"]
    world.wall.step(-18 * MINUTE)
    await world.sleep("2m")
    assert await ledger(app, "poll") == ["01-01 00:05:00 skipped (nothing to do) x3"]
    await world.sleep("30m")
    rows = await app.runs("poll")
    assert sum(row.count for row in rows) == 9 and checker.asked == 13
