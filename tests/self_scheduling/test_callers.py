"""Who calls on the Unix socket: what an agent's turn started is that agent, in a session of its own too, and what a
person's command started may operate what exists. Each program here is started by a real daemon."""

import json
import os
import socket
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import pytest

from edges.cli.kit import Cli, daemon
from patience import PATIENCE
from wakeful.server.http.roles import WRITING

PROGRAM = """
import http.client, json, os, socket, subprocess, sys
class Connection(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(HOME + "/wakeful.sock")
def ask(method, path, body=None, headers={}):
    connection = Connection("wakeful", timeout=60)
    connection.request(method, path, None if body is None else json.dumps(body), headers)
    response = connection.getresponse()
    text = response.read().decode()
    return [response.status, text]
def wakeful(*words):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("WAKEFUL_")}
    done = subprocess.run([sys.executable, "-m", "wakeful.cli.main", "--home", HOME, *words], env=environment,
                          capture_output=True, text=True)
    return [done.returncode, done.stdout + done.stderr]
def every_way(commands):
    told = {"caller": ask("GET", "/api/caller"), "nodes": ask("GET", "/api/nodes")}
    told["routes"] = {route: ask(*route.format(**NAMES).split(" "), body={})[0] for route in ROUTES}
    told["commands"] = {" ".join(words): wakeful(*words) for words in commands}
    return told
if sys.argv[1:] == ["inner"]:
    print(json.dumps(every_way(COMMANDS if "WAKEFUL_HOME" in os.environ else COMMANDS[:1])))
else:
    if not sys.stdin.isatty():
        sys.stdin.read()
    inner = [sys.executable, __file__, "inner"]
    told = {"here": every_way(COMMANDS[:1])}
    for how, options in {"setsid": {"start_new_session": True}, "bare": {"env": {}, "start_new_session": True}}.items():
        done = subprocess.run(inner, capture_output=True, text=True, **options)
        told[how] = json.loads(done.stdout) if done.returncode == 0 else done.stderr
    with open(TOLD + ".new", "w") as file:
        json.dump(told, file)
    os.replace(TOLD + ".new", TOLD)
    print("done")
"""
NAMES = {"name": "main", "id": "p00000000", "slug": "owners", "agent": "coder", "run": "1", "topic": "t"}
PEOPLES = sorted(route for route, least in WRITING.items() if least == "admin")
OWN = ["PUT /api/schedule/{slug}", "DELETE /api/schedule/{slug}"]
OPERATING = ["POST /api/schedule/{slug}/pause", "POST /api/schedule/{slug}/resume"]
COMMANDS = [
    ["down"],
    ["approvals", "approve", "p00000000"],
    ["budget", "set", "day", "5"],
    ["init"],
    ["open", "--print"],
    ["rm", "owners"],
    ["service", "install"],
    ["agents", "connect", "claude"],
]


def program(folder: Path, home: Path) -> tuple[Path, Path]:
    """The program, and the file in which it tells what it got."""
    made, told = folder / "caller.py", folder / "told.json"
    given = {"HOME": str(home), "TOLD": str(told), "ROUTES": PEOPLES + OPERATING, "NAMES": NAMES, "COMMANDS": COMMANDS}
    made.write_text("".join(f"{name} = {value!r}\n" for name, value in given.items()) + PROGRAM)
    return made, told


def told_by(cli: Cli, told: Path) -> dict[str, Any]:
    cli.until(told.exists)
    read: dict[str, Any] = json.loads(told.read_text())
    assert all(isinstance(ways, dict) for ways in read.values()), read
    return read


def check_is_no_person(ways: Mapping[str, Any], *, own: Collection[str] = ()) -> None:
    """Nothing that only people may do was done. An agent's requests for schedules are about its own."""
    refused = {route: ways["routes"][route] for route in PEOPLES if route not in own}
    assert set(refused.values()) == {403}, refused
    commands = ways["commands"]
    assert {words for words, (code, _) in commands.items() if code == 0} == set(), commands


def check_is_agent(ways: Mapping[str, Any]) -> None:
    check_is_no_person(ways, own=OWN)
    assert {ways["routes"][route] for route in OWN} <= {400, 404}, ways["routes"]
    assert {route: ways["routes"][route] for route in OPERATING} == dict.fromkeys(OPERATING, 404)  # it has none
    assert ways["nodes"][0] == 403
    assert "only a person can stop the daemon" in ways["commands"]["down"][1]


@pytest.mark.parametrize("begun", ["heartbeat", "schedule", "message"])
def test_what_a_turn_started_is_its_agent(tmp_path: Path, begun: str) -> None:
    """However the turn began: by the heartbeat, a schedule or a message; also in a session of its own, and without its
    environment."""
    home = tmp_path / "home"
    home.mkdir()
    made, told = program(tmp_path, home)
    (home / "wakeful.toml").write_text(
        f"[agents.coder]\nadapter = 'command'\nargv = [{sys.executable!r}, {str(made)!r}]\nstdin = true\n"
        "[heartbeat]\nagent = 'coder'\n[channels.desk]\ntype = 'console'\n"
    )
    with daemon(home) as cli:
        assert cli.ask("add", "owners", "--every", "2h", "--command", "true").code == 0
        match begun:
            case "heartbeat":
                assert cli.ask("wake", "--text", "look").code == 0
            case "schedule":
                cli.ask("add", "begin", "--manual", "--prompt", "go", "--set", "agent=coder")
                assert cli.ask("run", "begin").code == 0
            case "message":
                send(home, "/api/channels/desk/messages", {"text": "hello", "to": "me"})
        for ways in told_by(cli, told).values():
            check_is_agent(ways)
            status, caller = ways["caller"]
            assert status == 200 and json.loads(caller)["role"] == "run", caller
        assert cli.ask("status", "-o", "json").json["running"] is True
        assert cli.ask("show", "owners", "-o", "json").json["status"] == "idle"


