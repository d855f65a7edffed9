"""A full disk, on a small file system of its own: a daemon that starts, and one that runs."""

import http.client
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from faults.test_strangers import Daemon, limited, until

KIB = 1_024


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = shutil.which("mount")
    argv = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)]
    if mount is None or subprocess.run(argv, executable=mount, check=False, capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(folder: Path, *, but: int = 0) -> Path:
    """Use all space, but so many bytes."""
    filling = folder / "filling"
    with filling.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"\0" * 4_096)
        except OSError:
            pass
        file.truncate(max(file.tell() - but, 0))
    return filling


@pytest.mark.parametrize("room", [0, 4 * KIB, 16 * KIB, 200 * KIB])
def test_starting_on_a_full_disk_is_refused_in_words(small: Path, room: int) -> None:
    """Not with a traceback, wherever the space ends."""
    home = small / "home"
    home.mkdir()
    fill(small, but=room)
    argv = [sys.executable, "-m", "wakeful.server.daemon", str(home), "--port", "0"]
    ended = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=120)
    assert ended.returncode == 1
    assert "Traceback" not in ended.stderr
    assert "free some" in ended.stderr.splitlines()[-1], ended.stderr


def test_a_store_that_cannot_be_written_is_not_ready(small: Path) -> None:
    """`/readyz` was 200 while nothing could be stored."""
    with limited(small / "home", "-c 0") as daemon:
        assert readiness(daemon) == 200
        filling = fill(small)
        until(lambda: readiness(daemon) == 503)
        filling.unlink()
        until(lambda: readiness(daemon) == 200)


def readiness(daemon: Daemon) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=60)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status
    finally:
        connection.close()
