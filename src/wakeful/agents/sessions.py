"""The sessions agent: a server that keeps sessions and takes messages for them over HTTP.

The server answers 200 before its model is called, so 200 is `accepted` and no more. What happens then is watched from
outside: the session is seen busy and then idle, or its history shows our message and, after it, a terminal event. Idle
throughout proves nothing. When the server was away in between, busy-then-idle proves nothing either: a restarted server
is idle too.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote

from wakeful.agents.client import Client, NoAnswer, NoConnection, Response, is_web_address, within
from wakeful.agents.history import FileHistory, History, HttpHistory, Story, tell
from wakeful.agents.reply import marked, session_id_of
from wakeful.core.instants import MINUTE, SECOND, Duration
from wakeful.core.results import Busy, Failed, Throttled
from wakeful.core.runs import RungName
from wakeful.ports.action import Fire, Ladder
from wakeful.ports.agent import (
    Accepted,
    Answer,
    Broken,
    Exchange,
    Fate,
    Finished,
    Gone,
    Quiet,
    Sight,
    Turn,
    Unseen,
    Working,
)
from wakeful.ports.clock import Clock

BUSY_TEXT: Final = "Session busy"
"""The words clients of the session scheduler know."""

LOOK_WITHIN: Final[Duration] = 5 * SECOND
CANCEL_WITHIN: Final[Duration] = 8 * SECOND
LEFTOVERS_MAX: Final = 100

_CANCEL_POLL: Final[Duration] = 200
_BUSY_WORDS: Final = frozenset({"busy", "running", "working", "processing", "thinking", "streaming"})
_IDLE_WORDS: Final = frozenset({"idle", "inactive", "ready"})
_KEPT: Final = "Scheduled by Wakeful: "
_ONCE: Final = "Scheduled once by Wakeful: "
_DEPTH_MAX: Final = 6


@dataclass(frozen=True, slots=True)
class SessionsSettings:
    """How the server is reached and watched."""

    url: str = "http://127.0.0.1:53000"
    model: str | None = None
    cwd: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    confirm_within: Duration = 5 * MINUTE
    answer_within: Duration = MINUTE  # for what a server answers at once: it does not wait for its model
    sessions_max: int = 50
    history_path: str | None = "/api/sessions/{id}/events"  # where the server offers it
    history_file: str | None = None  # a local server's file of events, with {id}; used instead of the path
    proves: RungName = "finished"  # "accepted": 200 is all that is ever known of this server


class SessionsAgent:
    """An agent behind a server of sessions."""

    knows: Mapping[str, type] = {"model": str, "cwd": str}

    def __init__(self, settings: SessionsSettings, clock: Clock) -> None:
        self._settings = settings
        self._server = _Server(settings, clock)

    @property
    def proves(self) -> RungName:
        return self._settings.proves

    def check(self, config: Mapping[str, Any]) -> str | None:
        if not is_web_address(self._settings.url):
            return f"its url '{self._settings.url}' is not a web address; write it like http://127.0.0.1:53000"
        return None

    def begin(self, turn: Turn) -> Exchange:
        return _Exchange(self._server, turn)

    async def ask(self, fire: Fire, session_id: str | None) -> Fate:
        if session_id is None:
            return "unknown"  # the session was made in the attempt that is lost, and its name with it
        try:
            is_busy = (await self._server.state(session_id)).is_busy
            events = await self._server.history.since(session_id, 0)
        except (NoConnection, NoAnswer):
            return "unknown"
        if events is None:
            return "unknown"
        story = tell(events, fire.idempotency_key)
        if not story.is_found:
            return "nothing" if story.has_keys else "unknown"
        if story.is_ended:
            return "done" if story.error is None else "unknown"
        return "running" if is_busy else "unknown"

    async def close(self) -> None:
        await self._server.close()


@dataclass(frozen=True, slots=True)
class _State:
    """What the server says of a session now."""

    is_known: bool
    is_busy: bool | None  # None: it does not say


class _Server:
    """The requests of the protocol, and what we left on the server."""

    def __init__(self, settings: SessionsSettings, clock: Clock) -> None:
        self.settings = settings
        self.clock = clock
        self._client = Client(clock, settings.url, {"X-Client-ID": "wakeful", **settings.headers})
        self.history: History = _NoHistory()
        if settings.history_file is not None:
            self.history = FileHistory(settings.history_file)
        elif settings.history_path is not None:
            self.history = HttpHistory(self._client, settings.history_path, LOOK_WITHIN)
        self._made: OrderedDict[str, None] = OrderedDict()  # by us, and not deleted yet
        self._leftovers: OrderedDict[str, None] = OrderedDict()  # nobody needs them, and they are still there

    async def create(self, turn: Turn) -> str | Failed | Throttled:
        """A new session's id."""
        refusal = await self._make_room()
        if refusal is not None:
            return refusal
        settings, config = self.settings, turn.config
        description = (_KEPT if turn.is_persistent else _ONCE) + turn.fire.slug
        wanted = {
            "cwd": config.get("cwd") or settings.cwd,
            "model": config.get("model") or settings.model,
            "description": description,
        }
        body = {name: value for name, value in wanted.items() if value is not None}
        try:
            response = await self._client.request("POST", "/api/sessions", json_body=body, limit=settings.answer_within)
        except (NoConnection, NoAnswer) as error:
            return Failed(str(error))
        if not response.is_ok:
            return self._client.failure(response)
        value = await response.json()
        session_id = session_id_of(value.get("sessionId")) if isinstance(value, dict) else None
        if session_id is None:
            return Failed("the server made a session and gave it no usable id; check that the url is the right server")
        self._made[session_id] = None
        return session_id

    async def message(self, session_id: str, turn: Turn) -> Response:
        """Give the session the bare prompt: the server itself marks it as the scheduler's."""
        fire = turn.fire
        body = {
            "prompt": turn.prompt,
            "source": "scheduler",
            "scheduleSlug": fire.slug,
            "correlationId": fire.idempotency_key,
        }
        headers = {"Idempotency-Key": fire.idempotency_key, "X-Wakeful-Run": str(fire.run_id)}
        if fire.receipt_url is not None:
            headers["X-Wakeful-Receipt"] = fire.receipt_url
        path = _path(session_id, "/messages")
        return await self._client.request(
            "POST", path, json_body=body, headers=headers, limit=self.settings.answer_within
        )

    def failure(self, response: Response) -> Failed | Throttled:
        return self._client.failure(response)

    async def state(self, session_id: str) -> _State:
        """Whether the session is busy: its own state says so, else the list of sessions."""
        response = await self._client.request("GET", _path(session_id, "/state"), limit=LOOK_WITHIN)
        value = await response.json() if response.is_ok else None
        state = value if isinstance(value, dict) else {}
        status = state.get("status")
        if isinstance(state.get("isBusy"), bool):
            return _State(True, state["isBusy"])
        if isinstance(status, str) and status.lower() in _BUSY_WORDS:
            return _State(True, True)
        listed = await self._listed(session_id)
        if listed is not None and isinstance(listed.get("isBusy"), bool):
            return _State(True, listed["isBusy"])
        is_idle = isinstance(status, str) and status.lower() in _IDLE_WORDS
        return _State(bool(state) or listed is not None, False if is_idle else None)

    async def cancel(self, session_id: str) -> bool:
        """Ask it to stop; True if it says it will."""
        return (await self._client.request("POST", _path(session_id, "/cancel"), limit=LOOK_WITHIN)).is_ok

    async def delete(self, session_id: str) -> bool:
        """Remove a session; what cannot be removed now is tried again when the next one is made."""
        self._leftovers[session_id] = None
        while len(self._leftovers) > LEFTOVERS_MAX:
            self._leftovers.popitem(last=False)
        try:
            response = await self._client.request("DELETE", _path(session_id), limit=LOOK_WITHIN)
        except (NoConnection, NoAnswer):
            return False
        if not response.is_ok and response.status != 404:  # 400: it is busy
            return False
        self._leftovers.pop(session_id, None)
        self._made.pop(session_id, None)
        return True

    async def close(self) -> None:
        await self._client.close()

    async def _make_room(self) -> Failed | None:
        """Remove what we left behind; refuse when there are as many of ours as there may be."""
        for session_id in list(self._leftovers):
            await self.delete(session_id)
        limit = self.settings.sessions_max
        ours = await self._ours()
        for session_id, session in sorted(ours.items(), key=lambda one: str(one[1].get("createdAt"))):
            if len(ours) < limit:
                break
            is_once = str(session.get("description")).startswith(_ONCE) and session.get("isBusy") is not True
            if is_once and session_id not in self._made and await self.delete(session_id):
                del ours[session_id]
        if max(len(ours), len(self._made)) < limit:
            return None
        return Failed(
            f"{max(len(ours), len(self._made))} sessions of ours are on the server, and sessions_max is {limit}; "
            "delete some there, or raise it"
        )

    async def _ours(self) -> dict[str, Mapping[str, Any]]:
        """The sessions on the server that scheduled turns made."""
        return {
            session_id: session
            for session in await self._list()
            if (session_id := _id(session)) is not None
            and (session.get("scheduleSlug") or str(session.get("description")).startswith((_KEPT, _ONCE)))
        }

    async def _listed(self, session_id: str) -> Mapping[str, Any] | None:
        return next((session for session in await self._list() if _id(session) == session_id), None)

    async def _list(self) -> list[Mapping[str, Any]]:
        try:
            response = await self._client.request("GET", "/api/sessions", limit=LOOK_WITHIN)
        except (NoConnection, NoAnswer):
            return []
        return list(_sessions(await response.json())) if response.is_ok else []


