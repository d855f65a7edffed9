"""Writes the fixtures of `test_from_earlier_releases`: databases with every kind of row, on both stores.

Everything is done by the release itself: its daemon runs on a home folder, is driven over REST, is killed in the middle
of a run, starts again, and is killed once more. Beside the database is what its REST API said at the end.

To make one again (about eight minutes; 0.1.0 is the commit before `c9dcb2c`, 0.2.0 is `0add5297`):

    git archive 0add5297 | tar x -C /tmp/wakeful-0.2
    python3 -m venv /tmp/wakeful-0.2/.venv
    /tmp/wakeful-0.2/.venv/bin/pip install '/tmp/wakeful-0.2[postgres]'
    PYTHONPATH=tests .venv/bin/python -m upgrade.make 0.2 /tmp/wakeful-0.2/.venv/bin/wakeful
"""

import gzip
import json
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from postgres import server as postgres
from upgrade.daemon import Daemon, pages, until

FIXTURE = Path(__file__).parent / "fixture"
RELEASES = ("0.1", "0.2")
SCHEMA = "wakeful_of_0_1"
HOME = "@HOME@"
"""Stands for the home folder in the fixture."""

SETTINGS = """\
[schedules]
timezone = "UTC"

[agents.default]
adapter = "command"
argv = ["python3", "{home}/agent.py"]
reply_key = "reply"
session_key = "session"
usage_key = "usage"

[agents.silent]
adapter = "sessions"
url = "{server}"
cwd = "/"
confirm_within = "1s"

[channels.hook]
type = "webhook"
url = "{server}/unavailable"
allow_private = true

[channels.gone]
type = "webhook"
url = "{server}/gone"
allow_private = true

[heartbeat]
enabled = true
every = "12h"

[limits]
agent_interval_min = "1s"
every_min = "1s"
"""

# What 0.2 added.
SETTINGS_OF_0_2 = """
[agents.priced]
adapter = "command"
argv = ["python3", "{home}/agent.py"]
reply_key = "reply"
session_key = "session"
usage_key = "usage"
model = "m-1"

[prices.m-1]
input = 3.0
output = 15.0

[tokens.default]
token = "the-token-of-the-agent"
role = "agent"
agent = "default"
"""

# Fails as long as it is asked about a storm.
AGENT = """\
import json, sys
asked = sys.stdin.read()
if "storm" in asked:
    sys.exit("no words for this")
print(json.dumps({"reply": "All is well.", "session": "s-1", "usage": {"inputTokens": 12, "outputTokens": 3}}))
"""

LETTERS = """\
import json, sys
asked = json.load(sys.stdin)
answer = {}
if asked["phase"] == "produce":
    number = (asked["state"] or 0) + 1
    answer = {"messages": [{"topic": "letters", "id": str(number), "payload": f"letter {number}"}], "state": number}
elif asked["phase"] == "prepare":
    letters = [one["id"] for one in asked["messages"].get("letters", [])]
    answer = {"reservations": [{"topic": "letters", "ids": letters}] if letters else [], "data": letters}
print(json.dumps(answer))
"""


class World(BaseHTTPRequestHandler):
    """What 0.1.0 reaches on loopback: a session server that accepts and stays silent, and receivers that fail."""

    def do_GET(self) -> None:
        self._reply(200, {"sessionId": "r-1", "status": "idle", "isActive": False, "sessions": []})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        match self.path:
            case "/unavailable":
                self._reply(503, {})
            case "/gone":
                self._reply(404, {})
            case _:
                self._reply(200, {"sessionId": "r-1", "ok": True})

    def log_message(self, format: str, *args: Any) -> None: ...

    def _reply(self, status: int, body: Any) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def shell(line: str) -> dict[str, Any]:
    return {"argv": ["sh", "-c", line]}


