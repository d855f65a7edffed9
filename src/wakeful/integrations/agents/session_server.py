"""The protocol of a session server: its requests, and the bookkeeping of our sessions on it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias
from urllib.parse import quote, urlsplit

from wakeful.core.heartbeat.conversations import is_conversation
from wakeful.core.run.results import Failed, Throttled
from wakeful.core.run.traces import trace_header
from wakeful.core.time.instants import MINUTE, SECOND, Duration
from wakeful.integrations.agents.client import Client
from wakeful.integrations.agents.history_places import (
    USUAL_FILE,
    USUAL_PATH,
    FileHistory,
    Histories,
    HttpHistory,
    Mark,
    Place,
)
from wakeful.integrations.agents.reply import session_id_of
from wakeful.integrations.agents.session_records import SessionRecord, SessionRecords
from wakeful.integrations.net.exchange import NoAnswer, NoConnection, NoRoom, Response
from wakeful.integrations.net.guard import is_loopback
from wakeful.ports.action import CannotBegin
from wakeful.ports.agent import Turn
from wakeful.ports.clock import Clock
from wakeful.ports.exchange import ExchangeListener, RequestContext

LOOK_WITHIN: Final[Duration] = 5 * SECOND
ASKED_MAX: Final = 5
"""How many sessions of a schedule are searched for a turn whose session is unknown."""

_BUSY_WORDS: Final = frozenset({"busy", "running", "working", "processing", "thinking", "streaming"})
_IDLE_WORDS: Final = frozenset({"idle", "inactive", "ready"})
_KEPT: Final = "Scheduled by Wakeful: "
_ONCE: Final = "Scheduled once by Wakeful: "
_DEPTH_MAX: Final = 6


Proves: TypeAlias = Literal["finished", "idle", "accepted"]
"""What proves a turn: an answer; or, if none can be read, busy and then idle; or only acceptance."""


@dataclass(frozen=True, slots=True)
class SessionsSettings:
    """How the server is reached and polled."""

    url: str = "http://127.0.0.1:53000"
    model: str | None = None
    cwd: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    confirm_within: Duration = 5 * MINUTE
    answer_within: Duration = MINUTE  # for requests that do not wait for the model
    sessions_max: int = 50
    history_path: str | None = None  # where the server offers its history, with {id}
    history_file: str | None = None  # the file that a local server writes, with {id}; neither: the usual places
    proves: Proves = "finished"


@dataclass(frozen=True, slots=True)
class State:
    """The current state of a session on the server."""

    is_known: bool
    is_busy: bool | None  # None: unknown


class SessionServer:
    """The requests of the protocol, and our sessions on the server."""

    def __init__(
        self,
        settings: SessionsSettings,
        clock: Clock,
        listener: ExchangeListener | None = None,
        records: Path | None = None,
    ) -> None:
        self.settings = settings
        self.clock = clock
        self._client = Client(clock, settings.url, {"X-Client-ID": "wakeful", **settings.headers}, listener)
        self.history = Histories(self._places())
        self.records = SessionRecords(records)
        self.in_use: set[str] = set()  # by turns running in this process
        self._leftovers: set[str] = set()  # our unneeded sessions that the server has not removed yet

    async def create(self, turn: Turn) -> str | Failed | Throttled:
        """Create a session; returns its id."""
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
                RequestContext("agent-session", turn.fire.slug),
                json_body=body,
                limit=settings.answer_within,
            )
        except NoRoom as error:
            raise CannotBegin(str(error)) from None
        except (NoConnection, NoAnswer) as error:
            return Failed(str(error))
        if not response.is_ok:
            return self._client.failure(response)
        value = await response.json()
        session_id = session_id_of(value.get("sessionId")) if isinstance(value, dict) else None
        if session_id is None:
            return Failed("the server created a session without a usable id; check that the url is the right server")
        now = self.clock.read().now
        await self.records.put(session_id, SessionRecord(turn.fire.slug, turn.is_persistent, now))
        return session_id

    async def message(self, session_id: str, turn: Turn, mark: Mark) -> Response:
        """Send the bare prompt to the session: the server itself marks it as the scheduler's. The intent to send is
        recorded first."""
        fire = turn.fire
        await self._record(session_id, turn, fire.idempotency_key, mark)
        planned = {"source": "scheduler", "scheduleSlug": fire.slug}
        body = {
            "prompt": turn.prompt,
            **({"source": "user"} if is_conversation(fire.slug) else planned),
            "correlationId": fire.idempotency_key,
        }
        headers = {"Idempotency-Key": fire.idempotency_key, "X-Wakeful-Run": str(fire.run_id)}
        headers |= trace_header(fire.traceparent)
        if fire.receipt_url is not None:
            headers["X-Wakeful-Receipt"] = fire.receipt_url
        path = _path(session_id, "/messages")
        return await self._client.request(
            "POST",
            path,
            RequestContext("agent-message", fire.slug),
            json_body=body,
            headers=headers,
            limit=self.settings.answer_within,
        )

    async def refused(self, session_id: str, turn: Turn) -> None:
        """The server refused the message: whatever the session does now is not our turn."""
        await self._record(session_id, turn, None, ())

    async def sent(self, session_id: str, key: str) -> Mark | None:
        """Where the history ended before the message with this key was sent, if it is the last one we sent."""
        record = await self.records.of(session_id)
        return record.mark if record is not None and record.key == key else None

    async def sent_to(self, turn: Turn) -> str | None:
        """The session that an earlier attempt created and sent the message to, unless it was refused."""
        wanted = (turn.fire.idempotency_key, turn.is_persistent, True)
        records = (await self.records.all()).items() if turn.fire.attempt > 1 else ()
        return next(
            (session_id for session_id, known in records if (known.key, known.is_persistent, known.is_ours) == wanted),
            None,
        )

    def failure(self, response: Response) -> Failed | Throttled:
        return self._client.failure(response)

    async def state(self, session_id: str, slug: str) -> State:
        """Whether the session is busy, from its own state or else from the list of sessions."""
        response = await self._client.request(
            "GET", _path(session_id, "/state"), RequestContext("agent-state", slug), limit=LOOK_WITHIN
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

    async def is_busy_for(self, session_id: str, slug: str) -> bool:
        """Whether the list of sessions shows it busy for this schedule."""
        listed = await self._listed(session_id, slug)
        return listed is not None and listed.get("isBusy") is True and listed.get("scheduleSlug") == slug

    async def made_for(self, slug: str, *, is_persistent: bool) -> list[str]:
        """The newest sessions created by this schedule, newest first."""
        records = reversed((await self.records.all()).items())
        ours = [
            session_id for session_id, record in records if (record.slug, record.is_persistent) == (slug, is_persistent)
        ]
        description = (_KEPT if is_persistent else _ONCE) + slug
        listed = [session for session in await self._list(slug) if session.get("description") == description]
        listed.sort(key=lambda session: str(session.get("createdAt")), reverse=True)
        session_ids = [*ours, *(session_id for session in listed if (session_id := _id(session)) is not None)]
        return list(dict.fromkeys(session_ids))[:ASKED_MAX]

    async def cancel(self, session_id: str, slug: str) -> bool:
        """Request cancellation; True if the server accepts."""
        about = RequestContext("agent-cancel", slug)
        return (await self._client.request("POST", _path(session_id, "/cancel"), about, limit=LOOK_WITHIN)).is_ok

    async def delete(self, session_id: str, slug: str) -> bool:
        """Remove a session; if that fails, it is retried when the next one is created."""
        self._leftovers.add(session_id)
        try:
            response = await self._client.request(
                "DELETE", _path(session_id), RequestContext("agent-clean-up", slug), limit=LOOK_WITHIN
            )
        except (NoConnection, NoAnswer):
            return False
        if not response.is_ok and response.status != 404:  # 400: it is busy
            return False
        await self.forget(session_id)
        return True

    async def forget(self, session_id: str) -> None:
        """Forget a session that is no longer on the server."""
        self._leftovers.discard(session_id)
        self.in_use.discard(session_id)
        await self.records.remove(session_id)

    async def close(self) -> None:
        await self._client.close()

    def _places(self) -> list[Place]:
        """Where the history may be: as configured, else the usual places."""
        settings = self.settings
        if settings.history_file is not None:
            return [FileHistory(settings.history_file)]
        path = HttpHistory(self._client, settings.history_path or USUAL_PATH, LOOK_WITHIN)
        is_here = is_loopback(urlsplit(settings.url).hostname or "")
        return [FileHistory(USUAL_FILE), path] if is_here and settings.history_path is None else [path]

    async def _record(self, session_id: str, turn: Turn, key: str | None, mark: Mark) -> None:
        slug, now = turn.fire.slug, self.clock.read().now
        known = await self.records.of(session_id)
        record = SessionRecord(slug, turn.is_persistent, now, is_ours=False) if known is None else known
        await self.records.put(session_id, record._replace(used_at=now, key=key, mark=mark))

    async def _make_room(self, slug: str) -> Failed | None:
        """Remove our oldest sessions until there is room for one more: first those of finished turns, then the least
        recently used. A schedule whose session was removed starts a new one."""
        limit = self.settings.sessions_max
        ours = await self._ours(slug)
        for session_id, is_busy in list(ours.items()):
            if len(ours) < limit and session_id not in self._leftovers:
                break
            if session_id not in self.in_use and not is_busy and await self.delete(session_id, slug):
                del ours[session_id]
        self._leftovers &= ours.keys()
        if len(ours) < limit:
            return None
        return Failed(
            f"the server has {len(ours)} sessions of this agent, none can be removed now, and sessions_max is {limit}; "
            "delete some there, or raise it"
        )

    async def _ours(self, slug: str) -> dict[str, bool]:
        """The sessions that we created, those to remove first at the beginning, and whether each is busy. Our records
        name them; a session without a record must have our description."""
        listed = {session_id: session for session in await self._list(slug) if (session_id := _id(session)) is not None}
        records = {session_id: record for session_id, record in (await self.records.all()).items() if record.is_ours}
        unrecorded = [
            session_id for session_id, session in listed.items() if session_id not in records and _is_ours(session)
        ]
        unrecorded.sort(key=lambda session_id: str(listed[session_id].get("createdAt")))
        once = [session_id for session_id in unrecorded if str(listed[session_id]["description"]).startswith(_ONCE)]
        once += [session_id for session_id, record in records.items() if not record.is_persistent]
        over = [session_id for session_id in (*once, *records) if session_id in self._leftovers]
        order = dict.fromkeys([*over, *once, *unrecorded, *records])
        return {session_id: listed.get(session_id, {}).get("isBusy") is True for session_id in order}

    async def _listed(self, session_id: str, slug: str) -> Mapping[str, Any] | None:
        return next((session for session in await self._list(slug) if _id(session) == session_id), None)

    async def _list(self, slug: str) -> list[Mapping[str, Any]]:
        try:
            response = await self._client.request(
                "GET", "/api/sessions", RequestContext("agent-sessions", slug), limit=LOOK_WITHIN
            )
        except (NoConnection, NoAnswer):
            return []
        return list(_sessions(await response.json())) if response.is_ok else []


def _path(session_id: str, rest: str = "") -> str:
    return f"/api/sessions/{quote(session_id, safe='')}{rest}"


def _is_ours(session: Mapping[str, Any]) -> bool:
    return str(session.get("description")).startswith((_KEPT, _ONCE))


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
