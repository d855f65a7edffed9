"""Runs each real program through each scenario and stores what it printed.

    make record-agents                        # all of them
    PYTHONPATH=tests .venv/bin/python -m agents.record claude codex --scenario 429

One file per program and scenario, under tests/agents/recordings/. The fast suite replays them.
"""

import argparse
import asyncio
import json
import os
import re
import signal
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from agents.model_server import Manner, ModelServer, model_server
from agents.real_programs import FOLDER, KEY, PROGRAMS, Program

RECORDINGS: Final = Path(__file__).parent / "recordings"
PROMPT: Final = "[scheduler:standup] What is new today? Answer in one sentence."
SECOND: Final = "[scheduler:standup] And what was new yesterday?"
LIMIT_AHEAD: Final = 3600  # seconds
_UNKNOWN: Final = {"opencode": "ses_0123456789abcdefABCDEFGHIJ"}
_UNKNOWN_UUID: Final = "01234567-89ab-4cde-8f01-23456789abcd"


class Scenario(NamedTuple):
    """What happens: how the server behaves, and how long the program is given before its end is forced."""

    manner: Manner
    within: float
    is_resumed: bool = False  # a turn of its own comes first
    is_lost: bool = False  # it is asked to go on in a session that does not exist


SCENARIOS: Final[dict[str, Scenario]] = {
    "ok": Scenario("well", 120),
    "second-turn": Scenario("well", 120, is_resumed=True),
    "slow": Scenario("slow", 120),
    "400": Scenario("400", 90),
    "401": Scenario("401", 120),
    "429": Scenario("429", 240),
    "500": Scenario("500", 240),
    "cut": Scenario("cut", 240),
    "limit": Scenario("limit", 240),
    "lost-session": Scenario("well", 90, is_lost=True),
    "refused-tool": Scenario("tool", 120),
}


@dataclass(frozen=True, slots=True)
class Ran:
    """How one process ended."""

    argv: list[str]
    stdin: str | None
    exit_code: int | None  # None: it did not end, and was killed
    seconds: float
    stdout: str
    stderr: str

    def to_json(self) -> dict[str, Any]:
        told = asdict(self)
        return {"exitCode" if name == "exit_code" else name: value for name, value in told.items()}


async def run(argv: Sequence[str], prompt: str, env: Mapping[str, str], cwd: Path, within: float) -> Ran:
    """Run one program to its end, or kill all its processes when the time is over."""
    words = [word.replace("{prompt}", prompt) for word in argv]
    stdin = None if any("{prompt}" in word for word in argv) else prompt
    began = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        *words,
        stdin=asyncio.subprocess.PIPE if stdin is not None else asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=dict(env),
        cwd=cwd,
        start_new_session=True,
    )
    talking = asyncio.ensure_future(process.communicate(None if stdin is None else stdin.encode()))
    done, _ = await asyncio.wait({talking}, timeout=within)
    has_ended = bool(done)
    if not has_ended:
        os.killpg(process.pid, signal.SIGKILL)
    stdout, stderr = await talking
    spent = round(time.monotonic() - began, 1)
    code = process.returncode if has_ended else None
    return Ran(words, stdin, code, spent, stdout.decode(errors="replace"), stderr.decode(errors="replace"))


