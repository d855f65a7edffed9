"""Inside a run: the command line and the socket act as the run's agent, with and without its token."""

import json
import shlex
import sys
import time
from pathlib import Path
from typing import Any

from edges.cli.kit import Said, daemon
from patience import PATIENCE

PROGRAM = """
import json, os, subprocess, sys
prompt = sys.stdin.read()
def wakeful(*words, **more):
    environment = {**os.environ, **more}
    for name in [name for name, value in environment.items() if value is None]:
        del environment[name]
    done = subprocess.run([sys.executable, "-m", "wakeful.cli.main", "--home", HOME, *words], env=environment,
                          capture_output=True, text=True)
    return [done.returncode, done.stdout + done.stderr]
told = {
    "often": wakeful("add", "often", "--every", "10m", "--command", "true"),
    "add": wakeful("add", "tidy", "--every", "2h", "--prompt", "Tidy up"),
    "again": wakeful("add", "tidy", "--every", "2h", "--prompt", "Tidy up"),
    "ls": wakeful("ls", "-o", "json"),
    "why": wakeful("why", "tidy"),
    "others": wakeful("show", "owner-job"),
    "approve": wakeful("approvals"),
    "bare": wakeful("ls", "-o", "json", WAKEFUL_RUN_TOKEN=None),
    "bare approve": wakeful("approvals", "approve", "p00000000", WAKEFUL_RUN_TOKEN=None),
    "backup": wakeful("backup", TOLD + ".db"),
    "bare backup": wakeful("backup", TOLD + ".db", WAKEFUL_RUN_TOKEN=None, WAKEFUL_HOME=None),
}
open(TOLD, "w").write(json.dumps(told))
print("done")
"""


def test_the_run_decides_who_calls(tmp_path: Path) -> None:
    """Limits hold, what it writes is pending, and without the token it is still the run's agent: by its process."""
    home, told = tmp_path / "home", tmp_path / "told.json"
    home.mkdir()
    program = tmp_path / "agent.py"
    program.write_text(f"HOME = {str(home)!r}\nTOLD = {str(told)!r}\n{PROGRAM}")
    (home / "wakeful.toml").write_text(
        f"[agents.coder]\nadapter = 'command'\nargv = [{sys.executable!r}, {str(program)!r}]\nstdin = true\n"
    )
    with daemon(home) as cli:

        def wakeful(*words: str) -> Said:
            said = cli.ask(*words)
            assert said.code == 0, said.err
            return said

        wakeful("add", "owner-job", "--every", "2h", "--command", "true")
        wakeful("add", "begin", "--manual", "--prompt", "first turn", "--set", "agent=coder")
        run = json.loads(wakeful("run", "begin", "--wait", "-o", "json").out)
        assert run["outcome"] == "succeeded", run
        seen: dict[str, Any] = json.loads(told.read_text())
        assert seen["often"][0] == 1 and "interval_min" in seen["often"][1]
        assert seen["add"][0] == 0 and "waits for a person's approval" in seen["add"][1]
        assert seen["again"] == seen["add"]
        listed = json.loads(seen["ls"][1])["schedules"]
        assert [(one["slug"], one["approval"]) for one in listed] == [("coder.tidy", "pending")]
        assert f"created by coder during run {run['runId']}" in seen["why"][1]
        assert seen["others"][0] == 1 and "you have no schedule 'coder.owner-job'" in seen["others"][1]
        assert seen["approve"][0] == 1 and "a run's token may" in seen["approve"][1]
        assert [one["slug"] for one in json.loads(seen["bare"][1])["schedules"]] == ["coder.tidy"]
        assert seen["bare approve"][0] == 1 and "a run's token may" in seen["bare approve"][1]
        assert [seen[name][0] for name in ("backup", "bare backup")] == [1, 1]  # it holds what belongs to others
        assert "a run's token may" in seen["backup"][1] and not Path(f"{told}.db").exists()
        (asked,) = json.loads(wakeful("approvals", "-o", "json").out)["approvals"]
        assert asked["lineage"] == {"runId": run["runId"], "slug": "begin", "depth": 1}
        assert "coder.tidy approved" in wakeful("approvals", "approve", asked["id"]).out
        owned = json.loads(wakeful("ls", "--owner", "coder", "-o", "json").out)["schedules"]
        assert [(one["slug"], one["approval"]) for one in owned] == [("coder.tidy", "approved")]


def test_a_persons_command_may_copy_the_database(tmp_path: Path) -> None:
    """A scheduled backup has a run and a token too."""
    home, copy = tmp_path / "home", tmp_path / "copy.db"
    with daemon(home) as cli:
        words = [sys.executable, "-m", "wakeful.cli.main", "--home", str(home), "backup", str(copy)]
        assert cli.ask("add", "save", "--manual", "--command", shlex.join(words)).code == 0
        assert json.loads(cli.ask("run", "save", "--wait", "-o", "json").out)["outcome"] == "succeeded"
    assert copy.exists()


