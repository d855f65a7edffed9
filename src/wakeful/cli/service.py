"""`wakeful service`: run the daemon as a user service, started at login and restarted after a crash."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from wakeful.cli.caller import only_people
from wakeful.cli.errors import Ended
from wakeful.cli.invocation import Invocation, end, group
from wakeful.cli.render import json_out, note, say
from wakeful.cli.service_files import (
    ENVIRONMENT_FILE,
    STOP_MARGIN,
    Service,
    home_in,
    is_passing,
    launchd_agent,
    name_of,
    program_of,
    search_path,
    systemd_unit,
)

WITHIN: Final = 120.0
"""Seconds that a service manager may take; it waits until the daemon is ready."""
_GRACE: Final = 30_000


@dataclass(frozen=True, slots=True)
class Manager:
    """systemd or launchd, for one service."""

    kind: str
    file: Path
    text: str
    is_there: bool  # whether the user's service manager is reachable now
    reload: tuple[Sequence[str], ...]
    enable: Sequence[str]
    start: Sequence[str]
    restart: Sequence[str]
    stop: Sequence[str]


@group("service")
def service_command(invocation: Invocation) -> None:
    """Show whether it is installed as a service; install or remove it."""
    manager = _manager(_service(invocation.home))
    is_installed = manager.file.exists()
    if invocation.is_json:
        json_out({"installed": is_installed, "kind": manager.kind, "file": str(manager.file)})
    elif is_installed:
        say(f"{invocation.home} is a service: {manager.file}")
    else:
        say(f"{invocation.home} is not installed as a service; to install it: wakeful service install")
    if not is_installed:
        end()


@service_command.subcommand("install")
@click.option("--dry-run", is_flag=True, help="Print the file without writing or starting anything.")
def install_command(invocation: Invocation, dry_run: bool) -> None:
    """Install this home folder's daemon as a user service: a systemd user unit, or a launchd agent.

    It uses the PATH of this shell and the absolute path of this program, starts when you log in, and restarts after a
    crash. Install it again when the PATH changes or the program moves.
    """
    service = _service(invocation.home)
    manager = _manager(service)
    if dry_run:
        if invocation.is_json:
            json_out({"kind": manager.kind, "file": str(manager.file), "text": manager.text})
        else:
            click.echo(manager.text, nl=False)
        return
    only_people(invocation.home, "install the service")
    _check(service, manager)
    _write(manager)
    is_running = _start(service, manager)
    if invocation.is_json:
        json_out({"kind": manager.kind, "name": service.name, "file": str(manager.file), "started": is_running})
        return
    say(f"{manager.file} written" + (f"; {service.name} is running" if is_running else ""))
    if is_running and manager.kind == "systemd":
        note("  to keep it running while you are logged out: loginctl enable-linger")


@service_command.subcommand("uninstall")
def uninstall_command(invocation: Invocation) -> None:
    """Stop this home folder's service and remove its file. The home folder is not touched."""
    service = _service(invocation.home)
    manager = _manager(service)
    if not manager.file.exists():
        raise Ended(f"{invocation.home} is not installed as a service: {manager.file} does not exist")
    _check_ours(manager.file, invocation.home)
    only_people(invocation.home, "remove the service")
    if manager.is_there:
        _ask(manager.stop, is_needed=manager.kind == "systemd")
    manager.file.unlink()
    for link in _links_to(manager.file):
        link.unlink(missing_ok=True)
    if manager.is_there:
        for command in manager.reload:
            _ask(command)
    if invocation.is_json:
        json_out({"kind": manager.kind, "name": service.name, "file": str(manager.file), "removed": True})
    else:
        say(f"{manager.file} removed; {invocation.home} is unchanged")


def _service(home: Path) -> Service:
    return Service(
        name_of(home),
        home,
        program_of(sys.executable),
        search_path(os.environ.get("PATH", "")),
        stop_within=_grace(home) // 1000 + STOP_MARGIN,
    )


def _manager(service: Service) -> Manager:
    """The service manager of this system; refused where there is none."""
    if sys.platform == "darwin":
        return _launchd(service)
    if sys.platform == "linux":
        return _systemd(service)
    raise Ended(
        f"services need systemd or launchd, and this system is {sys.platform}",
        hint=f"let your own service manager run this in the foreground: {shlex.join(service.command)}",
    )


def _systemd(service: Service) -> Manager:
    folder = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "systemd" / "user"
    ask = ("systemctl", "--user")
    return Manager(
        "systemd",
        folder / f"{service.name}.service",
        systemd_unit(service),
        _succeeds((*ask, "show-environment")),
        reload=((*ask, "daemon-reload"),),
        enable=(*ask, "enable", service.name),
        start=(*ask, "enable", "--now", service.name),
        restart=(*ask, "restart", service.name),
        stop=(*ask, "disable", "--now", service.name),
    )