class _Exchange:
    """One turn with a session of the server."""

    def __init__(self, server: _Server, turn: Turn) -> None:
        self._server = server
        self._turn = turn
        self._session_id = turn.session_id if turn.is_persistent else None
        self._is_fresh = False
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
        if isinstance(answer, Response) and answer.status == 404 and not self._is_fresh:
            refusal = await self._renew()
            if refusal is not None:
                return refusal
            answer = await self._message(ladder)
        return await self._answer(answer)

    async def look(self) -> Sight:
        session_id = self._session_id or ""
        try:
            # The state first: what the history then shows is at least as new.
            state = await self._server.state(session_id)
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

    async def clean_up(self) -> None:
        is_unused = self._is_fresh and not self._is_accepted
        if self._session_id is not None and (is_unused or not self._turn.is_persistent):
            await self._server.delete(self._session_id)

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
            return await self._server.message(session_id, self._turn)
        except (NoConnection, NoAnswer) as error:
            return error

    async def _marked(self, session_id: str) -> int | None:
        try:
            return await self._server.history.mark(session_id)
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
        events = await self._server.history.since(session_id, self._mark)
        prompt, slug = self._turn.prompt, self._turn.fire.slug
        return tell(events or (), self._turn.fire.idempotency_key, (prompt, marked(prompt, slug)))

    def _judge(self, state: _State, story: Story) -> Sight:
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
                is_told = is_told or await self._server.cancel(session_id)
                sight = await self.look()
                state = await self._server.state(session_id)
            except (NoConnection, NoAnswer):
                return False
            if isinstance(sight, Finished | Broken):
                return True
            if is_told and state.is_busy is False:
                return True
            if not is_told and not isinstance(sight, Working):
                return False
            await self._server.clock.wait(asyncio.Event(), _CANCEL_POLL)


class _NoHistory:
    """A server whose history cannot be read."""

    async def mark(self, session_id: str) -> None:
        return None

    async def since(self, session_id: str, mark: int) -> None:
        return None


def _path(session_id: str, rest: str = "") -> str:
    return f"/api/sessions/{quote(session_id, safe='')}{rest}"


def _id(session: Mapping[str, Any]) -> str | None:
    return session_id_of(session.get("sessionId") or session.get("id"))


def _sessions(value: Any, depth: int = 0) -> Iterator[Mapping[str, Any]]:
    """Every session in a list that may be grouped by folder."""
    if depth > _DEPTH_MAX:
        return
    if isinstance(value, dict) and _id(value) is not None:
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _sessions(inner, depth + 1)
