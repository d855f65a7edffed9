"""What `wakeful` is for a reader whose terminals are one test. Three things differ from the real one: `up` goes on in
the background once it listens (as in another terminal), on the port of this page; and `-f` is left with Ctrl-C as soon
as it has shown something.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

WITHIN = 60.0
PROGRAM = [sys.executable, "-m", "wakeful.cli.main"]


def main(words: list[str]) -> int:
    verb = (words[2:] if words[:1] == ["--home"] else words)[:1]
    if verb == ["up"]:
        return _up(words if "--port" in words else [*words, "--port", os.environ["DOCS_PORT"]])
    if {"-f", "--follow"} & set(words):
        return _follow(words)
    if verb == ["service"]:  # it is the reader's own program that becomes a service, not the one of this test
        sys.executable = str(Path(shutil.which("wakeful") or "").with_name("python"))
    from wakeful.cli.main import root

    return int(root.main(words, "wakeful", standalone_mode=True) or 0)


def _up(words: list[str]) -> int:
    if "NOTIFY_SOCKET" in os.environ:  # a service is in the foreground, as ever
        os.execv(sys.executable, [*PROGRAM, *words])
    said = Path(f"{os.environ['DOCS_SAID']}-{os.getpid()}")
    with said.open("w") as out:
        child = subprocess.Popen(
            [*PROGRAM, *words], stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
        )
    with Path(os.environ["DOCS_PIDS"]).open("a") as pids:
        pids.write(f"{child.pid}\n")
    give_up_at = time.monotonic() + WITHIN
    while "Wakeful is listening on" not in said.read_text():
        if child.poll() is not None or time.monotonic() > give_up_at:
            sys.stderr.write(said.read_text())
            return child.returncode or 1
        time.sleep(0.05)
    child.returncode = 0  # it goes on, and is nobody's child from here on
    return 0


def _follow(words: list[str]) -> int:
    child = subprocess.Popen([*PROGRAM, *words], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    sys.stdout.write(child.stdout.readline())
    child.send_signal(signal.SIGINT)
    said, _ = child.communicate(timeout=WITHIN)
    sys.stdout.write(said)
    return child.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
