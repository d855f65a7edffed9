"""Runs one measuring process with a time limit and reads its figures."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final, NamedTuple

from bench.lines import Figure, parse
from bench.plan import Environment

ROOT: Final = Path(__file__).resolve().parent.parent
PEERS_PYTHON: Final = ROOT / ".venv-peers" / "bin" / "python"
ERROR_MAX: Final = 200


class Ended(NamedTuple):
    """Its figures, or its error."""

    figures: list[Figure]
    code: int
    error: str


def interpreter(environment: Environment) -> str:
    """The Python interpreter; for Wakeful, the one that runs the benchmark."""
    return sys.executable if environment == "ours" else str(PEERS_PYTHON)


def command(environment: Environment, module: str, *options: str) -> list[str]:
    """The command line that starts a module of `bench`."""
    return [interpreter(environment), "-W", "ignore", "-m", f"bench.{module}", *options]


def surroundings() -> dict[str, str]:
    """The environment of every measured process: plain asyncio, no debugging, no bytecode compilation."""
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONASYNCIODEBUG", "PYTHONDEVMODE")}


def run(argv: list[str], limit: float) -> Ended:
    """Run a process; if it takes too long, it is killed with everything it started."""
    with subprocess.Popen(  # noqa: S603 - our own modules, with arguments made here
        argv,
        cwd=ROOT,
        env=surroundings(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            said, errors = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return Ended([], -1, f"did not end within {limit:g} s")
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    figures = [figure for line in said.splitlines() if (figure := parse(line)) is not None]
    return Ended(figures, process.returncode, _last_words(errors, process.returncode) if process.returncode else "")


def _last_words(stderr: str, code: int) -> str:
    """The line that names the error, without the traceback and the paths in it."""
    lines = stderr.strip().splitlines()
    return (lines[-1][:ERROR_MAX] if lines else "") or f"it ended with {code}"
