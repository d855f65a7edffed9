"""The demo's home folder. A folder with the user's own settings or schedules is never touched."""

import json
import secrets
import shlex
import sys
from pathlib import Path
from typing import Final

from wakeful.server.demo.things import with_history

DEMO_HOME: Final = "~/.wakeful-demo"
PROGRAMS: Final = Path(__file__).parent / "programs"
MARK: Final = "# The demo's settings."
ERRANDS: Final = ("tidy", "import", "crunch")
AGENTS: Final = ("default", "coder", "reviewer")
TOKEN_FILE: Final = "coder-token"  # noqa: S105 - the name of a file
"""The token with which the agent `coder` calls its tools."""
_NOTES: Final = "Say what happened since the last beat.\n"

SETTINGS: Final = """\
{mark} `wakeful up --demo` writes this file again at each start.

[limits]                        # much more frequent than you want with a paid model
agent_interval_min = "1m"
every_min = "5s"
shutdown_grace = "2s"

{agents}
[tokens.coder]                  # with it, the agent `coder` proposes schedules
token = {{file = "{token_file}"}}
role = "agent"
agent = "coder"

[heartbeat]
enabled = true
every = "1m"
prompt = "Reply HEARTBEAT_OK if there is nothing to report."
ack_match = "anywhere"
ack_chars_max = 160
spacing_min = "2s"
turns_per_hour_max = 600

[delivery]
retries_max = 1                 # so that a dead letter shows up within a minute

[channels.pager]                # nothing listens there: its messages become dead letters
type = "webhook"
url = "http://127.0.0.1:9/page"
allow_private = true

[slots.pretend]                 # a simulated quota window of four minutes
provider = "command"
quota_argv = ["bin/quota", "read"]
wake_argv = ["bin/quota", "wake"]
interval = "10m"
after_reset = "1m"
poll = "1m"
"""


AGENT: Final = """\
[agents.{name}]                 # a small program stands in for a model
adapter = "command"
argv = [{program}]
format = "json"
reply_key = "reply"
usage_key = "usage"
"""


class NotTheDemo(Exception):
    """A home that is in use for something else."""


def prepare(home: Path) -> None:
    """Create the folder, or reuse an earlier demo's."""
    file = home / "wakeful.toml"
    if file.exists() or (home / "wakeful.db").exists():
        is_ours = file.exists() and file.read_text(encoding="utf-8", errors="replace").startswith(MARK)
        if not is_ours:
            raise NotTheDemo(f"{home} is not a demo home: it contains your own settings or schedules")
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    _write_token(home / TOKEN_FILE)
    file.write_text(_settings(home), encoding="utf-8")
    file.chmod(0o600)
    (home / "bin").mkdir(exist_ok=True)
    for side_task in ERRANDS:
        _launch(home, "errand", side_task)
    for name in AGENTS:
        _launch(home, "model", name)
    _launch(home, "quota")
    _launch(home, "letters")
    (home / "HEARTBEAT.md").write_text(_NOTES, encoding="utf-8")
    if not (home / "wakeful.db").exists():
        from wakeful.server.demo.history import write_history  # only now: `up` without a demo starts faster

        write_history(home / "wakeful.db", with_history(home))


def _settings(home: Path) -> str:
    agents = "\n".join(AGENT.format(name=name, program=json.dumps(str(home / "bin" / name))) for name in AGENTS)
    return SETTINGS.format(mark=MARK, agents=agents, token_file=TOKEN_FILE)


def _write_token(file: Path) -> None:
    if not file.exists():
        file.touch(mode=0o600)
        file.write_text(secrets.token_urlsafe(24), encoding="utf-8")


def _launch(home: Path, name: str, *arguments: str) -> None:
    """A launcher under `bin`, so that definitions are readable and do not change with the path of Python."""
    words = [sys.executable, "-I", str(PROGRAMS / f"{name}.py"), *arguments]
    file = home / "bin" / (arguments[0] if arguments else name)
    file.write_text(f'#!/bin/sh\ncd "$(dirname "$0")/.." && exec {shlex.join(words)} "$@"\n', encoding="utf-8")
    file.chmod(0o700)
