"""Installs the real command-line agents at pinned versions into `.agents/` of the clone (or `WAKEFUL_AGENTS`).

What is there already at these versions is left as it is. Without Node only aider is installed; the tests of the others
are then skipped by name.
"""

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from agents.real_programs import FOLDER

HERE = Path(__file__).parent
MANIFEST, AIDER = HERE / "package.json", HERE / "aider.txt"
NPM = ("install", "--no-package-lock", "--no-audit", "--no-fund", "--prefer-offline", "--loglevel=error")


def main() -> int:
    FOLDER.mkdir(parents=True, exist_ok=True)
    return _node_programs() or _aider()


def _node_programs() -> int:
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        sys.stdout.write("Node is missing: only aider is installed, the tests of the other agents are skipped\n")
        return 0
    if _is_done("node_modules", MANIFEST):
        return 0
    shutil.copy(MANIFEST, FOLDER / "package.json")
    return _run([npm, *NPM], "node_modules", MANIFEST)


def _aider() -> int:
    if _is_done("aider", AIDER):
        return 0
    subprocess.run([sys.executable, "-m", "venv", str(FOLDER / "aider")], check=True)
    pip = [str(FOLDER / "aider" / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check"]
    return _run([*pip, "-r", str(AIDER)], "aider", AIDER)


def _run(argv: Sequence[str], folder: str, pinned: Path) -> int:
    sys.stdout.write(f"installing {pinned.name} into {FOLDER}: this can take minutes, once\n")
    sys.stdout.flush()
    code = subprocess.run(argv, cwd=FOLDER, check=False).returncode
    if code == 0:
        (FOLDER / folder / ".pinned").write_text(pinned.read_text())
    return code


def _is_done(folder: str, pinned: Path) -> bool:
    stamp = FOLDER / folder / ".pinned"
    return stamp.exists() and stamp.read_text() == pinned.read_text()


if __name__ == "__main__":
    sys.exit(main())
