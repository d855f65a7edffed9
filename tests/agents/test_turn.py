"""The turn action on virtual time: the ladder, confirmation, receipts and endings, with an agent that does as told."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from agents.conftest import make_fire
from agents.puppet import Puppet, at
from climbing import RecordingLadder
from wakeful.core.errors import FieldError
from wakeful.core.run.results import Busy, Done, Failed, Result, Throttled, Unconfirmed
from wakeful.core.schedule.actions import Command, Prompt
from wakeful.core.time.instants import HOUR, MINUTE, SECOND, Duration
from wakeful.integrations.actions.receipts import Receipts
from wakeful.integrations.agents.echo import EchoAgent
from wakeful.integrations.agents.turn import LEFT_QUIET, TurnAction
from wakeful.ports.action import FencedOff, Fire, NeverReceived, StillRunning, StillWorking
from wakeful.ports.agent import Accepted, Broken, Finished, NoSign, NotVisible, ProofGone, Replied, WentIdle, Working
from wakeful.testing.virtual_clock import VirtualClock
from wakeful.testing.virtual_loop import VirtualLoop, drain


class Stage:
    """A turn action with one puppet, on virtual time."""

    def __init__(self, loop: VirtualLoop) -> None:
        self.clock = VirtualClock(loop)
        self.puppet = Puppet(self.clock)
        self.receipts = Receipts(b"0123456789abcdef", "https://here/")
        self.session_id: str | None = None
        self.ladder = RecordingLadder()
        self.action = TurnAction(
            {"default": self.puppet, "echo": EchoAgent()}, self.clock, sessions=self._session, receipts=self.receipts
        )

    async def turn(self, fire: Fire | None = None, agent: str = "default", **config: Any) -> Result:
        return await self.action.perform(Prompt("what is new?", agent, config), fire or make_fire(), self.ladder)

    async def post(self, rung: str, *args: Any, run_id: int = 42) -> str:
        return await self.receipts.post(run_id, self.receipts.token(run_id), rung, *args)

    async def post_after(self, duration: Duration, rung: str, *args: Any) -> str:
        await self.clock.sleep(duration)
        return await self.post(rung, *args)

    async def _session(self, fire: Fire) -> str | None:
        return self.session_id


def virtual(test: Callable[[Stage], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """Run the test on a virtual loop, with a stage."""

    def on_virtual_time() -> None:
        loop = VirtualLoop()
        try:
            loop.run(test(Stage(loop)))
        finally:
            drain(loop)

    on_virtual_time.__name__, on_virtual_time.__doc__ = test.__name__, test.__doc__
    return on_virtual_time


@virtual
async def test_the_ladder_of_a_turn(stage: Stage) -> None:
    """Sent before it leaves, accepted after, started at the first sign of life, finished when that is proven."""
    stage.puppet.sights = at((MINUTE, Working()), (2 * MINUTE, Finished("fine", {"output": 1})))
    assert await stage.turn() == Done(reply="fine", usage={"output": 1}, session_id="s-1")
    assert stage.ladder.rungs == ["sent", "accepted", "started"]
    assert stage.puppet.cleans == 1 and stage.puppet.cancels == 0


@virtual
async def test_silence_is_unconfirmed_after_confirm_within(stage: Stage) -> None:
    """Not a moment sooner, and not much later; what could still tell is left in place."""
    began = stage.clock.read().monotonic
    result = await stage.turn()
    assert result == Unconfirmed("accepted, and no activity within 5m; look at session s-1", "s-1")
    assert stage.clock.read().monotonic - began == 5 * MINUTE
    assert stage.ladder.rungs == ["sent", "accepted"] and stage.puppet.cleans == 0


@virtual
async def test_confirm_within_runs_from_accepted(stage: Stage) -> None:
    """A server that takes an hour to accept has used up nothing of it."""
    stage.puppet.takes = HOUR
    stage.puppet.sights = at((5 * MINUTE - SECOND, Working()), (6 * MINUTE, Finished()))
    assert isinstance(await stage.turn(), Done)


@virtual
async def test_while_it_works_only_the_timeout_governs(stage: Stage) -> None:
    """Hours of work, quiet for a moment or out of sight in between, are not cut short by the confirmation."""
    stage.puppet.sights = at(
        (MINUTE, Working()),
        (2 * MINUTE, NoSign()),
        (6 * MINUTE, NotVisible()),
        (2 * HOUR, Working()),
        (3 * HOUR, Finished("x")),
    )
    assert await stage.turn() == Done(reply="x", session_id="s-1")


@virtual
async def test_an_answer_must_follow_within_confirm_within_after_the_work(stage: Stage) -> None:
    """It worked for an hour and went quiet: the answer may still appear, and after five minutes it is unconfirmed."""
    stage.puppet.sights = at((0, Working()), (HOUR, NoSign("no answer")), (HOUR + 4 * MINUTE, Finished("x")))
    assert await stage.turn() == Done(reply="x", session_id="s-1")
    began = stage.clock.read().monotonic
    stage.puppet.sights = at((0, Working()), (HOUR, NoSign("it holds no answer")))
    error = "accepted, and no answer within 5m after it started working: it holds no answer; look at session s-1"
    assert await stage.turn() == Unconfirmed(error, "s-1")
    assert 65 * MINUTE - 5 * SECOND <= stage.clock.read().monotonic - began <= 65 * MINUTE + 5 * SECOND


@virtual
async def test_going_idle_is_a_success_of_its_own_kind(stage: Stage) -> None:
    """Where the agent is set to take it for an end: as far as `started`, no reply; a receipt is worth more."""
    stage.puppet.sights = at((0, Working()), (MINUTE, WentIdle()))
    assert await stage.turn() == Done("started", output="idle, no reply read", session_id="s-1")


@virtual
async def test_it_looks_soon_at_first_and_then_seldom(stage: Stage) -> None:
    """A short turn is not missed, and a long one costs little."""
    stage.puppet.sights = at((MINUTE, Working()), (2 * HOUR, Finished()))
    await stage.turn()
    first_second = [since for since in stage.puppet.looks if since <= SECOND]
    assert len(first_second) >= 4 and len(stage.puppet.looks) < 1500


@virtual
async def test_a_server_out_of_sight_is_silent(stage: Stage) -> None:
    """Nothing can be seen of it: that is no sign of life."""
    stage.puppet.sights = at((0, NotVisible()))
    assert isinstance(await stage.turn(), Unconfirmed)


@virtual
async def test_an_error_is_a_failure_and_a_vanished_session_unconfirmed(stage: Stage) -> None:
    """Proven to have failed is one thing, no longer provable another."""
    stage.puppet.sights = at((MINUTE, Broken("out of tokens")))
    assert await stage.turn() == Failed("out of tokens", rung="started", session_id="s-1")
    stage.puppet.sights = at((MINUTE, ProofGone("it is gone")))
    assert await stage.turn() == Unconfirmed("it is gone", "s-1")


@virtual
async def test_what_is_not_accepted_is_handed_on(stage: Stage) -> None:
    """Busy, throttled, failed: as the agent said, and cleaned up."""
    for answer in (Busy("Session busy"), Throttled("later", 5), Failed("no", permanent=True)):
        stage.puppet.answer = answer
        assert await stage.turn() == answer
    assert stage.puppet.cleans == 3 and stage.puppet.looks == []


@virtual
async def test_an_agent_that_answers_in_one_go(stage: Stage) -> None:
    """Nothing has to be watched; nothing said is no reply, and not an empty one."""
    stage.puppet.answer = Replied("now", "s-9", {"total": 2}, "a note")
    assert await stage.turn() == Done(reply="now", session_id="s-9", usage={"total": 2}, output="a note")
    stage.puppet.answer = Replied(None)
    result = await stage.turn()
    assert isinstance(result, Done) and result.reply is None
    stage.puppet.answer = Replied("")
    result = await stage.turn()
    assert isinstance(result, Done) and result.reply == ""


@virtual
async def test_an_agent_that_proves_no_more_than_accepted(stage: Stage) -> None:
    """Nobody waits for what cannot come, and success is said only as far as it is known."""
    stage.puppet.proves = "accepted"
    assert await stage.turn() == Done("accepted", session_id="s-1")
    assert stage.puppet.looks == []


@virtual
async def test_a_receipt_ends_the_turn_at_once(stage: Stage) -> None:
    """The agent's own word: no look has to confirm it, and its text comes before the history's."""
    posting = asyncio.create_task(stage.post_after(90 * SECOND, "finished", "my own words", {"total_tokens": 9}))
    began = stage.clock.read().monotonic
    assert await stage.turn() == Done(reply="my own words", usage={"total": 9}, session_id="s-1")
    assert stage.clock.read().monotonic - began == 90 * SECOND
    assert await posting == "taken"


@virtual
async def test_a_receipt_without_text_leaves_the_reply_to_the_history(stage: Stage) -> None:
    """Receipt's text, else the session's history, else nothing."""
    stage.puppet.sights = at((MINUTE, Finished("from the history", {"input": 1})))
    posting = asyncio.create_task(stage.post_after(MINUTE, "finished"))
    assert await stage.turn() == Done(reply="from the history", usage={"input": 1}, session_id="s-1")
    await posting
    stage.puppet.sights = at()
    posting = asyncio.create_task(stage.post_after(MINUTE, "finished"))
    result = await stage.turn(make_fire(run_id=42))
    assert isinstance(result, Done) and result.reply is None
    await posting


@virtual
async def test_a_receipt_that_says_started_is_a_sign_of_life(stage: Stage) -> None:
    """From then on the confirmation is satisfied."""
    posting = asyncio.create_task(stage.post_after(MINUTE, "started"))
    stage.puppet.sights = at((HOUR, Finished("late")))
    assert await stage.turn() == Done(reply="late", session_id="s-1")
    assert stage.ladder.rungs == ["sent", "accepted", "started"]
    await posting


@virtual
async def test_a_receipt_that_says_accepted_is_none(stage: Stage) -> None:
    """That was known already."""
    posting = asyncio.create_task(stage.post_after(MINUTE, "accepted"))
    assert isinstance(await stage.turn(), Unconfirmed)
    await posting


@virtual
async def test_an_error_in_a_receipt_is_a_failure(stage: Stage) -> None:
    """Even if the session looks finished: only the agent knows what it did."""
    posting = asyncio.create_task(stage.post_after(MINUTE, "started", "half of it", None, "no such\nfile"))
    stage.puppet.sights = at((MINUTE, Finished("fine")))
    assert await stage.turn() == Failed("no such file", rung="started", output="half of it", session_id="s-1")
    await posting


@virtual
async def test_a_receipt_while_the_answer_is_still_on_its_way(stage: Stage) -> None:
    """A fast agent, a slow server: the receipt counts, even if the server then says that it failed."""
    stage.puppet.takes = MINUTE
    posting = asyncio.create_task(stage.post_after(SECOND, "finished", "done"))
    assert await stage.turn() == Done(reply="done", session_id="s-1")
    await posting
    stage.puppet.answer = Failed("HTTP 500")
    posting = asyncio.create_task(stage.post_after(SECOND, "finished", "done"))
    assert await stage.turn() == Done(reply="done")
    await posting


@virtual
async def test_a_receipt_beside_an_answer_in_one_go(stage: Stage) -> None:
    """Its text is the reply, its error is an error, and what the turn used is what the program says."""
    stage.puppet.answer, stage.puppet.takes = Replied("printed", "s-2", {"input": 1}), MINUTE
    posting = asyncio.create_task(stage.post_after(SECOND, "finished", "posted", {"input": 0, "cost": 0}))
    assert await stage.turn() == Done(reply="posted", session_id="s-2", usage={"input": 1})
    await posting
    posting = asyncio.create_task(stage.post_after(SECOND, "finished", None, None, "it went wrong"))
    assert await stage.turn() == Failed("it went wrong", rung="finished", usage={"input": 1})
    await posting


@virtual
async def test_an_attempt_after_a_late_receipt_sends_nothing(stage: Stage) -> None:
    """The first attempt was cut off and finished after all: the second finds the proof, and the agent is left alone."""
    assert await stage.post("finished", "done meanwhile") == "late"
    assert await stage.turn(make_fire(attempt=2)) == Done(reply="done meanwhile")
    assert stage.puppet.turns == [] and stage.ladder.rungs == []


@virtual
async def test_a_late_error_does_not_fail_the_next_attempt(stage: Stage) -> None:
    """It was about the attempt before."""
    await stage.post("finished", None, None, "it went wrong")
    stage.puppet.answer = Replied("now it works")
    assert await stage.turn(make_fire(attempt=2)) == Done(reply="now it works")


@virtual
async def test_the_agent_is_given_the_receipts_address(stage: Stage) -> None:
    """Unless the fire brought one."""
    stage.puppet.answer = Replied("x")
    await stage.turn()
    await stage.turn(make_fire(receipt_url="https://elsewhere/"))
    urls = [turn.fire.receipt_url for turn in stage.puppet.turns]
    assert urls == [f"https://here/api/runs/42/receipt?token={stage.receipts.token(42)}", "https://elsewhere/"]


@virtual
async def test_the_session_of_the_schedule(stage: Stage) -> None:
    """A persistent turn goes on with it; an ephemeral one neither sees nor replaces it."""
    stage.session_id, stage.puppet.answer = "mine", Replied("x", "mine")
    assert await stage.turn() == Done(reply="x", session_id="mine")
    stage.puppet.answer = Replied("x", "another")
    assert await stage.turn(persistSession=False) == Done(reply="x")
    assert [(turn.session_id, turn.is_persistent) for turn in stage.puppet.turns] == [("mine", True), (None, False)]


@virtual
async def test_a_new_session_is_not_lost_with_an_unconfirmed_turn(stage: Stage) -> None:
    """The result carries it, whatever became of the turn."""
    stage.session_id = "old"
    result = await stage.turn()
    assert isinstance(result, Unconfirmed) and result.session_id == "s-1"
    for answer in (Busy("Session busy", "s-2"), Throttled("later", 5, "s-2"), Failed("no", session_id="s-2")):
        stage.puppet.answer = answer
        assert await stage.turn() == answer
        once = await stage.turn(persistSession=False)
        assert isinstance(once, type(answer)) and once.session_id is None


@virtual
async def test_a_new_session_is_not_lost_with_a_turn_that_was_cancelled(stage: Stage) -> None:
    """It has no result: the session is remembered until one has, or a person names another."""
    stage.session_id, stage.puppet.sights = "old", at((0, Working()))
    await _cancelled(stage)
    stage.puppet.answer = Replied("x")
    assert await stage.turn() == Done(reply="x", session_id="s-1")
    stage.puppet.answer = Accepted("s-2", MINUTE)
    await _cancelled(stage)
    stage.session_id, stage.puppet.answer = "edited", Replied("x")
    await stage.turn()
    assert [turn.session_id for turn in stage.puppet.turns] == ["old", "s-1", "old", "edited"]


async def _cancelled(stage: Stage) -> None:
    turn = asyncio.create_task(stage.turn())
    await stage.clock.sleep(HOUR)
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn


@virtual
async def test_cancelled_and_proven_to_have_ended(stage: Stage) -> None:
    """The deadline: told to stop, seen to have stopped, cleaned up, and only then cancelled."""
    stage.puppet.sights = at((0, Working()))
    turn = asyncio.create_task(stage.turn())
    await stage.clock.sleep(HOUR)
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    assert (stage.puppet.cancels, stage.puppet.cleans) == (1, 1)


@virtual
async def test_cancelled_and_not_to_be_ended(stage: Stage) -> None:
    """Said to be still running, until it is seen to end."""
    stage.puppet.ends = False
    stage.puppet.sights = at((0, Working()), (3 * HOUR, Finished("after all")))
    turn = asyncio.create_task(stage.turn())
    await stage.clock.sleep(HOUR)
    turn.cancel()
    with pytest.raises(StillRunning) as still:
        await turn
    await stage.clock.sleep(HOUR)
    assert not still.value.ended.done() and stage.puppet.cleans == 0
    await still.value.ended
    assert 3 * HOUR <= stage.clock.read().monotonic <= 3 * HOUR + MINUTE
    assert stage.puppet.cleans == 1


@virtual
async def test_a_leftover_that_stays_quiet_is_taken_for_ended(stage: Stage) -> None:
    """Out of sight is not quiet: that clock starts anew when it is seen again."""
    stage.puppet.ends = False
    stage.puppet.sights = at((0, Working()), (HOUR, NotVisible()), (2 * HOUR, NoSign()))
    turn = asyncio.create_task(stage.turn())
    await stage.clock.sleep(MINUTE)
    turn.cancel()
    with pytest.raises(StillRunning) as still:
        await turn
    await still.value.ended
    assert 2 * HOUR + LEFT_QUIET <= stage.clock.read().monotonic + MINUTE <= 2 * HOUR + LEFT_QUIET + 2 * MINUTE


@virtual
async def test_closing_lets_go_of_leftovers(stage: Stage) -> None:
    """At shutdown nobody watches on."""
    stage.puppet.ends, stage.puppet.sights = False, at((0, Working()))
    turn = asyncio.create_task(stage.turn())
    await stage.clock.sleep(MINUTE)
    turn.cancel()
    with pytest.raises(StillRunning) as still:
        await turn
    await stage.action.close()
    assert not still.value.ended.done()
    still.value.ended.cancel()


@virtual
async def test_fenced_off(stage: Stage) -> None:
    """The run was taken from this node: it stops at whichever rung it hears of it, and reports nothing."""
    stage.puppet.sights = at((0, Working()))
    for rung in ("sent", "accepted", "started"):
        stage.ladder.refuses = {rung: FencedOff("taken")}  # type: ignore[dict-item]
        with pytest.raises(FencedOff):
            await stage.turn()


@virtual
async def test_an_unknown_agent(stage: Stage) -> None:
    """The sentence names those there are, when it is written and when it is due."""
    wrong = stage.action.check(Prompt("hi", "nobody"))
    assert wrong is not None and wrong.field == "agent"
    assert "[agents.nobody]" in wrong.message and wrong.message.endswith("default, echo")
    assert await stage.turn(agent="nobody") == Failed(wrong.message, permanent=True)
    assert await stage.action.ask(Prompt("hi", "nobody"), make_fire()) is None


@virtual
async def test_a_model_that_would_be_an_option(stage: Stage) -> None:
    """Programs get it on their command line."""
    for model in ("--yolo", " --yolo", "a\nb", ""):
        wrong = stage.action.check(Prompt("hi", "echo", session_config={"model": model}))
        assert wrong is not None and "write the name of a model" in wrong.message, model
    assert stage.action.check(Prompt("hi", "echo", session_config={"model": "openai/gpt-5:high"})) is None


@virtual
async def test_a_config_the_agent_cannot_use(stage: Stage) -> None:
    """Refused with the agent's own words; what it does not know at all is refused when it is due, too."""
    unfit = stage.action.check(Prompt("hi", session_config={"bad": 1}))
    assert unfit == FieldError("agent", "'default' cannot be used: this will not do")
    wrong = stage.action.check(Prompt("hi", session_config={"worse": 1}))
    assert wrong is not None and "sessionConfig.worse is not supported" in wrong.message
    assert await stage.turn(worse=1) == Failed(wrong.message, permanent=True)
    assert stage.puppet.turns == []


