"""How a daemon ends: told to while its store is gone, killed, crashed; each leaves a line."""

import fcntl
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from edges.http.kit import Daemon, daemon, start
from page.kit import ask
from patience import PATIENCE
from postgres.proxy import breaking
from wakeful.server.daemon.home import LOCK_NAME, holder_of

SETTINGS = '[limits]\nshutdown_grace = "1s"\n'
SLEEP = {"schedule": {"type": "manual"}, "command": {"argv": [sys.executable, "-c", "import time; time.sleep(300)"]}}


def _home(folder: Path, settings: str = SETTINGS) -> Path:
    folder.mkdir(mode=0o700)
    (folder / "wakeful.toml").write_text(settings)
    return folder


def _begin(one: Daemon) -> None:
    """A run that takes longer than anybody waits."""
    ask(one, "PUT", "/api/schedule/long", SLEEP)
    ask(one, "POST", "/api/schedule/long/run")
    while not ask(one, "GET", "/api/runs?outcome=running")["runs"]:
        pass


def _log(home: Path) -> str:
    return (home / "server.log").read_text()


def test_it_ends_when_told_although_its_file_is_gone(tmp_path: Path) -> None:
    """A run is open and the database was renamed: after the grace the daemon ends in good order."""
    home = _home(tmp_path / "home")
    with daemon(home) as one:
        _begin(one)
        (home / "wakeful.db").rename(home / "elsewhere.db")
        assert one.end() == 0
        assert "wakeful.server.daemon: stopped" in _log(home)


def test_it_ends_when_told_although_its_server_is_gone(tmp_path: Path, url: str) -> None:
    """The same on PostgreSQL, whose connections break and cannot be made again."""
    with breaking(url) as proxy:
        home = _home(tmp_path / "home", f'{SETTINGS}[store]\nurl = "{proxy.url(url)}"\n')
        with daemon(home) as one:
            _begin(one)
            proxy.cut()
            assert one.end() == 0
            assert "wakeful.server.daemon: stopped" in _log(home)


def test_a_daemon_that_was_killed_is_reported_by_the_next(tmp_path: Path) -> None:
    """Nothing can be written when it happens; the lock file still names the process."""
    home = _home(tmp_path / "home")
    with daemon(home) as one:
        pid = one.process.pid
        one.end(signal.SIGKILL)
    with daemon(home) as again:
        _until(lambda: "did not shut down cleanly" in _log(home))
        assert f"process {pid} " in _log(home)
        assert again.end() == 0
    size = len(_log(home))
    with daemon(home) as third:
        assert third.end() == 0
    assert "did not shut down cleanly" not in _log(home)[size:]


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="looks at the files of a process")
def test_a_fork_of_a_killed_daemon_delays_the_next_one_only_briefly(tmp_path: Path) -> None:
    """A daemon that is killed while it starts a program leaves its locks to a process that has not executed it yet."""
    home = _home(tmp_path / "home")
    with daemon(home) as one:
        one.end(signal.SIGKILL)
    with (home / LOCK_NAME).open() as file:  # as the fork has it: locked, and naming the dead daemon
        folder = os.open(home, os.O_RDONLY)
        for lock in (file.fileno(), folder):
            fcntl.flock(lock, fcntl.LOCK_EX)
        waiting = start(home)
        _until(lambda: _is_open_in(waiting.pid, home))
        assert waiting.poll() is None
        os.close(folder)
    try:
        _until(lambda: (holder := holder_of(home)) is not None and holder.pid == waiting.pid)
    finally:
        waiting.terminate()
        waiting.communicate(timeout=PATIENCE)


def test_a_crash_of_the_interpreter_is_reported_by_the_next(tmp_path: Path) -> None:
    """A segmentation fault is written into the home as it happens, and told once."""
    home = _home(tmp_path / "home")
    with daemon(home) as one:
        one.end(signal.SIGSEGV)
    assert "Segmentation fault" in (home / "crash.log").read_text()
    with daemon(home) as again:
        _until(lambda: "crashed: Fatal Python error: Segmentation fault" in _log(home))
        assert again.end() == 0
    assert (home / "crash.log.1").exists()
    assert not (home / "crash.log").exists()


def test_a_removed_lock_file_lets_no_second_daemon_in(tmp_path: Path) -> None:
    """The folder itself is held, and the file comes back."""
    home = _home(tmp_path / "home")
    with daemon(home) as one:
        (home / LOCK_NAME).unlink()
        second = start(home)
        err = second.communicate(timeout=PATIENCE)[1]
        assert second.returncode == 1
        assert "is in use by" in err
        _until(lambda: holder_of(home) is not None)
        holder = holder_of(home)
        assert holder is not None
        assert (holder.pid, holder.address) == (one.process.pid, one.address)
        _until(lambda: "leave it in place" in _log(home))  # which is written after the file is there again
        assert one.end() == 0
    assert holder_of(home) is None


def _is_open_in(pid: int, folder: Path) -> bool:
    """Whether this process has the folder open."""
    with suppress(OSError):
        return any(link.readlink() == folder for link in Path(f"/proc/{pid}/fd").iterdir())
    return False


def _until(condition: Callable[[], bool]) -> None:
    give_up_at = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < give_up_at
        time.sleep(0.05)
