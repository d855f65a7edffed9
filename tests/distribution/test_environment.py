"""`make up` installs what running needs, `make test` what developing needs besides, and neither undoes the other."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from patience import PATIENCE

ROOT = Path(__file__).parents[2]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """What make looks at, with an environment whose Python is this one."""
    for name in ("Makefile", "pyproject.toml", "requirements"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    return tmp_path


def planned(clone: Path, target: str) -> list[str]:
    """The commands that make would run, installations and programs only."""
    command = ["make", "-n", target, f"PYTHON={sys.executable}"]
    environ = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL")}
    ended = subprocess.run(
        command, cwd=clone, env=environ, capture_output=True, text=True, timeout=PATIENCE, check=True
    )
    return [line for line in ended.stdout.splitlines() if " install " in line or line.startswith(".venv/bin/")]


def test_a_bare_clone_installs_for_running_only(clone: Path) -> None:
    """`make up` reads run.txt and not dev.txt."""
    lines = planned(clone, "up")
    assert any("--require-hashes -r requirements/run.txt" in line for line in lines)
    assert not any("dev.txt" in line for line in lines)
    assert lines[-1] == ".venv/bin/wakeful up"


def test_developing_adds_to_what_runs(clone: Path) -> None:
    """`make check` after `make up` installs dev.txt and nothing twice; `make up` after that installs nothing."""
    (clone / ".venv" / ".runs").touch()
    lines = planned(clone, "check")
    assert any("--require-hashes -r requirements/dev.txt" in line for line in lines)
    assert not any("run.txt" in line or "-e ." in line for line in lines)
    (clone / ".venv" / ".installed").touch()
    assert planned(clone, "up") == [".venv/bin/wakeful up"]
    assert not any(" install " in line for line in planned(clone, "check"))
