"""`wakeful service`: what it writes and refuses. docs/operating.md is a reader who installs one and uses it."""

import os
import plistlib
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from edges.cli.kit import Cli
from patience import PATIENCE
from wakeful.cli.service_files import Service, home_in, is_passing, launchd_agent, name_of, search_path, systemd_unit

ODD = "/tmp/a home/50% of $HOME, \"quoted\" and 'so'"


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Someone with an empty home and a systemd that does not run for them."""
    folder, programs = tmp_path / "user", tmp_path / "programs"
    folder.mkdir()
    programs.mkdir()
    told = tmp_path / "told"
    program = programs / "systemctl"
    program.write_text(
        f'#!/bin/sh\necho "$@" >> {shlex.quote(str(told))}\ntest -e {shlex.quote(str(tmp_path / "manager"))}\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    return folder


@pytest.fixture
def own(user: Path) -> Cli:
    """The command line over this user's usual home."""
    return Cli(user / ".wakeful")


def unit_of(user: Path, name: str = "wakeful") -> Path:
    return user / ".config" / "systemd" / "user" / f"{name}.service"


def test_a_dry_run_prints_the_file_and_writes_nothing(own: Cli, user: Path) -> None:
    """With the PATH of the shell, the home, and the absolute path of the program."""
    said = own.ask("service", "install", "--dry-run")
    assert said.code == 0
    command = next(line for line in said.out.splitlines() if line.startswith("ExecStart="))
    words = shlex.split(command.removeprefix("ExecStart="))
    assert Path(words[0]).is_absolute() and os.access(words[0], os.X_OK)
    assert words[-3:] == ["--home", str(own.home), "up"]
    assert f"Environment=PATH={os.environ['PATH']}" in said.out.splitlines()
    assert "Restart=on-failure" in said.out.splitlines()
    assert list(user.iterdir()) == []


def test_without_a_manager_the_file_is_written_and_the_commands_are_named(own: Cli, user: Path) -> None:
    """Installing again replaces it; uninstalling removes it and nothing else."""
    said = own.ask("service", "install")
    assert (said.code, said.out) == (0, f"{unit_of(user)} written\n")
    assert "systemctl --user daemon-reload && systemctl --user enable --now wakeful" in said.err
    first = unit_of(user).read_text()
    assert own.ask("service").code == 0
    assert own.ask("service", "install").code == 0
    assert unit_of(user).read_text() == first
    assert own.ask("service", "uninstall").out == f"{unit_of(user)} removed; {own.home} is unchanged\n"
    assert not unit_of(user).exists()
    gone = own.ask("service", "uninstall")
    assert (gone.code, own.ask("service").code) == (1, 1)
    assert "does not exist" in gone.err


def test_a_manager_is_told(own: Cli, user: Path) -> None:
    """To read the file, to start the service now and at login; and to stop it before the file is removed."""
    (user.parent / "manager").touch()
    assert own.ask("service", "install", "-o", "json").json["started"] is True
    told = (user.parent / "told").read_text().splitlines()
    assert told == ["--user show-environment", "--user daemon-reload", "--user enable --now wakeful"]
    assert own.ask("service", "uninstall").code == 0
    told = (user.parent / "told").read_text().splitlines()[3:]
    assert told == ["--user show-environment", "--user disable --now wakeful", "--user daemon-reload"]


def test_a_daemon_that_runs_already_is_left_alone(cli: Cli, user: Path) -> None:
    """The service could not have its home: it is enabled, and the user is told how it takes over."""
    (user.parent / "manager").touch()
    said = cli.ask("service", "install")
    assert (said.code, cli.ask("status").code) == (0, 0)
    assert "wakeful down && systemctl --user enable --now wakeful" in said.err
    assert "--user enable wakeful" in (user.parent / "told").read_text().splitlines()


def test_a_file_of_somebody_else_is_left_as_it_is(own: Cli, user: Path) -> None:
    """One written by hand, and the service of another home of the same name."""
    file = unit_of(user)
    file.parent.mkdir(parents=True)
    file.write_text("[Service]\nExecStart=/bin/true\n")
    for command in ("install", "uninstall"):
        said = own.ask("service", command)
        assert (said.code, "move the file elsewhere" in said.err) == (1, True)
    assert file.read_text() == "[Service]\nExecStart=/bin/true\n"
    for number, code in (("one", 0), ("two", 1)):
        said = own.ask("--home", str(user / number / "work"), "service", "install")
        assert said.code == code
    assert f"is the service of another home, {user / 'one' / 'work'}" in said.err


