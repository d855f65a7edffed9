"""A sandbox around a program: bubblewrap, which needs no privileges.

The program sees the file system as it is, but can write only to the folders it was given; it does not see Wakeful's
home folder, `/tmp`, `/run` (the sockets of systemd, D-Bus, screen and Docker) or other processes, and it has no network
unless it was given one. What it starts ends with it, in whatever session: the processes are in a namespace of their
own, whose first process dies with the program.
"""

import shutil
import subprocess
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from wakeful.integrations.actions.program import Unstartable

PROGRAM: Final = "bwrap"
PROBE_WITHIN_S: Final = 10

_NAMESPACES: Final = ("--die-with-parent", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try")
_FILES: Final = ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", "--tmpfs", "/run")  # noqa: S108 - hidden, not used
# What programs need of /run: names are resolved there on many systems, and NixOS has its programs there.
_NEEDED: Final = ("/run/systemd/resolve", "/run/current-system")


class Sandbox(NamedTuple):
    """What a program may do."""

    writable: tuple[str, ...]  # folders
    has_network: bool
    hidden: str  # Wakeful's home folder


def sandboxed(argv: tuple[str, ...], sandbox: Sandbox, cwd: str, env: Mapping[str, str]) -> tuple[str, ...]:
    """The command line that runs this one in the sandbox. Raises `Unstartable`."""
    program = find_bubblewrap(env.get("PATH"))
    refuse_wrong_folders(sandbox, cwd)
    needed = [word for path in _NEEDED for word in ("--ro-bind-try", path, path)]
    folders = [word for folder in sandbox.writable for word in ("--bind", folder, folder)]
    network = () if sandbox.has_network else ("--unshare-net",)
    return (
        program, *_NAMESPACES, *network, *_FILES, *needed, "--ro-bind", cwd, cwd, *folders,
        "--tmpfs", sandbox.hidden, "--chdir", cwd, "--", *argv,
    )  # fmt: skip


def refuse_wrong_folders(sandbox: Sandbox, cwd: str) -> None:
    """Refuse folders that are not there, and a working directory that is hidden."""
    for folder in sandbox.writable:
        if not Path(folder).is_dir():
            raise Unstartable(f"sandbox_write names '{folder}', which is not a folder here; create it, or remove it")
    if Path(cwd).resolve().is_relative_to(Path(sandbox.hidden).resolve()):
        raise Unstartable(
            f"cwd '{cwd}' is in Wakeful's home folder, which the sandbox hides; set cwd to another folder"
        )


def find_bubblewrap(path: str | None = None) -> str:
    """The program, if it works here. Raises `Unstartable`."""
    found = shutil.which(PROGRAM, path=path)
    if found is None:
        raise Unstartable(
            "the sandbox needs bubblewrap, which is not installed here; install it (apt install bubblewrap), or remove "
            "sandbox from the agent's settings"
        )
    problem = _problem_of(found)
    if problem is not None:
        _problem_of.cache_clear()  # it may be allowed later
        raise Unstartable(
            f"bubblewrap cannot make a sandbox here ({problem}); allow unprivileged user namespaces, or remove sandbox "
            "from the agent's settings"
        )
    return found


@lru_cache(maxsize=8)
def _problem_of(program: str) -> str | None:
    """Why it cannot make a sandbox on this machine: containers and some distributions forbid it."""
    try:
        tried = subprocess.run(  # noqa: S603 - found on the daemon's own PATH
            [program, *_NAMESPACES, "--unshare-net", *_FILES, "--", "true"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PROBE_WITHIN_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    said = tried.stderr.decode(errors="replace").strip().partition("\n")[0]
    return None if tried.returncode == 0 else said or f"it exited with {tried.returncode}"