def once(seconds: float) -> dict[str, Any]:
    return {"type": "once", "at": (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat()}


MANUAL = {"type": "manual"}
HOURLY = {"type": "every", "every": "1h"}


def fill(daemon: Daemon, home: Path) -> None:
    """Everything up to the first death of the daemon."""
    soon = once(600)
    fine = shell("echo fine")
    _ended_runs(daemon, home)
    daemon.schedule("hourly", HOURLY, command=fine, stagger="5m")
    daemon.schedule(
        "weekdays", {"type": "cron", "expression": "0 9 * * 1-5", "timezone": "Asia/Shanghai"}, command=fine
    )
    daemon.schedule("by-day", {"type": "times", "times": ["07:30", "19:00"]}, command=fine, catchUp="skip")
    daemon.schedule("all-of-them", {"type": "every", "every": "10m"}, command=fine, catchUp="all", catchUpMax=3)
    daemon.schedule("far", {"type": "once", "at": "2999-01-01T00:00:00Z"}, event={"text": "The year 2999 begins"})
    daemon.schedule("soon", soon, command=shell("echo at last"), deliver={"channel": "inbox"})
    daemon.schedule("punctual", soon, command=fine, maxLateness="1m")
    daemon.schedule("web", HOURLY, http={"method": "POST", "url": "http://127.0.0.1:9/", "body": {"a": 1}})
    daemon.schedule("python", HOURLY, call={"target": "os:getpid"})
    daemon.schedule("night-only", HOURLY, command=fine, activeHours={"start": "22:00", "end": "06:00"}, overlap="queue")
    daemon.schedule("paused", HOURLY, command=fine, retry={"times": 2, "delay": "5m"}, lane="one-by-one")
    daemon.post("/api/schedule/paused/pause", {"until": "2999-01-01T00:00:00Z"})
    daemon.schedule("off", HOURLY, command=fine, enabled=False)
    daemon.schedule("removed", HOURLY, command=fine)
    daemon.run("removed")
    daemon.delete("/api/schedule/removed")
    daemon.schedule("edited", HOURLY, command=fine)
    daemon.schedule("edited", {"type": "every", "every": "2h"}, command=shell("echo better"))
    _people(daemon)
    _slots(daemon)
    _workflows(daemon, home)


def fill_0_2(daemon: Daemon, home: Path) -> None:
    """What 0.2 added to it."""
    fine = shell("echo fine")
    daemon.put("/api/budget", {"period": "day", "limit": 5})
    daemon.put("/api/budget", {"period": "month", "limit": 50, "agent": "priced"})
    daemon.schedule("costs", MANUAL, prompt="What is new?", agent="priced", budget={"perDay": 1.5, "perRun": 0.5})
    assert daemon.run("costs")["usage"]["cost"] > 0
    daemon.schedule("looks-first", {"type": "every", "every": "1s"}, prompt="Look", agent="priced",
                    check={"command": {"argv": ["true"]}})  # fmt: skip
    until(lambda: "skipped" in daemon.outcomes("looks-first"))
    daemon.post("/api/schedule/looks-first/pause")
    daemon.schedule("not-in-may", HOURLY, command=fine, exclude={"dates": ["2999-05-01", "2999-05-02"]})
    daemon.schedule("for-a-label", once(1), command=fine, runOn=["gpu"])
    daemon.schedule("stopped-by-a-person", MANUAL, command=shell("sleep 60"))
    stopped = daemon.post("/api/schedule/stopped-by-a-person/run")["runId"]
    until(lambda: daemon.get(f"/api/runs/{stopped}")["outcome"] == "running")
    daemon.post(f"/api/runs/{stopped}/cancel")
    until(lambda: daemon.get(f"/api/runs/{stopped}")["outcome"] == "cancelled")
    daemon.post(f"/api/runs/{stopped}/replay")
    daemon.schedule("filled-in", {"type": "cron", "expression": "0 9 * * *", "timezone": "UTC"}, command=fine)
    daemon.post("/api/schedule/filled-in/backfill", {"from": "2026-01-01T00:00:00Z", "until": "2026-01-04T00:00:00Z"})
    until(lambda: daemon.outcomes("filled-in").count("succeeded") == 3)
    daemon.schedule("to-two", MANUAL, command=fine, deliver=[{"channel": "inbox"}, {"channel": "gone"}])
    daemon.run("to-two")
    agent = {"Authorization": "Bearer the-token-of-the-agent"}
    mondays = {"slug": "mondays", "when": "every monday at 9:00", "prompt": "Sum up", "note": "asked"}
    daemon.post("/api/tools/put_schedule", mondays, **agent)
    daemon.post("/api/tools/wake_me", {"after": "2h", "text": "Look at the build"}, **agent)
    assert daemon.get("/api/approvals")["approvals"]
    daemon.post("/api/login-codes")
    flow = {
        "producers": {"source": {"schedule": MANUAL, "publishes": ["letters"], "handler": {"command": fine}}},
        "consumers": {name: {"subscribe": ["letters"], "handler": {"command": fine}} for name in ("one", "two")},
    }
    daemon.put("/api/workflows/fans-out", {**flow, "status": "draft"})


def _ended_runs(daemon: Daemon, home: Path) -> None:
    """Runs with every outcome a run can end with."""
    daemon.schedule("succeeds", once(1), command=shell("echo fine; echo but >&2"))
    daemon.schedule("fails", MANUAL, command=shell("echo why; exit 3"), retry={"times": 0, "delay": "1m"})
    daemon.run("fails")
    daemon.schedule("gives-up", {"type": "every", "every": "1s"}, command=shell("exit 1"), maxConsecutiveErrors=2,
                    retry={"times": 0, "delay": "1s"})  # fmt: skip
    daemon.schedule("too-slow", MANUAL, command=shell("sleep 60"), timeout="1s")
    daemon.run("too-slow")
    daemon.schedule("busy", {"type": "every", "every": "1s"}, command=shell("sleep 4"))
    daemon.schedule("unproven", MANUAL, prompt="Are you there?", agent="silent")
    daemon.run("unproven")
    daemon.schedule("talks", MANUAL, prompt="What is new?", deliver={"channel": "inbox"})
    assert daemon.run("talks")["outcome"] == "succeeded"
    daemon.schedule("tries-again", once(1), command=shell("exit 1"),
                    retry={"times": 5, "delay": "5m"})  # fmt: skip
    until(lambda: daemon.outcomes("tries-again") == ["waiting"])
    until(lambda: daemon.outcomes("succeeds") == ["succeeded"])
    until(lambda: daemon.get("/api/schedule/gives-up")["status"] == "disabled")
    until(lambda: {"skipped", "succeeded"} <= set(daemon.outcomes("busy")))
    daemon.post("/api/schedule/busy/pause")
    until(lambda: "running" not in daemon.outcomes("busy"))
    daemon.schedule("of-unknown-fate", MANUAL, command=shell(f"touch {home}/started; sleep 60"), onCrash="unknown")
    daemon.schedule("in-the-middle", MANUAL, command=shell(f"touch {home}/again; sleep 60"), onCrash="retry")


def _people(daemon: Daemon) -> None:
    """Deliveries of every status, the inbox, a conversation, the heartbeat and its events, answers that are kept."""
    daemon.post("/api/deliveries", {"text": "for the inbox", "channel": "inbox"})
    read = daemon.get("/api/inbox")["items"][0]["id"]
    daemon.post(f"/api/inbox/{read}/read", {"read": True})
    daemon.post("/api/deliveries", {"text": "nobody is there", "channel": "gone"})
    daemon.post("/api/deliveries", {"text": "later, perhaps", "channel": "hook", "to": "ann"})
    daemon.post("/api/channels/inbox/messages", {"to": "ann", "text": "Good morning"})
    until(lambda: daemon.outcomes("message:inbox:ann") == ["succeeded"])
    daemon.post("/api/wake", {"reason": "manual"})
    until(lambda: "succeeded" in daemon.outcomes("heartbeat"))
    daemon.schedule("news", MANUAL, event={"text": "A storm is coming", "contextKey": "weather"})
    daemon.post("/api/schedule/news/run")
    until(lambda: "failed" in daemon.outcomes("heartbeat"))
    daemon.post("/api/schedule/hourly/run?wait=true", **{"Idempotency-Key": "tonight"})
    until(
        lambda: (
            {"dead", "delivered", "pending"} <= {one["status"] for one in daemon.get("/api/deliveries")["deliveries"]}
        )
    )


def _slots(daemon: Daemon) -> None:
    quota = """echo {\\"percentage\\": 42, \\"nextResetTime\\": $(( $(date +%s) + 7200 ))}"""
    daemon.put("/api/slots/mine", {"provider": "command", "quotaArgv": ["sh", "-c", quota], "wakeArgv": ["true"],
                                   "afterReset": "1m", "times": ["07:30"]})  # fmt: skip
    daemon.put("/api/slots/broken", {"provider": "command", "quotaArgv": ["false"], "poll": "1h"})
    until(lambda: daemon.get("/api/slots/mine")["percentage"] == 42)
    daemon.post("/api/slots/mine/wake")
    until(lambda: daemon.get("/api/slots/mine/runs")["runs"])
    daemon.schedule(
        "after-the-reset", {"type": "afterReset", "slot": "mine", "offsetMinutes": 5}, command=shell("true")
    )
    daemon.schedule("with-a-slot", HOURLY, command=shell("true"), slot="mine")


def _workflows(daemon: Daemon, home: Path) -> None:
    """One that works and is paused with a message pending, one that stopped with an error, and a draft."""
    handler = {"command": {"argv": ["python3", str(home / "letters.py")]}}
    flow = {
        "status": "active",
        "producers": {"postman": {"schedule": HOURLY, "publishes": ["letters"], "handler": handler}},
        "consumers": {"reader": {"subscribe": ["letters"], "handler": handler}},
    }
    daemon.put("/api/workflows/letters", flow)
    letters = "/api/workflows/letters/topics/letters/messages"
    until(lambda: [one["status"] for one in daemon.get(letters)["messages"]] == ["consumed"])
    daemon.put("/api/workflows/draft", {**flow, "status": "draft"})
    daemon.put("/api/workflows/stopped", flow)
    stopped = "/api/workflows/stopped"
    until(lambda: daemon.get(f"{stopped}/topics/letters/messages")["messages"])
    until(lambda: "running" not in str(daemon.get(f"{stopped}/sessions")["sessions"][0]))
    (home / "letters.py").rename(home / "moved.py")
    daemon.post(f"{stopped}/topics/letters/messages", {"id": "x", "payload": [1]})
    until(lambda: daemon.get(stopped).get("error"))
    (home / "moved.py").rename(home / "letters.py")
    daemon.post("/api/workflows/letters/pause")
    daemon.post(letters, {"id": "from-ann", "payload": {"text": "still to be read"}})


def die(daemon: Daemon, home: Path) -> None:
    """The daemon is killed while it works, misses an instant, starts again and settles what it finds."""
    daemon.post("/api/schedule/of-unknown-fate/run")
    until((home / "started").exists)
    daemon.schedule("missed", once(4), command=shell("true"), maxLateness="1s")
    daemon.kill()
    time.sleep(70)  # the instant of `missed` passes, and the minute within which it would still be on time
    daemon.start()
    until(lambda: daemon.outcomes("of-unknown-fate") == ["unknown"])
    until(lambda: daemon.outcomes("missed") == ["missed"])
    daemon.post("/api/schedule/in-the-middle/run")
    until((home / "again").exists)


def listing(daemon: Daemon, release: str) -> dict[str, Any]:
    """What the REST API says of everything, page by page."""
    told = {path: daemon.get(path) for path in ("/api/heartbeat", "/api/system-events", "/api/channels", "/api/slots")}
    for path, name in (("/api/schedule", "schedules"), ("/api/runs", "runs"), ("/api/deliveries", "deliveries"),
                       ("/api/inbox", "items"), ("/api/workflows", "workflows")):  # fmt: skip
        told[path] = pages(daemon, path, name)
    told["runs"] = [daemon.get(f"/api/runs/{run['runId']}") for run in told["/api/runs"]]
    for flow in told["/api/workflows"]:
        place = f"/api/workflows/{flow['id']}"
        told[f"{place}/sessions"] = pages(daemon, f"{place}/sessions", "sessions")
        told[f"{place}/topics/letters/messages"] = pages(daemon, f"{place}/topics/letters/messages", "messages")
    for path in ("/api/budget", "/api/approvals") if release == "0.2" else ():
        told[path] = daemon.get(path)
    return told


def settled(daemon: Daemon, release: str) -> dict[str, Any]:
    """The listing, once nothing changes in it any more."""
    before: list[Any] = [None]

    def is_still() -> bool:
        time.sleep(5)
        told = listing(daemon, release)
        stored = {path: told[path] for path in told if path not in ("/api/heartbeat", "/api/slots")}  # these count down
        is_same, before[0] = stored == before[0], stored
        return is_same

    until(is_still)
    return listing(daemon, release)


def made(release: str, wakeful: str, store: str, home: Path, server: str) -> str:
    """Fill a store; returns what the release said of it before it was killed."""
    home.mkdir(mode=0o700)
    (home / "agent.py").write_text(AGENT)
    (home / "letters.py").write_text(LETTERS)
    settings = SETTINGS + (SETTINGS_OF_0_2 if release == "0.2" else "")
    (home / "wakeful.toml").write_text(settings.format(home=home, server=server))
    daemon = Daemon([wakeful], home, store)
    daemon.start()
    try:
        fill(daemon, home)
        if release == "0.2":
            fill_0_2(daemon, home)
        die(daemon, home)
        return json.dumps(settled(daemon, release), indent=1)
    finally:
        daemon.kill()


@contextmanager
def world() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), World) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def pg_dump() -> str:
    """The schema as plain SQL that any connection can execute."""
    ((server, _),) = postgres._running
    argv = [str(server.bin_path / "pg_dump"), "--inserts", "--no-owner", "--no-privileges", f"--schema={SCHEMA}"]
    dumped = subprocess.run([*argv, postgres.start().url], capture_output=True, text=True, check=True).stdout
    return "\n".join(line for line in dumped.splitlines() if line and not line.startswith(("--", "\\")))


def write(name: str, text: str, home: Path, release: str) -> None:
    with gzip.GzipFile(FIXTURE / release / f"{name}.gz", "wb", mtime=0) as file:
        file.write(re.sub(r"/[\w./-]+/python3(?=: )", "python3", text.replace(str(home), HOME)).encode())


def main(release: str, wakeful: str) -> None:
    (FIXTURE / release).mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="wk01"))
    try:
        with world() as server:
            told = made(release, wakeful, f"sqlite:///{folder}/a/wakeful.db", folder / "a", server)
            with closing(sqlite3.connect(folder / "a" / "wakeful.db")) as connection:
                pragmas = [f"PRAGMA {name} = {connection.execute(f'PRAGMA {name}').fetchone()[0]};"
                           for name in ("application_id", "user_version")]  # fmt: skip
                write("sqlite.sql", "\n".join([*pragmas, *connection.iterdump()]), folder / "a", release)
            write("sqlite.json", told, folder / "a", release)
            told = made(release, wakeful, postgres.start().at(SCHEMA), folder / "b", server)
            write("postgres.sql", pg_dump(), folder / "b", release)
            write("postgres.json", told, folder / "b", release)
    finally:
        postgres.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
