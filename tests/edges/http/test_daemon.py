"""The daemon as a process: one per home, refused where it cannot work, ended cleanly."""

import json
import os
import signal
import socket
import stat
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

from edges.http.kit import EVERY, MANUAL, Daemon, daemon, start
from patience import PATIENCE
from wakeful.server.daemon.file_systems import network_file_system
from wakeful.server.daemon.home import HomeHeld, holder_of
from wakeful.server.daemon.process import serve


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """One daemon for the tests that only look."""
    with daemon(tmp_path_factory.mktemp("daemon") / "home") as one:
        yield one


def ask(address: str, path: str, *, method: str = "GET", body: Any = None, token: str | None = None) -> tuple[int, Any]:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address + path, data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as response:
            return response.status, json.loads(response.read() or b"null")
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read() or b"null")


def refused(home: Path, *options: str, code: int = 1) -> str:
    """What a daemon says that does not start; it must end with this code and without a traceback."""
    process = start(home, *options)
    out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (code, ""), err
    assert "Traceback" not in err
    return err


def test_a_home_is_made_for_its_owner_only(running: Daemon) -> None:
    """The folder and everything in it."""
    assert stat.S_IMODE(running.home.stat().st_mode) == 0o700
    for file in running.home.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) & 0o077 == 0, file


def test_the_lock_file_says_who_holds_the_home(running: Daemon) -> None:
    """Process, host, since when, and where it listens: that is how the command line finds it."""
    holder = holder_of(running.home)
    assert holder is not None
    assert (holder.pid, holder.host, holder.address) == (running.process.pid, socket.gethostname(), running.address)


def test_a_second_daemon_says_who_holds_the_home_and_ends(running: Daemon) -> None:
    """On the same home there is one; the first is not disturbed."""
    said = refused(running.home)
    assert f"process {running.process.pid}" in said
    assert running.address in said
    assert ask(running.address, "/readyz") == (200, {"status": "ready"})


async def test_within_one_process_there_is_one_as_well(running: Daemon) -> None:
    """`serve` raises what the command line shows."""
    with pytest.raises(HomeHeld) as held:
        await serve(running.home, port=0)
    assert held.value.holder is not None
    assert held.value.holder.pid == running.process.pid


def test_health_nodes_and_settings(running: Daemon) -> None:
    """Who ticks, that it ticks, and by which settings."""
    status, health = ask(running.address, "/healthz")
    assert (status, health["isStoreWritable"], health["stuckRuns"]) == (200, True, [])
    assert {one["name"] for one in health["findings"] if one["level"] != "ok"} <= {"lag"}  # of a busy machine
    node = ask(running.address, "/api/nodes")[1]["nodes"][0]
    assert (node["pid"], node["isAlive"]) == (running.process.pid, True)
    config = ask(running.address, "/api/config")[1]
    assert config["settings"]["limits"]["body_max"] == "1MiB"
    assert config["sources"]["server.port"]["from"] == "option"
    assert config["refused"] == []


def test_an_agent_is_asked_and_its_reply_kept(running: Daemon) -> None:
    """A prompt needs nothing but the daemon: the default agent echoes."""
    daily = {"schedule": {"type": "times", "times": ["09:00"], "timezone": "UTC"}, "prompt": "hello"}
    assert ask(running.address, "/api/schedule/hello", method="PUT", body=daily)[0] == 201
    status, run = ask(running.address, "/api/schedule/hello/run?wait=true", method="POST")
    assert (status, run["outcome"]) == (200, "succeeded")
    assert "hello" in run["reply"]
    often = {**daily, "schedule": {"type": "interval", "intervalMinutes": 59}}
    status, problem = ask(running.address, "/api/schedule/often", method="PUT", body=often)
    assert (status, problem["error"]) == (400, "Minimum interval is 60 minutes (1 hour)")
    (named,) = problem["errors"]
    assert named["field"] == "schedule" and named["message"].startswith(problem["error"])
    assert "limits.agent_interval_min in wakeful.toml" in named["message"] and named["message"] in problem["detail"]


def test_a_run_has_its_log(running: Daemon) -> None:
    """Alone, not in lists: the lines about it, from its start to its end."""
    ask(running.address, "/api/schedule/logged", method="PUT", body=MANUAL)
    run_id = ask(running.address, "/api/schedule/logged/run?wait=true", method="POST")[1]["runId"]
    status, run = ask(running.address, f"/api/runs/{run_id}")
    assert status == 200
    told = [line["action"] for line in run["log"] if line["level"] != "debug"]
    assert told == ["run-waiting", "run-started", "run-ended"]
    assert {line["details"]["runId"] for line in run["log"]} == {int(run_id)}
    assert {line.get("slug", "logged") for line in run["log"]} == {"logged"}
    assert run["logIsCut"] is False
    described = Resource(ask(running.address, "/api/openapi.json")[1], DRAFT202012)
    registry = Registry().with_resource("urn:api", described)
    Draft202012Validator({"$ref": "urn:api#/components/schemas/RunWithLog"}, registry=registry).validate(run)
    assert "log" not in ask(running.address, "/api/schedule/logged/runs")[1]["runs"][0]


