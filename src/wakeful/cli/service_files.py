"""The files that make the daemon a user service: a systemd unit, or a launchd agent.

Both start the program by its absolute path with the `PATH` of the shell that installed them: a service manager's own
`PATH` would not have the agents in it.
"""

from __future__ import annotations

import os
import plistlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from wakeful.server.daemon.home import STORE_REFUSED

MARK: Final = "Written by: wakeful service install"
ENVIRONMENT_FILE: Final = "service.env"
OUTPUT_FILE: Final = "service.log"
RESTART_AFTER: Final = 5
"""Seconds."""
STOP_MARGIN: Final = 30
"""Seconds that a stop may take beyond `limits.shutdown_grace` before the daemon is killed."""
_HOME: Final = "# Home: "
_NO_NAME: Final = re.compile(r"[^a-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class Service:
    """The parameters of the service."""

    name: str
    home: Path
    program: tuple[str, ...]
    path: str
    stop_within: int  # seconds

    @property
    def command(self) -> tuple[str, ...]:
        return (*self.program, "--home", str(self.home), "up")


def name_of(home: Path) -> str:
    """The service name of a home: `wakeful` for the default one, otherwise with the folder's name."""
    if home == Path.home() / ".wakeful":
        return "wakeful"
    folder = _NO_NAME.sub("-", home.name.lower()).strip("-._")
    if folder.startswith("wakeful"):
        return folder
    return f"wakeful-{folder}" if folder else "wakeful"


def program_of(executable: str) -> tuple[str, ...]:
    """The command that starts this installation: its console script, or else `python -m`."""
    script = Path(executable).with_name("wakeful")
    return (str(script),) if os.access(script, os.X_OK) else (executable, "-P", "-m", "wakeful.cli.main")


def is_passing(prefix: str) -> bool:
    """Whether an environment is a temporary one of `uvx` or `pipx run`."""
    parts = set(Path(prefix).parts)
    return bool(parts & {"archive-v0", "environments-v2"}) or {"pipx", ".cache"} <= parts


def search_path(text: str) -> str:
    """A `PATH` for a service: each folder once, without relative ones."""
    folders = [folder for folder in text.split(os.pathsep) if folder.startswith("/") and folder.isprintable()]
    return os.pathsep.join(dict.fromkeys(folders)) or os.defpath


def systemd_unit(service: Service) -> str:
    """A unit for `systemctl --user`."""
    command = " ".join(_quoted(word).replace("$", "$$") for word in service.command)
    return f"""\
# {MARK}
{_HOME}{service.home}
[Unit]
Description=Wakeful, the alarm clock for AI agents ({_escaped(service.home)})
StartLimitIntervalSec=0

[Service]
Type=notify
ExecStart={command}
Environment={_quoted(f"PATH={service.path}")}
# Variables that wakeful.toml and agents read, one NAME=VALUE a line; readable by you only.
EnvironmentFile=-{_escaped(service.home / ENVIRONMENT_FILE)}
Restart=on-failure
RestartSec={RESTART_AFTER}
# After a usage error (2), or if the store is missing, damaged or another one (4), a restart would not help.
RestartPreventExitStatus=2 {STORE_REFUSED}
# The daemon ends its runs itself: only it gets SIGTERM; remaining processes are killed at the end.
KillMode=mixed
TimeoutStopSec={service.stop_within}

[Install]
WantedBy=default.target
"""


def launchd_agent(service: Service) -> str:
    """A property list for `launchctl bootstrap gui/UID`."""
    output = str(service.home / OUTPUT_FILE)
    written = plistlib.dumps(
        {
            "Label": service.name,
            "ProgramArguments": list(service.command),
            "EnvironmentVariables": {"PATH": service.path},
            "RunAtLoad": True,
            "KeepAlive": {"SuccessfulExit": False},
            "ThrottleInterval": RESTART_AFTER,
            "ExitTimeOut": service.stop_within,
            "ProcessType": "Background",
            "StandardOutPath": output,
            "StandardErrorPath": output,
        },
        sort_keys=False,
    ).decode()
    return written.replace("<plist version", f"<!-- {MARK} -->\n<plist version", 1)


def home_in(text: str) -> Path | None:
    """The home named in a file written by one of the above; None if the file is foreign."""
    if MARK not in text:
        return None
    if text.startswith("<?xml"):
        words = plistlib.loads(text.encode())["ProgramArguments"]
        return Path(words[words.index("--home") + 1])
    return next((Path(line.removeprefix(_HOME)) for line in text.splitlines() if line.startswith(_HOME)), None)


def _quoted(text: str) -> str:
    """Quote one word for systemd."""
    text = _escaped(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"' if re.search(r"[\s\"'\\;]", text) else text


def _escaped(text: object) -> str:
    return str(text).replace("%", "%%")
