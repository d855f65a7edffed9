"""HTTP client for the daemon, standard library only: it must start fast and fail fast.

The Unix socket in the home folder comes first, because it needs no token. Inside a run the run's own token is used, so
that the daemon knows which run is calling. Otherwise it is TCP with the home's token.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from http.client import HTTPConnection, HTTPException, HTTPResponse
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

from wakeful.cli.errors import Ended, Misused, NoDaemon, no_daemon, start_command
from wakeful.cli.home import Running, running
from wakeful.server.daemon.home import SOCKET_NAME

TIMEOUT: Final = 10.0
"""Seconds for an ordinary response: far more than the daemon needs, short enough to notice that it hangs."""
FOLLOW_TIMEOUT: Final = 60.0
"""Seconds; a live stream sends something every 15 seconds."""
ANSWER_MAX: Final = 64 * 1024 * 1024
PAGE: Final = 500
TOKEN_VARIABLE: Final = "WAKEFUL_TOKEN"  # noqa: S105 - the name of a variable
RUN_TOKEN_VARIABLE: Final = "WAKEFUL_RUN_TOKEN"  # noqa: S105 - the name of a variable
UNAUTHORIZED: Final = 401
FORBIDDEN: Final = 403
UNKNOWN: Final = 404


@dataclass(frozen=True, slots=True)
class Answer:
    """A response: the status, the JSON body (None if empty), the ETag, and a warning."""

    status: int
    body: Any
    tag: str | None = None
    warning: str | None = None


@dataclass(frozen=True, slots=True)
class _Request:
    """A request."""

    method: str
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def target(self) -> str:
        given = {name: _text(value) for name, value in self.query.items() if value is not None}
        return f"{self.path}?{urlencode(given)}" if given else self.path


class Refused(Ended):
    """The daemon refused the request."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        listed = problem.get("errors")
        faults = [
            (str(error.get("field") or ""), str(error.get("message") or ""))
            for error in (listed if isinstance(listed, list) else [])
            if isinstance(error, Mapping)
        ]
        words = problem.get("detail") or problem.get("error") or problem.get("title") or f"the daemon returned {status}"
        super().__init__(str(words), faults)
        self.status = status
        self.is_unknown = status == UNKNOWN


