"""Completion as the page has it set up, in each shell on a terminal: typed so far, TAB, and the rest is there."""

import os
import pty
import re
import select
import shutil
import subprocess
import time
from collections.abc import Iterator

import pytest

from docs.blocks import ROOT, blocks
from docs.machine import Machine
from docs.reader import Reader
from patience import PATIENCE

PAGE = ROOT / "docs" / "cli.md"
WITHIN = PATIENCE
BARE = {"bash": ["bash", "--norc", "-i"], "zsh": ["zsh", "-f", "-i"]}
"""Each as it is without settings of a person or of the machine."""
SLUG = "shopping"


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """Somebody with a daemon and a schedule."""
    one = Reader(Machine(tmp_path_factory.mktemp("shells"), has_git=False))
    try:
        one.start_daemon()
        added = one.ended(["wakeful", "add", SLUG, "--every", "2h", "--command", "true"])
        assert added.returncode == 0, added.stderr
        yield one
    finally:
        one.leave()


def set_up(shell: str) -> str:
    """What the page has one write into the shell's own file."""
    language = "sh" if shell == "bash" else shell
    (found,) = (one for one in blocks(PAGE) if one.language == language and f"completion {shell}" in one.text)
    return found.text


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_tab_completes_commands_and_slugs(reader: Reader, shell: str) -> None:
    """A command by its beginning, and a slug that the daemon is asked for."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    with Terminal(reader, BARE[shell]) as terminal:
        for line in set_up(shell).splitlines():
            terminal.write(f"{line}\n")
        terminal.write("echo set''-up\n")
        terminal.until(r"set-up")
        terminal.write("wakeful paus\t")
        terminal.until(r"wakeful pause ")
        terminal.write("sho\t")
        terminal.until(rf"pause {SLUG}")


def test_fish_completes_commands_and_slugs(reader: Reader) -> None:
    """It says itself what it would offer."""
    if shutil.which("fish") is None:
        pytest.skip("fish is not installed")
    asked = f"{set_up('fish')}\ncomplete -C 'wakeful paus'\ncomplete -C 'wakeful pause sho'"
    ended = reader.ended(["fish", "--no-config", "-c", asked])
    assert (ended.returncode, ended.stderr) == (0, "")
    assert re.search(r"^pause\t", ended.stdout, re.M)
    assert re.search(rf"^{SLUG}\t", ended.stdout, re.M)


class Terminal:
    """A shell with a person before it."""

    def __init__(self, reader: Reader, command: list[str]) -> None:
        self._ours, theirs = pty.openpty()
        environ = {**reader.machine.environ, "TERM": "dumb", "PS1": "$ ", "ZDOTDIR": str(reader.machine.user)}
        self._child = subprocess.Popen(
            command,
            cwd=reader.machine.clone,
            env=environ,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        self._shown = ""

    def write(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def until(self, pattern: str) -> None:
        """Wait until the screen shows it, after what was waited for before."""
        give_up_at = time.monotonic() + WITHIN
        while (found := re.search(pattern, self._shown)) is None:
            left = give_up_at - time.monotonic()
            assert left > 0 and select.select([self._ours], [], [], left)[0], f"no {pattern!r} in {self._shown!r}"
            self._shown += os.read(self._ours, 65_536).decode(errors="replace").replace("\r", "").replace("\a", "")
            self._shown = re.sub(r"[^\x08]\x08", "", self._shown)  # what was typed over
        self._shown = self._shown[found.start() :]

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, *_: object) -> None:
        self._child.kill()
        self._child.wait()
        os.close(self._ours)
