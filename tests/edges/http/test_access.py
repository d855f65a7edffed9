"""Who may use the API: tokens, roles, the page's session, the Unix socket, proxies."""

import asyncio
import json
import os
import socket
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from edges.http.kit import EVERY, MANUAL, Answer, Client, daemon, served
from wakeful.server.http import Access, NamedToken
from wakeful.server.http.logins import COOKIE

ADMIN, OPERATE, READ, AGENT = "admin-secret-1", "operate-secret-1", "read-secret-1", "agent-secret-1"
OTHER_AGENT = "agent-secret-2"
TOKENS = (
    NamedToken("home", ADMIN),
    NamedToken("ops", OPERATE, "operate"),
    NamedToken("grafana", READ, "read"),
    NamedToken("coder", AGENT, "agent", "coder"),
    NamedToken("writer", OTHER_AGENT, "agent", "writer"),
)


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def session_of(answer: Answer) -> str:
    """The session cookie that was set."""
    header = answer.headers["Set-Cookie"]
    assert header.startswith(f"{COOKIE}=")
    return header.partition(";")[0]


@asynccontextmanager
async def guarded(path: Path, settings: Mapping[str, Any] = {}, **access: Any) -> AsyncIterator[Client]:
    """An API with these tokens, and a client without a cookie jar: a test says itself what it sends."""
    path.mkdir(exist_ok=True)
    async with (
        served(path, access=Access(tokens=TOKENS, own_tokens=frozenset({ADMIN}), **access), **settings) as api,
        aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session,
    ):
        yield Client(session, api.base, api.app)


async def test_on_loopback_a_token_is_needed_too(tmp_path: Path) -> None:
    """Every user of the machine can connect there. Authentication comes before routing."""
    async with guarded(tmp_path) as api:
        for path in ("/api/schedule", "/api/config", "/metrics", "/api/stream", "/nowhere", "/api/openapi.json"):
            answer = await api.get(path)
            assert (answer.status, answer.headers["WWW-Authenticate"]) == (401, "Bearer"), path
            assert "`token`" in answer.body["error"] and "wakeful.sock" in answer.body["error"]
        assert (await api.put("job", EVERY)).status == 401
        for path in ("/", "/healthz", "/readyz"):
            assert (await api.get(path)).status == 200, path
        assert (await api.get("/api/schedule", headers=bearer(ADMIN))).status == 200


async def test_auth_none_needs_no_token_on_loopback_only(tmp_path: Path) -> None:
    """Switched off by a setting; an address others can reach stays closed."""
    async with guarded(tmp_path / "a", auth="none") as api:
        assert (await api.get("/api/schedule")).status == 200
    async with guarded(tmp_path / "b", auth="none", host="0.0.0.0") as api:
        assert (await api.get("/api/schedule")).status == 401


ROLES = [
    ("GET", "/api/schedule", {ADMIN, OPERATE, READ, AGENT}),
    ("GET", "/metrics", {ADMIN, OPERATE, READ}),
    ("PUT", "/api/schedule/other", {ADMIN, AGENT}),
    ("PATCH", "/api/schedule/job", {ADMIN}),
    ("POST", "/api/schedule/job/pause", {ADMIN, OPERATE, AGENT}),
    ("POST", "/api/heartbeat/pause", {ADMIN, OPERATE}),
    ("POST", "/api/heartbeat/resume", {ADMIN, OPERATE}),
    ("POST", "/api/schedule/job/resume", {ADMIN, OPERATE, AGENT}),
    ("POST", "/api/schedule/job/run", {ADMIN, OPERATE}),
    ("POST", "/api/deliveries", {ADMIN}),
    ("POST", "/api/channels/phone/messages", {ADMIN}),
    ("POST", "/api/wake", {ADMIN, OPERATE, AGENT}),
    ("POST", "/api/login-codes", {ADMIN}),
    ("DELETE", "/api/logins", {ADMIN}),
    ("DELETE", "/api/schedule/none", {ADMIN, AGENT}),
    ("POST", "/api/approvals/p00000000", {ADMIN}),
]


async def test_an_agent_sees_only_whether_the_daemon_is_healthy(tmp_path: Path) -> None:
    """The findings name schedules of others."""
    async with guarded(tmp_path) as api:
        assert (await api.get("/healthz", headers=bearer(AGENT))).body == {"status": "ok"}
        assert "findings" in (await api.get("/healthz", headers=bearer(READ))).body


