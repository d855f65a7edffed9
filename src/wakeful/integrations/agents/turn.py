"""The turn action: sends a prompt to an agent, and waits until the result is proven.

The ladder: `sent` before the prompt is sent, `accepted` when the agent accepted it, `started` at the first sign of
life, `finished` when its end is proven, by a receipt or by polling the agent. While the agent is visibly working, the
run's own timeout applies. Without a sign of life or a proven end for `confirm_within`, the run is unconfirmed.
"""

import asyncio
import logging
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Final, TypeAlias

from wakeful.core.errors import FieldError
from wakeful.core.run.results import Busy, Done, Failed, Result, Throttled, Unconfirmed
from wakeful.core.run.runs import RungName
from wakeful.core.run.traces import SpanId, turn_of
from wakeful.core.schedule.actions import ActionSpec, Prompt
from wakeful.core.time.instants import MINUTE, SECOND, Duration, format_duration
from wakeful.integrations.actions.cancellation import run_to_end
from wakeful.integrations.actions.receipts import Inbox, Receipts
from wakeful.integrations.agents.config import is_persistent, wrong_config
from wakeful.ports.action import CannotBegin, Fire, Ladder, StillRunning, Told
from wakeful.ports.agent import (
    Accepted,
    Agent,
    Broken,
    Exchange,
    Finished,
    NoSign,
    NotVisible,
    ProofGone,
    Replied,
    Sight,
    Toolbox,
    Turn,
    WentIdle,
    Working,
)
from wakeful.ports.clock import Clock

log = logging.getLogger("wakeful.integrations.agents")

POLL_FIRST: Final[Duration] = 100
POLL_LAST: Final[Duration] = 5 * SECOND
"""Frequent at first, because a short turn is busy only for a moment; then less and less often."""

LEFT_QUIET: Final[Duration] = 5 * MINUTE
"""How long a turn that could not be cancelled must be idle to count as ended."""

IDLE_TEXT: Final = "idle, no reply read"
"""The output of a run that is proven only by going idle."""

_REMEMBERED_MAX: Final = 1_000

Sessions: TypeAlias = Callable[[Fire], Awaitable[str | None]]
"""The session that the fire's schedule continues with."""


