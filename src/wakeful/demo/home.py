"""The demo's home folder. A folder that is somebody's own is never touched: it is known by what stands in it."""

import json
import sys
from pathlib import Path
from typing import Final

DEMO_HOME: Final = "~/.wakeful-demo"
PROGRAMS: Final = Path(__file__).parent / "programs"
MARK: Final = "# The demo's settings."
_NOTES: Final = "Greet whoever reads this, and mention what happened since the last beat.\n"

SETTINGS: Final = """\
{mark} `wakeful up --demo` writes this file anew at each start.

[limits]                        # everything is quicker here than it should be with a model that costs money
agent_interval_min = "10s"
every_min = "5s"
shutdown_grace = "2s"

[agents.default]
adapter = "echo"                # answers with what it was asked

[heartbeat]
enabled = true
every = "20s"
prompt = "HEARTBEAT_OK"         # an echo can say nothing else when all is quiet
ack_match = "anywhere"
ack_chars_max = 160
spacing_min = "2s"
turns_per_hour_max = 600

[delivery]
retries_max = 1                 # a dead letter within a minute

[channels.console]
type = "console"

[channels.pager]                # nobody listens there: see its messages among the dead letters
type = "webhook"
url = "http://127.0.0.1:9/page"
allow_private = true

[slots.pretend]                 # a quota of four minutes, from a program that makes it up
provider = "command"
quota_argv = {quota}
wake_argv = {wake}
interval = "10m"
after_reset = "1m"
poll = "1m"
"""


class NotTheDemo(Exception):
    """A home that somebody uses for something else."""


def prepare(home: Path) -> None:
    """Make the folder, or find it as an earlier demo left it."""
    file = home / "wakeful.toml"
    if file.exists() or (home / "wakeful.db").exists():
        is_ours = file.exists() and file.read_text(encoding="utf-8", errors="replace").startswith(MARK)
        if not is_ours:
            raise NotTheDemo(f"{home} is not the demo's: there are settings or schedules of yours in it")
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    file.write_text(_settings(home), encoding="utf-8")
    file.chmod(0o600)
    (home / "HEARTBEAT.md").write_text(_NOTES, encoding="utf-8")


def program(name: str, *arguments: str) -> list[str]:
    """One of the demo's programs, as a command: nothing of Wakeful is imported in it, so it starts at once."""
    return [sys.executable, "-I", str(PROGRAMS / f"{name}.py"), *arguments]


def _settings(home: Path) -> str:
    quota, wake = (
        json.dumps(program("quota", what, str(home))) for what in ("read", "wake")
    )  # JSON's lists are TOML's
    return SETTINGS.format(mark=MARK, quota=quota, wake=wake)