class Daemon:
    """The daemon of one home folder."""

    def __init__(self, process: Running, home: Path, way: _Route | None = None) -> None:
        self.running = process
        self._home = home
        self._route = way or _route(process, home)

    @property
    def is_on_socket(self) -> bool:
        """Whether it is reached through the Unix socket of the home folder."""
        return self._route.socket is not None

    def get(self, path: str, *, timeout: float = TIMEOUT, **query: Any) -> Any:
        """The body of a GET."""
        return self.ask("GET", path, query=query, timeout=timeout).body

    def ask(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = TIMEOUT,
    ) -> Answer:
        """Send one request; raises `Refused` for an error response."""
        answer = self._exchange(_Request(method, path, query or {}, body, headers or {}), timeout)
        if answer.status >= 400:
            raise self._refused(answer)
        return answer

    def look(self, path: str, *, timeout: float = TIMEOUT) -> Answer:
        """The body of a GET whatever its status: an unhealthy daemon returns 503 with a body."""
        return self._exchange(_Request("GET", path), timeout)

    def pages(self, path: str, name: str, *, limit: int | None = None, **query: Any) -> list[Any]:
        """All items of a listing, page by page, or the first `limit` of them."""
        items: list[Any] = []
        cursor: Any = None
        while limit is None or len(items) < limit:
            size = PAGE if limit is None else min(PAGE, limit - len(items))
            page = self.get(path, limit=size, cursor=cursor, **query)
            items += page[name]
            before, cursor = cursor, page.get("next")
            if cursor is None or cursor == before:  # a page may be empty and still have a next cursor
                break
        return items

    @contextmanager
    def following(self, path: str, **query: Any) -> Iterator[Iterator[Any]]:
        """The data of each server-sent event from now on; ends when the daemon does."""
        request = _Request("GET", path, query, headers={"Accept": "text/event-stream"})
        while True:
            with closing(self._connection(FOLLOW_TIMEOUT)) as connection:
                response = self._send_once(connection, request)
                if response.status < 400:
                    yield _events(response)
                    return
                answer = self._answer(response)
            route = self._next_route(answer.status)
            if route is None:
                raise self._refused(answer)
            self._route = route

    def _connection(self, timeout: float) -> HTTPConnection:
        if self._route.socket is not None:
            return _UnixConnection(self._route.socket, timeout)
        return HTTPConnection(self._route.host, self._route.port, timeout=timeout)

    def _exchange(self, request: _Request, timeout: float) -> Answer:
        while True:
            with closing(self._connection(timeout)) as connection:
                answer = self._answer(self._send_once(connection, request))
            route = self._next_route(answer.status)
            if route is None:
                return answer
            self._route = route

    def _next_route(self, status: int) -> _Route | None:
        """Another way to send a request that was refused on this one; None if there is none."""
        used, given = self._route, os.environ.get(TOKEN_VARIABLE)
        if status not in (UNAUTHORIZED, FORBIDDEN) or used.is_last:
            return None
        path = self._home / SOCKET_NAME
        if used.is_of_run and sys.platform == "linux" and path.is_socket():
            # A person's command may do more than its token: on the socket it is recognised by its process.
            return replace(used, socket=path, token=None, is_of_run=False)
        if used.socket is not None and given:
            return replace(used, token=given, is_last=True)
        token = _token_of_settings(self._home) if used.may_look_up and status == UNAUTHORIZED else None
        return None if token in (None, used.token) else replace(used, token=token, is_last=True)

    def _send_once(self, connection: HTTPConnection, request: _Request) -> HTTPResponse:
        headers = dict(request.headers)
        if self._route.token is not None:
            headers["Authorization"] = f"Bearer {self._route.token}"
        content = None if request.body is None else json.dumps(request.body).encode()
        try:
            connection.request(request.method, request.target, content, headers)
            return connection.getresponse()
        except TimeoutError as error:
            raise self._silent(connection.timeout) from error
        except ConnectionRefusedError as error:
            raise no_daemon(self._home, f"though process {self.running.pid} holds its lock") from error
        except (HTTPException, OSError) as error:
            raise Ended(
                f"the daemon (process {self.running.pid}) closed the connection mid-response: {error}"
            ) from error

    def _silent(self, timeout: float | None) -> Ended:
        return NoDaemon(
            f"the daemon (process {self.running.pid}) did not respond within {timeout:g}s",
            hint=f"check {self._home / 'server.log'}; if it hangs, stop it and restart it: {start_command(self._home)}",
        )

    def _answer(self, response: HTTPResponse) -> Answer:
        try:
            text = response.read(ANSWER_MAX).decode(errors="replace")
        except TimeoutError as error:
            raise self._silent(TIMEOUT) from error
        except (HTTPException, OSError) as error:
            raise Ended(
                f"the daemon (process {self.running.pid}) closed the connection mid-response: {error}"
            ) from error
        try:
            body = json.loads(text) if text else None
        except ValueError:
            body = text
        if body is not None and not isinstance(body, dict):
            raise Ended(f"the server at {self.running.url} is not this daemon: it did not return a JSON object")
        return Answer(response.status, body, response.getheader("ETag"), response.getheader("Wakeful-Warning"))

    def _refused(self, answer: Answer) -> Ended:
        refused = Refused(answer.status, answer.body or {})
        if answer.status == UNAUTHORIZED:
            return Ended(str(refused), hint=f"put the daemon's token into {TOKEN_VARIABLE}")
        if answer.status == 400:
            return Misused(str(refused), refused.faults)
        return refused


@dataclass(frozen=True, slots=True)
class _Route:
    """How the daemon is reached. `may_look_up`: the token may also come from the settings."""

    host: str
    port: int
    socket: Path | None = None
    token: str | None = field(default=None, repr=False)
    may_look_up: bool = False
    is_of_run: bool = False  # with the token of the run that this process belongs to
    is_last: bool = False


def socket_route(process: Running, path: Path) -> _Route:
    """Through the Unix socket, without a token."""
    return _Route(process.host, process.port, socket=path)