@virtual
async def test_another_kind_of_action_is_a_fault_of_the_wiring(stage: Stage) -> None:
    """It says so."""
    with pytest.raises(TypeError, match="got Command"):
        stage.action.check(Command(("true",)))


@virtual
async def test_asking_after_a_crash(stage: Stage) -> None:
    """The receipt is proof; without one the agent is asked, with the session of the schedule."""
    stage.session_id, stage.puppet.fate = "mine", StillWorking()
    assert await stage.action.ask(Prompt("hi"), make_fire()) == StillWorking()
    assert stage.puppet.asked[0].session_id == "mine"
    stage.puppet.fate = Replied("from the history", "mine", {"input": 1})
    done = Done(reply="from the history", session_id="mine", usage={"input": 1})
    assert await stage.action.ask(Prompt("hi"), make_fire()) == done
    stage.puppet.fate = Broken("out of tokens")
    assert await stage.action.ask(Prompt("hi"), make_fire()) == Failed("out of tokens", rung="started")
    await stage.post("finished", "in my own words")
    assert await stage.action.ask(Prompt("hi"), make_fire()) == Done(reply="in my own words")
    assert stage.puppet.turns == []


@virtual
async def test_the_echo_agent(stage: Stage) -> None:
    """Says what it was asked, marked as the scheduler's; it has no effect, so after a crash it can be asked again."""
    assert await stage.turn(agent="echo") == Done(reply="[scheduler:standup] what is new?", usage={"cost": 0.0})
    assert stage.ladder.rungs == ["sent"]
    assert await stage.action.ask(Prompt("hi", "echo"), make_fire()) == NeverReceived()
