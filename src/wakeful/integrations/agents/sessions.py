"""The sessions agent: a server that keeps sessions and accepts messages for them over HTTP.

The server returns 200 before its model is called, so 200 only means `accepted`. The end of a turn is proven by its
history alone: our message and an answer to it, or a terminal event under our key. Busy is a sign of life. Busy and then
idle proves nothing: a turn that failed, or never started, looks the same.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from wakeful.core.run.results import Busy, Failed, Throttled
from wakeful.core.run.runs import RungName
from wakeful.core.time.instants import SECOND, Duration
from wakeful.integrations.agents.history import HistoryVerdict, tell
from wakeful.integrations.agents.history_places import Mark
from wakeful.integrations.agents.reply import marked
from wakeful.integrations.agents.session_server import SessionServer, SessionsSettings, State
from wakeful.integrations.net.exchange import NoAnswer, NoConnection, NoRoom, Response, is_web_address, within
from wakeful.ports.action import CannotBegin, Ladder, NeverReceived, StillWorking
from wakeful.ports.agent import (
    Accepted,
    Answer,
    Broken,
    Exchange,
    Fate,
    Finished,
    NoSign,
    NotVisible,
    ProofGone,
    Replied,
    Sight,
    Turn,
    WentIdle,
    Working,
)
from wakeful.ports.clock import Clock
from wakeful.ports.exchange import ExchangeListener

__all__ = ["SessionsAgent", "SessionsSettings"]

BUSY_TEXT: Final = "Session busy"
"""The wording that clients of the session scheduler expect."""

CANCEL_WITHIN: Final[Duration] = 8 * SECOND

_CANCEL_POLL: Final[Duration] = 200


class SessionsAgent:
    """An agent behind a session server."""

    knows: Mapping[str, type] = {"model": str, "cwd": str}

    def __init__(
        self,
        settings: SessionsSettings,
        clock: Clock,
        listener: ExchangeListener | None = None,
        records: Path | None = None,
    ) -> None:
        self._settings = settings
        self._server = SessionServer(settings, clock, listener, records)

    @property
    def proves(self) -> RungName:
        return "started" if self._settings.proves == "idle" else self._settings.proves

    def check(self, config: Mapping[str, Any]) -> str | None:
        if not is_web_address(self._settings.url):
            return f"its url '{self._settings.url}' is not a web address; write it like http://127.0.0.1:53000"
        return None

    def begin(self, turn: Turn) -> Exchange:
        return _Exchange(self._server, turn)

    async def ask(self, turn: Turn) -> Fate:
        known = [] if turn.session_id is None else [turn.session_id]
        try:
            # The session may have been created in the interrupted attempt, and its id lost.
            made = await self._server.made_for(turn.fire.slug, is_persistent=turn.is_persistent)
            fates = [await self._ask(turn, session_id) for session_id in dict.fromkeys([*known, *made])]
        except (NoConnection, NoAnswer):
            return None
        reporter = [fate for fate in fates if fate is not None and not isinstance(fate, NeverReceived)]
        if reporter:
            return reporter[0]
        return NeverReceived() if fates and None not in fates else None

    async def _ask(self, turn: Turn, session_id: str) -> Fate:
        """The turn's result according to one session."""
        slug, key = turn.fire.slug, turn.fire.idempotency_key
        # Read the state first: the history read after it is at least as new.
        is_busy = (await self._server.state(session_id, slug)).is_busy
        mark = await self._server.sent(session_id, key)
        events = await self._server.history.since(session_id, mark or (), slug)
        if events is None:
            return None
        verdict = tell(events, key, () if mark is None else _texts(turn))
        if not verdict.is_found:
            return NeverReceived() if verdict.has_keys else None
        if not (verdict.is_proven or verdict.error or (verdict.is_answered and is_busy is False)):
            return StillWorking() if is_busy else None
        if not turn.is_persistent:
            await self._server.delete(session_id, slug)
        return Replied(verdict.reply, session_id, verdict.usage) if verdict.error is None else Broken(verdict.error)

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
        self._is_missing = False  # the server does not know the given session
        self._is_kept = False
        self._is_sent = False
        self._is_accepted = False
        self._mark: Mark = ()
        self._earlier: Mark | None = None  # where the history ended before an earlier attempt sent our message
        self._seen: HistoryVerdict | None = None  # at the last poll of an idle session
        self._was_known = False
        self._was_busy = False
        self._was_away = False

    async def send(self, ladder: Ladder) -> Answer:
        if self._session_id is None:  # or a session created before a crash, whose id was lost
            self._session_id = await self._server.sent_to(self._turn)
        if self._session_id is None:
            refusal = await self._renew()
            if refusal is not None:
                return refusal
        answer = await self._message(ladder)
        if self._is_missing and not self._is_fresh:
            await self._server.forget(self._session_id or "")
            refusal = await self._renew()
            if refusal is not None:
                return refusal
            answer = await self._message(ladder)
        return self._with_session(await self._answer(answer))

    async def look(self) -> Sight:
        session_id = self._session_id or ""
        try:
            # Read the state first: the history read after it is at least as new.
            state = await self._server.state(session_id, self._slug)
            verdict = await self._verdict(session_id)
        except (NoConnection, NoAnswer):
            self._was_away = True
            return NotVisible()
        return self._judge(state, verdict)

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
        await self._server.records.note_finding(self._server.history.finding)
        is_unused = self._is_fresh and not self._is_accepted and not self._is_kept
        if is_unused or (is_over and not self._turn.is_persistent):
            await self._server.delete(self._session_id, self._slug)

    def _with_session(self, answer: Answer) -> Answer:
        """Continue with a new session even if it did not accept the prompt, if it exists at all."""
        self._is_kept = self._turn.is_persistent and self._is_fresh and not self._is_missing
        if self._is_kept and isinstance(answer, Failed | Busy | Throttled):
            return replace(answer, session_id=self._session_id)
        return answer

    async def _renew(self) -> Failed | Throttled | None:
        made = await self._server.create(self._turn)
        if not isinstance(made, str):
            return made
        self._session_id, self._is_fresh, self._mark = made, True, ()
        return None

    async def _message(self, ladder: Ladder) -> Response | NoConnection | NoAnswer:
        session_id = self._session_id or ""
        self._server.in_use.add(session_id)
        if not self._is_fresh:
            self._earlier = await self._server.sent(session_id, self._turn.fire.idempotency_key)
            self._mark = await self._server.history.mark(session_id, self._slug)
        await ladder.climb("sent")
        self._is_sent = True
        try:
            response = await self._server.message(session_id, self._turn, self._mark)
        except (NoConnection, NoAnswer) as error:
            return error
        self._is_missing = response.status == 404
        return response

    async def _answer(self, answer: Response | NoConnection | NoAnswer) -> Answer:
        match answer:
            case NoRoom():
                raise CannotBegin(str(answer))
            case NoConnection():
                return await self._refused(Failed(str(answer)))
            case NoAnswer():
                # It may have been accepted anyway: check whether the session contains our message.
                return self._accepted() if await self._shows_ours() else Failed(str(answer))
            case Response(status=409):
                return self._accepted() if await self._is_busy_with_ours() else await self._refused(Busy(BUSY_TEXT))
            case Response(is_ok=True):
                return await self._read(answer)
            case _:
                return await self._refused(self._server.failure(answer))

    async def _refused(self, answer: Answer) -> Answer:
        """Record that none of our turns is running in the session."""
        self._is_sent = False
        await self._server.refused(self._session_id or "", self._turn)
        return answer

    async def _is_busy_with_ours(self) -> bool:
        """Whether the session is busy with our own message, sent before a crash. Its history shows it under our key, or
        as the last message without an answer; or our records show that we sent it, and the list shows our schedule as
        busy."""
        session_id, earlier = self._session_id or "", self._earlier
        if earlier is None and self._turn.fire.attempt == 1:
            return False
        self._mark = earlier or ()
        try:
            verdict = await self._verdict(session_id)
            if (
                verdict is not None
                and verdict.is_found
                and (verdict.has_keys or earlier is not None or not verdict.is_over)
            ):
                return True
            return earlier is not None and await self._server.is_busy_for(session_id, self._slug)
        except (NoConnection, NoAnswer):
            return False

    async def _read(self, response: Response) -> Answer:
        value = await response.json()
        if isinstance(value, dict) and value.get("ok") is False:
            said = str(value.get("error"))[:200]
            return await self._refused(Failed(f"the server did not accept the prompt: {said}"))
        return self._accepted()

    def _accepted(self) -> Accepted:
        self._is_accepted = True
        return Accepted(self._session_id or "", self._server.settings.confirm_within)

    async def _shows_ours(self) -> bool:
        try:
            verdict = await self._verdict(self._session_id or "")
        except (NoConnection, NoAnswer):
            return False
        return verdict is not None and verdict.is_found

    async def _verdict(self, session_id: str) -> HistoryVerdict | None:
        """The verdict of the history since the mark; None if it cannot be read."""
        events = await self._server.history.since(session_id, self._mark, self._slug)
        return None if events is None else tell(events, self._turn.fire.idempotency_key, _texts(self._turn))

    def _judge(self, state: State, verdict: HistoryVerdict | None) -> Sight:
        if verdict is not None and verdict.error is not None:
            return Broken(verdict.error)
        if verdict is not None and (verdict.is_proven or self._is_settled(state, verdict)):
            return Finished(verdict.reply, verdict.usage)
        if not state.is_known and self._was_known:
            return ProofGone("its session is no longer on the server, and nothing shows how the turn ended")
        self._was_known = self._was_known or state.is_known
        has_moved = verdict is not None and verdict.is_alive and verdict != self._seen
        self._seen = None if state.is_busy else verdict
        if state.is_busy:
            self._was_busy, self._was_away = True, False
        if state.is_busy or has_moved or (state.is_busy is None and verdict is not None and verdict.is_alive):
            return Working()
        is_end = verdict is None and state.is_busy is False and self._was_busy and not self._was_away
        if is_end and self._server.settings.proves == "idle":
            return WentIdle()
        return NoSign(self._missing(verdict))

    def _is_settled(self, state: State, verdict: HistoryVerdict) -> bool:
        """Whether there is an answer and nothing after it: it was there at the last poll, and the session was not busy
        since. One poll is not enough, because a server may report busy late."""
        return verdict.is_answered and not state.is_busy and verdict == self._seen

    def _missing(self, verdict: HistoryVerdict | None) -> str | None:
        """Why the turn is not proven."""
        if verdict is None:
            finding = self._server.history.finding
            away = "the server was unreachable while it worked, and " if self._was_away and self._was_busy else ""
            why = "" if finding is None or finding.is_readable else f" ({finding.words})"
            return f"{away}its history cannot be read{why}"
        return (
            "its history contains the prompt, but no answer" if verdict.is_found else "the prompt is not in its history"
        )

    async def _until_idle(self, session_id: str) -> bool:
        """Cancel the turn, and wait until the session is idle."""
        is_told = False
        while True:
            try:
                is_told = is_told or await self._server.cancel(session_id, self._slug)
                sight = await self.look()
                state = await self._server.state(session_id, self._slug)
            except (NoConnection, NoAnswer):
                return False
            if isinstance(sight, Finished | WentIdle | Broken):
                return True
            if is_told and state.is_busy is False:
                return True
            if not is_told and not isinstance(sight, Working):
                return False
            await self._server.clock.sleep(_CANCEL_POLL)


def _texts(turn: Turn) -> tuple[str, str]:
    """Our message as it may appear in a history: as sent, or marked by the server."""
    return turn.prompt, marked(turn.prompt, turn.fire.slug)
