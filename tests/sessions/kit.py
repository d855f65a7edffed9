"""The session scheduler's world for real: a daemon that is a process, and an agent server that answers over HTTP.

The server lives on a loop of its own in a thread, so that plain tests can tell it what to do and look at what it was
asked. Every test has a desk: an agent of its own (and so a lane of its own), and a name for its schedules.
"""

import asyncio
import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from agents.server import AgentServer, Asked, serving
from edges.http.kit import Daemon, daemon
from patience import PATIENCE

T = TypeVar("T")

WITHIN = PATIENCE
AGENTS = 120
HOURLY = {"type": "every", "every": "60m"}


class Town:
    """Agent servers on a loop of their own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._ended = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._thread = threading.Thread(target=self._loop.run_forever, name="town", daemon=True)
        self._thread.start()

    def server(self) -> AgentServer:
        """One more server, listening on a free port."""
        return asyncio.run_coroutine_threadsafe(self._open(), self._loop).result(WITHIN)

    def hold(self, server: AgentServer) -> None:
        """Its agent stops in the middle of its work."""
        self._call(server.gate.clear)

    def let_go(self, server: AgentServer) -> None:
        self._call(server.gate.set)

    def close(self) -> None:
        self._call(self._ended.set)
        asyncio.run_coroutine_threadsafe(self._closed(), self._loop).result(WITHIN)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(WITHIN)
        self._loop.close()

    def _call(self, function: Callable[[], object]) -> None:
        done = threading.Event()
        self._loop.call_soon_threadsafe(lambda: (function(), done.set()))
        assert done.wait(WITHIN)

    async def _open(self) -> AgentServer:
        server, opened = AgentServer(), asyncio.Event()
        self._tasks.append(asyncio.create_task(self._serve(server, opened)))
        await opened.wait()
        return server

    async def _serve(self, server: AgentServer, opened: asyncio.Event) -> None:
        async with serving(server):
            opened.set()
            await self._ended.wait()

    async def _closed(self) -> None:
        await asyncio.gather(*self._tasks)


class Api:
    """The REST API of one daemon."""

    def __init__(self, address: str) -> None:
        self.address = address

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.address + path, data, method=method)
        try:
            with urllib.request.urlopen(request, timeout=WITHIN) as response:
                return response.status, json.loads(response.read() or b"null")
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read() or b"null")

    def get(self, path: str) -> Any:
        status, answer = self.ask("GET", path)
        assert status == 200, answer
        return answer


class Desk:
    """One agent and one schedule of a test, at a daemon and a server that others may use too."""

    def __init__(self, api: Api, home: Path, server: AgentServer, town: Town, agent: str, slug: str) -> None:
        self.api, self.home, self.server, self.town, self.agent, self.slug = api, home, server, town, agent, slug
        self.written: set[str] = set()

    def put(self, schedule: Any = None, slug: str | None = None, **more: Any) -> Any:
        """Write a schedule; hourly if nothing else is said."""
        body = {"schedule": schedule or HOURLY, "prompt": f"news of {slug or self.slug}?", "agent": self.agent, **more}
        status, answer = self.api.ask("PUT", f"/api/schedule/{slug or self.slug}", body)
        assert status in (200, 201), answer
        self.written.add(slug or self.slug)
        return answer

    def due(self, slug: str | None = None, after: int = 1, **more: Any) -> Any:
        """A schedule that rings by itself, some seconds after it is written."""
        return self.put(f"in {after}s", slug, **more)

    def run(self, slug: str | None = None) -> Any:
        """Run it by hand, and wait for its end."""
        status, answer = self.api.ask("POST", f"/api/schedule/{slug or self.slug}/run?wait=true&timeout=60s")
        assert status == 200, answer
        return answer

    def get(self, slug: str | None = None) -> Any:
        return self.api.get(f"/api/schedule/{slug or self.slug}")

    def runs(self, slug: str | None = None) -> list[Any]:
        """Its runs in full, newest first."""
        found = self.api.get(f"/api/schedule/{slug or self.slug}/runs")["runs"]
        return [self.api.get(f"/api/runs/{run['runId']}") for run in found]

    def ended(self, slug: str | None = None) -> Any:
        """Its newest run, once it is neither running nor about to be."""
        return until(
            lambda: next((run for run in self.runs(slug)[:1] if run["outcome"] not in ("running", "waiting")), None)
        )

    def status(self, status: str, slug: str | None = None) -> Any:
        """The schedule, once its status is that."""
        return until(lambda: one if (one := self.get(slug))["status"] == status else None)

    def why(self, slug: str | None = None, at: str | None = None) -> str:
        asked = "" if at is None else f"?at={at}"
        return str(self.api.get(f"/api/schedule/{slug or self.slug}/why{asked}")["sentence"])

    def messages(self, slug: str | None = None) -> list[Asked]:
        """What the agent server was asked for the schedule."""
        return [one for one in self.server.messages() if one.body["scheduleSlug"] == (slug or self.slug)]

    def file(self, name: str, slug: str | None = None) -> Path:
        return self.home / "schedule" / (slug or self.slug) / name

    def last_run(self, slug: str | None = None) -> Any:
        """What `last-run.json` says; None while it is being made."""
        try:
            return json.loads(self.file("last-run.json", slug).read_text())
        except (OSError, ValueError):
            return None

    def log_lines(self) -> list[dict[str, Any]]:
        """What the log says of the schedule to programs."""
        texts = [file.read_text() for file in sorted((self.home / "logs").glob("*.jsonl"))]
        lines = [json.loads(line) for text in texts for line in text.splitlines()]
        return [line for line in lines if line.get("slug") == self.slug]

    def hold(self) -> None:
        self.town.hold(self.server)

    def let_go(self) -> None:
        self.town.let_go(self.server)


def until(condition: Callable[[], T | None]) -> T:
    """What the condition answers, once it answers something."""
    deadline = time.monotonic() + WITHIN
    while not (found := condition()):
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)
    return found


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


def seconds_until(text: str) -> float:
    """How far away an instant is."""
    return (at(text) - datetime.now(UTC)).total_seconds()


def settings(url: str, *more: str) -> str:
    """Settings with agents `default` and `a0` to `a119`, all at that server, `s0` to `s8`, soon given up on."""
    names = ["default", *(f"a{number}" for number in range(AGENTS))]
    agents = [f'[agents.{name}]\nadapter = "sessions"\nurl = "{url}"\nconfirm_within = "1m"' for name in names]
    agents += [f'[agents.s{number}]\nadapter = "sessions"\nurl = "{url}"\nconfirm_within = "1s"' for number in range(9)]
    agents.append(f'[agents.blind]\nadapter = "sessions"\nurl = "{url}"\nproves = "accepted"')
    agents.append('[agents.nowhere]\nadapter = "sessions"\nurl = "http://127.0.0.1:9"')
    return "\n\n".join([*more, *agents]) + "\n"


def make_home(folder: Path, url: str, *more: str) -> Path:
    """A home folder with these settings. Its files are trusted: agents are at work all the time, and what a person
    writes into a file meanwhile would wait for approval."""
    folder.mkdir(parents=True, mode=0o700)
    (folder / "wakeful.toml").write_text(settings(url, '[schedules]\nfiles = "trust"', *more))
    return folder


@contextmanager
def desk_of(one: Daemon, server: AgentServer, town: Town, agent: str, slug: str) -> Iterator[Desk]:
    """A desk; afterwards the server is as it was, and its schedules are gone."""
    desk = Desk(Api(one.address), one.home, server, town, agent, slug)
    try:
        yield desk
    finally:
        server.manner, server.statuses, server.headers, server.raw = "works", [], {}, {}
        desk.let_go()
        if one.process.poll() is None:
            for name in desk.written:
                desk.api.ask("DELETE", f"/api/schedule/{name}")


__all__ = ["Api", "Daemon", "Desk", "Town", "at", "daemon", "desk_of", "make_home", "seconds_until", "until"]
