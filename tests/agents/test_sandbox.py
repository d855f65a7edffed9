"""The sandbox of a command agent, with the real bubblewrap: what a program of the same Unix user could do, and cannot
any longer. Each is first tried without the sandbox, so that a test whose attack never works shows nothing."""

import json
import os
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from agents.test_programs import Desk
from climbing import Eventually
from wakeful.config import load
from wakeful.core.run.results import Done, Failed
from wakeful.engine.clock import SystemClock
from wakeful.integrations.actions import sandbox
from wakeful.integrations.actions.program import Unstartable
from wakeful.integrations.actions.registry import CallRegistry
from wakeful.integrations.actions.sandbox import Sandbox, sandboxed
from wakeful.integrations.agents.command import CommandAgent, CommandSettings
from wakeful.integrations.agents.from_settings import AgentRegistry


def _why_not() -> str | None:
    try:
        sandboxed(("true",), Sandbox((), False, "/nonexistent"), "/", dict(os.environ))
    except Unstartable as error:
        return str(error)
    return None


WHY_NOT = _why_not()
pytestmark = pytest.mark.skipif(WHY_NOT is not None, reason=WHY_NOT or "")

PYTHON = os.path.realpath(sys.executable)  # not that of an environment below /tmp, which the sandbox hides

ATTACK = """
import json, os, socket, subprocess, sys
from pathlib import Path
def tried(deed):
    try:
        return deed() or "done"
    except OSError as error:
        return f"refused: {error.strerror}"
def connect(family, address):
    with socket.socket(family) as one:
        one.settimeout(20)
        one.connect(address)
"""


class Place:
    """A home folder of Wakeful, and a folder to work in."""

    def __init__(self, folder: Path) -> None:
        self.home, self.work = folder / "home", folder / "work"
        self.home.mkdir()
        self.work.mkdir()
        (self.home / "token").write_text("secret-token")
        (self.home / "wakeful.toml").write_text("[server]\n")

    def settings(self, source: str, *, is_enclosed: bool, writes: bool = True, network: bool = True) -> CommandSettings:
        (self.work / "agent.py").write_text(ATTACK + source)
        enclosed = Sandbox((str(self.work),) if writes else (), network, str(self.home)) if is_enclosed else None
        argv = (PYTHON, str(self.work / "agent.py"), str(self.home))
        return CommandSettings(argv, cwd=str(self.work), sandbox=enclosed)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
async def ask(place: Place) -> AsyncIterator[Callable[..., Any]]:
    """What the program prints, with or without the sandbox."""
    desks: list[Desk] = []

    async def answer(source: str, *, is_enclosed: bool, **settings: Any) -> str:
        agent = CommandAgent(place.settings(source, is_enclosed=is_enclosed, **settings), SystemClock())
        desks.append(Desk(agent))
        done = await desks[-1].turn()
        assert isinstance(done, Done), done
        return done.reply or ""

    yield answer
    for desk in desks:
        await desk.action.close()


@contextmanager
def listening(where: str | tuple[str, int]) -> Iterator[Any]:
    """A server of the same user."""
    family = socket.AF_UNIX if isinstance(where, str) else socket.AF_INET
    with socket.socket(family) as server:
        server.bind(where)
        server.listen()
        yield server.getsockname()


READ_THE_TOKEN = "print(tried(lambda: Path(sys.argv[1], 'token').read_text()))"
CHANGE_THE_SETTINGS = "print(tried(lambda: Path(sys.argv[1], 'wakeful.toml').write_text('[server]') and None))"


@pytest.mark.parametrize(
    ("source", "without", "within"),
    [
        pytest.param(READ_THE_TOKEN, "secret-token", "No such file", id="token file"),
        pytest.param(CHANGE_THE_SETTINGS, "done", "done", id="settings"),
    ],
)
async def test_files_of_the_user_are_out_of_reach(
    place: Place, ask: Callable[..., Any], source: str, without: str, within: str
) -> None:
    """The token file and the settings. What the program writes into the hidden home folder is gone with it."""
    assert without in await ask(source, is_enclosed=False)
    before = (place.home / "wakeful.toml").stat().st_mtime_ns
    assert within in await ask(source, is_enclosed=True)
    assert (place.home / "wakeful.toml").stat().st_mtime_ns == before


async def test_files_in_which_other_services_look_for_work_cannot_be_written(ask: Callable[..., Any]) -> None:
    """The crontab, units of systemd, the profile of a shell: all that is not listed."""
    path = Path.home() / f".wakeful-test-{os.getpid()}"
    if path.is_relative_to("/tmp") or not os.access(path.parent, os.W_OK):
        pytest.skip("the home folder of this user is not an ordinary one")
    source = f"print(tried(lambda: Path({str(path)!r}).write_text('* * * * * true') and None))"
    try:
        assert await ask(source, is_enclosed=False) == "done"
        path.unlink()
        assert "Read-only" in await ask(source, is_enclosed=True)
        assert not path.exists()
    finally:
        path.unlink(missing_ok=True)


