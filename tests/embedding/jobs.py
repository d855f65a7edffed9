"""Functions that the tests schedule: at the top level of a module, as `add` asks for."""

import asyncio
import threading
from typing import Any

CALLS: list[Any] = []
TROUBLE: list[BaseException | None] = []
"""What the next calls of `flaky` raise; None lets one pass."""


async def note(fire: Any) -> None:
    CALLS.append((fire.slug, fire.planned_at.isoformat()))


def note_in_thread(fire: Any) -> str:
    CALLS.append((fire.slug, threading.current_thread() is threading.main_thread()))
    return "noted"


async def flaky(fire: Any) -> None:
    CALLS.append((fire.attempt, fire.planned_at))
    error = TROUBLE.pop(0) if TROUBLE else None
    if error is not None:
        raise error


async def echo_over_tcp(fire: Any, port: int) -> str:
    """Real input and output on the test's own loop."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"hello\n")
    line = await reader.readline()
    writer.close()
    await writer.wait_closed()
    return line.decode().strip()


async def really_sleep(fire: Any) -> None:
    await asyncio.sleep(0.05)
    CALLS.append("slept")


async def never_end(fire: Any) -> None:
    await asyncio.Event().wait()


def raise_os_error(fire: Any) -> None:
    raise OSError("no disk")


class Shop:
    """An object that can be called."""

    def __init__(self, *_: Any) -> None: ...

    async def __call__(self, fire: Any) -> None:
        CALLS.append("sold")