class TurnAction:
    """Performs `Prompt`."""

    is_local = False

    def __init__(
        self,
        agents: Mapping[str, Agent],
        clock: Clock,
        *,
        sessions: Sessions,
        receipts: Receipts,
        begun_elsewhere: Sessions | None = None,
        toolbox: Toolbox | None = None,
    ) -> None:
        """`begun_elsewhere` returns the name of the other node that started the session of a fire's schedule."""
        self._toolbox = toolbox
        self._agents = agents
        self._clock = clock
        self._sessions = sessions
        self._begun_elsewhere = begun_elsewhere
        self._receipts = receipts
        # Sessions created in cancelled attempts, which have no result: (the given session, the new one).
        self._remembered: OrderedDict[int, tuple[str | None, str]] = OrderedDict()
        self._watches: set[asyncio.Task[None]] = set()
        self._turns: Counter[int] = Counter()  # running turns, by the identity of the agent
        self._retired: list[Agent] = []  # removed from the settings, still running turns
        self._closings: set[asyncio.Future[None]] = set()

    @property
    def agents(self) -> Mapping[str, Agent]:
        """The current agents, by name."""
        return self._agents

    def proves(self, spec: ActionSpec) -> RungName:
        agent = self._agents.get(_expect(spec).agent)
        return "finished" if agent is None else agent.proves

    def check(self, spec: ActionSpec) -> FieldError | None:
        return check_prompt(_expect(spec), self._agents)

    async def perform(self, spec: ActionSpec, fire: Fire, ladder: Ladder) -> Result:
        prompt = _expect(spec)
        wrong = _wrong(prompt, self._agents)
        if wrong is not None:
            return Failed(wrong.message, permanent=True)
        agent = self._agents[prompt.agent]
        with self._at_work(agent), self._receipts.expecting(fire.run_id) as inbox:
            given = await self._sessions(fire) if is_persistent(prompt.session_config) else None
            if inbox.receipt is not None and inbox.receipt.is_success:  # an earlier attempt did finish
                return inbox.receipt.result()
            node = await self._begun_elsewhere(fire) if given is not None and self._begun_elsewhere else None
            turn = self._turn(prompt, fire, given)
            if turn.session_id == given:  # else one that an attempt started here
                turn = turn._replace(session_node=node)
            return await self._take(agent, turn, given, inbox, ladder)

    async def ask(self, spec: ActionSpec, fire: Fire) -> Told:
        """The result of a turn interrupted by a crash: from the agent's receipt, else from the agent."""
        prompt = _expect(spec)
        receipt, agent = self._receipts.kept(fire.run_id), self._agents.get(prompt.agent)
        if receipt is not None and receipt.is_success:
            return receipt.result()
        if agent is None:
            return None
        given = await self._sessions(fire) if is_persistent(prompt.session_config) else None
        turn = self._turn(prompt, fire, given)
        with self._at_work(agent):
            fate = await agent.ask(turn)
        match fate:
            case Replied():
                return self._handed_back(turn, given, _replied(fate, Inbox(receipt)))
            case Broken(error=error):
                return Failed(error, rung="started")
            case _:
                return fate

    async def close(self) -> None:
        for watch in tuple(self._watches):
            watch.cancel()
        if self._watches:
            await asyncio.wait(tuple(self._watches))
        if self._closings:
            await asyncio.wait(tuple(self._closings))
        for agent in (*self._agents.values(), *self._retired):
            await agent.close()

    def replace_agents(self, agents: Mapping[str, Agent]) -> None:
        """Use these agents from now on. A removed one finishes its running turns and is then closed."""
        kept = {id(agent) for agent in agents.values()}
        self._retired += [agent for agent in self._agents.values() if id(agent) not in kept]
        self._agents = agents
        self._close_retired()

    @contextmanager
    def _at_work(self, agent: Agent) -> Iterator[None]:
        """Within this context, the agent is not closed."""
        self._turns[id(agent)] += 1
        try:
            yield
        finally:
            self._turns[id(agent)] -= 1
            if not self._turns[id(agent)]:
                del self._turns[id(agent)]
                self._close_retired()

    def _close_retired(self) -> None:
        idle = [agent for agent in self._retired if id(agent) not in self._turns]
        self._retired = [agent for agent in self._retired if id(agent) in self._turns]
        for agent in idle:
            closing = asyncio.ensure_future(agent.close())
            self._closings.add(closing)
            closing.add_done_callback(self._closed)

    def _closed(self, closing: "asyncio.Future[None]") -> None:
        self._closings.discard(closing)
        if not closing.cancelled() and closing.exception() is not None:
            log.warning("a removed agent could not be closed: %s", closing.exception())

    def _turn(self, prompt: Prompt, fire: Fire, given: str | None) -> Turn:
        if fire.receipt_url is None:
            fire = fire._replace(receipt_url=self._receipts.url(fire.run_id))
        if fire.traceparent is not None:
            fire = fire._replace(traceparent=turn_of(SpanId.read(fire.traceparent)).traceparent)
        known = self._remembered.get(fire.schedule_id)
        session_id = known[1] if known is not None and known[0] == given else given
        config = prompt.session_config
        return Turn(prompt.text, fire, session_id, is_persistent(config), config, prompt.memory, toolbox=self._toolbox)

    async def _take(self, agent: Agent, turn: Turn, given: str | None, inbox: Inbox, ladder: Ladder) -> Result:
        """Perform the turn to its proven end, and clean up."""
        exchange = agent.begin(turn)
        try:
            result = await self._go(exchange, agent, turn, given, inbox, ladder)
        except asyncio.CancelledError:
            if not await run_to_end(exchange.cancel()):
                message = "the agent was cancelled, but there is no proof that it stopped"
                raise StillRunning(message, self._watch(exchange, agent)) from None
            await run_to_end(exchange.clean_up(is_over=True))
            raise
        except CannotBegin:
            await run_to_end(exchange.clean_up(is_over=True))
            raise
        except BaseException:  # fenced off, or recording failed: the turn is no longer ours to end
            await run_to_end(exchange.clean_up(is_over=False))
            raise
        await run_to_end(exchange.clean_up(is_over=_is_over(result)))
        return self._handed_back(turn, given, result)

    async def _go(
        self, exchange: Exchange, agent: Agent, turn: Turn, given: str | None, inbox: Inbox, ladder: Ladder
    ) -> Result:
        answer = await exchange.send(ladder)
        match answer:
            case Replied():
                return _replied(answer, inbox)
            case Accepted():
                self._remember(turn, given, answer.session_id)  # a cancelled turn returns no result
                return await self._prove(exchange, agent, answer, inbox, ladder)
            case _:
                return _final(inbox) or answer

    async def _prove(
        self, exchange: Exchange, agent: Agent, accepted: Accepted, inbox: Inbox, ladder: Ladder
    ) -> Result:
        """Poll, and accept receipts, until the end of an accepted turn is proven."""
        await ladder.climb("accepted")
        if agent.proves == "accepted":
            return _final(inbox) or Done("accepted", session_id=accepted.session_id)
        quiet_since = self._clock.read().monotonic
        is_alive, poll = False, POLL_FIRST
        while True:
            inbox.bell.clear()
            sight = await exchange.look()
            ended = _ended(sight, inbox, accepted.session_id)
            if ended is not None:
                return ended
            now = self._clock.read().monotonic
            if isinstance(sight, Working) or inbox.is_alive:
                quiet_since = now
                if not is_alive:
                    is_alive = True
                    await ladder.climb("started")
            elif is_alive and isinstance(sight, NotVisible):  # it was working, and nothing shows that it stopped
                quiet_since = now
            left = quiet_since + accepted.confirm_within - now
            if left <= 0:
                return Unconfirmed(_unproven(accepted, sight, is_alive=is_alive), accepted.session_id)
            await self._clock.wait(inbox.bell, min(poll, left))
            poll = min(poll * 3 // 2, POLL_LAST)

    def _remember(self, turn: Turn, given: str | None, session_id: str) -> None:
        """Remember the session until a result returns it."""
        if turn.is_persistent and session_id != given:
            self._remembered[turn.fire.schedule_id] = (given, session_id)
            while len(self._remembered) > _REMEMBERED_MAX:
                self._remembered.popitem(last=False)

    def _handed_back(self, turn: Turn, given: str | None, result: Result) -> Result:
        if not isinstance(result, Done | Failed | Busy | Throttled | Unconfirmed):
            return result
        known = self._remembered.pop(turn.fire.schedule_id, None) if turn.is_persistent else None
        made = known[1] if known is not None and known[0] == given else None  # a person may have set another one since
        session_id = result.session_id or made
        return replace(result, session_id=session_id if turn.is_persistent else None)

    def _watch(self, exchange: Exchange, agent: Agent) -> "asyncio.Future[None]":
        """A future that resolves when a turn that could not be cancelled has ended."""
        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        watch = asyncio.ensure_future(self._until_ended(exchange, agent, ended))
        self._watches.add(watch)
        watch.add_done_callback(self._watches.discard)
        return ended

    async def _until_ended(self, exchange: Exchange, agent: Agent, ended: "asyncio.Future[None]") -> None:
        with self._at_work(agent):
            await self._until_quiet(exchange)
            await exchange.clean_up(is_over=True)
        if not ended.done():
            ended.set_result(None)

    async def _until_quiet(self, exchange: Exchange) -> None:
        quiet_since = self._clock.read().monotonic
        while True:
            await self._clock.sleep(POLL_LAST)
            sight = await exchange.look()
            now = self._clock.read().monotonic
            if isinstance(sight, Working | NotVisible):
                quiet_since = now
            if not isinstance(sight, Working | NotVisible | NoSign) or now - quiet_since >= LEFT_QUIET:
                return


def check_prompt(prompt: Prompt, agents: Mapping[str, Agent]) -> FieldError | None:
    """Why none of these agents can handle this prompt; None if one can."""
    wrong = _wrong(prompt, agents)
    if wrong is not None:
        return wrong
    unfit = agents[prompt.agent].check(prompt.session_config)
    return None if unfit is None else FieldError("agent", f"'{prompt.agent}' cannot be used: {unfit}")


def _wrong(prompt: Prompt, agents: Mapping[str, Agent]) -> FieldError | None:
    """Cheap checks: nothing here waits for a disk or an import."""
    name, agent = prompt.agent, agents.get(prompt.agent)
    if agent is None:
        known = ", ".join(sorted(agents)) or "none"
        cure = f"add [agents.{name}] to the settings, or use one of these: {known}"
        return FieldError("agent", f"there is no agent '{name}'; {cure}")
    wrong = wrong_config(prompt.session_config, agent.knows)
    return None if wrong is None else FieldError("sessionConfig", f"agent '{name}': {wrong}")


def _expect(spec: ActionSpec) -> Prompt:
    if not isinstance(spec, Prompt):
        raise TypeError(f"an action for Prompt got {type(spec).__name__}")
    return spec


def _is_over(result: Result) -> bool:
    """Whether no part of the turn can still be running."""
    return not isinstance(result, Unconfirmed) and not (isinstance(result, Done) and result.rung != "finished")


def _final(inbox: Inbox) -> Done | Failed | None:
    receipt = inbox.receipt
    return receipt.result() if receipt is not None and receipt.is_final else None


def _replied(replied: Replied, inbox: Inbox) -> Done | Failed:
    """Merge a reply with a receipt: the receipt's error and text take precedence. Its usage counts only if the program
    reported none: an agent must not decide what it cost."""
    receipt = inbox.receipt
    usage = replied.usage if replied.usage is not None or receipt is None else receipt.usage
    if receipt is not None and receipt.error is not None:
        return replace(receipt.result(), usage=usage)
    text = replied.text if inbox.text is None else inbox.text
    if text == "" and receipt is not None and receipt.is_final:
        text = None  # it printed nothing, and said in another way that it has finished
    return Done(reply=text, usage=usage, session_id=replied.session_id, output=replied.output, refused=replied.refused)


def _ended(sight: Sight, inbox: Inbox, session_id: str) -> Result | None:
    """The result of the turn, if proven: by a receipt first, because only the agent itself knows what it did."""
    receipt = inbox.receipt
    if receipt is not None and receipt.error is not None:
        return receipt.result()
    match sight:
        case Finished(reply=reply, usage=usage):
            return _replied(Replied(reply, session_id, usage), inbox)
        case WentIdle():
            return _final(inbox) or Done("started", output=IDLE_TEXT, session_id=session_id)
        case Broken(error=error):
            return _final(inbox) or Failed(error, rung="started", session_id=session_id)
        case ProofGone(error=error):
            return _final(inbox) or Unconfirmed(error, session_id)
        case _:
            return _final(inbox)


def _unproven(accepted: Accepted, sight: Sight, *, is_alive: bool) -> str:
    within = format_duration(accepted.confirm_within)
    what = f"no answer within {within} after it started working" if is_alive else f"no activity within {within}"
    why = f": {sight.why}" if isinstance(sight, NoSign) and sight.why is not None else ""
    return f"accepted, and {what}{why}; look at session {accepted.session_id[:100]}"