def test_why_is_answered_with_a_sentence(running: Daemon) -> None:
    """For now and for an instant; 404 for what never was."""
    ask(running.address, "/api/schedule/job", method="PUT", body=EVERY)
    status, why = ask(running.address, "/api/schedule/job/why")
    assert (status, set(why)) == (200, {"sentence", "facts"})
    assert why["sentence"]
    assert ask(running.address, "/api/schedule/job/why?at=2020-01-01T00:00:00Z")[0] == 200
    assert ask(running.address, "/api/schedule/job/why?at=noon")[0] == 400
    assert ask(running.address, "/api/schedule/none/why")[0] == 404


def test_a_command_may_post_a_receipt_with_the_token_of_its_run(running: Daemon) -> None:
    """The address in its environment works as it stands, and what is posted there is in the ledger; a wrong token and
    a wrong body do not."""
    program = (
        "import json, os, urllib.request as web\n"
        "url = os.environ['WAKEFUL_RECEIPT_URL']\n"
        "body = json.dumps({'rung': 'finished', 'text': 'done', 'usage': {'outputTokens': 5}}).encode()\n"
        "print(web.urlopen(web.Request(url, body, method='POST')).read().decode(), url)\n"
    )
    job = {**MANUAL, "command": {"argv": [sys.executable, "-c", program]}}
    assert ask(running.address, "/api/schedule/receipt", method="PUT", body=job)[0] == 201
    run = ask(running.address, "/api/schedule/receipt/run?wait=true", method="POST")[1]
    assert run["outcome"] == "succeeded", run
    answer, _, url = run["output"].strip().rpartition(" ")
    assert json.loads(answer)["status"] == "taken"
    assert (run["reply"], run["usage"]["output"]) == ("done", 5)
    path = url.removeprefix(running.address)
    forged = path.partition("?")[0] + "?token=x"
    body = {"rung": "finished"}
    assert ask(running.address, forged, method="POST", body=body)[0] == 401
    assert ask(running.address, path.partition("?")[0], method="POST", body=body)[0] == 401
    for wrong in ({"rung": "top"}, {"rung": 5}, {}, [], {"rung": "finished", "txt": "x"}):
        assert ask(running.address, path, method="POST", body=wrong)[0] == 400
    assert ask(running.address, "/api/runs/x/receipt?token=x", method="POST", body=body)[0] == 404


def test_a_command_that_reports_an_error_has_failed_whatever_it_exits_with(running: Daemon) -> None:
    """L8: green means done. A receipt that is refused says nothing about the run."""
    program = (
        "import json, os, urllib.error, urllib.request as web\n"
        "def post(**said):\n"
        "    web.urlopen(web.Request(os.environ['WAKEFUL_RECEIPT_URL'], json.dumps(said).encode(), method='POST'))\n"
        "try:\n"
        "    post(rung='finished', colour='red')\n"
        "except urllib.error.HTTPError as error:\n"
        "    print(error.code)\n"
        "post(rung='started', error='the model was not there')\n"
    )
    job = {**MANUAL, "command": {"argv": [sys.executable, "-c", program]}}
    assert ask(running.address, "/api/schedule/reports", method="PUT", body=job)[0] == 201
    run = ask(running.address, "/api/schedule/reports/run?wait=true", method="POST")[1]
    assert (run["outcome"], run["error"], run["output"]) == ("failed", "the model was not there", "400\n")


def test_the_stream_tells_what_happens(running: Daemon) -> None:
    """A change of a schedule arrives as an event with an id that resumes."""
    request = urllib.request.Request(f"{running.address}/api/stream?streams=schedules")
    with urllib.request.urlopen(request, timeout=PATIENCE) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        assert stream.readline().startswith(b"retry:")
        ask(running.address, "/api/schedule/streamed", method="PUT", body=EVERY)
        lines = iter(stream.readline, b"")
        data = next(json.loads(line[6:]) for line in lines if line.startswith(b"data: "))
    assert (data["stream"], data["slug"], data["seq"]) == ("schedules", "streamed", data["seq"])
    assert ask(running.address, "/api/stream?streams=,")[0] == 400
    assert ask(running.address, "/api/stream?streams=runs,rnus")[0] == 400
    request = urllib.request.Request(f"{running.address}/api/stream", headers={"Last-Event-ID": "9" * 6_000})
    with urllib.request.urlopen(request, timeout=PATIENCE) as stream:
        assert any(line.startswith(b"event: reset") for line in iter(stream.readline, b""))


