"""Try a `wakeful` program as a new user does: an empty home, a first schedule, a first answer.

    python tools/first_answer.py /path/to/wakeful

Nothing of this checkout is used but this file: the program runs in an empty folder with an environment of its own.
Exit code 0 if every step succeeded.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

PATIENCE: Final = 180.0
PROMPT: Final = "Say good morning"
KEPT: Final = ("PYTHONPATH", "LD_LIBRARY_PATH", "TMPDIR", "LANG")


class Failed(Exception):
    """A step did not do what a new user expects."""


def first_answer(program: Sequence[str]) -> None:
    """Run `init`, `up`, `add`, `run --wait` and `down`; raises `Failed` with what was printed."""
    with tempfile.TemporaryDirectory(prefix="wakeful-first-") as folder:
        user = Path(folder)
        environ = {"HOME": folder, "PATH": "/usr/local/bin:/usr/bin:/bin"}
        environ |= {name: os.environ[name] for name in KEPT if name in os.environ}
        _step(program, ["init"], user, environ)
        with (user / "up.txt").open("w+", encoding="utf-8") as said:
            daemon = subprocess.Popen(
                [*program, "up", "--port", "0", "-o", "json"], cwd=user, env=environ, stdout=said, stderr=said
            )
            try:
                _wait_until_ready(program, user, environ, daemon)
                _step(program, ["add", "hello", "--every", "2h", "--prompt", PROMPT], user, environ)
                answer = json.loads(_step(program, ["run", "hello", "--wait", "-o", "json"], user, environ))
                if answer["outcome"] != "succeeded" or PROMPT not in (answer.get("reply") or ""):
                    raise Failed(f"the first run did not answer: {answer}")
                _step(program, ["down"], user, environ)
                if daemon.wait(PATIENCE) != 0:
                    raise Failed(f"`up` ended with exit code {daemon.returncode}")
            except (Failed, subprocess.TimeoutExpired) as error:
                said.flush()
                raise Failed(f"{error}\nwhat `up` printed:\n{(user / 'up.txt').read_text(encoding='utf-8')}") from error
            finally:
                if daemon.poll() is None:
                    daemon.kill()
                    daemon.wait()


def _wait_until_ready(
    program: Sequence[str], user: Path, environ: Mapping[str, str], daemon: "subprocess.Popen[bytes]"
) -> None:
    give_up_at = time.monotonic() + PATIENCE
    while '"running"' not in (user / "up.txt").read_text(encoding="utf-8"):
        if daemon.poll() is not None:
            raise Failed(f"`up` ended at once with exit code {daemon.returncode}")
        if time.monotonic() > give_up_at:
            raise Failed("`up` did not become ready")
        time.sleep(0.05)
    _step(program, ["status"], user, environ)


def _step(program: Sequence[str], words: Sequence[str], user: Path, environ: Mapping[str, str]) -> str:
    ended = subprocess.run(
        [*program, *words], cwd=user, env=environ, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    if ended.returncode != 0:
        raise Failed(f"wakeful {' '.join(words)}: exit code {ended.returncode}\n{ended.stdout}{ended.stderr}")
    return ended.stdout


if __name__ == "__main__":
    try:
        first_answer(sys.argv[1:])
    except Failed as failed:
        sys.exit(str(failed))
