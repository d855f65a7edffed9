"""The protocol of a server that keeps sessions: its requests, and the account of what we left on it."""

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote

from wakeful.adapters.exchange import NoAnswer, NoConnection, Response
from wakeful.agents.client import Client
from wakeful.agents.history import FileHistory, History, HttpHistory
from wakeful.agents.reply import session_id_of
from wakeful.core.conversations import is_conversation
from wakeful.core.instants import MINUTE, SECOND, Duration
from wakeful.core.results import Failed, Throttled
from wakeful.core.runs import RungName
from wakeful.ports.agent import Turn
from wakeful.ports.clock import Clock
from wakeful.ports.exchange import About, ExchangeListener

LOOK_WITHIN: Final[Duration] = 5 * SECOND
LEFTOVERS_MAX: Final = 100
ASKED_MAX: Final = 5
"""How many sessions of a schedule are looked into for a turn whose session is not known."""

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


@dataclass(frozen=True, slots=True)
class State:
    """What the server says of a session now."""

    is_known: bool
    is_busy: bool | None  # None: it does not say


class SessionServer:
    """The requests of the protocol, and what we left on the server."""

    def __init__(self, settings: SessionsSettings, clock: Clock, listener: ExchangeListener | None = None) -> None:
        self.settings = settings
        self.clock = clock
        self._client = Client(clock, settings.url, {"X-Client-ID": "wakeful", **settings.headers}, listener)
        self.history: History = _NoHistory()
        if settings.history_file is not None:
            self.history = FileHistory(settings.history_file)
        elif settings.history_path is not None:
            self.history = HttpHistory(self._client, settings.history_path, LOOK_WITHIN)
        self.in_use: set[str] = set()  # by turns that are under way here
        self._made: set[str] = set()  # by us, and not known to be gone
        self._leftovers: OrderedDict[str, None] = OrderedDict()  # nobody needs them, and they are still there

    async def create(self, turn: Turn) -> str | Failed | Throttled:
        """A new session's id."""
        refusal = await self._make_room(turn.fire.slug)
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
            response = await self._client.request(
                "POST",
                "/api/sessions",
                About("agent-session", turn.fire.slug),
                json_body=body,
                limit=settings.answer_within,
            )
        except (NoConnection, NoAnswer) as error:
            return Failed(str(error))
        if not response.is_ok:
            return self._client.failure(response)
        value = await response.json()
        session_id = session_id_of(value.get("sessionId")) if isinstance(value, dict) else None
        if session_id is None:
            return Failed("the server made a session and gave it no usable id; check that the url is the right server")
        self._made.add(session_id)
        self.in_use.add(session_id)
        return session_id

    async def message(self, session_id: str, turn: Turn) -> Response:
        """Give the session the bare prompt: the server itself marks it as the scheduler's."""
        fire = turn.fire
        planned = {"source": "scheduler", "scheduleSlug": fire.slug}
        body = {
            "prompt": turn.prompt,
            **({"source": "user"} if is_conversation(fire.slug) else planned),
            "correlationId": fire.idempotency_key,
        }
        headers = {"Idempotency-Key": fire.idempotency_key, "X-Wakeful-Run": str(fire.run_id)}
        if fire.receipt_url is not None:
            headers["X-Wakeful-Receipt"] = fire.receipt_url
        path = _path(session_id, "/messages")
        return await self._client.request(
            "POST",
            path,
            About("agent-message", fire.slug),
            json_body=body,
            headers=headers,
            limit=self.settings.answer_within,
        )

    def failure(self, response: Response) -> Failed | Throttled:
        return self._client.failure(response)

    async def state(self, session_id: str, slug: str) -> State:
        """Whether the session is busy: its own state says so, else the list of sessions."""
        response = await self._client.request(
            "GET", _path(session_id, "/state"), About("agent-state", slug), limit=LOOK_WITHIN
        )
        value = await response.json() if response.is_ok else None
        state = value if isinstance(value, dict) else {}
        status = state.get("status")
        if isinstance(state.get("isBusy"), bool):
            return State(True, state["isBusy"])
        if isinstance(status, str) and status.lower() in _BUSY_WORDS:
            return State(True, True)
        listed = await self._listed(session_id, slug)
        if listed is not None and isinstance(listed.get("isBusy"), bool):
            return State(True, listed["isBusy"])
        is_idle = isinstance(status, str) and status.lower() in _IDLE_WORDS
        return State(bool(state) or listed is not None, False if is_idle else None)

    async def made_for(self, slug: str, *, is_persistent: bool) -> list[str]:
        """The newest sessions that turns of this schedule made, newest first."""
        ours = [
            one
            for one in await self._list(slug)
            if one.get("description") == (_KEPT if is_persistent else _ONCE) + slug
        ]
        ours.sort(key=lambda one: str(one.get("createdAt")), reverse=True)
        found = [session_id for one in ours if (session_id := _id(one)) is not None]
        return found[:ASKED_MAX]

    async def cancel(self, session_id: str, slug: str) -> bool:
        """Ask it to stop; True if it says it will."""
        about = About("agent-cancel", slug)
        return (await self._client.request("POST", _path(session_id, "/cancel"), about, limit=LOOK_WITHIN)).is_ok

    async def delete(self, session_id: str, slug: str) -> bool:
        """Remove a session; what cannot be removed now is tried again when the next one is made."""
        self._leftovers[session_id] = None
        while len(self._leftovers) > LEFTOVERS_MAX:
            self._leftovers.popitem(last=False)
        try:
            response = await self._client.request(
                "DELETE", _path(session_id), About("agent-clean-up", slug), limit=LOOK_WITHIN
            )
        except (NoConnection, NoAnswer):
            return False
        if not response.is_ok and response.status != 404:  # 400: it is busy
            return False
        self.forget(session_id)
        return True

    def forget(self, session_id: str) -> None:
        """It is no longer on the server."""
        self._leftovers.pop(session_id, None)
        self._made.discard(session_id)
        self.in_use.discard(session_id)

    async def close(self) -> None:
        await self._client.close()

    async def _make_room(self, slug: str) -> Failed | None:
        """Remove what we left behind; refuse when there are as many of ours as there may be."""
        for session_id in list(self._leftovers):
            await self.delete(session_id, slug)
        limit = self.settings.sessions_max
        ours = await self._ours(slug)
        for session_id, session in sorted(ours.items(), key=lambda one: str(one[1].get("createdAt"))):
            if len(ours) < limit:
                break
            if session_id not in self.in_use and _is_disposable(session) and await self.delete(session_id, slug):
                del ours[session_id]
        if len(ours) < limit:
            return None
        return Failed(
            f"{len(ours)} sessions of ours are on the server, and sessions_max is {limit}; "
            "delete some there, or raise it"
        )

    async def _ours(self, slug: str) -> dict[str, Mapping[str, Any]]:
        """The sessions on the server that scheduled turns made: by what the server says, and by what we know."""
        listed = {session_id: session for session in await self._list(slug) if (session_id := _id(session)) is not None}
        if listed:
            self._made.intersection_update(listed)
        return {
            **{session_id: {} for session_id in self._made},
            **{session_id: session for session_id, session in listed.items() if _is_ours(session)},
        }

    async def _listed(self, session_id: str, slug: str) -> Mapping[str, Any] | None:
        return next((session for session in await self._list(slug) if _id(session) == session_id), None)

    async def _list(self, slug: str) -> list[Mapping[str, Any]]:
        try:
            response = await self._client.request(
                "GET", "/api/sessions", About("agent-sessions", slug), limit=LOOK_WITHIN
            )
        except (NoConnection, NoAnswer):
            return []
        return list(_sessions(await response.json())) if response.is_ok else []


class _NoHistory:
    """A server whose history cannot be read."""

    async def mark(self, session_id: str, slug: str) -> None:
        return None

    async def since(self, session_id: str, mark: int, slug: str) -> None:
        return None


def _path(session_id: str, rest: str = "") -> str:
    return f"/api/sessions/{quote(session_id, safe='')}{rest}"


def _is_ours(session: Mapping[str, Any]) -> bool:
    return bool(session.get("scheduleSlug")) or str(session.get("description")).startswith((_KEPT, _ONCE))


def _is_disposable(session: Mapping[str, Any]) -> bool:
    return str(session.get("description")).startswith(_ONCE) and session.get("isBusy") is not True


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
