"""The witness: a target in a separate process, which records every attempt before letting it continue.

Each request becomes one line when it begins and one when it ends (`drill.observed`). A line is a single write to a file
opened for appending: it is stored once the write returns, whatever happens to the daemons.

It can also be told to kill a daemon with the next request: in the middle of an attempt.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

TAKES: Final = (0.005, 0.03)
"""How long an attempt takes, in seconds: at least and at most."""

PROGRAM: Final = """
import json, os, sys, time
file = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
for what in ("began", "ended"):
    line = {"what": what, "runId": os.environ["WAKEFUL_RUN_ID"], "attempt": os.environ["WAKEFUL_ATTEMPT"],
            "key": os.environ["WAKEFUL_IDEMPOTENCY_KEY"], "at": time.time_ns() // 1000000}
    os.write(file, (json.dumps(line) + "\\n").encode())
    time.sleep(0.02)
"""
"""The witness as a program, for commands."""


class Witness:
    """Records attempts in a file."""

    def __init__(self, file: Path) -> None:
        self._file = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._victim: int | None = None  # the process to kill with the next request

    async def handle(self, request: Any) -> Any:
        """Handle an attempt's request."""
        from aiohttp import web

        self._record("began", request.headers)
        if self._victim is not None:
            victim, self._victim = self._victim, None
            with suppress(ProcessLookupError):
                os.kill(victim, signal.SIGKILL)
        await asyncio.sleep(random.uniform(*TAKES))  # noqa: S311 - no secret
        self._record("ended", request.headers)
        return web.Response(text="ok")

    async def arm(self, request: Any) -> Any:
        """Kill this process with the next request."""
        from aiohttp import web

        self._victim = int(request.query["pid"])
        return web.Response(text="ok")

    def _record(self, what: str, headers: Mapping[str, str]) -> None:
        line = {
            "what": what,
            "runId": headers["X-Wakeful-Run"],
            "attempt": headers["X-Wakeful-Attempt"],
            "key": headers["Idempotency-Key"],
            "at": time.time_ns() // 1_000_000,
        }
        if "X-Lane" in headers:
            line["lane"] = headers["X-Lane"]
        os.write(self._file, (json.dumps(line) + "\n").encode())


async def serve(file: Path, ready: Callable[..., None]) -> None:
    """Run until killed; reports its port."""
    from aiohttp import web

    witness = Witness(file)
    app = web.Application()
    app.router.add_post("/run", witness.handle)
    app.router.add_post("/arm", witness.arm)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    ready(port=runner.addresses[0][1])
    await asyncio.Event().wait()