async def record(program: Program, name: str, server: ModelServer) -> dict[str, Any]:
    """Play one scenario; what is stored of it."""
    scenario = SCENARIOS[name]
    with tempfile.TemporaryDirectory(prefix="wakeful-record-", ignore_cleanup_errors=True) as folder:
        home, cwd = Path(folder) / "home", Path(folder) / "project"
        cwd.mkdir()
        env = program.move_in(home, server.url, has_subscription=scenario.manner == "limit")
        env |= program.recorded_with
        scrub = Scrubber(folder, server.url)
        session: str | None = _UNKNOWN.get(program.name, _UNKNOWN_UUID) if scenario.is_lost else None
        first: Ran | None = None
        if scenario.is_resumed:
            server.manner = "well"
            first = await run(program.argv, PROMPT, env, cwd, scenario.within)
            session = session_in(first.stdout)
        server.manner, server.reset_at = scenario.manner, int(time.time()) + LIMIT_AHEAD
        server.new_turn()
        argv = program.argv
        if session is not None and program.resume:
            argv = tuple(word.replace("{session}", session) for word in program.resume)
        ran = await run(argv, SECOND if scenario.is_resumed else PROMPT, env, cwd, scenario.within)
        counted = server.counted()
        stored = {
            "program": program.name,
            "scenario": name,
            "recordedAt": round(time.time(), 3),
            "version": await version_of(program, env),
            **ran.to_json(),
            "session": session,
            "resetAt": server.reset_at if scenario.manner == "limit" else None,
            "server": {
                "requests": [{"status": one.status, "model": one.model} for one in server.of_turn],
                "counted": counted._asdict(),
                "perRequest": [one.counted._asdict() for one in server.of_turn if one.counted is not None],
                "sawFirstPrompt": PROMPT in server.texts() if scenario.is_resumed else None,
                "toolResult": server.last_part() if scenario.manner == "tool" else None,
                "elsewhere": sorted(set(server.elsewhere)),
            },
            "first": None if first is None else first.to_json(),
            "stored": stored_limits(home, program.stores) if scenario.manner == "limit" else {},
        }
        return json.loads(scrub(json.dumps(stored, ensure_ascii=False)))  # type: ignore[no-any-return]


def stored_limits(home: Path, pattern: str) -> dict[str, str]:
    """By path in the home folder: the lines about limits that a program stores and does not print."""
    files = home.glob(pattern) if pattern else ()
    lines = {file: [line for line in file.read_text().splitlines() if "rate_limits" in line] for file in files}
    return {str(file.relative_to(home)): "\n".join(kept) + "\n" for file, kept in lines.items() if kept}


def session_in(stdout: str) -> str | None:
    """The session id as the programs name it."""
    found = re.search(r'"(?:session_id|sessionID|sessionId|thread_id)":\s*"([^"]+)"', stdout)
    return None if found is None else found[1]


async def version_of(program: Program, env: Mapping[str, str]) -> str:
    ran = await run((program.name, "--version"), "", env, Path("/"), 60)
    found = re.search(r"\d+\.\d+\.\d+", ran.stdout)
    return found[0] if found else "unknown"


class Scrubber:
    """Takes out what belongs to the machine: paths, addresses, keys."""

    def __init__(self, folder: str, url: str) -> None:
        port = url.rpartition(":")[2]
        self._words = {
            folder: "/tmp/wakeful",
            folder.replace("/", "-"): "-tmp-wakeful",
            str(FOLDER): "/opt/agents",
            url: "http://127.0.0.1:9999",
            f"127.0.0.1:{port}": "127.0.0.1:9999",
            KEY: "sk-test",
        }

    def __call__(self, text: str) -> str:
        for word, instead in self._words.items():
            text = text.replace(word, instead)
        return re.sub(r"https://registry\.[^\s\"\\]+", "https://registry.example", text)


async def main(names: Sequence[str], scenarios: Sequence[str]) -> int:
    for name in names:
        program = PROGRAMS[name]
        if program.path is None:
            sys.stderr.write(f"{name}: not installed in {FOLDER}\n")
            return 1
        for scenario in scenarios:
            if not program.resume and scenario in ("lost-session",):
                continue
            async with model_server() as server:
                stored = await record(program, scenario, server)
            file = RECORDINGS / name / f"{scenario}.json"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(stored, indent=1, ensure_ascii=False) + "\n")
            sys.stdout.write(
                f"{name:9} {scenario:13} exit {stored['exitCode']!s:5} {stored['seconds']:6.1f} s "
                f"stdout {len(stored['stdout']):6} stderr {len(stored['stderr']):6} "
                f"requests {len(stored['server']['requests'])}\n"
            )
            sys.stdout.flush()
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Record what the real command-line agents print.")
    parser.add_argument("programs", nargs="*", default=list(PROGRAMS), metavar="PROGRAM")
    parser.add_argument("--scenario", action="append", choices=list(SCENARIOS))
    asked = parser.parse_args()
    sys.exit(asyncio.run(main(asked.programs, asked.scenario or list(SCENARIOS))))
