"""Inside a run: the command line and the socket act as the run's agent, with and without its token."""

import json
import sys
from pathlib import Path
from typing import Any

from edges.cli.kit import Said, daemon

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
        (asked,) = json.loads(wakeful("approvals", "-o", "json").out)["approvals"]
        assert asked["lineage"] == {"runId": run["runId"], "slug": "begin", "depth": 1}
        assert "coder.tidy approved" in wakeful("approvals", "approve", asked["id"]).out
        owned = json.loads(wakeful("ls", "--owner", "coder", "-o", "json").out)["schedules"]
        assert [(one["slug"], one["approval"]) for one in owned] == [("coder.tidy", "approved")]