@pytest.mark.parametrize("folder", ["/tmp", "/run"], ids=["tmux", "systemd-run --user"])
async def test_sockets_of_the_users_services_are_out_of_reach(ask: Callable[..., Any], folder: str) -> None:
    """tmux listens in /tmp, the user's systemd, D-Bus and screen in /run."""
    path = Path(folder, f"wakeful-test-{os.getpid()}.sock")
    if not os.access(folder, os.W_OK):
        pytest.skip(f"only root may make a socket in {folder}")
    source = f"print(tried(lambda: connect(socket.AF_UNIX, {str(path)!r})))"
    try:
        with listening(str(path)):
            assert await ask(source, is_enclosed=False) == "done"
            assert "refused: No such file" in await ask(source, is_enclosed=True)
    finally:
        path.unlink(missing_ok=True)


async def test_a_network_is_a_choice(ask: Callable[..., Any]) -> None:
    """Without one, not even this machine can be reached."""
    with listening(("127.0.0.1", 0)) as address:
        source = f"print(tried(lambda: connect(socket.AF_INET, {address!r})))"
        assert await ask(source, is_enclosed=True, network=True) == "done"
        assert "refused" in await ask(source, is_enclosed=True, network=False)


async def test_it_writes_only_where_it_may(place: Place, ask: Callable[..., Any]) -> None:
    """Its working directory only if it is listed."""
    source = "print(tried(lambda: Path('result.txt').write_text('x') and None))"
    assert "Read-only" in await ask(source, is_enclosed=True, writes=False)
    assert await ask(source, is_enclosed=True) == "done"
    assert (place.work / "result.txt").read_text() == "x"


LEAVE = """
def left(**how):
    null = subprocess.DEVNULL
    subprocess.Popen(["sleep", MARK], start_new_session=True, stdin=null, stdout=null, stderr=null, **how)
left()  # setsid, as nohup and disown
left(env={})  # with a cleared environment
if os.fork() == 0:  # a double fork
    os.setsid()
    if os.fork() == 0:
        left()
    os._exit(0)
os.wait()
print("left")
"""


def _sleeping(mark: str) -> list[int]:
    """The processes that were left."""
    found = []
    for folder in Path("/proc").iterdir():
        with suppress(OSError):
            if folder.name.isdigit() and (folder / "cmdline").read_bytes() == f"sleep\0{mark}\0".encode():
                found.append(int(folder.name))
    return found


async def test_what_it_leaves_behind_ends_with_it(ask: Callable[..., Any], eventually: Eventually) -> None:
    """In sessions of their own, without an environment, without parents."""
    mark = f"{70_000 + os.getpid()}"
    source = f"MARK = {mark!r}\n" + LEAVE
    try:
        assert await ask(source, is_enclosed=False) == "left"
        assert len(_sleeping(mark)) >= 2
    finally:
        for pid in _sleeping(mark):
            os.kill(pid, 9)
    assert await ask(source, is_enclosed=True) == "left"
    await eventually(lambda: not _sleeping(mark))


async def test_the_settings_describe_it(place: Place) -> None:
    """The home folder that is hidden is the one that the settings are in."""
    argv = json.dumps([PYTHON, "-c", ATTACK + READ_THE_TOKEN, str(place.home)])
    (place.home / "wakeful.toml").write_text(
        f'[agents.worker]\nadapter = "command"\nargv = {argv}\ncwd = "{place.work}"\n'
        f'sandbox = "bubblewrap"\nsandbox_write = ["{place.work}"]\nsandbox_network = false\n'
    )
    described = load(place.home).settings.agents
    desk = Desk(AgentRegistry(place.home).agents(described, SystemClock(), CallRegistry())["worker"])
    done = await desk.turn()
    assert isinstance(done, Done) and "No such file" in (done.reply or "")
    await desk.action.close()


async def test_it_sees_no_other_process(ask: Callable[..., Any]) -> None:
    """So it cannot signal the daemon, or read its environment."""
    source = f"print(tried(lambda: os.kill({os.getpid()}, 0)))"
    assert await ask(source, is_enclosed=False) == "done"
    assert "No such process" in await ask(source, is_enclosed=True)


def test_it_is_refused_where_bubblewrap_is_not_installed(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """When a schedule is written, with the cure; and where it is installed, and namespaces are forbidden."""
    settings = place.settings("", is_enclosed=True)
    assert Desk(CommandAgent(settings, SystemClock())).wrong() is None
    monkeypatch.setattr(sandbox, "PROGRAM", "bwrap-that-is-not-there")
    wrong = Desk(CommandAgent(settings, SystemClock())).wrong()
    assert wrong is not None and "apt install bubblewrap" in wrong
    monkeypatch.setattr(sandbox, "PROGRAM", "false")
    wrong = Desk(CommandAgent(settings, SystemClock())).wrong()
    assert wrong is not None and "allow unprivileged user namespaces" in wrong


async def test_folders_that_cannot_be_given_are_named(place: Place) -> None:
    """A folder that is missing, and a working directory that would be hidden."""
    settings = place.settings("", is_enclosed=True)
    assert settings.sandbox is not None
    missing = CommandSettings(
        settings.argv, cwd=settings.cwd, sandbox=settings.sandbox._replace(writable=("/nowhere",))
    )
    assert "sandbox_write names '/nowhere'" in (Desk(CommandAgent(missing, SystemClock())).wrong() or "")
    hidden = CommandSettings(settings.argv, cwd=str(place.home), sandbox=settings.sandbox)
    desk = Desk(CommandAgent(hidden, SystemClock()))
    assert "which the sandbox hides" in (desk.wrong() or "")
    failed = await desk.turn()
    assert isinstance(failed, Failed) and failed.permanent