def test_definitions_are_files_as_well(tmp_path: Path) -> None:
    """What is written over REST is mirrored; a file that is edited is taken over, if no agent was at work."""
    with daemon(tmp_path / "home") as one:
        edit_a_definition_file(one)


def edit_a_definition_file(running: Daemon) -> None:
    daily = {"schedule": {"type": "times", "times": ["09:00"], "timezone": "UTC"}, "prompt": "hello"}
    ask(running.address, "/api/schedule/filed", method="PUT", body=daily)
    file = running.home / "schedule" / "filed" / "definition.json"
    until = time.monotonic() + PATIENCE
    while not file.exists() and time.monotonic() < until:
        time.sleep(0.05)
    written = json.loads(file.read_text())
    assert written["prompt"] == "hello"
    file.write_text(json.dumps({**written, "prompt": "good evening"}))
    while ask(running.address, "/api/schedule/filed")[1]["prompt"] == "hello" and time.monotonic() < until:
        time.sleep(0.05)
    assert ask(running.address, "/api/schedule/filed")[1]["prompt"] == "good evening"


def test_figures_for_prometheus(running: Daemon) -> None:
    """Text, with what is looked up at the moment of asking."""
    with urllib.request.urlopen(f"{running.address}/metrics", timeout=PATIENCE) as response:
        text = response.read().decode()
    assert response.headers["content-type"].startswith("text/plain")
    assert "wakeful_nodes_live 1.0" in text


def test_a_restart_keeps_everything(tmp_path: Path) -> None:
    """What was answered is there, and a clean stop leaves the home free."""
    with daemon(tmp_path / "home") as first:
        assert ask(first.address, "/api/schedule/job", method="PUT", body=EVERY)[0] == 201
        run_id = ask(first.address, "/api/schedule/job/run?wait=true", method="POST")[1]["runId"]
        assert first.end(signal.SIGINT) == 0
    assert holder_of(tmp_path / "home") is None
    with daemon(tmp_path / "home") as second:
        assert ask(second.address, "/api/schedule/job")[1]["lastResult"] == "success"
        assert ask(second.address, f"/api/runs/{run_id}")[1]["outcome"] == "succeeded"


def test_open_streams_do_not_hold_up_the_end(tmp_path: Path) -> None:
    """A watcher never leaves by itself; the daemon ends while it still watches."""
    with (
        daemon(tmp_path / "home") as one,
        urllib.request.urlopen(f"{one.address}/api/stream", timeout=PATIENCE) as stream,
    ):
        stream.readline()
        assert one.end() == 0


def test_runs_under_way_get_their_grace_and_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    """One signal waits for what runs; another does not, and the exit code says so."""
    with daemon(tmp_path / "home") as one:
        slow = {**MANUAL, "command": {"argv": ["sleep", "30"]}}
        ask(one.address, "/api/schedule/slow", method="PUT", body=slow)
        ask(one.address, "/api/schedule/slow/run", method="POST")
        while ask(one.address, "/api/runs?outcome=running")[1]["runs"] == []:
            time.sleep(0.02)
        one.process.send_signal(signal.SIGTERM)
        until = time.monotonic() + PATIENCE
        while ask(one.address, "/readyz")[0] != 503 and time.monotonic() < until:
            time.sleep(0.02)
        status, problem = ask(one.address, "/api/schedule")
        assert (status, "stopping" in problem["error"]) == (503, True)
        time.sleep(0.6)
        assert one.process.poll() is None
        assert one.end() == 128 + signal.SIGTERM


def test_a_killed_daemon_leaves_the_home_free(tmp_path: Path) -> None:
    """The lock is the system's, not a file that stays behind."""
    with daemon(tmp_path / "home") as one:
        assert one.end(signal.SIGKILL) == -signal.SIGKILL
    assert holder_of(tmp_path / "home") is None
    with daemon(tmp_path / "home") as again:
        assert ask(again.address, "/readyz")[0] == 200


def test_a_damaged_store_is_refused_in_words(tmp_path: Path) -> None:
    """The file is named and left as it is."""
    home = tmp_path / "home"
    home.mkdir()
    database = home / "wakeful.db"
    database.write_bytes(b"this is no database" * 1000)
    said = refused(home, code=4)
    assert str(database) in said
    assert "damaged" in said
    assert database.read_bytes() == b"this is no database" * 1000