CHAINED = """
import json, os, sys, urllib.request
from urllib.error import HTTPError
prompt = sys.stdin.read()
headers = {"Authorization": "Bearer " + "t" * 32}
body = json.dumps({"after": "1s", "text": "go on, " + os.environ["WAKEFUL_RUN_ID"]}).encode()
request = urllib.request.Request(os.environ["WAKEFUL_URL"] + "/api/tools/wake_me", body, headers)
try:
    answer = urllib.request.urlopen(request).read().decode()
except HTTPError as error:
    answer = error.read().decode()
with open(TOLD, "a") as file:
    file.write(answer + "\\n")
print("done")
"""


def test_a_chain_of_wakes_ends_with_the_agents_token_too(tmp_path: Path) -> None:
    """A program that was given the agent's token in its own settings does not use the run's: the second turn may still
    not wake itself again."""
    home, told = tmp_path / "home", tmp_path / "told"
    home.mkdir()
    program = tmp_path / "agent.py"
    program.write_text(f"TOLD = {str(told)!r}\n{CHAINED}")
    (home / "wakeful.toml").write_text(
        f"[agents.coder]\nadapter = 'command'\nargv = [{sys.executable!r}, {str(program)!r}]\nstdin = true\n"
        f"[tokens.coder]\ntoken = '{'t' * 32}'\nrole = 'agent'\nagent = 'coder'\n"
    )
    with daemon(home) as cli:
        cli.ask("add", "begin", "--manual", "--prompt", "first turn", "--set", "agent=coder")
        assert cli.ask("run", "begin", "--wait").code == 0
        give_up_at = time.monotonic() + PATIENCE
        while len(answers := told.read_text().splitlines()) < 2:
            assert time.monotonic() < give_up_at, answers
            time.sleep(0.05)
    assert '"created"' in answers[0]
    assert "depth_max" in answers[1]


LIMITED = """
import json, os, subprocess, sys, urllib.request
from urllib.error import HTTPError
prompt = sys.stdin.read()
URL, TOKEN = os.environ["WAKEFUL_URL"], os.environ["WAKEFUL_RUN_TOKEN"]
def ask(method, path, body):
    headers = {"Authorization": "Bearer " + TOKEN, "Content-Type": "application/json",
               "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}
    request = urllib.request.Request(URL + path, json.dumps(body).encode(), headers, method=method)
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.read().decode()
    except HTTPError as error:
        return error.read().decode()
def every_way(slug, length):
    arguments = {"slug": slug, "when": "every " + length, "prompt": "do " + slug}
    params = {"name": "put_schedule", "arguments": arguments}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    cli = subprocess.run([sys.executable, "-m", "wakeful.cli.main", "--home", HOME, "add", slug, "--every", length,
                          "--prompt", "do " + slug], capture_output=True, text=True)
    definition = {"schedule": "every " + length, "prompt": "do " + slug}
    return {"cli": cli.stdout + cli.stderr, "rest": ask("PUT", "/api/schedule/" + slug, definition),
            "tool": ask("POST", "/api/tools/put_schedule", arguments), "mcp": ask("POST", "/mcp", call)}
ways = {"often": "90m", "first": "3h"} if os.environ["WAKEFUL_SLUG"] == "begin" else {}
told = {slug: every_way(slug, length) for slug, length in {**ways, "second": "4h"}.items()}
with open(TOLD + "-" + os.environ["WAKEFUL_SLUG"], "w") as file:
    file.write(json.dumps(told))
print("done")
"""


def test_limits_hold_on_every_way_out_of_a_run(tmp_path: Path) -> None:
    """The command line, REST with the run's token, the tools over REST and over MCP: interval, number and depth."""
    home, told = tmp_path / "home", tmp_path / "told"
    home.mkdir()
    program = tmp_path / "agent.py"
    program.write_text(f"HOME = {str(home)!r}\nTOLD = {str(told)!r}\n{LIMITED}")
    (home / "wakeful.toml").write_text(
        "[self_scheduling]\nschedules_max = 1\ninterval_min = '2h'\n[agents.coder]\nadapter = 'command'\n"
        f"argv = [{sys.executable!r}, {str(program)!r}]\nstdin = true\n"
    )
    with daemon(home) as cli:

        def ran(slug: str) -> dict[str, dict[str, str]]:
            run = json.loads(cli.ask("run", slug, "--wait", "-o", "json").out)
            assert run["outcome"] == "succeeded", run
            found: dict[str, dict[str, str]] = json.loads((tmp_path / f"told-{slug}").read_text())
            return found

        cli.ask("add", "begin", "--manual", "--prompt", "first turn", "--set", "agent=coder")
        seen = ran("begin")
        assert [way for way, text in seen["often"].items() if "interval_min" not in text] == [], seen["often"]
        assert [way for way, text in seen["first"].items() if "pending" not in text and "approval" not in text] == []
        assert [way for way, text in seen["second"].items() if "schedules_max" not in text] == []
        (asked,) = json.loads(cli.ask("approvals", "-o", "json").out)["approvals"]
        assert asked["slug"] == "coder.first"
        cli.ask("approvals", "approve", asked["id"])
        seen = ran("coder.first")  # a turn that an agent scheduled
        assert [way for way, text in seen["second"].items() if "depth_max" not in text] == [], seen["second"]
