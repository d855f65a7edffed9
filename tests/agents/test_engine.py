"""Turns under the real engine and store, on virtual time: what a schedule shows of its agent."""

import pytest

from agents.puppet import Puppet, at
from features.kit import Bench, World, short, virtual
from wakeful import every
from wakeful.core.errors import Invalid
from wakeful.core.run.results import Busy, Failed, Throttled
from wakeful.core.run.usage import Usage
from wakeful.core.schedule.actions import Prompt
from wakeful.core.time.instants import HOUR, MINUTE, SECOND
from wakeful.integrations.actions.receipts import Receipts
from wakeful.integrations.agents.turn import TurnAction
from wakeful.ports.action import Fire
from wakeful.ports.agent import Accepted, Broken, Finished, Replied, Working


class Office:
    """An app whose only agent is a puppet; its sessions are those of the schedules."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.puppet = Puppet(world.clock)
        receipts = Receipts(b"0123456789abcdef")
        self.action = TurnAction(
            {"default": self.puppet, "second": self.puppet}, world.clock, sessions=self._session, receipts=receipts
        )
        self.app: Bench

    async def open(self, **options: object) -> None:
        self.app = await self._world.open(actions={Prompt: self.action})
        await self.app.add("standup", every("6h"), prompt="what is new?", **options)

    async def _session(self, fire: Fire) -> str | None:
        cadences = await self.app.store.read(lambda tx: tx.cadences.lock([fire.schedule_id]))
        return cadences[fire.schedule_id].session_id

    async def told(self) -> list[tuple[str, str, str | None, str | None]]:
        """The runs of the schedule, oldest first: when, outcome, rung, error."""
        runs = await self.app.runs("standup", limit=20)
        return [(short(run.planned_at), run.outcome, run.rung, run.error) for run in reversed(runs)]


@virtual
async def test_a_schedule_goes_on_with_its_session(world: World) -> None:
    """The id comes back with the first turn and is there for the second; reply and usage are on the run."""
    office = Office(world)
    office.puppet.answer = Replied("all is well", "s-1", {"input": 3})
    await office.open()
    await world.sleep("13h")
    assert [turn.session_id for turn in office.puppet.turns] == [None, "s-1"]
    run = (await office.app.runs("standup", limit=1))[0]
    assert (run.outcome, run.rung, run.reply) == ("succeeded", "finished", "all is well")
    assert run.usage is not None and run.usage["input"] == 3
    assert (await office.app.get("standup")).session_id == "s-1"


@virtual
async def test_a_busy_session_waits_an_hour_and_is_no_error(world: World) -> None:
    """The same run, under the same key, until it is free."""
    office = Office(world)
    office.puppet.answer = Busy("Session busy")
    await office.open()
    await world.sleep("6h30m")
    view = await office.app.get("standup")
    assert (view.status, view.consecutive_errors) == ("waiting", 0)
    office.puppet.answer = Replied("now", "s-1")
    await world.sleep("1h")
    assert await office.told() == [("01-01 06:00:00", "succeeded", "finished", None)]
    assert len({turn.fire.idempotency_key for turn in office.puppet.turns}) == 1


@virtual
async def test_a_failing_server_is_asked_again_every_half_hour(world: World) -> None:
    """Until the next regular instant, as agent schedules are."""
    office = Office(world)
    office.puppet.answer = Failed("HTTP 500")
    await office.open()
    await world.sleep("7h15m")
    assert len(office.puppet.turns) == 3
    office.puppet.answer = Replied("at last")
    await world.sleep("30m")
    assert await office.told() == [("01-01 06:00:00", "succeeded", "finished", None)]


@virtual
async def test_silence_is_visible_and_alerted(world: World) -> None:
    """Accepted and never proven: unconfirmed after five minutes, not green, not tried again by itself."""
    office = Office(world)
    await office.open()
    await world.sleep("6h4m")
    assert [(outcome, rung) for _, outcome, rung, _ in await office.told()] == [("running", "accepted")]
    await world.sleep("2m")
    ((_, outcome, rung, error),) = await office.told()
    assert (outcome, rung) == ("unconfirmed", "accepted") and error is not None and "no activity within 5m" in error
    await world.sleep("2h")
    assert [name.partition(":")[0] for name in world.reported()] == ["failing"]
    assert len(office.puppet.turns) == 1


@virtual
async def test_a_turn_past_its_deadline_is_ended_first(world: World) -> None:
    """Timed out only because the agent was seen to stop."""
    office = Office(world)
    office.puppet.sights = at((0, Working()))
    await office.open(timeout="1h", retry={"times": 0})
    await world.sleep("7h1m")
    assert [(outcome, rung) for _, outcome, rung, _ in await office.told()] == [("timedOut", "started")]
    assert office.puppet.cancels == 1


@virtual
async def test_a_turn_that_cannot_be_ended_is_unknown_until_it_is_seen_to_end(world: World) -> None:
    """It keeps its place meanwhile, so nothing of the schedule runs beside it."""
    office = Office(world)
    office.puppet.ends = False
    office.puppet.answer = Accepted("s-1", 5 * MINUTE)
    office.puppet.sights = at((0, Working()), (8 * HOUR, Finished("after all")))
    await office.open(timeout="1h", retry={"times": 0})
    await world.sleep("13h")
    assert [outcome for _, outcome, _, _ in await office.told()] == ["unknown", "skipped"]
    await world.sleep("2h")
    assert (await office.told())[0][1] == "timedOut"
    assert len(office.puppet.turns) == 1


@virtual
async def test_a_new_session_is_kept_while_the_run_waits(world: World) -> None:
    """Made after a 404 and then busy: the next attempt goes on with it."""
    office = Office(world)
    office.puppet.answer = Busy("Session busy", "s-2")
    await office.open()
    await world.sleep("6h30m")
    assert (await office.app.get("standup")).session_id == "s-2"
    office.puppet.answer = Failed("HTTP 500", session_id="s-3")
    await world.sleep("45m")
    assert (await office.app.get("standup")).session_id == "s-3"
    office.puppet.answer = Replied("now")
    await world.sleep("1h")
    assert [turn.session_id for turn in office.puppet.turns] == [None, "s-2", "s-3"]


@virtual
async def test_with_success_accepted_an_accepted_prompt_is_enough(world: World) -> None:
    """Its owner asks for no more; what fails is a failure all the same, and what finishes brings its reply."""
    office = Office(world)
    await office.open(success="accepted")
    await world.sleep("6h6m")
    assert await office.told() == [("01-01 06:00:00", "succeeded", "accepted", None)]
    assert office.app.alerted == []
    office.puppet.sights = at((0, Working()), (MINUTE, Broken("out of tokens")))
    await world.sleep("6h")
    assert (await office.app.runs("standup", limit=1))[0].error == "out of tokens"
    office.puppet.sights = at((0, Working()), (MINUTE, Finished("fine")))
    await world.sleep("6h")
    assert (await office.app.runs("standup", limit=1))[0].reply == "fine"


@virtual
async def test_success_that_an_agent_cannot_prove_is_refused(world: World) -> None:
    """When it is written, with the field and the cure; without a wish the highest it can prove counts."""
    office = Office(world)
    office.puppet.proves = "accepted"
    await office.open()
    with pytest.raises(Invalid, match=r'success: .*proves at most accepted; write "accepted", or leave it out'):
        await office.app.add("other", every("6h"), prompt="hi", success="finished")
    await world.sleep("6h1m")
    assert await office.told() == [("01-01 06:00:00", "succeeded", "accepted", None)]


@virtual
async def test_where_completion_cannot_be_proven_the_lane_is_held_until_accepted(world: World) -> None:
    """The next one in line starts at once; where it can be proven, it waits for the end of the run."""
    office = Office(world)
    office.puppet.proves, office.puppet.takes = "accepted", MINUTE
    await office.open()
    await office.app.add("other", every("6h"), prompt="me too")
    await world.sleep("6h30s")
    assert sorted([await _outcome(office, "standup"), await _outcome(office, "other")]) == ["running", "waiting"]
    await world.sleep("1m")
    assert sorted([await _outcome(office, "standup"), await _outcome(office, "other")]) == ["running", "succeeded"]
    await world.sleep("1m")
    assert [await _outcome(office, "standup"), await _outcome(office, "other")] == ["succeeded", "succeeded"]
    office.puppet.proves, office.puppet.sights = "finished", at((0, Working()), (HOUR, Finished()))
    await world.sleep("6h")
    assert sorted([await _outcome(office, "standup"), await _outcome(office, "other")]) == ["running", "waiting"]


@virtual
async def test_another_agent_begins_with_a_session_of_its_own(world: World) -> None:
    """An edit that changes the agent clears the session, also under a run that is still at it; any other keeps it."""
    office = Office(world)
    office.puppet.answer = Replied("x", "s-1")
    await office.open()
    await world.sleep("6h1m")
    await office.app.add("standup", every("6h"), prompt="what else?")
    assert (await office.app.get("standup")).session_id == "s-1"
    office.puppet.answer, office.puppet.sights = Accepted("s-2", HOUR), at((0, Working()), (HOUR, Finished()))
    await world.sleep("6h")
    await office.app.add("standup", every("6h"), prompt="what else?", agent="second")
    assert (await office.app.get("standup")).session_id is None
    await world.sleep("2h")
    assert (await office.app.runs("standup", limit=1))[0].outcome == "succeeded"
    assert (await office.app.get("standup")).session_id is None


async def _outcome(office: Office, slug: str) -> str:
    return (await office.app.runs(slug, limit=1))[0].outcome


@virtual
async def test_a_limit_with_a_reset_is_waited_for(world: World) -> None:
    """Not asked in between, asked right at the reset, no error; the run's usage is that of all its attempts."""
    office = Office(world)
    await office.open()
    await world.sleep(6 * HOUR - SECOND)
    reset_at = world.now + SECOND + 90 * SECOND
    used: Usage = {"input": 10, "output": 1, "total": 11}
    office.puppet.answer = Throttled("claude: the limit is used up", reset_at, reason="quota", usage=used)
    await world.sleep(90 * SECOND)
    assert len(office.puppet.turns) == 1
    run = (await office.app.runs("standup", limit=1))[0]
    assert (run.outcome, run.reason, short(run.next_attempt_at)) == ("waiting", "quota", short(reset_at))
    schedule = await office.app.get("standup")
    assert (schedule.status, schedule.status_reason, schedule.consecutive_errors) == ("waiting", "quota", 0)
    assert schedule.last_result is None
    why = await office.app.why("standup")
    assert "is waiting for quota until 06:01:30, because claude: the limit is used up" in why.sentence
    office.puppet.answer = Replied("all is well", "s-1", {"input": 20, "output": 2, "total": 22, "cost": 0.5})
    await world.sleep(SECOND + 5 * SECOND)
    assert len(office.puppet.turns) == 2
    run = (await office.app.runs("standup", limit=1))[0]
    assert (run.outcome, run.attempt, run.cost, run.priced) == ("succeeded", 2, 0.5, "reported")
    assert run.usage is not None and (run.usage["input"], run.usage["total"]) == (30, 33)
    assert (office.app.alerted, world.reported()) == ([], [])


@virtual
async def test_a_failed_run_keeps_its_usage_and_a_run_without_says_so(world: World) -> None:
    """Null and unknown, never 0."""
    office = Office(world)
    office.puppet.answer = Failed("boom", permanent=True, usage={"input": 5, "output": 1, "total": 6})
    await office.open()
    await world.sleep(6 * HOUR)
    run = (await office.app.runs("standup", limit=1))[0].to_json()
    assert run["outcome"] == "failed" and run["usage"]["total"] == 6
    assert (run["cost"], run["priced"]) == (None, "unknown")
    office.puppet.answer = Replied("hi", "s-1")
    await world.sleep(6 * HOUR)
    run = (await office.app.runs("standup", limit=1))[0].to_json()
    assert (run["outcome"], run["usage"], run["cost"], run["priced"]) == ("succeeded", None, None, "unknown")
