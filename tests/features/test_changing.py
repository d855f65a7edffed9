"""What a person may change while schedules run: standby, spacing, lanes, limits; each takes effect at once."""

from typing import Any

import pytest

from agents.puppet import Puppet
from features.kit import Bench, Bot, World, ledger, rfc, short, virtual
from wakeful import Invalid, cron, every, once
from wakeful.core.schedule.actions import Prompt
from wakeful.core.time.instants import MINUTE
from wakeful.integrations.actions.receipts import Receipts
from wakeful.integrations.agents.turn import TurnAction
from wakeful.ports.action import Fire
from wakeful.ports.agent import Replied

HOUR_TEXT = "Minimum interval is 60 minutes (1 hour)"


def turns(world: World, **agents: Puppet) -> TurnAction:
    """An action for prompts, with these agents."""

    async def session(fire: Fire) -> str | None:
        return None

    return TurnAction(agents, world.clock, sessions=session, receipts=Receipts(b"0123456789abcdef"))


def puppet(world: World, *, takes: int = 0) -> Puppet:
    """An agent that answers after a while."""
    made = Puppet(world.clock)
    made.answer, made.takes = Replied("done", "s-1"), takes
    return made


def asked(agent: Puppet) -> list[str]:
    """The planned times it was asked for."""
    return [short(turn.fire.planned_at) for turn in agent.turns]


async def told(app: Bench, slug: str, at: str | None = None) -> str:
    return (await app.why(slug, at=None if at is None else f"2026-{at.replace(' ', 'T')}Z")).sentence


@virtual
async def test_in_standby_instants_are_skipped_and_nothing_is_caught_up(world: World) -> None:
    """Switched on and off while it runs: one counted row, the grid stays, and `why` says so before and after (L1)."""
    bot = Bot(world)
    app = await world.open(bot)
    await app.add("tick", every("1h"))
    await world.until("01-01 01:30:00")
    await app._change(standby=True)
    assert "it will not run at 02:00" in await told(app, "tick")
    assert await told(app, "tick", "01-01 03:00:00") == (
        "tick will not run at 2026-01-01 03:00 (UTC) because schedules are switched off (standby)."
    )
    await world.until("01-01 04:30:00")
    await app._change(standby=False)
    await world.until("01-01 05:30:00")
    assert bot.planned == ["01-01 01:00:00", "01-01 05:00:00"]
    assert await ledger(app, "tick") == [
        "01-01 01:00:00 succeeded",
        "01-01 02:00:00 skipped (standby) x3",
        "01-01 05:00:00 succeeded",
    ]
    assert "because schedules were switched off (standby)" in await told(app, "tick", "01-01 03:00:00")


@virtual
async def test_a_start_in_standby_skips_what_an_outage_left(world: World) -> None:
    """What would have been caught up is skipped like any other instant; a manual run is still possible."""
    bot = Bot(world)
    app = await world.open(bot)
    await app.add("tick", every("1h"))
    app = await world.reopen(app, bot, off="150m", standby=True)
    await world.settle()
    assert await ledger(app, "tick") == ["01-01 01:00:00 missed (outage)", "01-01 02:00:00 skipped (standby)"]
    assert (await app.run_now("tick", wait=True)).outcome == "succeeded"


@virtual
async def test_a_schedule_that_a_raised_limit_forbids_is_skipped_with_its_text(world: World) -> None:
    """Written when it was allowed: every instant of it is skipped until the limit is lowered again (L1)."""
    agent = puppet(world)
    app = await world.open(Bot(world), actions={Prompt: turns(world, default=agent)}, agent_interval_min="20m")
    await app.add("often", every("30m"), prompt="anything new?")
    await app.add("twice", cron("0,30 9 * * *"), prompt="twice a day")
    await app.add("seldom", every("1h"), prompt="anything new?")
    await world.until("01-01 00:45:00")
    await app._change(agent_interval_min="60m")
    assert await told(app, "often", "01-01 01:00:00") == (
        f"often will not run at 2026-01-01 01:00 (UTC) because it prompts its agent too often: {HOUR_TEXT}."
    )
    await world.until("01-01 02:15:00")
    await app._change(agent_interval_min="30m")
    await world.until("01-01 02:45:00")
    assert await ledger(app, "often") == [
        "01-01 00:30:00 succeeded",
        f"01-01 01:00:00 skipped ({HOUR_TEXT}) x3",
        "01-01 02:30:00 succeeded",
    ]
    assert await ledger(app, "seldom") == ["01-01 01:00:00 succeeded", "01-01 02:00:00 succeeded"]
    assert HOUR_TEXT in await told(app, "often", "01-01 01:30:00")
    await app._change(agent_interval_min="60m")
    await world.until("01-01 10:00:00")
    assert await ledger(app, "twice") == [f"01-01 09:00:00 skipped ({HOUR_TEXT}) x2"]


