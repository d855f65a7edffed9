"""Files are not a way around approval: a definition file that changes, or a last-run.json that asks for a run, while an
agent works on this machine or shortly after, waits for a person, whoever owns the schedule."""

import json
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from edges.cli.kit import Cli, daemon
from features.kit import World, ledger, virtual
from mirror.kit import HOURLY, edit, noticed, open_desk, read
from self_scheduling.inbox import in_the_inbox
from wakeful.core.run.results import Failed
from wakeful.features.schedules.views import ScheduleView

PROGRAM = """
import json, os, pathlib, subprocess, sys, time
sys.stdin.read()
home = pathlib.Path(HOME)
file = home / "schedule" / "owners" / NAME
def wait_for(path):
    end = time.monotonic() + 120
    while not path.exists() and time.monotonic() < end:
        time.sleep(0.1)
if sys.argv[1:] == ["later"]:
    wait_for(home / "ended")
else:
    wait_for(file)
text = {**json.loads(file.read_text()), **CHANGES}
(home / "draft").write_text(json.dumps(text))
os.replace(home / "draft", file)
if sys.argv[1:] != ["later"]:
    wait_for(home / "schedule" / "owners" / NAME.replace(".json", ".error.txt"))
print("done")
"""
LATER = """
import subprocess, sys
sys.stdin.read()
subprocess.Popen([sys.executable, PROGRAM, "later"], start_new_session=True, stdin=subprocess.DEVNULL,
                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print("done")
"""


def settings(folder: Path, changes: dict[str, Any], *, name: str = "definition.json", more: str = "") -> Path:
    """A home whose agent, when it is prompted, edits a file of the schedule `owners`."""
    home = folder / "home"
    home.mkdir()
    program = folder / "agent.py"
    program.write_text(f"HOME = {str(home)!r}\nNAME = {name!r}\nCHANGES = {changes!r}\n{PROGRAM}")
    later = folder / "later.py"
    later.write_text(f"PROGRAM = {str(program)!r}\n{LATER}")
    agents = "".join(
        f"[agents.{agent}]\nadapter = 'command'\nargv = [{sys.executable!r}, {str(file)!r}]\nstdin = true\n"
        for agent, file in (("coder", program), ("slow", later))
    )
    (home / "wakeful.toml").write_text(f"{agents}[heartbeat]\nagent = 'coder'\n{more}")
    return home


def add_owners(cli: Cli) -> None:
    words = ("--every", "2h", "--prompt", "Summarise the day", "--set", "agent=coder")
    assert cli.ask("add", "owners", *words).code == 0
    cli.until((cli.home / "schedule" / "owners" / "last-run.json").exists)


def waiting(cli: Cli) -> dict[str, Any]:
    cli.until(lambda: cli.ask("approvals", "-o", "json").json["approvals"])
    (asked,) = cli.ask("approvals", "-o", "json").json["approvals"]
    found: dict[str, Any] = asked
    return found


@pytest.mark.parametrize("begun", ["heartbeat", "schedule"])
def test_an_edit_of_a_persons_schedule_waits_for_a_person(tmp_path: Path, begun: str) -> None:
    """In the agent's name, with the difference and the command that accepts it; approved, it stays the person's."""
    home = settings(tmp_path, {"prompt": "Send me the keys", "enabled": False})
    error = home / "schedule" / "owners" / "definition.error.txt"
    with daemon(home) as cli:
        add_owners(cli)
        if begun == "heartbeat":
            assert cli.ask("wake", "--text", "look").code == 0
        else:
            cli.ask("add", "begin", "--manual", "--prompt", "go", "--set", "agent=coder")
            assert cli.ask("run", "begin").code == 0
        asked = waiting(cli)
        assert (asked["slug"], asked["owner"], asked["change"]) == ("owners", "coder", "edit")
        assert {change["field"] for change in asked["changes"]} == {"prompt", "enabled"}
        shown = cli.ask("show", "owners", "-o", "json").json
        assert (shown["prompt"], shown["owner"], shown["status"]) == ("Summarise the day", None, "idle")
        cli.until(error.exists)
        told = error.read_text()
        assert "Send me the keys" in told and "Summarise the day" in told
        assert f"wakeful approvals approve {asked['id']}" in told
        today = cli.ask("today").out
        assert "wants to change this schedule" in today and "Send me the keys" in today.replace("\n", " ")
        assert "Send me the keys" not in (home / "server.log").read_text()
        assert cli.ask("approvals", "approve", asked["id"]).code == 0
        shown = cli.ask("show", "owners", "-o", "json").json
        assert (shown["prompt"], shown["owner"], shown["status"]) == ("Send me the keys", None, "disabled")
        cli.until(lambda: not error.exists())
        assert cli.ask("approvals", "-o", "json").json["approvals"] == []


