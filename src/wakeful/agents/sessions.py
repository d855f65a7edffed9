"""The sessions agent: a server that keeps sessions and takes messages for them over HTTP.

The server answers 200 before its model is called, so 200 is `accepted` and no more. What happens then is watched from
outside: the session is seen busy and then idle, or its history shows our message and, after it, a terminal event. Idle
throughout proves nothing. When the server was away in between, busy-then-idle proves nothing either: a restarted server
is idle too.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from wakeful.adapters.exchange import NoAnswer, NoConnection, Response, is_web_address, within
from wakeful.agents.history import Story, tell
from wakeful.agents.reply import marked
from wakeful.agents.session_server import SessionServer, SessionsSettings, State
from wakeful.core.instants import SECOND, Duration
from wakeful.core.results import Busy, Failed, Throttled
from wakeful.core.runs import RungName
from wakeful.ports.action import AtWork, Ladder, NeverGot
from wakeful.ports.agent import (
    Accepted,
    Answer,
    Broken,
    Exchange,
    Fate,
    Finished,
    Gone,
    Quiet,
    Replied,
    Sight,
    Turn,
    Unseen,
    Working,
)
from wakeful.ports.clock import Clock
from wakeful.ports.exchange import ExchangeListener

__all__ = ["SessionsAgent", "SessionsSettings"]

BUSY_TEXT: Final = "Session busy"
"""The words clients of the session scheduler know."""

CANCEL_WITHIN: Final[Duration] = 8 * SECOND

_CANCEL_POLL: Final[Duration] = 200


class SessionsAgent:
    """An agent behind a server of sessions."""

    knows: Mapping[str, type] = {"model": str, "cwd": str}

    def __init__(self, settings: SessionsSettings, clock: Clock, listener: ExchangeListener | None = None) -> None:
        self._settings = settings
        self._server = SessionServer(settings, clock, listener)

    @property
    def proves(self) -> RungName:
        return self._settings.proves

    def check(self, config: Mapping[str, Any]) -> str | None:
        if not is_web_address(self._settings.url):
            return f"its url '{self._settings.url}' is not a web address; write it like http://127.0.0.1:53000"
        return None

    def begin(self, turn: Turn) -> Exchange:
        return _Exchange(self._server, turn)

    async def ask(self, turn: Turn) -> Fate:
        known = [] if turn.session_id is None else [turn.session_id]
        try:
            # The session may have been made in the attempt that was cut off, and its name lost with it.
            made = await self._server.made_for(turn.fire.slug, is_persistent=turn.is_persistent)
            fates = [await self._ask(turn, session_id) for session_id in dict.fromkeys([*known, *made])]
        except (NoConnection, NoAnswer):
            return None
        telling = [fate for fate in fates if fate is not None and not isinstance(fate, NeverGot)]
        if telling:
            return telling[0]
        return NeverGot() if fates and None not in fates else None

    async def _ask(self, turn: Turn, session_id: str) -> Fate:
        """What one session tells of the turn."""
        slug = turn.fire.slug
        is_busy = (await self._server.state(session_id, slug)).is_busy
        events = await self._server.history.since(session_id, 0, slug)
        if events is None:
            return None
        story = tell(events, turn.fire.idempotency_key)
        if not story.is_found:
            return NeverGot() if story.has_keys else None
        if not story.is_ended:
            return AtWork() if is_busy else None
        if not turn.is_persistent:
            await self._server.delete(session_id, slug)
        return Replied(story.reply, session_id, story.usage) if story.error is None else Broken(story.error)

    async def close(self) -> None:
        await self._server.close()


class _Exchange:
    """One turn with a session of the server."""

    def __init__(self, server: SessionServer, turn: Turn) -> None:
        self._server = server
        self._turn = turn
        self._slug = turn.fire.slug
        self._session_id = turn.session_id if turn.is_persistent else None
        self._is_fresh = False
        self._is_missing = False  # the server does not know the session it was asked to go on with
        self._is_kept = False
        self._is_sent = False
        self._is_accepted = False
        self._mark: int | None = 0  # None: nobody knows where the history ended before, so it proves nothing
        self._was_known = False
        self._was_busy = False
        self._was_away = False

    async def send(self, ladder: Ladder) -> Answer:
        if self._session_id is None:
            refusal = await self._renew()
            if refusal is not None:
                return refusal
        answer = await self._message(ladder)
        if self._is_missing and not self._is_fresh:
            self._server.forget(self._session_id or "")
            refusal = await self._renew()
            if refusal is not None:
                return refusal
            answer = await self._message(ladder)
        return self._with_session(await self._answer(answer))

    async def look(self) -> Sight:
        session_id = self._session_id or ""
        try:
            # The state first: what the history then shows is at least as new.
            state = await self._server.state(session_id, self._slug)
            story = await self._story(session_id)
        except (NoConnection, NoAnswer):
            self._was_away = True
            return Unseen()
        if story.is_ended:
            return Finished(story.reply, story.usage) if story.error is None else Broken(story.error)
        return self._judge(state, story)

    async def cancel(self) -> bool:
        if self._session_id is None or not self._is_sent:
            return True
        try:
            return await within(self._server.clock, CANCEL_WITHIN, self._until_idle(self._session_id))
        except TimeoutError:
            return False

    async def clean_up(self, *, is_over: bool) -> None:
        if self._session_id is None:
            return
        self._server.in_use.discard(self._session_id)
        is_unused = self._is_fresh and not self._is_accepted and not self._is_kept
        if is_unused or (is_over and not self._turn.is_persistent):
            await self._server.delete(self._session_id, self._slug)

    def _with_session(self, answer: Answer) -> Answer:
        """A new session that did not take the prompt now is the one to go on with, if it is there at all."""
        self._is_kept = self._turn.is_persistent and self._is_fresh and not self._is_missing
        if self._is_kept and isinstance(answer, Failed | Busy | Throttled):
            return replace(answer, session_id=self._session_id)
        return answer

    async def _renew(self) -> Failed | Throttled | None:
        made = await self._server.create(self._turn)
        if not isinstance(made, str):
            return made
        self._session_id, self._is_fresh, self._mark = made, True, 0
        return None

    async def _message(self, ladder: Ladder) -> Response | NoConnection | NoAnswer:
        session_id = self._session_id or ""
        if not self._is_fresh:
            self._mark = await self._marked(session_id)
        await ladder.climb("sent")
        self._is_sent = True
        try:
            response = await self._server.message(session_id, self._turn)
        except (NoConnection, NoAnswer) as error:
            return error
        self._is_missing = response.status == 404
        return response

    async def _marked(self, session_id: str) -> int | None:
        try:
            return await self._server.history.mark(session_id, self._slug)
        except (NoConnection, NoAnswer):
            return None

    async def _answer(self, answer: Response | NoConnection | NoAnswer) -> Answer:
        match answer:
            case NoConnection():
                self._is_sent = False
                return Failed(str(answer))
            case NoAnswer():
                # It may have been accepted all the same. If the session shows our message, it was.
                return self._accepted() if await self._shows_ours() else Failed(str(answer))
            case Response(status=409):
                self._is_sent = False
                return Busy(BUSY_TEXT)
            case Response(is_ok=True):
                return await self._read(answer)
            case _:
                self._is_sent = False
                return self._server.failure(answer)

    async def _read(self, response: Response) -> Answer:
        value = await response.json()
        if isinstance(value, dict) and value.get("ok") is False:
            self._is_sent = False
            return Failed(f"the server did not take the prompt: {str(value.get('error'))[:200]}")
        return self._accepted()

    def _accepted(self) -> Accepted:
        self._is_accepted = True
        return Accepted(self._session_id or "", self._server.settings.confirm_within)

    async def _shows_ours(self) -> bool:
        try:
            return (await self._story(self._session_id or "")).is_found
        except (NoConnection, NoAnswer):
            return False

    async def _story(self, session_id: str) -> Story:
        if self._mark is None:
            return Story()
        events = await self._server.history.since(session_id, self._mark, self._slug)
        prompt, slug = self._turn.prompt, self._slug
        return tell(events or (), self._turn.fire.idempotency_key, (prompt, marked(prompt, slug)))

    def _judge(self, state: State, story: Story) -> Sight:
        if not state.is_known and self._was_known:
            return Gone("its session is no longer on the server, and nothing shows how the turn ended")
        self._was_known = self._was_known or state.is_known
        if state.is_busy:
            self._was_busy, self._was_away = True, False
            return Working()
        if state.is_busy is False and self._was_busy:
            if story.has_others and not story.is_found:  # it was busy with someone else's message
                self._was_busy = False
                return Quiet()
            if self._was_away:
                return Gone("the server was away while it worked, and its session has been idle since")
            return Finished(story.reply, story.usage)
        # Counts as busy from the next look on: the state is older than this sign of life.
        self._was_busy = self._was_busy or story.is_alive
        return Working() if story.is_alive else Quiet()

    async def _until_idle(self, session_id: str) -> bool:
        """Tell it to stop, and wait until it has."""
        is_told = False
        while True:
            try:
                is_told = is_told or await self._server.cancel(session_id, self._slug)
                sight = await self.look()
                state = await self._server.state(session_id, self._slug)
            except (NoConnection, NoAnswer):
                return False
            if isinstance(sight, Finished | Broken):
                return True
            if is_told and state.is_busy is False:
                return True
            if not is_told and not isinstance(sight, Working):
                return False
            await self._server.clock.sleep(_CANCEL_POLL)
