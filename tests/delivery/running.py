"""A daemon as a process, asked over HTTP without holding up the servers of the test, which share its loop."""

import asyncio
import json
import os
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

import forking
from access import HEADERS, write_token
from channels.receiver import Receiver
from patience import PATIENCE

WITHIN = PATIENCE


class Running:
    """A daemon as a process."""

    def __init__(self, process: forking.Process, address: str, session: aiohttp.ClientSession) -> None:
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
                await asyncio.sleep(0.15)
        return found

    async def kill(self) -> None:
        self.process.kill()
        await asyncio.to_thread(self.process.wait)


@asynccontextmanager
async def daemon(home: Path, settings: str = "", environ: dict[str, str] | None = None) -> AsyncIterator[Running]:
    """A daemon of that home; ended, by force if need be, when the test is over."""
    write_token(home)
    if settings:
        (home / "wakeful.toml").write_text(settings)
    environment = {**os.environ, **(environ or {})}
    process = forking.start(
        "wakeful.server.daemon", home, "--port", "0", environment=environment, stderr=subprocess.DEVNULL
    )
    assert process.stdout is not None
    try:
        async with aiohttp.ClientSession(headers=HEADERS) as session:
            line = await asyncio.to_thread(process.stdout.readline)
            assert "listening on " in line
            yield Running(process, line.strip().rpartition(" ")[2], session)
    finally:
        process.kill()
        await asyncio.to_thread(process.communicate)


def hook(receiver: Receiver, **options: str) -> str:
    """Settings with one webhook."""
    return f'[channels.hook]\ntype = "webhook"\nurl = "{receiver.url}/in"\nallow_private = true\n' + "".join(
        f"{name} = {value}\n" for name, value in options.items()
    )


def bot(receiver: Receiver, token: str) -> str:
    """Settings with one Telegram bot."""
    return f'[channels.phone]\ntype = "telegram"\ntoken = "{token}"\nchat = 42\nbase_url = "{receiver.url}"\n'
