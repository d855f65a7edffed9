"""The demo's home folder. A folder that is somebody's own is never touched: it is known by what stands in it."""

import shlex
import sys
from pathlib import Path
from typing import Final

DEMO_HOME: Final = "~/.wakeful-demo"
PROGRAMS: Final = Path(__file__).parent / "programs"
MARK: Final = "# The demo's settings."
ERRANDS: Final = ("tidy", "import", "crunch")
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

[channels.pager]                # nobody listens there: see its messages among the dead letters
type = "webhook"
url = "http://127.0.0.1:9/page"
allow_private = true

[slots.pretend]                 # a quota of four minutes, from a program that makes it up
provider = "command"
quota_argv = ["bin/quota", "read"]
wake_argv = ["bin/quota", "wake"]
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
    file.write_text(SETTINGS.format(mark=MARK), encoding="utf-8")
    file.chmod(0o600)
    (home / "bin").mkdir(exist_ok=True)
    for side_task in ERRANDS:
        _launch(home, "errand", side_task)
    _launch(home, "quota")
    _launch(home, "letters")
    (home / "HEARTBEAT.md").write_text(_NOTES, encoding="utf-8")


def _launch(home: Path, name: str, *arguments: str) -> None:
    """A launcher under `bin`, so that definitions read well, and stay as they are when Python moves."""
    words = [sys.executable, "-I", str(PROGRAMS / f"{name}.py"), *arguments]
    file = home / "bin" / (arguments[0] if arguments else name)
    file.write_text(f'#!/bin/sh\ncd "$(dirname "$0")/.." && exec {shlex.join(words)} "$@"\n', encoding="utf-8")
    file.chmod(0o700)
