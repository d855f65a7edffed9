"""The daemon without the command line."""

import argparse
import logging
import os
import sys
from pathlib import Path

from wakeful.server.daemon.home import STORE_REFUSED, DaemonRefused, StoreRefused
from wakeful.server.daemon.process import run
from wakeful.server.daemon.sockets import Listening
from wakeful.server.daemon.stderr_log import log_to_stderr


def main(arguments: list[str] | None = None) -> int:
    """`python -m wakeful.server.daemon [HOME] [--host H] [--port P] [--store URL]`: run the daemon."""
    parser = argparse.ArgumentParser(
        prog="python -m wakeful.server.daemon", description="Run the daemon of a home folder."
    )
    parser.add_argument("home", nargs="?", default=os.environ.get("WAKEFUL_HOME") or "~/.wakeful")
    parser.add_argument("--host")
    parser.add_argument("--port", type=int)
    parser.add_argument("--store")
    asked = parser.parse_args(arguments)
    log_to_stderr(logging.INFO)
    home = Path(asked.home).expanduser().absolute()
    try:
        run(home, host=asked.host, port=asked.port, store=asked.store, on_ready=_say)
    except DaemonRefused as refused:
        sys.stderr.write(f"{refused}\n")
        return STORE_REFUSED if isinstance(refused, StoreRefused) else 1
    return 0


def _say(listening: Listening) -> None:
    sys.stdout.write(f"Wakeful is listening on {listening.address}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main())
