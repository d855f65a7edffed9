"""Process information from the operating system: session members, start times, boot and machine ids.

Linux provides it in /proc; elsewhere `ps` and similar tools are run, which takes milliseconds: call these in a thread.
"""

import hashlib
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from wakeful.core.run.resources import is_lack

_IS_LINUX: Final = sys.platform == "linux"
_IS_MACOS: Final = sys.platform == "darwin"
_PROC: Final = Path("/proc")
_MACHINE_ID: Final = Path("/etc/machine-id")
_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
_PS: Final = "/bin/ps"


class Member(NamedTuple):
    """A live process of a session."""

    pid: int
    group: int


def session_members(leader: int) -> list[Member]:
    """The live processes of the session, anywhere in the process tree."""
    if _IS_LINUX:
        stats = map(_stat_of, _pids())
        return [Member(stat.pid, stat.group) for stat in stats if stat and stat.session == leader and stat.is_alive]
    return list(_members_by_ps(leader))


def this_host() -> str:
    """An id of this machine or container that survives a restart."""
    if _IS_MACOS:  # the host name depends on the network there
        machine = _printed("/usr/sbin/ioreg", "-rd1", "-c", "IOPlatformExpertDevice").partition("IOPlatformUUID")[2]
        return f"mac-{_digest(machine.splitlines()[0])}" if machine else socket.gethostname()
    machine = _read(_MACHINE_ID)
    return f"{socket.gethostname()}#{_digest(machine)}" if machine else socket.gethostname()


def started_of(pid: int) -> str | None:
    """The start of this process: boot id and time within it. None if there is no such process."""
    if _IS_LINUX:
        stat = _stat_of(pid)
        return f"{boot_id()}/{stat.started}" if stat else None
    printed = _printed(_PS, "-o", "lstart=", "-p", str(pid))
    return f"{boot_id()}/{' '.join(printed.split())}" if printed else None


def is_alive(pid: int) -> bool:
    """Whether this process exists and has not ended; a zombie has."""
    if _IS_LINUX:
        stat = _stat_of(pid)
        return stat is not None and stat.is_alive
    state = _printed(_PS, "-o", "stat=", "-p", str(pid))
    return bool(state) and not state.startswith("Z")


def parent_and_session(pid: int) -> tuple[int, int] | None:
    """The parent of this process and its session, on Linux; None if it cannot be seen."""
    stat = _stat_of(pid)
    return None if stat is None else (stat.parent, stat.session)


def boot_id() -> str:
    """An id of the current boot."""
    if _IS_MACOS:
        return _printed("/usr/sbin/sysctl", "-n", "kern.bootsessionuuid")
    return _read(_BOOT_ID)


def has_variable(pid: int, name: str) -> bool:
    """Whether the process was started with this environment variable."""
    if not _IS_LINUX:
        return True  # not visible elsewhere; pids there repeat only after 99,999 processes
    with suppress(OSError):
        variables = (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
        return any(variable.startswith(f"{name}=".encode()) for variable in variables)
    return False


class _Stat(NamedTuple):
    pid: int
    state: str
    parent: int
    group: int
    session: int
    threads: int
    started: int

    @property
    def is_alive(self) -> bool:
        # The main thread may have ended and look like a zombie while other threads run.
        return self.state not in "ZX" or self.threads > 1


def _stat_of(pid: int) -> _Stat | None:
    try:
        line = (_PROC / str(pid) / "stat").read_bytes()
    except OSError as error:
        if is_lack(error):  # it may exist
            raise
        return None
    # The name in parentheses may contain anything, so fields are counted after it; `state` is field 3 of proc(5).
    fields = line[line.rindex(b")") + 2 :].split()
    state, parent, group, session, threads, started = (fields[index] for index in (0, 1, 2, 3, 17, 19))
    return _Stat(pid, state.decode(), int(parent), int(group), int(session), int(threads), int(started))


def _pids() -> Iterator[int]:
    return (int(entry.name) for entry in os.scandir(_PROC) if entry.name.isdigit())


def _members_by_ps(leader: int) -> Iterator[Member]:
    for line in _printed(_PS, "-axo", "pid=,pgid=,stat=").splitlines():
        pid, group, state = line.split(maxsplit=2)
        with suppress(ProcessLookupError, PermissionError):
            if not state.startswith("Z") and os.getsid(int(pid)) == leader:
                yield Member(int(pid), int(group))


def _printed(*argv: str) -> str:
    with suppress(OSError):
        done = subprocess.run(argv, capture_output=True, text=True, env={"LC_ALL": "C"}, check=False)  # noqa: S603 - the system's own tools
        return done.stdout.strip()
    return ""


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError as error:
        if is_lack(error):
            raise
        return ""


def _digest(machine: str) -> str:
    # The machine id should stay confidential (machine-id(5)); a digest serves as well.
    return hashlib.sha256(f"wakeful {machine}".encode()).hexdigest()[:12]
