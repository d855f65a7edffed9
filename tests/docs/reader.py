"""A reader who follows a page, block by block.

The only things that are not as they stand on the page: the ports (8377 would be shared by all tests), the address of
the reader's own PostgreSQL, and what `machine` says.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

from docs.blocks import Block
from docs.machine import Machine
from wakeful.config import load
from wakeful.core.workflow.definition_json import workflow_from_json
from wakeful.server.daemon.home import holder_of

WITHIN = 120.0
MINUTES = 20 * 60.0
"""For a block of which the page says that it takes minutes."""
DATABASE = "postgresql://wakeful@db.example/wakeful"
"""What the pages call the reader's database."""
THIS_RUN = "make torture"
"""The one line that is not typed: the test that would is a part of it."""
PRELUDES = {
    "workflows.md": "from datetime import UTC, datetime\n"
    "now = lambda: datetime.now(UTC)\n"
    "async def send(what, **more): ...\n",
}
"""Names that a page says stand for something of the reader's own."""
SCRIPT_OF = {"zsh": "#compdef wakeful", "fish": "complete --no-files --command wakeful"}
"""By which the completion script of a shell is known where the shell itself is not installed."""


class Reader:
    """Who follows one page."""

    def __init__(self, machine: Machine, *, database: str | None = None) -> None:
        self.machine = machine
        self._database = database
        self.seen: list[str] = []
        """What the terminal showed, command by command."""

    def follow(self, block: Block) -> None:
        """Do what the block says."""
        {
            "sh": self.type,
            "zsh": self.type_elsewhere,
            "fish": self.type_elsewhere,
            "python": self.run,
            "toml": self.read_settings,
            "json": self.read_json,
        }[block.language](block)

    def type(self, block: Block) -> None:
        """The lines of a terminal, each of which succeeds."""
        text = "".join(line for line in block.text.splitlines(keepends=True) if line.strip() != THIS_RUN)
        within = MINUTES if block.takes_minutes else WITHIN
        ended = self.ended(["bash", "-eu", "-o", "pipefail", "-c", self._here(text)], within=within)
        assert ended.returncode == 0, f"{block.place}\n{block.text}\n{ended.stdout}\n{ended.stderr}"
        asked = len(re.findall(r"^\s*curl ", block.text, re.M))
        assert len(ended.stdout.splitlines()) >= asked, f"{block.place}: {ended.stdout}"

    def type_elsewhere(self, block: Block) -> None:
        """The lines of another shell; without it, that they begin with what would be a script for it."""
        shell = block.language
        if shutil.which(shell):
            ended = self.ended([shell, "-c", block.text])
            assert (ended.returncode, ended.stderr) == (0, ""), f"{block.place}\n{block.text}\n{ended.stderr}"
        asked = re.findall(r"wakeful completion \w+", block.text)
        assert asked == [f"wakeful completion {shell}"], block.place
        assert SCRIPT_OF[shell] in self.ended(asked[0].split()).stdout, block.place

    def run(self, block: Block) -> None:
        """A program, in a folder of its own; warnings are errors. One that runs until Ctrl-C gets it.

        A block whose first line is the name of a file is that file of a project, and its tests are run."""
        if named := re.match(r"# ([\w/]+\.py)\n", block.text):
            self._keep(block, self.machine.folder / "project", named[1])
            return
        folder = self.machine.folder / f"program-{block.line}"
        folder.mkdir()
        file = folder / "program.py"
        file.write_text(PRELUDES.get(block.page.name, "") + self._here(block.text))
        child = subprocess.Popen(
            ["python", "-u", "-W", "error", str(file)],
            executable=self.machine.clone / ".venv" / "bin" / "python",
            cwd=folder,
            env=self.machine.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            begun = ""
            if re.search(r"^(app|flow)\.run\(\)", block.text, re.M):
                assert child.stdout is not None
                begun = child.stdout.readline()  # it works when it says something
                child.send_signal(signal.SIGINT)
            said, _ = child.communicate(timeout=WITHIN)
        finally:
            child.kill()
            child.wait()
        self.seen.append(begun + said)
        assert child.returncode == 0, f"{block.place}\n{block.text}\n{begun}{said}"

    def _keep(self, block: Block, project: Path, name: str) -> None:
        """Write a file of the page's project; what is a test must pass."""
        file = project / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(self._here(block.text))
        if not file.name.startswith("test_"):
            return
        tested = subprocess.run(
            ["python", "-m", "pytest", "-q", "-p", "no:cacheprovider", name],
            executable=self.machine.clone / ".venv" / "bin" / "python",
            cwd=project,
            env=self.machine.environ,
            capture_output=True,
            text=True,
            timeout=WITHIN,
            check=False,
        )
        self.seen.append(tested.stdout)
        assert tested.returncode == 0, f"{block.place}\n{tested.stdout}\n{tested.stderr}"

    def read_settings(self, block: Block) -> None:
        """A part of wakeful.toml, with the variables it names."""
        file = self.machine.folder / "block.toml"
        file.write_text(block.text)
        environ = dict.fromkeys(re.findall(r'env = "(\w+)"', block.text), "secret")
        load(self.machine.user, file=file, environ=environ)

    def read_json(self, block: Block) -> None:
        """A definition or a workflow is checked as one; anything else is JSON at least."""
        data = json.loads(block.text)
        if "producers" in data or "consumers" in data:
            workflow_from_json(data)
        elif "schedule" in data:
            file = self.machine.folder / "definition.json"
            file.write_text(block.text)
            ended = self.ended(["wakeful", "check", str(file)])
            assert ended.returncode == 0, f"{block.place}\n{ended.stdout}\n{ended.stderr}"

    def start_daemon(self) -> None:
        """As the page before this one taught."""
        ended = self.ended(["wakeful", "up"])
        assert ended.returncode == 0, ended.stderr

    def leave(self) -> None:
        """End what goes on."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            for pid in map(int, self.machine.pids.read_text().split()):
                try:
                    os.killpg(pid, number)
                except ProcessLookupError:
                    continue
            give_up_at = time.monotonic() + 15
            homes = list(self.machine.user.glob(".wakeful*"))
            while any(holder_of(home) for home in homes) and time.monotonic() < give_up_at:
                time.sleep(0.05)

    def ended(self, command: list[str], *, within: float = WITHIN) -> "subprocess.CompletedProcess[str]":
        """A command in the clone, after its end."""
        ended = subprocess.run(
            command,
            cwd=self.machine.clone,
            env=self.machine.environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=within,
            check=False,
        )
        self.seen.append(ended.stdout + ended.stderr)
        return ended

    def _here(self, text: str) -> str:
        for shown, used in self.machine.ports.items():
            text = re.sub(rf"(:|--port ){shown}\b", rf"\g<1>{used}", text)
        return text if self._database is None else text.replace(DATABASE, f"'{self._database}'")


def home_of(reader: Reader) -> Path:
    """The home folder of the reader's daemon."""
    return reader.machine.user / ".wakeful"
