"""A bare FastAPI route on the same server under the same clients: what the framework allows on this machine."""

import argparse
import subprocess
import sys
from typing import Final

from bench.cpu import seconds_of
from bench.lines import emit
from bench.ours.rest import REQUESTS, clients_of

SERVE: Final = "--serve"


def serve() -> None:
    """The server, until its input ends."""
    import asyncio
    import socket

    import uvloop
    from fastapi import FastAPI

    from wakeful.server.daemon.sockets import until_open
    from wakeful.server.http.server import make_server

    app = FastAPI()

    @app.get("/bare")
    async def bare() -> dict[str, str]:
        return {"status": "ok"}

    async def run() -> None:
        with socket.socket(proto=socket.IPPROTO_TCP) as door:
            door.bind(("127.0.0.1", 0))
            server = make_server(app)
            serving = asyncio.create_task(server.serve(sockets=[door]))
            await until_open(server, serving)
            sys.stdout.write(f"{door.getsockname()[1]}\n")
            sys.stdout.flush()
            await asyncio.to_thread(sys.stdin.read)
            server.should_exit = True
            await serving

    uvloop.run(run())


def measure(seconds: float) -> None:
    argv = [sys.executable, "-W", "ignore", "-m", "bench.ours.rest_bare", SERVE]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:  # noqa: S603
        port = int(server.stdout.readline() if server.stdout is not None else 0)
        with clients_of("127.0.0.1", port, "none") as clients:
            cpu = seconds_of(server.pid)
            result = clients.load("GET", "/bare", "", seconds)
            spent = seconds_of(server.pid) - cpu
        if server.stdin is not None:
            server.stdin.close()
    count = len(result["samples"])
    for name, *_ in REQUESTS:
        emit(f"REST, {name}", count / result["seconds"], cpu_us=spent / count * 1e6)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--store", help="not used")
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument(SERVE, action="store_true")
    options = parser.parse_args()
    serve() if options.serve else measure(options.seconds)


if __name__ == "__main__":
    main()
