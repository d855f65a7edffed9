"""A reader at a machine of their own: an empty home, a clone whose environment is made already, and a page to follow.

The only things that are not as they stand on the page: the port (8377 would be shared by all tests), and what
`wakeful_of_a_reader` says.
"""

import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from docs.blocks import ROOT, Block
from wakeful.core.workflow_json import workflow_from_json
from wakeful.daemon import holder_of
from wakeful.settings import load

PORT = "8377"
WITHIN = 120.0
RUNS_ON = 3.0
"""Seconds after which a program that ends with Ctrl-C is ended so."""
IN_A_CLONE = ("Makefile", "pyproject.toml", "requirements", "src", "docs")
PRELUDES = {
    "workflows.md": "from datetime import UTC, datetime\n"
    "now = lambda: datetime.now(UTC)\n"
    "async def send(what, **more): ...\n",
}
"""Names that a page says stand for something of the reader's own."""
_SHIM = "#!/bin/sh\nexec '{python}' '{program}' \"$@\"\n"


class Reader:
    """Who follows one page."""

    def __init__(self, folder: Path) -> None:
        self.clone, self.user = folder / "clone", folder / "user"
        self.port = str(free_port())
        self._pids = folder / "pids"
        self._pids.touch()
        self._environ = {
            "PATH": f"{self.clone / '.venv/bin'}:{os.environ['PATH']}",
            "HOME": str(self.user),
            "CURL_HOME": str(folder),
            "TZ": "Europe/Berlin",
            "LANG": "C.UTF-8",
            "DOCS_PORT": self.port,
            "DOCS_PIDS": str(self._pids),
            "DOCS_SAID": str(folder / "said"),
            **{name: os.environ[name] for name in ("PYTHONPATH", "TMPDIR") if name in os.environ},
        }
        (folder / ".curlrc").write_text('fail\nsilent\nshow-error\nmax-time = 60\nwrite-out = "\\n"\n')
        self._make_clone()

    def _make_clone(self) -> None:
        programs = self.clone / ".venv" / "bin"
        programs.mkdir(parents=True)
        self.user.mkdir()
        for name in IN_A_CLONE:
            (self.clone / name).symlink_to(ROOT / name)
        shim = programs / "wakeful"
        shim.write_text(_SHIM.format(python=sys.executable, program=Path(__file__).parent / "wakeful_of_a_reader.py"))
        shim.chmod(0o755)
        (programs / "python").symlink_to(sys.executable)
        (self.clone / ".venv" / ".installed").touch()  # so that make takes the environment for made

    def follow(self, block: Block) -> None:
        """Do what the block says."""
        {"sh": self.type, "python": self.run, "toml": self.read_settings, "json": self.read_json}[block.language](block)

    def type(self, block: Block) -> None:
        """The lines of a terminal, each of which succeeds."""
        ended = self._ended(["bash", "-eu", "-o", "pipefail", "-c", self._here(block.text)])
        assert ended.returncode == 0, f"{block.place}\n{block.text}\n{ended.stdout}\n{ended.stderr}"
        asked = len(re.findall(r"^\s*curl ", block.text, re.M))
        assert len(ended.stdout.splitlines()) >= asked, f"{block.place}: {ended.stdout}"

    def run(self, block: Block) -> None:
        """A program, in a folder of its own; warnings are errors. One that runs until Ctrl-C gets it."""
        folder = self.clone.parent / f"program-{block.line}"
        folder.mkdir()
        file = folder / "program.py"
        file.write_text(PRELUDES.get(block.page.name, "") + self._here(block.text))
        child = subprocess.Popen(
            [sys.executable, "-W", "error", str(file)],
            cwd=folder,
            env=self._environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            if re.search(r"^(app|flow)\.run\(\)", block.text, re.M):
                time.sleep(RUNS_ON)
                child.send_signal(signal.SIGINT)
            said, _ = child.communicate(timeout=WITHIN)
        finally:
            child.kill()
            child.wait()
        assert child.returncode == 0, f"{block.place}\n{block.text}\n{said}"

    def read_settings(self, block: Block) -> None:
        """A part of wakeful.toml, with the variables it names."""
        file = self.clone.parent / "block.toml"
        file.write_text(block.text)
        environ = dict.fromkeys(re.findall(r'env = "(\w+)"', block.text), "secret")
        load(self.user, file=file, environ=environ)

    def read_json(self, block: Block) -> None:
        """A definition or a workflow is checked as one; anything else is JSON at least."""
        data = json.loads(block.text)
        if "producers" in data or "consumers" in data:
            workflow_from_json(data)
        elif "schedule" in data:
            file = self.clone.parent / "definition.json"
            file.write_text(block.text)
            ended = self._ended(["wakeful", "check", str(file)])
            assert ended.returncode == 0, f"{block.place}\n{ended.stdout}\n{ended.stderr}"

    def start_daemon(self) -> None:
        """As the page before this one taught."""
        ended = self._ended(["wakeful", "up"])
        assert ended.returncode == 0, ended.stderr

    def leave(self) -> None:
        """End what goes on."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            for pid in map(int, self._pids.read_text().split()):
                try:
                    os.killpg(pid, number)
                except ProcessLookupError:
                    continue
            give_up_at = time.monotonic() + 15
            while any(holder_of(home) for home in self.user.glob(".wakeful*")) and time.monotonic() < give_up_at:
                time.sleep(0.05)

    def _here(self, text: str) -> str:
        return text.replace(f":{PORT}", f":{self.port}")

    def _ended(self, command: list[str]) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            command,
            cwd=self.clone,
            env=self._environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=WITHIN,
            check=False,
        )


def free_port() -> int:
    """One below those that the system gives to whoever connects, so that nobody takes it before it is used."""
    for port in random.sample(range(20_000, 32_000), 100):
        with socket.socket() as door:
            try:
                door.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    pytest.fail("no port is free")
