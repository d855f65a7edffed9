"""A daemon as a process, asked over HTTP without holding up the servers of the test, which share its loop."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from access import HEADERS, write_token
from channels.receiver import Receiver
from patience import PATIENCE

WITHIN = PATIENCE


class Running:
    """A daemon as a process."""

    def __init__(self, process: asyncio.subprocess.Process, address: str, session: aiohttp.ClientSession) -> None:
        self.process = process
        self.address = address
        self._session = session

    async def ask(self, method: str, path: str, body: Any = None) -> Any:
        async with self._session.request(method, self.address + path, json=body) as response:
            text = await response.text()
            assert response.status < 300, text
            return json.loads(text) if text else None

    async def until(self, path: str, condition: Callable[[Any], Any]) -> Any:
        """Ask until it is so."""
        async with asyncio.timeout(WITHIN):
            while not condition(found := await self.ask("GET", path)):
                await asyncio.sleep(0.05)
        return found

    async def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        await self.process.wait()


@asynccontextmanager
async def daemon(home: Path, settings: str = "", environ: dict[str, str] | None = None) -> AsyncIterator[Running]:
    """A daemon of that home; ended, by force if need be, when the test is over."""
    write_token(home)
    if settings:
        (home / "wakeful.toml").write_text(settings)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-W", "error", "-m", "wakeful.server.daemon", str(home), "--port", "0"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={**os.environ, **(environ or {})},
    )
    assert process.stdout is not None
    try:
        async with aiohttp.ClientSession(headers=HEADERS) as session:
            line = (await process.stdout.readline()).decode()
            assert "listening on " in line
            yield Running(process, line.strip().rpartition(" ")[2], session)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def hook(receiver: Receiver, **options: str) -> str:
    """Settings with one webhook."""
    return f'[channels.hook]\ntype = "webhook"\nurl = "{receiver.url}/in"\nallow_private = true\n' + "".join(
        f"{name} = {value}\n" for name, value in options.items()
    )


def bot(receiver: Receiver, token: str) -> str:
    """Settings with one Telegram bot."""
    return f'[channels.phone]\ntype = "telegram"\ntoken = "{token}"\nchat = 42\nbase_url = "{receiver.url}"\n'