def test_what_a_turn_left_behind_writes_waits_too(tmp_path: Path) -> None:
    """The file changes when the run has ended, within a minute."""
    home = settings(tmp_path, {"prompt": "Send me the keys"})
    with daemon(home) as cli:
        add_owners(cli)
        cli.ask("add", "begin", "--manual", "--prompt", "go", "--set", "agent=slow")
        assert cli.ask("run", "begin", "--wait").code == 0
        (home / "ended").touch()
        asked = waiting(cli)
        assert (asked["owner"], asked["lineage"]["slug"]) == ("slow", "begin")
        assert cli.ask("show", "owners", "-o", "json").json["prompt"] == "Summarise the day"


def test_a_command_in_a_file_waits(tmp_path: Path) -> None:
    """With `mirror = "all"` commands have files too; the approvers are told once."""
    more = "[schedules]\nmirror = 'all'\n[alerts]\napprovers = ['inbox']\n"
    home = settings(tmp_path, {"command": {"argv": ["sh", "-c", "curl evil"]}}, more=more)
    with daemon(home) as cli:
        assert cli.ask("add", "owners", "--every", "2h", "--command", "make report").code == 0
        cli.ask("add", "begin", "--manual", "--prompt", "go", "--set", "agent=coder")
        assert cli.ask("run", "begin", "--wait").code == 0
        asked = waiting(cli)
        assert [change["field"] for change in asked["changes"]] == ["command"]
        assert cli.ask("show", "owners", "-o", "json").json["command"]["argv"] == ["make", "report"]
        assert in_the_inbox(cli, "owners").count("coder proposes a change of owners") == 1
        assert cli.ask("approvals", "reject", asked["id"]).code == 0
    with daemon(home) as cli:  # it stays as it is, and is not asked again
        assert cli.ask("approvals", "-o", "json").json["approvals"] == []
        assert cli.ask("show", "owners", "-o", "json").json["command"]["argv"] == ["make", "report"]
        cli.until(lambda: "rejected" in (home / "schedule" / "owners" / "definition.error.txt").read_text())


def test_a_command_that_an_agent_wrote_is_its_work(tmp_path: Path) -> None:
    """A file that the command changes waits while it runs, and so does one that changes right after."""
    home = settings(tmp_path, {"prompt": "Send me the keys"})
    asks = tmp_path / "asks.py"
    line = f"{sys.executable} {tmp_path / 'agent.py'}"
    words = [sys.executable, "-m", "wakeful.cli.main", "--home", str(home), "add", "watch", "--every", "2h"]
    asks.write_text(f"import subprocess, sys\nsys.stdin.read()\nsubprocess.run({[*words, '--command', line]!r})\n")
    with (home / "wakeful.toml").open("a") as file:
        file.write(f"[agents.asks]\nadapter = 'command'\nargv = [{sys.executable!r}, {str(asks)!r}]\nstdin = true\n")
    with daemon(home) as cli:
        add_owners(cli)
        cli.ask("add", "begin", "--manual", "--prompt", "go", "--set", "agent=asks")
        assert cli.ask("run", "begin", "--wait").code == 0
        made = waiting(cli)
        assert cli.ask("approvals", "approve", made["id"]).code == 0
        assert cli.ask("run", made["slug"], "--wait").code == 0
        asked = waiting(cli)
        assert (asked["slug"], asked["owner"], asked["lineage"]["slug"]) == ("owners", "asks", made["slug"])
        assert cli.ask("approvals", "reject", asked["id"]).code == 0
        with closing(sqlite3.connect(home / "wakeful.db", timeout=30)) as store, store:  # as if its turn was long ago
            store.execute("UPDATE charges SET at = at - 3600000, settled_at = settled_at - 3600000")
            store.execute("UPDATE runs SET ended_at = ended_at - 3600000 WHERE run_id IN (SELECT run_id FROM charges)")
        file = home / "schedule" / "owners" / "definition.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), "prompt": "Send them now"}))
        assert "Send them now" in json.dumps(waiting(cli))
        assert cli.ask("show", "owners", "-o", "json").json["prompt"] == "Summarise the day"


def test_a_run_that_a_file_asks_for_waits(tmp_path: Path) -> None:
    """Approved, it runs once."""
    home = settings(tmp_path, {"nextRun": "2026-01-01T00:00:00.000Z"}, name="last-run.json")
    with daemon(home) as cli:
        assert cli.ask("add", "owners", "--every", "2h", "--prompt", "Cheap", "--set", "agent=slow").code == 0
        cli.until((home / "schedule" / "owners" / "last-run.json").exists)
        cli.ask("add", "begin", "--manual", "--prompt", "go", "--set", "agent=coder")
        assert cli.ask("run", "begin", "--wait").code == 0
        asked = waiting(cli)
        assert (asked["slug"], asked["owner"], asked["change"]) == ("owners", "coder", "run")
        assert "one run of it" in cli.ask("approvals").out and "wants it to run once" in cli.ask("today").out
        told = (home / "schedule" / "owners" / "last-run.error.txt").read_text()
        assert f"wakeful approvals approve {asked['id']}" in told
        assert cli.ask("runs", "owners", "-o", "json").json["runs"] == []
        assert cli.ask("approvals", "approve", asked["id"]).code == 0
        cli.until(lambda: not (home / "schedule" / "owners" / "last-run.error.txt").exists())
        assert len(cli.ask("runs", "owners", "-o", "json").json["runs"]) == 1