async def test_an_agent_never_gets_the_response_of_another_caller(tmp_path: Path) -> None:
    """`Idempotency-Key` counts for the caller that used it."""
    async with guarded(tmp_path) as api:
        key = {"Idempotency-Key": "k"}
        path = "/api/tools/list_schedules"
        first = await api.post(path, {}, headers={**bearer(AGENT), **key})
        again = await api.post(path, {}, headers={**bearer(AGENT), **key})
        other = await api.post(path, {}, headers={**bearer(OTHER_AGENT), **key})
        assert [answer.status for answer in (first, again, other)] == [200, 200, 200]
        assert ["Idempotent-Replayed" in answer.headers for answer in (first, again, other)] == [False, True, False]


async def test_a_role_that_does_not_permit_a_request_gets_403(tmp_path: Path) -> None:
    """Each role, on each kind of request. An agent reaches schedules of its own only (tests/self_scheduling)."""
    async with guarded(tmp_path) as api:
        assert (await api.put("job", MANUAL, headers=bearer(ADMIN))).status == 201
        for method, path, permitted in ROLES:
            body = EVERY if method == "PUT" else {} if method == "PATCH" else None
            for token in (READ, OPERATE, AGENT, ADMIN):
                answer = await api.ask(method, path, body, headers=bearer(token))
                assert (answer.status != 403) == (token in permitted), (method, path, token, answer)


async def test_a_code_logs_in_once(tmp_path: Path) -> None:
    """It is exchanged for a cookie that scripts cannot read and other sites cannot send."""
    async with guarded(tmp_path) as api:
        made = (await api.post("/api/login-codes", headers=bearer(ADMIN))).body
        answer = await api.post("/login", {"code": made["code"]})
        assert answer.status == 204
        cookie = answer.headers["Set-Cookie"].lower()
        assert "httponly" in cookie and "samesite=strict" in cookie and "secure" not in cookie
        assert ADMIN not in answer.headers["Set-Cookie"]
        own = {"Cookie": session_of(answer)}
        assert (await api.get("/api/schedule", headers=own)).status == 200
        assert (await api.post("/login", {"code": made["code"]})).status == 401
        assert (await api.post("/login", {"code": "x"})).status == 401
        for wrong in ({}, {"code": "x", "token": "y"}, {"code": 1}, {"name": "x"}):
            assert (await api.post("/login", wrong)).status == 400, wrong


async def test_a_session_ends_by_logging_out_and_by_ending_all(tmp_path: Path) -> None:
    """Sessions are revocable, one by one and together."""
    async with guarded(tmp_path) as api:
        first, second = [
            {"Cookie": session_of(await api.post("/login", {"token": ADMIN})), "Origin": api.base} for _ in range(2)
        ]
        assert (await api.post("/logout", headers=first)).status == 204
        assert (await api.get("/api/schedule", headers=first)).status == 401
        assert (await api.get("/api/schedule", headers=second)).status == 200
        assert (await api.ask("DELETE", "/api/logins", headers=bearer(ADMIN))).body == {"ended": 1}
        assert (await api.get("/api/schedule", headers=second)).status == 401


async def test_a_session_has_the_role_of_its_token_and_ends_with_it(tmp_path: Path) -> None:
    """A person who logs in with a reading token can only read; taking the token out of the settings logs them out."""
    tokens = list(TOKENS)
    access = Access(tokens=tokens)
    async with served(tmp_path, access=access) as api:
        own = {"Cookie": session_of(await api.post("/login", {"token": READ})), "Origin": api.base}
        assert (await api.get("/api/schedule", headers=own)).status == 200
        assert (await api.put("job", EVERY, headers=own)).status == 403
        assert (await api.post("/login", {"token": AGENT})).status == 401
        tokens.remove(TOKENS[2])
        assert (await api.get("/api/schedule", headers=own)).status == 401


async def test_another_page_of_this_host_cannot_use_the_cookie(tmp_path: Path) -> None:
    """A cookie is sent to every port of a host, and another port is the same site to a browser."""
    async with guarded(tmp_path) as api:
        own = {"Cookie": session_of(await api.post("/login", {"token": ADMIN}))}
        assert (await api.put("job", MANUAL, headers={**own, "Origin": api.base})).status == 201
        for foreign in (
            {"Origin": "http://127.0.0.1:1"},
            {"Sec-Fetch-Site": "same-site"},
            {"Sec-Fetch-Site": "cross-site"},
            {},
        ):
            assert (await api.post("/api/schedule/job/run", headers={**own, **foreign})).status == 403, foreign
        assert (await api.get("/api/schedule", headers={**own, "Sec-Fetch-Site": "same-site"})).status == 403
        assert (await api.post("/api/schedule/job/run", headers={**own, "Sec-Fetch-Site": "same-origin"})).status == 202


