"""What `wakeful` is for a reader whose terminals are one test. Three things differ from the real one: `up` goes on in
the background once it listens (as in another terminal), on the port of this page; and `-f` is left with Ctrl-C.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

WITHIN = 60.0
FOLLOWED = 2.0


def main(words: list[str]) -> int:
    verb = words[2] if words[:1] == ["--home"] else words[0]
    if verb == "up":
        return _up(words if "--port" in words else [*words, "--port", os.environ["DOCS_PORT"]])
    if {"-f", "--follow"} & set(words):
        threading.Timer(FOLLOWED, os.kill, (os.getpid(), signal.SIGINT)).start()
    from wakeful.cli.main import root

    return int(root.main(words, "wakeful", standalone_mode=True) or 0)


def _up(words: list[str]) -> int:
    said = Path(os.environ["DOCS_SAID"])
    with said.open("w") as out:
        command = [sys.executable, "-m", "wakeful.cli.main", *words]
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True)
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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