def _route(process: Running, home: Path) -> _Route:
    run_token = os.environ.get(RUN_TOKEN_VARIABLE)
    if run_token and is_own_home(home):
        return _Route(process.host, process.port, token=run_token, is_of_run=True)
    path = home / SOCKET_NAME
    if path.is_socket():
        return socket_route(process, path)
    given = os.environ.get(TOKEN_VARIABLE)
    if given or _is_started_by(process.pid):  # what a run started does not get the owner's token from us
        return _Route(process.host, process.port, token=given or run_token or None)
    return _Route(process.host, process.port, token=_token_of_home(home), may_look_up=True)


def _is_started_by(pid: int) -> bool:
    """Whether this process descends from that one, as far as the system tells."""
    from wakeful.integrations.actions.ancestry import ancestry_of

    ancestry = ancestry_of(os.getppid())
    return ancestry is not None and pid in ancestry.leaders


def is_own_home(home: Path) -> bool:
    """Whether this is the home of the daemon that started us."""
    named = os.environ.get("WAKEFUL_HOME")
    try:
        return named is not None and Path(named).samefile(home)
    except OSError:
        return False


def refuse_agents(home: Path) -> None:
    """Refuse a process of an agent's run, as the daemon would: for commands that read the database themselves. The
    token of the run is not sent, because a person's command has one as well."""
    process, path = running(home), home / SOCKET_NAME
    if process is None or not path.is_socket():
        return
    daemon = Daemon(process, home, socket_route(process, path))
    try:
        daemon.get("/api/nodes")
    except Refused as refused:
        if refused.status == FORBIDDEN:
            raise
    except Ended:  # it does not respond, which is no reason against a copy
        return


class _UnixConnection(HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: Path, timeout: float) -> None:
        super().__init__("wakeful", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        made.settimeout(self.timeout)
        try:
            made.connect(str(self._path))
        except OSError:
            made.close()
            raise
        self.sock = made


def find(home: Path, *, what: str = "") -> Daemon:
    """The daemon of this home; raises `NoDaemon` if none is running."""
    process = running(home)
    if process is None:
        raise no_daemon(home, what)
    return Daemon(process, home)


def owner_path(name: str, question: str = "") -> str:
    """The API path of a schedule, a slot (`slot:main`) or a workflow (`workflow:inbox`)."""
    prefix, colon, rest = name.partition(":")
    if colon and prefix in ("slot", "workflow"):
        if not rest or not rest.isascii() or not all(char.isalnum() or char in "._-" for char in rest):
            raise Ended(f"there is no {prefix} {rest!r}")
        return f"/api/schedule/{name}{question}"
    return schedule_path(name, question)


def schedule_path(slug: str, question: str = "") -> str:
    """The API path of a schedule; an impossible name is refused without a request."""
    from wakeful.core.slug import SLUG_PATTERN

    if not SLUG_PATTERN.fullmatch(slug):
        raise Ended(f"there is no schedule {slug!r}")
    return f"/api/schedule/{slug}{question}"


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _events(response: HTTPResponse) -> Iterator[Any]:
    """Parse server-sent events: `data:` lines up to an empty one; anything else is keep-alive."""
    data: list[str] = []
    while raw := _line(response):
        text = raw.decode(errors="replace").rstrip("\r\n")
        if text.startswith("data:"):
            data.append(text[5:].removeprefix(" "))
        elif not text and data:
            yield json.loads("\n".join(data))
            data = []


def _line(response: HTTPResponse) -> bytes:
    try:
        return response.readline()
    except (HTTPException, OSError):  # disconnected, or silent for too long: the stream has ended either way
        return b""


def _token_of_home(home: Path) -> str | None:
    from wakeful.server.daemon.token import read_token

    try:
        return read_token(home)
    except OSError:
        return None


def _token_of_settings(home: Path) -> str | None:
    """The daemon's token, if the settings of the home reveal it to this user too."""
    from wakeful.config import SettingsRefused, load

    try:
        token = load(home).settings.server.token
    except SettingsRefused:
        return None
    return None if token is None else token.reveal()
