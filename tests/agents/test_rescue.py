"""After a crash the target is asked first: turns under the real engine and store, on virtual time."""

import asyncio
from typing import Any

from agents.puppet import Puppet, at
from features.kit import Bench, NoOrphans, World, ledger, virtual
from wakeful import every
from wakeful.core.schedule.actions import Prompt
from wakeful.core.time.instants import DAY, HOUR, MINUTE, SECOND
from wakeful.engine.orphans import ASK_WITHIN
from wakeful.integrations.actions.receipts import Receipts
from wakeful.integrations.agents.turn import TurnAction
from wakeful.ports.action import Fire, NeverReceived, OrphanFate, Process, StillWorking
from wakeful.ports.agent import Broken, Fate, Replied, Turn, Working

STUCK = "SELECT count(*) FROM runs WHERE stuck = 1"
SIX_HOURS = every("6h", anchor="2026-01-01T00:00:00Z")
# A target that is still working is asked again when the lease is renewed; the tests wait a minute for that.
RENEWING = {"limits": {"lease": 150 * SECOND, "renew_every": 50 * SECOND}}


class Slow(Puppet):
    """Takes its time to say what became of a turn."""

    answers: "asyncio.Event | None" = None

    async def ask(self, turn: Turn) -> Fate:
        if self.answers is not None:
            await self.answers.wait()
        return await super().ask(turn)