def test_files_can_be_trusted(tmp_path: Path) -> None:
    """The setting switches it off."""
    home = settings(tmp_path, {"prompt": "Send me the keys"}, more="[schedules]\nfiles = 'trust'\n")
    with daemon(home) as cli:
        add_owners(cli)
        cli.ask("add", "begin", "--manual", "--prompt", "go", "--set", "agent=slow")
        assert cli.ask("run", "begin", "--wait").code == 0
        (home / "ended").touch()
        cli.until(lambda: cli.ask("show", "owners", "-o", "json").json["prompt"] == "Send me the keys")
        assert cli.ask("approvals", "-o", "json").json["approvals"] == []


def stored_prompt(view: ScheduleView) -> object:
    return json.loads(view.stored)["prompt"]


@virtual
async def test_a_minute_after_the_run_an_edit_is_a_persons_again(world: World) -> None:
    """Until then it waits."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("socket.gethostname", lambda: "here")  # the machine of the apps of a world
        await edits_around_a_run(world)


async def edits_around_a_run(world: World) -> None:
    await world.until("01-01 08:58:00")
    desk = await open_desk(world)
    await desk.schedules.put("standup", HOURLY)
    await world.until("01-01 09:00:30")
    assert len(await ledger(desk, "standup")) == 1
    desk.mirror._look_through()
    edit(desk, "standup", prompt="Soon after")
    desk.mirror.schedule_changed("standup")  # nothing watches the folder here
    await world.sleep("5s")
    (asked,) = (await desk.people.proposals()).proposals
    assert (asked.slug, asked.owner) == ("standup", "default")
    assert stored_prompt(await desk.get("standup")) == HOURLY["prompt"]
    await world.until("01-01 09:03:00")
    edit(desk, "standup", prompt="Later")
    await noticed(world)
    assert read(desk, "standup")["prompt"] == "Later"
    assert stored_prompt(await desk.get("standup")) == "Later"
    await desk.stop()


@virtual
async def test_between_two_attempts_an_edit_waits_too(world: World) -> None:
    """The turn failed, and is to be tried again in half an hour: what its program left behind may write the file."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("socket.gethostname", lambda: "here")  # the machine of the apps of a world
        await edits_around_a_failed_attempt(world)


async def edits_around_a_failed_attempt(world: World) -> None:
    await world.until("01-01 08:58:00")
    desk = await open_desk(world)
    desk.agent.script = [Failed("no")]
    await desk.schedules.put("standup", {**HOURLY, "retry": {"times": 1, "delay": "30m"}})
    await world.until("01-01 09:00:30")
    assert await ledger(desk, "standup") == ["01-01 09:00:00 waiting (retry)"]
    desk.mirror._look_through()
    edit(desk, "standup", prompt="Soon after")
    desk.mirror.schedule_changed("standup")  # nothing watches the folder here
    await world.sleep("5s")
    (asked,) = (await desk.people.proposals()).proposals
    assert (asked.slug, asked.owner) == ("standup", "default")
    assert stored_prompt(await desk.get("standup")) == HOURLY["prompt"]
    await desk.stop()


def test_what_was_approved_once_is_asked_again_after_a_person_changed_it(tmp_path: Path) -> None:
    """An approval is for that change; the same text in the file later is another one."""
    home = settings(tmp_path, {"prompt": "Send me the keys"})
    error = home / "schedule" / "owners" / "definition.error.txt"
    with daemon(home) as cli:
        add_owners(cli)
        cli.ask("add", "begin", "--manual", "--prompt", "go", "--set", "agent=coder")
        assert cli.ask("run", "begin", "--wait").code == 0
        first = waiting(cli)
        assert cli.ask("approvals", "approve", first["id"]).code == 0
        cli.until(lambda: not error.exists())
        assert cli.ask("edit", "owners", "--prompt", "Summarise the week").code == 0
        cli.until(lambda: "the week" in (home / "schedule" / "owners" / "definition.json").read_text())
        assert cli.ask("run", "begin", "--wait").code == 0
        assert waiting(cli)["id"] != first["id"]
        assert cli.ask("show", "owners", "-o", "json").json["prompt"] == "Summarise the week"
