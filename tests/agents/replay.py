"""Replays what the real programs printed, as programs.

`install` writes an executable with the name of the real one. Each call of it prints the next recording to stdout and
stderr, writes what the real one stored into the home folder, and ends with its exit code; what it was called with is
kept for the test to read.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

RECORDINGS: Final = Path(__file__).parent / "recordings"

_PLAYER: Final = """\
#!{python} -IS
import json, os, sys, time
folder = {folder!r}
calls = os.path.join(folder, "calls.jsonl")
count = sum(1 for _ in open(calls)) if os.path.exists(calls) else 0
steps = json.load(open(os.path.join(folder, "steps.json")))
step = steps[min(count, len(steps) - 1)]
if sys.argv[1:] == ["--version"]:
    print(step["version"])
    sys.exit(0)
for path, text in step["stored"].items():
    path = os.path.join(os.environ["HOME"], path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as opened:
        opened.write(text)
stdin = None if sys.stdin is None or sys.stdin.isatty() else sys.stdin.read()
called = {{"argv": sys.argv[1:], "stdin": stdin, "cwd": os.getcwd(), "env": dict(os.environ)}}
with open(calls, "a") as opened:
    opened.write(json.dumps(called) + "\\n")
sys.stdout.write(step["stdout"])
sys.stderr.write(step["stderr"])
sys.stdout.flush()
sys.stderr.flush()
while step["exitCode"] is None:
    time.sleep(60)
os._exit(step["exitCode"])
"""


@dataclass(frozen=True, slots=True)
class Recording:
    """One run of a real program."""

    program: str
    scenario: str
    version: str
    recorded_at: float  # epoch seconds
    exit_code: int | None  # None: it did not end by itself
    stdout: str
    stderr: str
    session: str | None  # the one it was asked to go on with
    reset_at: int | None  # of the limit that the server sent, epoch seconds
    server: Mapping[str, Any]  # what the model server saw and counted
    first: Mapping[str, Any] | None  # the turn before, of `second-turn`
    stored: Mapping[str, str]  # what it wrote into the home folder, by path

    @property
    def counted(self) -> tuple[int, int, int]:
        """What the server counted: fresh input, cached input, output."""
        counted = self.server["counted"]
        return counted["fresh"], counted["cached"], counted["output"]


class Called(NamedTuple):
    argv: list[str]
    stdin: str | None
    cwd: str
    env: dict[str, str]


def recording(program: str, scenario: str) -> Recording:
    """The recording of one program in one scenario."""
    stored = json.loads((RECORDINGS / program / f"{scenario}.json").read_text())
    return Recording(
        program,
        scenario,
        stored["version"],
        stored["recordedAt"],
        stored["exitCode"],
        stored["stdout"],
        stored["stderr"],
        stored["session"],
        stored["resetAt"],
        stored["server"],
        stored["first"],
        stored.get("stored", {}),
    )


def recorded() -> list[tuple[str, str]]:
    """Program and scenario of every recording, for parametrized tests."""
    return sorted((file.parent.name, file.stem) for file in RECORDINGS.glob("*/*.json"))


class Player:
    """An executable that replays recordings, one for each call; the last one again and again."""

    def __init__(self, folder: Path, steps: Sequence[Recording]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / steps[0].program
        self._calls = folder / "calls.jsonl"
        written = [_step(one) for one in steps]
        if len(steps) == 1 and steps[0].first is not None:
            written.insert(0, {**steps[0].first, "version": steps[0].version, "stored": {}})
        (folder / "steps.json").write_text(json.dumps(written))
        self.path.write_text(_PLAYER.format(python=sys.executable, folder=str(folder)))
        self.path.chmod(0o700)

    def forget_stored(self) -> None:
        """Write nothing into the home folder."""
        file = self._calls.with_name("steps.json")
        file.write_text(json.dumps([{**step, "stored": {}} for step in json.loads(file.read_text())]))

    def calls(self) -> list[Called]:
        """What it was called with, in order."""
        lines = self._calls.read_text().splitlines() if self._calls.exists() else []
        return [Called(**json.loads(line)) for line in lines]


def install(folder: Path, program: str, *scenarios: str) -> Player:
    """A program in this folder that replays these scenarios. `second-turn` alone plays both turns of it."""
    return Player(folder, [recording(program, scenario) for scenario in scenarios])


def _step(one: Recording) -> dict[str, Any]:
    told = {"version": one.version, "stdout": one.stdout, "stderr": one.stderr, "exitCode": one.exit_code}
    return {**told, "stored": dict(one.stored)}
