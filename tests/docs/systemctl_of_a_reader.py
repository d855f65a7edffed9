"""What `systemctl --user` and `loginctl` are for a reader without systemd: as much of them as keeps one service.

It goes by the unit file that the reader wrote, where systemd looks for it, and refuses what systemd would not
understand. The service gets the bare environment of a service, and has started when it says so (`Type=notify`). Where
`systemd-analyze` is installed, systemd itself looks over the unit too.
"""

import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from configparser import RawConfigParser
from pathlib import Path

from wakeful.server.daemon.home import holder_of

WITHIN = 60.0
KNOWN = {
    "Unit": {"Description", "Documentation", "StartLimitIntervalSec"},
    "Service": {
        *("Type", "ExecStart", "Environment", "EnvironmentFile", "KillMode", "TimeoutStopSec"),
        *("Restart", "RestartSec", "RestartPreventExitStatus"),
    },
    "Install": {"WantedBy"},
}
HOME = Path(os.environ["HOME"])
RUNTIME = Path(os.environ["XDG_RUNTIME_DIR"])
UNITS = HOME / ".config" / "systemd" / "user"


class Refused(Exception):
    """What systemd would not do."""


class Service:
    """One service, by its unit file."""

    def __init__(self, name: str) -> None:
        self.file = UNITS / f"{name}.service"
        if not self.file.exists():
            raise Refused(f"Unit {self.file.name} not found.")
        unit = _read(self.file)
        service = unit["Service"]
        if (service.get("Type"), service.get("KillMode")) != ("notify", "mixed"):
            raise Refused("only Type=notify and KillMode=mixed are kept here")
        self.wanted_by = unit["Install"]["WantedBy"]
        self.command = shlex.split(service["ExecStart"].replace("%h", str(HOME)))
        environment = shlex.split(service.get("Environment", "PATH=/usr/local/bin:/usr/bin:/bin"))
        self.path = environment[0].removeprefix("PATH=")
        self.patience = float(service["TimeoutStopSec"])
        self._pid_file = RUNTIME / f"{name}.pid"

    def enable(self) -> None:
        wants = UNITS / f"{self.wanted_by}.wants"
        wants.mkdir(exist_ok=True)
        link = wants / self.file.name
        link.unlink(missing_ok=True)
        link.symlink_to(self.file)

    def start(self) -> None:
        """Begin it, and wait until it says that it is ready."""
        notify = RUNTIME / "notify"
        notify.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as heard, (RUNTIME / "journal").open("a") as journal:
            heard.bind(str(notify))
            environ = {"HOME": str(HOME), "PATH": self.path, "LANG": "C.UTF-8"}
            child = subprocess.Popen(
                self.command,
                cwd=HOME,
                env={**environ, "NOTIFY_SOCKET": str(notify)},
                stdin=subprocess.DEVNULL,
                stdout=journal,
                stderr=journal,
                start_new_session=True,
            )
            self._pid_file.write_text(str(child.pid))
            with Path(os.environ["DOCS_PIDS"]).open("a") as pids:
                pids.write(f"{child.pid}\n")
            heard.settimeout(0.2)
            give_up_at = time.monotonic() + WITHIN
            while not _says_ready(heard):
                if child.poll() is not None or time.monotonic() > give_up_at:
                    raise Refused(f"Job for {self.file.name} failed.\n{(RUNTIME / 'journal').read_text()}")
        child.returncode = 0  # it goes on, and is nobody's child from here on

    def stop(self) -> None:
        """SIGTERM to the main process, and to all that is left when its time is up."""
        if not self._pid_file.exists():
            return
        pid = int(self._pid_file.read_text())
        self._pid_file.unlink()
        if holder_of(HOME / ".wakeful") is None:
            return
        os.kill(pid, signal.SIGTERM)
        give_up_at = time.monotonic() + self.patience
        while holder_of(HOME / ".wakeful") is not None:
            if time.monotonic() > give_up_at:
                os.killpg(pid, signal.SIGKILL)
                raise Refused(f"{self.file.name} did not end within {self.patience} s, and was killed")
            time.sleep(0.05)


def _read(file: Path) -> RawConfigParser:
    unit = RawConfigParser(delimiters=("=",), comment_prefixes=("#", ";"), strict=True)
    unit.optionxform = str  # type: ignore[assignment,method-assign]  # names are as they are written
    unit.read_string(file.read_text(encoding="utf-8"))
    for section in unit.sections():
        unknown = set(unit[section]) - KNOWN.get(section, set())
        if section not in KNOWN or unknown:
            raise Refused(f"{file}: Unknown key {', '.join(sorted(unknown))} in section [{section}]")
    if shutil.which("systemd-analyze"):
        command = ["systemd-analyze", "--user", "verify", str(file)]
        looked = subprocess.run(command, capture_output=True, text=True, timeout=WITHIN, check=False)
        if looked.returncode or looked.stderr.strip():
            raise Refused(looked.stderr)
    return unit


def _says_ready(heard: socket.socket) -> bool:
    try:
        return b"READY=1" in heard.recv(1000).splitlines()
    except TimeoutError:
        return False


def main(name: str, words: list[str]) -> int:
    try:
        match [name, *words]:
            case ["loginctl", "enable-linger"]:
                (RUNTIME / "linger").touch()
            case ["systemctl", "--user", "daemon-reload" | "show-environment"]:
                pass  # files are read each time
            case ["systemctl", "--user", "enable", "--now", unit]:
                service = Service(unit)
                service.enable()
                service.start()
            case ["systemctl", "--user", "start", unit]:
                Service(unit).start()
            case ["systemctl", "--user", "stop", unit]:
                Service(unit).stop()
            case ["systemctl", "--user", "restart", unit]:
                service = Service(unit)
                service.stop()
                service.start()
            case _:
                raise Refused(f"{shlex.join([name, *words])}: this is not kept here")
    except (Refused, KeyError) as refused:
        sys.stderr.write(f"{refused}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