async def test_ten_wrong_tokens_a_minute_get_429(tmp_path: Path) -> None:
    """On loopback the right one still counts: every user of the machine has the same address there."""
    async with guarded(tmp_path) as api:
        told = [(await api.get("/api/schedule", headers=bearer("wrong"))).status for _ in range(12)]
        assert told == [401] * 10 + [429] * 2
        assert (await api.get("/api/schedule", headers=bearer(ADMIN))).status == 200


async def test_behind_a_trusted_proxy_the_client_counts(tmp_path: Path) -> None:
    """Forwarded headers of anyone else are not looked at; a limited address gets no further with the right token."""
    async with guarded(tmp_path / "a", trusted_proxies=("127.0.0.1",)) as api:
        from_one, from_other = {"X-Forwarded-For": "203.0.113.7"}, {"X-Forwarded-For": "203.0.113.7, 203.0.113.8"}
        for _ in range(11):
            await api.get("/api/schedule", headers={**bearer("wrong"), **from_one})
        assert (await api.get("/api/schedule", headers={**bearer(ADMIN), **from_one})).status == 429
        assert (await api.get("/api/schedule", headers={**bearer(ADMIN), **from_other})).status == 200
    async with guarded(tmp_path / "b") as api:
        for _ in range(11):
            await api.get("/api/schedule", headers={**bearer("wrong"), **from_one})
        assert (await api.get("/api/schedule", headers={**bearer(ADMIN), **from_one})).status == 200


async def test_the_names_of_a_proxy_are_ours_when_the_settings_say_so(tmp_path: Path) -> None:
    """`allowed_hosts` and `public_url` name them; the public page is an origin of ours, and its cookie is secure."""
    name = {"Host": "wakeful.example.com"}
    async with guarded(tmp_path / "a") as api:
        assert (await api.get("/api/schedule", headers={**bearer(ADMIN), **name})).status == 403
    async with guarded(tmp_path / "b", allowed_hosts=frozenset({"wakeful.example.com"})) as api:
        assert (await api.get("/api/schedule", headers={**bearer(ADMIN), **name})).status == 200
        assert (await api.get("/api/schedule", headers={**bearer(ADMIN), "Host": "other.example"})).status == 403
    async with guarded(tmp_path / "c", public_url="https://wakeful.example.com") as api:
        page = {"Origin": "https://wakeful.example.com"}
        answer = await api.post("/login", {"token": ADMIN}, headers={**name, **page})
        assert "secure" in answer.headers["Set-Cookie"].lower()
        own = {"Cookie": session_of(answer), **page}
        assert (await api.put("job", EVERY, headers={**own, **name})).status == 201
        assert (await api.put("job", EVERY, headers=own)).status == 200  # a proxy that names its own upstream
        assert (await api.get("/api/schedule", headers={**own, "Origin": "https://evil.example"})).status == 403


async def test_the_socket_needs_no_token_and_only_its_owner_can_open_it(tmp_path: Path) -> None:
    """Whatever the `Host` is: its file permissions are the guard."""
    with daemon(tmp_path / "home") as one:
        path = one.home / "wakeful.sock"
        assert path.stat().st_mode & 0o777 == 0o600
        assert one.home.stat().st_mode & 0o777 == 0o700
        assert (one.home / "token").stat().st_mode & 0o777 == 0o600
        status, body = await asyncio.to_thread(over_socket, path, "GET", "/api/schedule")
        assert (status, body) == (200, {"schedules": [], "next": None})
        status, _ = await asyncio.to_thread(over_socket, path, "PUT", "/api/schedule/job", EVERY)
        assert status == 201
        assert one.end() == 0
        assert not path.exists()


