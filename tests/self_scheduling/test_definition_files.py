"""A definition file that appears while an agent's program runs waits for a person: the program may have written it."""

import json
import sys
from pathlib import Path

from edges.cli.kit import daemon
from self_scheduling.inbox import in_the_inbox

PROGRAM = """
import json, pathlib, sys, time
sys.stdin.read()
home = pathlib.Path(HOME)
folder = home / "schedule" / "planted"
folder.mkdir(parents=True, mode=0o700)
definition = {"schedule": {"type": "every", "every": "2h"}, "prompt": "Do my bidding", "agent": "coder"}
(folder / "definition.json").write_text(json.dumps(definition))
end = time.monotonic() + 120
while "planted" not in (home / "server.log").read_text() and time.monotonic() < end:
    time.sleep(0.1)
print("done")
"""


def test_a_file_that_appears_during_an_agents_run_is_pending(tmp_path: Path) -> None:
    """Also after the run, and after a restart; approved, it runs."""
    home = tmp_path / "home"
    home.mkdir()
    program = tmp_path / "agent.py"
    program.write_text(f"HOME = {str(home)!r}\n{PROGRAM}")
    (home / "wakeful.toml").write_text(
        f"[agents.coder]\nadapter = 'command'\nargv = [{sys.executable!r}, {str(program)!r}]\n"
        "[alerts]\napprovers = ['inbox']\n"
    )
    with daemon(home) as cli:
        assert cli.ask("add", "begin", "--manual", "--prompt", "go", "--set", "agent=coder").code == 0
        said = cli.ask("run", "begin", "--wait")
        assert said.code == 0, said.err
        (asked,) = cli.ask("approvals", "-o", "json").json["approvals"]
        assert (asked["slug"], asked["owner"], asked["lineage"]["slug"]) == ("planted", "coder", "begin")
        assert cli.ask("runs", "planted", "-o", "json").json["runs"] == []
        told = in_the_inbox(cli, "planted")  # the approvers are told once, as of any other proposal
        assert told.count("coder proposes a new schedule planted") == 1 and "Do my bidding" in told
    with daemon(home) as cli:  # nothing runs now, and the file is still not taken
        listed = cli.ask("ls", "-o", "json").json["schedules"]
        assert {one["slug"]: one["approval"] for one in listed} == {"begin": None, "planted": "pending"}
        assert json.loads((home / "schedule" / "planted" / "definition.json").read_text())["prompt"] == "Do my bidding"
        assert cli.ask("approvals", "approve", asked["id"]).code == 0
        shown = cli.ask("show", "planted", "-o", "json").json
        assert (shown["approval"], shown["owner"]) == ("approved", "coder")
        assert shown["nextRun"] is not None