def _launchd(service: Service) -> Manager:
    file = Path.home() / "Library" / "LaunchAgents" / f"{service.name}.plist"
    domain = f"gui/{os.getuid()}"
    return Manager(
        "launchd",
        file,
        launchd_agent(service),
        _succeeds(("launchctl", "print", domain)),
        reload=(),
        enable=("launchctl", "enable", f"{domain}/{service.name}"),
        start=("launchctl", "bootstrap", domain, str(file)),
        restart=("launchctl", "kickstart", "-k", f"{domain}/{service.name}"),
        stop=("launchctl", "bootout", f"{domain}/{service.name}"),
    )


def _check(service: Service, manager: Manager) -> None:
    """Refuse to write a service that would not start, or to overwrite a foreign file."""
    if is_passing(sys.prefix):
        raise Ended(
            f"this installation is in a cache ({sys.prefix}) and may be deleted",
            hint="install it first, e.g. with pipx install or uv tool install, and use that program",
        )
    if not all(word.isprintable() for word in service.command):
        raise Ended("the path of the home or of the program contains a control character; choose another")
    if manager.file.exists():
        _check_ours(manager.file, service.home)


def _check_ours(file: Path, home: Path) -> None:
    try:
        written = home_in(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, LookupError):
        written = None
    if written is None:
        raise Ended(
            f"{file} was not written by wakeful service install, and is unchanged",
            hint="stop that service, and move the file elsewhere",
        )
    if written != home:
        raise Ended(
            f"{file} is the service of another home, {written}",
            hint="uninstall that one first, or rename this home's folder: the service is named after it",
        )


def _write(manager: Manager) -> None:
    """Write to a temporary file and rename, so that a partial file is never read."""
    draft = manager.file.with_name(f".{manager.file.name}.new")
    try:
        manager.file.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(manager.text, encoding="utf-8")
        draft.replace(manager.file)
    except OSError as error:
        raise Ended(f"{manager.file} cannot be written: {error.strerror}") from error


def _start(service: Service, manager: Manager) -> bool:
    """Start the service; returns whether it runs. If it cannot be started, print the commands for it."""
    for words in _troubles(service.home, manager.kind):
        note(f"  {words}")
    commands = (*manager.reload, manager.start)
    if not manager.is_there:
        note(f"  {manager.kind} is not running for this user; once it is: {_joined(commands)}")
        note(f"  another service manager can run this in the foreground: {shlex.join(service.command)}")
        return False
    if _is_held(service.home):
        for command in (*manager.reload, manager.enable):
            _ask(command)
        note("  a daemon already runs for this home. If it is the service, restart it to use the new file:")
        note(f"    {shlex.join(manager.restart)}")
        note(f"  otherwise switch to the service: wakeful down && {shlex.join(manager.start)}")
        return False
    for command in commands:
        _ask(command)
    return True


def _troubles(home: Path, kind: str) -> Iterator[str]:
    """Warn about what prevents the daemon from starting as a service although it starts in this shell."""
    from wakeful.config import SettingsRefused, load

    try:
        load(home)
    except SettingsRefused as refused:
        yield f"the settings are invalid, so the service will not start until they are corrected: {refused}"
    names = sorted(set(_variables(_written(home))))
    if names:
        listed = ", ".join(names)
        cure = f"write NAME=VALUE lines into {home / ENVIRONMENT_FILE}, or use" if kind == "systemd" else "use"
        words = f"wakeful.toml reads {listed} from the environment, which a service does not have"
        yield f'{words}: {cure} {{file = "PATH"}}'


def _grace(home: Path) -> int:
    """How long runs may continue after a stop, in milliseconds."""
    from wakeful.config import SettingsRefused, load

    try:
        return load(home).settings.limits.shutdown_grace
    except SettingsRefused:
        return _GRACE


def _written(home: Path) -> Any:
    import tomllib

    try:
        return tomllib.loads((home / "wakeful.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def _variables(written: Any) -> Iterator[str]:
    """The environment variables that a settings file uses for secrets."""
    match written:
        case {"env": str(name)} if len(written) == 1:
            yield name
        case dict():
            for value in written.values():
                yield from _variables(value)
        case list():
            for value in written:
                yield from _variables(value)


def _is_held(home: Path) -> bool:
    from wakeful.server.daemon.home import holder_of

    return holder_of(home) is not None


def _links_to(file: Path) -> list[Path]:
    """The symlink that `enable` creates, in case systemd is not reachable to remove it."""
    return [link for link in file.parent.glob(f"*.wants/{file.name}") if link.is_symlink()]


def _ask(command: Sequence[str], *, is_needed: bool = True) -> None:
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=WITHIN, check=False)  # noqa: S603 - ours
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Ended(f"{shlex.join(command)} failed: {error}") from error
    if ended.returncode != 0 and is_needed:
        said = (ended.stderr or ended.stdout).strip()
        raise Ended(f"{shlex.join(command)} failed: {said}", hint="see server.log in the home folder")


def _succeeds(command: Sequence[str]) -> bool:
    try:
        ended = subprocess.run(command, capture_output=True, timeout=WITHIN, check=False)  # noqa: S603 - ours
    except (OSError, subprocess.TimeoutExpired):
        return False
    return ended.returncode == 0


def _joined(commands: Sequence[Sequence[str]]) -> str:
    return " && ".join(shlex.join(command) for command in commands)
