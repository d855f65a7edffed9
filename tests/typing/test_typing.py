"""Programs that embed Wakeful pass strict type checks, and mypy and pyright find their mistakes."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parent / "programs"
Checker = Callable[[Path], set[tuple[str, int]]]


def mypy(cache: Path) -> set[tuple[str, int]]:
    """File and line of each error that mypy finds."""
    argv = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--no-error-summary", "--cache-dir", str(cache)]
    done = subprocess.run([*argv, *files()], cwd=PROGRAMS, capture_output=True, text=True, check=False)
    found = [line.split(":") for line in done.stdout.splitlines() if ": error:" in line]
    assert not done.stderr
    return {(name, int(line)) for name, line, *_ in found}


def pyright(folder: Path) -> set[tuple[str, int]]:
    """File and line of each error that pyright finds."""
    settings = {"include": [str(PROGRAMS)], "typeCheckingMode": "strict"}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    argv = [
        sys.executable,
        "-m",
        "basedpyright",
        "--outputjson",
        "--project",
        str(folder),
        "--pythonpath",
        sys.executable,
    ]
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)
    found = [one for one in json.loads(done.stdout)["generalDiagnostics"] if one["severity"] == "error"]
    return {(Path(one["file"]).name, one["range"]["start"]["line"] + 1) for one in found}


def files() -> list[str]:
    return sorted(path.name for path in PROGRAMS.glob("*.py"))


def marked() -> set[tuple[str, int]]:
    """File and line of each mistake."""
    return {
        (path.name, number)
        for path in PROGRAMS.glob("*.py")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if line.endswith("# wrong")
    }


@pytest.mark.timeout(900)
@pytest.mark.parametrize("checker", [mypy, pyright])
def test_each_mistake_is_found_and_nothing_else(checker: Checker, tmp_path: Path) -> None:
    """Names and values of options, imports, signatures of handlers, and both forms of the API."""
    found = checker(tmp_path)
    assert marked() - found == set(), "mistakes that are not found"
    # A decorator's error may be reported at the function below it.
    beyond = {(name, line) for name, line in found - marked() if (name, line - 1) not in marked()}
    assert beyond == set(), "errors in programs that are right"