def test_settings_that_cannot_be_accepted_are_all_told(tmp_path: Path) -> None:
    """With line and cure, before anything is opened."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "wakeful.toml").write_text('[log]\ndays = "x"\n\n[limits]\nconcurrency_max = 0\n')
    said = refused(home)
    assert "line 2" in said
    assert "line 5" in said
    assert not (home / "wakeful.db").exists()


def test_a_port_that_is_taken_and_a_bind_without_a_token_are_refused(tmp_path: Path) -> None:
    """Said at once, before the store is touched."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert "choose another --port" in refused(tmp_path / "a", "--port", str(taken.getsockname()[1]))
    assert "token" in refused(tmp_path / "b", "--host", "0.0.0.0")
    assert not (tmp_path / "b" / "wakeful.db").exists()


def test_beyond_loopback_the_token_of_the_settings_opens(tmp_path: Path) -> None:
    """From the environment, as the settings name it."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "wakeful.toml").write_text('[server]\nhost = "0.0.0.0"\ntoken = {env = "TEST_TOKEN"}\n')
    with daemon(home, environ={"TEST_TOKEN": "a-long-secret"}) as one:
        address = one.address.replace("0.0.0.0", "127.0.0.1")
        assert ask(address, "/api/schedule")[0] == 401
        assert ask(address, "/api/schedule", token="a-long-secret")[0] == 200
        assert "a-long-secret" not in json.dumps(ask(address, "/api/config", token="a-long-secret")[1])


MOUNTS = """\
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw
40 27 0:40 / /home rw - nfs4 server:/home rw
41 40 0:41 / /home/me/local rw - xfs /dev/vdb rw
42 27 0:42 / /mnt/with\\040space rw shared:7 - fuse.sshfs me@there:/ rw
43 27 0:43 / /mnt/c rw - 9p drvfs rw
44 27 0:44 / /mnt/covered rw - cifs //server/share rw
45 27 0:45 / /mnt/covered rw - ext4 /dev/vdc rw
46 27 0:46 / /mnt/fuse rw - fuse.bindfs / rw
47 27 0:47 / /mnt/unnamed rw - 9p  rw,dirsync
"""


def test_a_home_on_a_network_file_system_is_noticed(tmp_path: Path) -> None:
    """By the deepest mount it lies on, the last of those at one place."""
    mounts = tmp_path / "mountinfo"
    mounts.write_text(MOUNTS)
    kinds = {
        "/var/lib/wakeful": None,
        "/home/me/.wakeful": "nfs4",
        "/home/me/local/.wakeful": None,
        "/mnt/with space/x": "fuse.sshfs",
        "/mnt/c/Users/me": "9p",
        "/mnt/unnamed/x": "9p",
        "/mnt/covered/x": None,
        "/mnt/fuse/x": None,
        "/homestead": None,
    }
    assert {folder: network_file_system(Path(folder), mounts) for folder in kinds} == kinds
    assert network_file_system(tmp_path, tmp_path / "none") is None


@pytest.mark.parametrize("is_abstract", [False, True])
def test_a_service_manager_is_told(tmp_path: Path, is_abstract: bool) -> None:
    """Ready when it answers, stopping when it ends; what schedules start cannot speak in its name."""
    if is_abstract and sys.platform != "linux":
        pytest.skip("names that are no files are Linux's own")
    address = f"@wakeful-{os.getpid()}" if is_abstract else str(tmp_path / "notify")
    printing = {"schedule": {"type": "manual"}, "command": {"argv": ["env"]}}
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.settimeout(PATIENCE)
        manager.bind(address.replace("@", "\0"))
        with daemon(tmp_path / "home", environ={"NOTIFY_SOCKET": address}) as one:
            assert manager.recv(100) == b"READY=1"
            assert ask(one.address, "/readyz")[0] == 200
            ask(one.address, "/api/schedule/env", method="PUT", body=printing)
            _, run = ask(one.address, "/api/schedule/env/run?wait=true", method="POST")
            assert "WAKEFUL_SLUG=env" in run["output"]
            assert "NOTIFY_SOCKET" not in run["output"]
            assert one.end() == 0
            assert manager.recv(100) == b"STOPPING=1"


def test_a_service_manager_that_is_gone_holds_nothing_up(tmp_path: Path) -> None:
    """The daemon starts and ends as ever."""
    with daemon(tmp_path / "home", environ={"NOTIFY_SOCKET": str(tmp_path / "nobody")}) as one:
        assert ask(one.address, "/readyz")[0] == 200
        assert one.end() == 0