@virtual
async def test_a_raised_limit_concerns_prompts_alone(world: World) -> None:
    """A call as often as every minute goes on."""
    bot = Bot(world)
    app = await world.open(bot)
    await app.add("tick", every("1m"))
    await app._change(agent_interval_min="2h")
    await world.until("01-01 00:02:30")
    assert len(bot.fires) == 2


@virtual
async def test_an_agent_works_on_one_run_at_a_time_unless_lanes_are_lifted(world: World) -> None:
    """Serial at first; lifted while others wait: those and all that follow go at once. Then serial again (L5)."""
    agent = puppet(world, takes=20 * MINUTE)
    app = await world.open(Bot(world), actions={Prompt: turns(world, default=agent)})
    for slug in ("a", "b", "c"):
        await app.add(slug, every("2h"), prompt="hello")
    await app.add("own", every("2h"), prompt="hello", lane="mine")
    await app.add("own-too", every("2h"), prompt="hello", lane="mine")
    await world.until("01-01 02:05:00")
    assert len(agent.turns) == 2  # one of the agent's lane, one of the other
    await app._change(agent_lane="parallel")
    await world.settle()
    assert len(agent.turns) == 4
    assert (await app.system.health()).level == "ok"
    await world.until("01-01 03:30:00")
    agent.turns.clear()
    await world.until("01-01 04:05:00")
    assert len(agent.turns) == 4  # a lane that a person named is kept
    await world.until("01-01 05:30:00")
    await app._change(agent_lane="serial")
    agent.turns.clear()
    await world.until("01-01 06:05:00")
    assert len(agent.turns) == 2
    await world.until("01-01 07:30:00")
    for slug in ("a", "b", "c", "own", "own-too"):
        assert {run.outcome for run in await app.runs(slug)} == {"succeeded"}


@virtual
async def test_agents_can_be_parallel_from_the_start(world: World) -> None:
    """Two runs of one agent at once."""
    agent = puppet(world, takes=20 * MINUTE)
    app = await world.open(Bot(world), actions={Prompt: turns(world, default=agent)}, agent_lane="parallel")
    await app.add("a", every("2h"), prompt="hello")
    await app.add("b", every("2h"), prompt="hello")
    await world.until("01-01 02:05:00")
    assert len(agent.turns) == 2


@virtual
async def test_a_lower_cap_lets_runs_end_and_a_higher_one_starts_more(world: World) -> None:
    """Nothing is ended; how many run is right from the next claim on, and the node tells its capacity."""
    bot = Bot(world, usual=5 * MINUTE)
    app = await world.open(bot, concurrency_max=4)
    for n in range(8):
        await app.add(f"job-{n}", every("1d", anchor="2026-01-01T01:00:00Z"))
    await world.until("01-01 01:01:00")
    assert bot.running == 4
    await app._change(concurrency_max=1)
    await world.until("01-01 01:06:00")
    assert bot.running == 1
    assert [node.capacity for node in (await app.system.nodes()).nodes] == [1]
    await app._change(concurrency_max=3)
    await world.until("01-01 01:07:00")
    assert bot.running == 3


@virtual
async def test_a_shorter_ledger_forgets_at_once(world: World) -> None:
    """Not only at the next hourly look."""
    app = await world.open(Bot(world))
    await app.add("tick", every("12h"))
    await world.until("01-10 00:30:00")
    assert len(await app.runs("tick")) == 18
    await app._change(ledger_days=3)
    await world.sleep("5s")
    assert len(await app.runs("tick")) == 6


@virtual
async def test_times_written_without_a_zone_get_the_new_one(world: World) -> None:
    """Those written before keep theirs."""
    app = await world.open(Bot(world))
    await app.add("before", cron("0 9 * * *"))
    await app._change(timezone="Asia/Tokyo")
    await app.add("after", cron("0 9 * * *"))
    assert [short(at) for at in await app.next_times("before", 1)] == ["01-01 09:00:00"]
    assert [short(at) for at in await app.next_times("after", 1)] == ["01-02 00:00:00"]


@virtual
async def test_what_cannot_be_changes_nothing(world: World) -> None:
    """All of it is refused, the right part too."""
    app = await world.open(Bot(world))
    wrong: list[dict[str, Any]] = [
        {"concurrency_max": 0},
        {"ledger_days": 0},
        {"timezone": "Mars/Olympus"},
        {"every_min": "often"},
        {"agent_lane": "zigzag"},
    ]
    before = app.parts.terms.value
    for changes in wrong:
        with pytest.raises(Invalid) as caught:
            await app._change(standby=True, **changes)
        assert caught.value.errors[0].field == next(iter(changes))
    assert app.parts.terms.value == before


