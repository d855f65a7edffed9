"""`wakeful doctor --drill` as a process, and what it leaves."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from patience import PATIENCE


def command(home: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "wakeful.cli.main", "--home", str(home), "doctor", "--drill", *options]


def drill(home: Path, *options: str, package: Path | None = None) -> tuple[int, dict[str, Any]]:
    """Run it to its end; returns the exit code and the report. `package` is the folder of another build."""
    done = subprocess.run(
        command(home, "-o", "json", *options),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        env=_environment(package),
    )
    assert done.stdout, done.stderr[-4_000:]
    return done.returncode, json.loads(done.stdout)


@contextmanager
def begun(home: Path, *options: str) -> Iterator["subprocess.Popen[str]"]:
    """A drill whose daemons are running."""
    process = subprocess.Popen(command(home, *options), stderr=subprocess.PIPE, text=True, env=_environment(None))
    try:
        assert process.stderr is not None
        assert any("daemons are running" in line for line in process.stderr)
        yield process
    finally:
        process.kill()
        process.communicate(timeout=PATIENCE)


def users_of(folder: Path) -> set[int]:
    """The processes that have a file of this folder open."""
    found = set()
    for opened in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if opened.readlink().is_relative_to(folder):
                found.add(int(opened.parts[2]))
        except OSError:
            continue
    return found


def _environment(package: Path | None) -> Mapping[str, str]:
    return dict(os.environ) if package is None else {**os.environ, "PYTHONPATH": str(package)}