class Office:
    """An app with one agent, that can be killed and opened again."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.puppet = Slow(world.clock)
        self.puppet.sights = at((0, Working()))
        self.app: Bench

    async def open(self, *, on_due: Any = None, orphans: NoOrphans | None = None) -> Bench:
        action = TurnAction(
            {"default": self.puppet}, self._world.clock, sessions=self._session, receipts=Receipts(b"0123456789abcdef")
        )
        self.app = self._world.bench(actions={Prompt: action}, **RENEWING)
        if orphans is not None:
            self.app.orphans = orphans
        if on_due is not None:
            self.app.on_due(on_due)
        await self.app.start()
        return self.app

    async def crash(self, **options: Any) -> None:
        """An agent is at work when the process is killed."""
        await self.wait_until_soon()
        await self.open()
        await self.app.add("standup", SIX_HOURS, prompt="what is new?", **options)
        await self._world.sleep("2m")
        assert [run.outcome for run in await self.app.runs("standup")] == ["running"]
        await self.app.kill()

    async def wait_until_soon(self) -> None:
        """Before the app opens, until a minute before the next instant: it would renew its lease all the time."""
        await self._world.sleep(6 * HOUR - self._world.now % (6 * HOUR) - MINUTE)

    async def _session(self, fire: Fire) -> str | None:
        cadences = await self.app.store.read(lambda tx: tx.cadences.lock([fire.schedule_id]))
        return cadences[fire.schedule_id].session_id


@virtual
async def test_an_agent_that_finished_meanwhile_is_not_prompted_again(world: World) -> None:
    """The run is what it was: succeeded, with its reply; one message in all, whatever `onCrash` says."""
    for on_crash in ("retry", "unknown"):
        office = Office(world)
        await office.crash(on_crash=on_crash)
        office.puppet.fate = Replied("done meanwhile", "s-1", {"input": 2})
        app = await office.open()
        await world.settle()
        (run,) = await app.runs("standup")
        assert (run.outcome, run.reply, run.error) == ("succeeded", "done meanwhile", None)
        assert run.usage is not None and run.usage["input"] == 2
        assert len(office.puppet.turns) == len(office.puppet.asked) == 1
        assert office.puppet.asked[0].fire.idempotency_key == office.puppet.turns[0].fire.idempotency_key
        assert (await app.get("standup")).session_id == "s-1"
        await app.remove("standup")
        await app.stop()


@virtual
async def test_a_turn_that_could_not_be_ended_is_asked_after_too(world: World) -> None:
    """L6: past its deadline, told to stop, still at it, and then our process dies. The next one does not take it for
    ended: nothing of the schedule starts beside it until the agent says so; what it did meanwhile is on its run."""
    office = Office(world)
    office.puppet.ends = False
    await office.open()
    await office.app.add("standup", every("2h"), prompt="what is new?", timeout="1h")
    await world.until("01-01 03:30:00")
    assert await ledger(office.app, "standup") == ["01-01 02:00:00 unknown (not proven to have ended)"]
    assert world.query(STUCK) == [(1,)]
    await office.app.kill()
    office.puppet.fate = StillWorking()
    app = await office.open()
    await world.until("01-01 06:30:00")
    assert len(office.puppet.turns) == 1
    assert world.query(STUCK) == [(1,)]
    assert (await ledger(app, "standup"))[1:] == ["01-01 04:00:00 skipped (blocked) x2"]
    office.puppet.fate = Replied("at last", "s-1")
    await world.until("01-01 07:00:00")
    run = (await app.runs("standup"))[-1]
    assert (run.outcome, run.reply) == ("succeeded", "at last")
    assert world.query(STUCK) == [(0,)]
    assert world.query("SELECT * FROM lanes") == []
    office.puppet.sights, office.puppet.answer = at(), Replied("hello", "s-1")
    await world.until("01-01 08:30:00")
    assert (await ledger(app, "standup"))[-1] == "01-01 08:00:00 succeeded"


@virtual
async def test_a_turn_that_could_not_be_ended_and_that_nobody_can_tell_of_stays_unknown(world: World) -> None:
    """L6: timed out is said only of what was seen to end. It lets go of its lane, for nobody will ever know."""
    office = Office(world)
    office.puppet.ends = False
    await office.wait_until_soon()
    await office.open()
    await office.app.add("standup", SIX_HOURS, prompt="what is new?", timeout="1h")
    await world.until("01-01 07:30:00")
    await office.app.kill()
    app = await office.open()
    await world.until("01-01 08:00:00")
    assert await ledger(app, "standup") == ["01-01 06:00:00 unknown (crash)"]
    assert world.query(STUCK) == [(0,)]
    assert world.query("SELECT * FROM lanes") == []


@virtual
async def test_what_was_stuck_in_our_own_process_is_gone_with_it(world: World) -> None:
    """A callable that nothing could end has ended with the process it ran in: it timed out, beside agents or not."""

    async def hang(_: Any) -> None:
        while True:
            try:
                await world.clock.sleep(DAY)
            except asyncio.CancelledError:
                continue

    office = Office(world)
    await office.wait_until_soon()
    await office.open(on_due=hang)
    await office.app.add("hang", SIX_HOURS, timeout="1h")
    await world.until("01-01 07:30:00")
    assert world.query(STUCK) == [(1,)]
    await office.app.kill()
    app = await office.open(on_due=hang)
    await world.until("01-01 08:00:00")
    assert await ledger(app, "hang") == ["01-01 06:00:00 timedOut (ended after its deadline)"]


@virtual
async def test_an_agent_that_cannot_tell_leaves_it_to_on_crash(world: World) -> None:
    """Nothing is known: `retry` tries once more, `unknown` does not."""
    office = Office(world)
    await office.crash(on_crash="unknown")
    app = await office.open()
    await world.settle()
    assert await ledger(app, "standup") == ["01-01 06:00:00 unknown (crash)"]
    assert len(office.puppet.turns) == 1


@virtual
async def test_an_agent_that_never_got_it_is_asked_once_more(world: World) -> None:
    """Sent, and never arrived: one more attempt, also with `onCrash: unknown`, because nothing can be repeated."""
    office = Office(world)
    office.puppet.takes = DAY  # the answer to the message never comes
    await office.crash(on_crash="unknown")
    office.puppet.takes, office.puppet.fate, office.puppet.answer = 0, NeverReceived(), Replied("now")
    app = await office.open()
    await world.settle()
    (run,) = await app.runs("standup")
    assert (run.outcome, run.reply, [a.outcome for a in run.attempts]) == ("succeeded", "now", ["crashed", "succeeded"])
    assert len({turn.fire.idempotency_key for turn in office.puppet.turns}) == 1


@virtual
async def test_what_was_accepted_and_is_not_to_be_found_is_not_taken_for_never_sent(world: World) -> None:
    """It may be on its way: `onCrash` decides."""
    office = Office(world)
    await office.crash(on_crash="unknown")
    office.puppet.fate = NeverReceived()
    app = await office.open()
    await world.settle()
    assert await ledger(app, "standup") == ["01-01 06:00:00 unknown (crash)"]


@virtual
async def test_a_turn_that_ended_in_error_is_a_failure_of_the_agent(world: World) -> None:
    """It is tried again by the schedule's policy, half an hour later."""
    office = Office(world)
    await office.crash()
    office.puppet.fate, office.puppet.answer = Broken("out of tokens"), Replied("now")
    app = await office.open()
    await world.settle()
    (run,) = await app.runs("standup")
    assert (run.outcome, run.error, run.reason) == ("waiting", "out of tokens", "retry")
    await world.sleep("30m")
    assert await ledger(app, "standup") == ["01-01 06:00:00 succeeded"]


