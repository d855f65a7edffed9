"""The daemon without the command line."""

import argparse
import logging
import os
import sys
from pathlib import Path

from wakeful.server.daemon.home import DaemonRefused
from wakeful.server.daemon.process import run
from wakeful.server.daemon.sockets import Listening


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
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    home = Path(asked.home).expanduser().absolute()
    try:
        run(home, host=asked.host, port=asked.port, store=asked.store, on_ready=_say)
    except DaemonRefused as refused:
        sys.stderr.write(f"{refused}\n")
        return 1
    return 0


def _say(listening: Listening) -> None:
    sys.stdout.write(f"Wakeful is listening on {listening.address}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main())