def over_socket(
    path: Path, method: str, target: str, body: Any = None, headers: dict[str, str] | None = None
) -> tuple[int, Any]:
    """One request through a Unix socket."""
    content = b"" if body is None else json.dumps(body).encode()
    with socket.socket(socket.AF_UNIX) as made:
        made.settimeout(60)
        made.connect(str(path))
        lines = {"Host": "wakeful", "Content-Length": len(content), "Connection": "close", **(headers or {})}
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        made.sendall(f"{method} {target} HTTP/1.1\r\n{head}\r\n".encode() + content)
        answer = b""
        while piece := made.recv(65_536):
            answer += piece
    head_, _, text = answer.partition(b"\r\n\r\n")
    return int(head_.split()[1]), json.loads(text or b"null")


PROGRAM = """
import json, os, pathlib, urllib.error, urllib.request
def ask(method, path, body=None):
    headers = {"Authorization": "Bearer " + os.environ["WAKEFUL_RUN_TOKEN"]}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(os.environ["WAKEFUL_URL"] + path, data, headers, method=method)
    try:
        return urllib.request.urlopen(request).status
    except urllib.error.HTTPError as error:
        return error.code
told = [ask("GET", "/api/schedule"), ask("PUT", "/api/schedule/x", {}), ask("POST", "/api/wake", {"text": "hi"})]
said = [told, os.environ["WAKEFUL_RUN_TOKEN"], os.environ["WAKEFUL_HOME"]]
pathlib.Path(os.environ["TOLD"]).write_text(json.dumps(said))
print(os.environ["WAKEFUL_RUN_TOKEN"])
"""


async def test_a_runs_token_wakes_and_no_more_and_ends_with_the_run(tmp_path: Path) -> None:
    """It says which run it is; it is masked wherever it is printed; afterwards it is void."""
    told = tmp_path / "told"
    job = {
        "schedule": {"type": "manual"},
        "command": {"argv": [sys.executable, "-c", PROGRAM], "env": {"TOLD": str(told)}},
    }
    with daemon(tmp_path / "home") as one:
        path = one.home / "wakeful.sock"
        assert (await asyncio.to_thread(over_socket, path, "PUT", "/api/schedule/job", job))[0] == 201
        _, run = await asyncio.to_thread(over_socket, path, "POST", "/api/schedule/job/run?wait=true")
        assert run["outcome"] == "succeeded", run
        tried, token, home = json.loads(told.read_text())
        assert (tried, home) == ([403, 403, 202], str(one.home))
        assert token.startswith(f"wr_{run['runId']}_")
        assert token not in json.dumps(run) and token not in (one.home / "server.log").read_text()
        answer = await asyncio.to_thread(over_socket, path, "POST", "/api/wake", None, bearer(token))
        assert answer[0] == 401  # over the socket too: who sends the token of a run does not act as the owner
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{one.address}/api/wake", headers=bearer(token)) as void,
        ):
            await void.read()
            assert void.status == 401


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
async def test_another_user_of_the_machine_gets_nothing(tmp_path: Path) -> None:
    """As another Unix user: 401 on every route that needs a token, and the socket cannot be opened."""
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.getuid() and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o055)  # so that only the home folder itself guards it
    with daemon(tmp_path / "home") as one:
        port = int(one.address.rpartition(":")[2])
        told = await asyncio.to_thread(as_nobody, one.home / "wakeful.sock", one.home / "token", port)
        assert told == {"socket": "PermissionError", "token": "PermissionError", "/api/schedule": 401, "/healthz": 200}


def as_nobody(path: Path, token: Path, port: int) -> dict[str, Any]:
    """What a process of another user can do, tried in a child that really becomes one."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:  # the other user
        code = 1
        try:
            os.setgroups([])
            os.setgid(65_534)
            os.setuid(65_534)
            os.write(writing, json.dumps(_tried(path, token, port)).encode())
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading) as told:
        said = told.read()
    os.waitpid(child, 0)
    found: dict[str, Any] = json.loads(said)
    return found


def _tried(path: Path, token: Path, port: int) -> dict[str, Any]:
    tried: dict[str, Any] = {}
    for name, attempt in (("socket", lambda: socket.socket(socket.AF_UNIX).connect(str(path))), ("token", token.open)):
        try:
            attempt()
            tried[name] = "allowed"
        except OSError as error:
            tried[name] = type(error).__name__
    for route in ("/api/schedule", "/healthz"):
        with socket.create_connection(("127.0.0.1", port), timeout=60) as made:
            made.sendall(f"GET {route} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
            tried[route] = int(made.recv(65_536).split()[1])
    return tried