@virtual
async def test_an_agent_that_is_still_at_it_is_left_alone_and_asked_again(world: World) -> None:
    """The run stays open, its lane held, until the agent has told; no second message."""
    office = Office(world)
    await office.crash(timeout="2h")
    office.puppet.fate = StillWorking()
    app = await office.open()
    await app.add("other", every("1h"), prompt="me too")
    await world.sleep("1h5m")
    assert [run.outcome for run in await app.runs("standup")] == ["running"]
    assert [(run.outcome, run.reason) for run in await app.runs("other")] == [("waiting", "lane")]
    assert len(office.puppet.asked) > 10
    office.puppet.fate, office.puppet.answer = Replied("at last", "s-1"), Replied("mine")
    await world.sleep("1m")
    assert [(run.outcome, run.reply) for run in await app.runs("standup")] == [("succeeded", "at last")]
    assert [(run.outcome, run.reply) for run in await app.runs("other")] == [("succeeded", "mine")]


@virtual
async def test_past_its_deadline_nobody_waits_for_it_any_more(world: World) -> None:
    """An agent that says for ever that it is at it: the run ends as `onCrash` says."""
    office = Office(world)
    await office.crash(timeout="2h", on_crash="unknown")
    office.puppet.fate = StillWorking()
    app = await office.open()
    await world.sleep("1h50m")
    assert [run.outcome for run in await app.runs("standup")] == ["running"]
    await world.sleep("10m")
    assert await ledger(app, "standup") == ["01-01 06:00:00 unknown (crash)"]


@virtual
async def test_asking_does_not_stop_the_clock(world: World) -> None:
    """L9: an agent that never answers the question holds up nobody else, and its own run only for a while."""
    office = Office(world)
    await office.crash(on_crash="unknown")
    office.puppet.answers = asyncio.Event()
    beats: list[Fire] = []

    async def beat(fire: Fire) -> None:
        beats.append(fire)

    app = await office.open(on_due=beat)
    await app.add("beat", every("10s"))
    await world.sleep(ASK_WITHIN - SECOND)
    assert [run.outcome for run in await app.runs("standup")] == ["running"]
    assert len(beats) >= 1
    await world.sleep("2s")
    assert await ledger(app, "standup") == ["01-01 06:00:00 unknown (crash)"]


@virtual
async def test_a_second_crash_while_it_is_asked_loses_nothing(world: World) -> None:
    """Whoever starts next asks again; the second crash of the process is none of the run."""
    office = Office(world)
    await office.crash()
    office.puppet.answers = asyncio.Event()
    app = await office.open()
    await world.sleep("1s")
    await app.kill()
    office.puppet.answers, office.puppet.fate = None, Replied("done meanwhile", "s-1")
    app = await office.open()
    await world.settle()
    (run,) = await app.runs("standup")
    assert (run.outcome, run.reply, len(office.puppet.turns)) == ("succeeded", "done meanwhile", 1)


class Stubborn(NoOrphans):
    """A process that cannot be ended, until it ends by itself."""

    fate: OrphanFate = "remains"

    async def end(self, process: Process) -> OrphanFate:
        await super().end(process)
        return self.fate


class Program(Puppet):
    """An agent that is a process."""

    async def send(self, ladder: Any) -> Any:
        await ladder.climb("started", process=Process("here", 77, "then"))
        await self.clock.sleep(DAY)


@virtual
async def test_what_a_dead_node_left_and_cannot_be_ended_keeps_its_lane(world: World) -> None:
    """L6: unknown, visibly stuck, nothing of its lane starts; once it is gone the lane is free, it stays unknown."""
    office, orphans = Office(world), Stubborn()
    office.puppet = Program(world.clock)  # type: ignore[assignment]
    await office.crash()
    app = await office.open(orphans=orphans)
    await app.add("other", every("1h"), prompt="me too", timeout="1m", retry={"times": 0})
    await world.sleep("1h30m")
    assert await ledger(app, "standup") == ["01-01 06:00:00 unknown (crash)"]
    assert [(run.outcome, run.reason) for run in await app.runs("other")] == [("waiting", "lane")]
    assert world.query(STUCK) == [(1,)] and len(orphans.ended) > 10
    orphans.fate = "gone"
    await world.sleep("2m")
    assert await ledger(app, "standup") == ["01-01 06:00:00 unknown (crash)"]
    assert (await app.runs("other"))[-1].outcome == "timedOut"
    assert world.query(STUCK) == [(0,)]