def test_what_a_persons_command_started_may_operate(tmp_path: Path) -> None:
    """It may pause and resume, copy and export, but not stop the daemon, approve, or write settings and definitions."""
    home, copy = tmp_path / "home", tmp_path / "copy.db"
    made, told = program(tmp_path, home)
    wakeful = [sys.executable, "-m", "wakeful.cli.main", "--home", str(home)]
    done = f"{' '.join(wakeful)} export {tmp_path / 'out'} && {' '.join(wakeful)} backup {copy}"
    with daemon(home) as cli:
        assert cli.ask("add", "owners", "--every", "2h", "--command", "true").code == 0
        line = f"{sys.executable} {made} < /dev/null; {done}"
        definition = {"schedule": {"type": "manual"}, "command": {"argv": ["sh", "-c", line]}}
        send(home, "/api/schedule/begin", definition, method="PUT")
        run = cli.ask("run", "begin", "--wait", "-o", "json").json
        assert run["outcome"] == "succeeded", run
        for ways in told_by(cli, told).values():
            check_is_no_person(ways)
            assert {route: ways["routes"][route] for route in OPERATING} == dict.fromkeys(OPERATING, 200)
            assert ways["nodes"][0] == 200
            assert json.loads(ways["caller"][1])["role"] == "operate"
            assert "only a person can stop the daemon" in ways["commands"]["down"][1]
        assert copy.exists() and (tmp_path / "out" / "schedules" / "owners.json").exists()
        assert cli.ask("show", "owners", "-o", "json").json["status"] == "idle"


def test_what_a_turn_left_behind_is_still_its_agent(tmp_path: Path) -> None:
    """Its run has ended, and its parent is gone: the token that it was started with names the run."""
    home, told = tmp_path / "home", tmp_path / "told"
    home.mkdir()
    later = tmp_path / "later.py"
    made, _ = program(tmp_path, home)
    later.write_text(
        f"import json, os, sys, time\nsource = open({str(made)!r}).read().split('if sys.argv')[0]\nexec(source)\n"
        "while '\"outcome\":\"running\"' in ask('GET', '/api/caller')[1].replace(' ', '') or "
        f"not os.path.exists({str(tmp_path / 'ended')!r}): time.sleep(0.1)\n"
        f"open({str(told)!r} + '.new', 'w').write(json.dumps(every_way(COMMANDS[:1])))\n"
        f"os.replace({str(told)!r} + '.new', {str(told)!r})\n"
    )
    agent = tmp_path / "agent.py"
    agent.write_text(
        f"import subprocess, sys\nsys.stdin.read()\nsubprocess.Popen([sys.executable, {str(later)!r}], "
        "start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)\n"
        "print('done')\n"
    )
    (home / "wakeful.toml").write_text(
        f"[agents.coder]\nadapter = 'command'\nargv = [{sys.executable!r}, {str(agent)!r}]\nstdin = true\n"
    )
    with daemon(home) as cli:
        cli.ask("add", "owners", "--every", "2h", "--command", "true")
        cli.ask("add", "begin", "--manual", "--prompt", "go", "--set", "agent=coder")
        assert cli.ask("run", "begin", "--wait").code == 0
        (tmp_path / "ended").touch()
        cli.until(told.exists)
        ways = json.loads(told.read_text())
        check_is_agent(ways)
        caller = json.loads(ways["caller"][1])
        assert (caller["role"], caller["agent"], caller["runId"]) == ("agent", "coder", None)


def test_a_process_that_cannot_be_looked_up_may_only_read(tmp_path: Path) -> None:
    """It connected and is gone. Writes are refused with what to do; with a token they are accepted."""
    home = tmp_path / "home"
    with daemon(home) as cli:
        path, token = str(home / "wakeful.sock"), (home / "token").read_text().strip()
        assert cli.ask("add", "owners", "--every", "2h", "--command", "true").code == 0
        status, answer = asked_by_one_that_is_gone(path, "GET", "/api/schedule")
        assert status == 200 and "owners" in answer
        status, answer = asked_by_one_that_is_gone(path, "POST", "/api/schedule/owners/pause")
        assert status == 401 and "may only read; send a token: Authorization: Bearer TOKEN" in answer
        status, _ = asked_by_one_that_is_gone(
            path, "POST", "/api/schedule/owners/pause", f"Authorization: Bearer {token}"
        )
        assert status == 200
        for route in PEOPLES:
            method, target = route.format(**NAMES).split(" ")
            assert asked_by_one_that_is_gone(path, method, target)[0] == 401, route


def asked_by_one_that_is_gone(path: str, method: str, target: str, *headers: str) -> tuple[int, str]:
    """One request over a connection that was opened by a process which has ended."""
    with socket.socket(socket.AF_UNIX) as made:
        made.settimeout(PATIENCE)
        child = os.fork()
        if child == 0:
            made.connect(path)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        lines = (f"{method} {target} HTTP/1.1", "Host: wakeful", "Content-Length: 0", "Connection: close", *headers)
        made.sendall("\r\n".join([*lines, "", ""]).encode())
        answer = b"".join(iter(lambda: made.recv(65_536), b""))
    head, _, text = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), text.decode()


def send(home: Path, path: str, body: Any, *, method: str = "POST") -> None:
    """As the owner, over the socket."""
    from edges.http.test_access import over_socket

    status, answer = over_socket(home / "wakeful.sock", method, path, body)
    assert status < 300, answer