@virtual
async def test_every_below_a_changed_minimum_is_raised_to_it(world: World) -> None:
    """`every_min` counts for what is written from now on."""
    app = await world.open(Bot(world))
    await app._change(every_min="5m")
    await app.add("tick", every("1m"))
    assert [short(at) for at in await app.next_times("tick", 1)] == ["01-01 00:05:00"]


@virtual
async def test_turns_under_way_end_with_the_agent_they_began_with(world: World) -> None:
    """The next turn asks the new one; the old one is closed when its last turn has ended; one that stayed is kept."""
    old, new, kept = puppet(world, takes=10 * MINUTE), puppet(world), puppet(world)
    closed: list[Puppet] = []

    def closing(agent: Puppet) -> Any:
        async def close() -> None:
            closed.append(agent)

        return close

    for agent in (old, new, kept):
        agent.close = closing(agent)  # type: ignore[method-assign]
    action = turns(world, default=old, other=kept)
    app = await world.open(Bot(world), actions={Prompt: action})
    await app.add("ask", every("1h"), prompt="hello")
    await app.add("other", every("1h"), prompt="hello", agent="other")
    await world.until("01-01 01:05:00")
    action.replace_agents({"default": new, "other": kept})
    await world.settle()
    assert closed == []
    await world.until("01-01 02:15:00")
    assert (asked(old), asked(new)) == (["01-01 01:00:00"], ["01-01 02:00:00"])
    assert closed == [old]
    assert await ledger(app, "ask") == ["01-01 01:00:00 succeeded", "01-01 02:00:00 succeeded"]
    action.replace_agents({"other": kept})
    await world.until("01-01 03:15:00")
    assert closed == [old, new]
    failed = (await app.runs("ask", limit=1))[0]
    assert failed.outcome == "failed"
    assert (
        failed.error == "there is no agent 'default'; add [agents.default] to the settings, or use one of these: other"
    )
    assert len(kept.turns) == 3


@pytest.mark.promise
@virtual
async def test_an_edited_instant_is_planned_at_once(world: World) -> None:
    """3, OC#127691: earlier or later, the next run follows in the same transaction."""
    bot = Bot(world)
    app = await world.open(bot)
    await app.add("shot", once(rfc("01-01 10:00:00")))
    await app.update("shot", schedule={"at": rfc("01-01 08:00:00")})
    assert short((await app.get("shot")).next_run) == "01-01 08:00:00"
    await app.update("shot", schedule={"at": rfc("01-01 09:00:00")})
    await world.until("01-01 12:00:00")
    assert bot.began == ["01-01 09:00:00"]


@pytest.mark.promise
@virtual
async def test_an_edit_while_an_instant_is_overdue_does_not_run_the_old_time(world: World) -> None:
    """3: what was due under the old timing is on record as edited away."""
    bot = Bot(world)
    editor = await world.open(bot, tick=False, name="editor")
    await editor.add("tick", every("1h"))
    await world.until("01-01 02:30:00")
    await editor.add("tick", cron("45 * * * *"))
    app = await world.open(bot)
    await world.until("01-01 03:00:00")
    assert await ledger(app, "tick") == ["01-01 01:00:00 skipped (edited) x2", "01-01 02:45:00 succeeded"]


@pytest.mark.promise
@virtual
async def test_after_an_edit_and_a_missed_tick_the_grid_still_matches(world: World) -> None:
    """6, N8#23711: due is "now or earlier", never "exactly now"."""
    bot = Bot(world)
    app = await world.open(bot)
    await app.add("tick", every("3h"))
    await world.until("01-01 01:17:23")
    await app.add("tick", every("2d"))
    app = await world.reopen(app, bot, off="2d1h")
    await world.until("01-05 02:00:00")
    assert bot.planned == ["01-03 01:17:23", "01-05 01:17:23"]


@pytest.mark.promise
@virtual
async def test_a_run_that_ends_does_not_undo_a_pause(world: World) -> None:
    """23, HA PR#46604: paused by another process while a run is under way; settling keeps it paused."""
    bot = Bot(world, usual=20 * MINUTE)
    app = await world.open(bot)
    other = await world.open(bot, tick=False, name="cli")
    await app.add("job", every("1h"))
    await world.until("01-01 01:05:00")
    await other.pause("job")
    await world.until("01-01 03:30:00")
    assert len(bot.fires) == 1
    assert (await app.get("job")).status == (await other.get("job")).status == "paused"