def test_variables_that_the_service_will_not_have_are_named(own: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """A settings file that works in this shell would be refused by the service."""
    monkeypatch.setenv("DOOR_TOKEN", "a-long-enough-secret")
    own.home.mkdir()
    (own.home / "wakeful.toml").write_text(
        '[hooks.door]\ntoken = {env = "DOOR_TOKEN"}\n[limits]\nshutdown_grace = "5m"\n'
    )
    said = own.ask("service", "install")
    assert said.code == 0
    assert "wakeful.toml reads DOOR_TOKEN from the environment" in said.err
    assert str(own.home / "service.env") in said.err
    assert "TimeoutStopSec=330" in own.ask("service", "install", "--dry-run").out


@pytest.mark.parametrize("system", ["win32", "freebsd14"])
def test_other_systems_are_refused(own: Cli, user: Path, system: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the command that another service manager can run."""
    monkeypatch.setattr(sys, "platform", system)
    for command in (("service", "install"), ("service", "install", "--dry-run"), ("service", "uninstall")):
        said = own.ask(*command)
        assert said.code == 1
        assert f"this system is {system}" in said.err and f"--home {own.home} up" in said.err
    assert list(user.iterdir()) == []


def test_a_linux_without_systemd_is_told_what_else_can_run_it(
    own: Cli, user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is written for when there is one."""
    monkeypatch.setenv("PATH", str(user))
    said = own.ask("service", "install")
    assert (said.code, unit_of(user).exists()) == (0, True)
    assert f"--home {own.home} up" in said.err


def test_a_program_that_may_vanish_is_refused(own: Cli, user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of uvx lives in a cache."""
    monkeypatch.setattr(sys, "prefix", "/home/me/.cache/uv/archive-v0/abc")
    said = own.ask("service", "install")
    assert (said.code, "uv tool install" in said.err, unit_of(user).exists()) == (1, True, False)
    assert not is_passing("/home/me/.local/share/uv/tools/wakeful")
    assert not is_passing("/home/me/.local/share/pipx/venvs/wakeful")


def test_launchd_gets_an_agent(own: Cli, user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A property list that macOS reads; the same home, PATH and restarts."""
    monkeypatch.setattr(sys, "platform", "darwin")
    said = own.ask("service", "install")
    assert said.code == 0
    file = user / "Library" / "LaunchAgents" / "wakeful.plist"
    agent = plistlib.loads(file.read_bytes())
    assert agent["ProgramArguments"][-3:] == ["--home", str(own.home), "up"]
    assert agent["EnvironmentVariables"] == {"PATH": os.environ["PATH"]}
    assert (agent["RunAtLoad"], agent["KeepAlive"], agent["ExitTimeOut"]) == (True, {"SuccessfulExit": False}, 60)
    assert f"launchctl bootstrap gui/{os.getuid()} {file}" in said.err
    assert own.ask("service", "install").code == 0
    assert own.ask("service", "uninstall").code == 0
    assert not file.exists()


def test_paths_of_any_kind_are_written_so_that_they_are_read_again() -> None:
    """Blanks, quotes, percent and dollar signs."""
    service = Service("wakeful-odd", Path(ODD), ("/bin/true",), "/usr/bin:/opt/a b", 60)
    assert plistlib.loads(launchd_agent(service).encode())["ProgramArguments"][2] == ODD
    assert home_in(launchd_agent(service)) == home_in(systemd_unit(service)) == Path(ODD)
    assert home_in("[Unit]\n") is None
    line = next(one for one in systemd_unit(service).splitlines() if one.startswith("ExecStart="))
    assert "50%% of $$HOME" in line  # systemd expands both otherwise
    words = shlex.split(line.removeprefix("ExecStart="))
    assert words[2].replace("%%", "%").replace("$$", "$") == ODD


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
@pytest.mark.parametrize("home", ["/home/me/.wakeful", ODD])
def test_systemd_finds_nothing_wrong_with_the_unit(home: str, tmp_path: Path) -> None:
    """Neither an error nor a warning."""
    file = tmp_path / "wakeful.service"
    file.write_text(systemd_unit(Service("wakeful", Path(home), ("/bin/true",), "/usr/bin:/opt/a b:/50%", 60)))
    command = ["systemd-analyze", "--user", "verify", str(file)]
    environ = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)}
    looked = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (looked.returncode, looked.stderr) == (0, "")


def test_names_and_paths(user: Path) -> None:
    """Each home has a service of its own; a service has no folder to be relative to."""
    assert name_of(user / ".wakeful") == "wakeful"
    assert name_of(user / ".wakeful-two") == "wakeful-two"
    assert name_of(Path("/srv/My Work")) == "wakeful-my-work"
    assert search_path("/usr/bin:.:bin::/usr/bin:/bin") == "/usr/bin:/bin"
    assert search_path("") == os.defpath
