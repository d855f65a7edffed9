"""The walk in ARCHITECTURE.md: one schedule from PUT to delivery, traced through the running system."""

import asyncio
import re
import sqlite3
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import FrameType
from typing import Any

import wakeful
from channels.receiver import receiving
from edges.http.kit import Client, served
from patience import PATIENCE
from wakeful.integrations.agents.call import CallAgent
from wakeful.integrations.channels.telegram import Bot, TelegramChannel
from wakeful.ports.clock import Clock

PAGE = Path(__file__).parents[3] / "ARCHITECTURE.md"
TIMES_MIN, TIMES_MAX = 3, 10
"""How often it is traced. Only functions that are called each time count: on a busy machine a renewal of the lease or
a tick falls into one window or another."""
LIBRARIES_MAX = 25  # frames of libraries between two functions of ours
SOURCE = f"{Path(wakeful.__file__).parent}/"


class Trace:
    """The functions of ours that were called, and of these the ones that another module of ours called. Nothing is left
    out but functions without a name."""

    def __init__(self) -> None:
        self.called: set[str] = set()
        self.crossed: set[str] = set()
        self.is_on = False

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        if event != "call" or not self.is_on or not frame.f_code.co_filename.startswith(SOURCE):
            return
        *_, name = (qualified := frame.f_code.co_qualname).split("<locals>.")
        if "<" in qualified.replace("<locals>", ""):
            return
        module = frame.f_code.co_filename.removeprefix(SOURCE).removesuffix(".py").replace("/", ".")
        self.called.add(f"{module}.{name}")
        if caller_of(frame) != frame.f_code.co_filename:
            self.crossed.add(f"{module}.{qualified}")

    def begin(self) -> None:
        """Count from here."""
        self.crossed.clear()
        self.is_on = True

    def end(self) -> set[str]:
        """The functions that were called from another module since the beginning."""
        self.is_on = False
        return set(self.crossed)


def caller_of(frame: FrameType) -> str | None:
    """The file of ours that called this function, perhaps through libraries."""
    caller = frame.f_back
    for _ in range(LIBRARIES_MAX):
        if caller is None or caller.f_code.co_filename.startswith(SOURCE):
            break
        caller = caller.f_back
    return None if caller is None else caller.f_code.co_filename


@contextmanager
def tracing() -> Iterator[Trace]:
    """Traces this thread, and those that start meanwhile, whenever it is on."""
    trace, before = Trace(), sys.getprofile()
    threading.setprofile(trace)
    sys.setprofile(trace)
    try:
        yield trace
    finally:
        sys.setprofile(before)
        threading.setprofile(before)


def steps_of_the_walk() -> list[str]:
    return re.findall(r"^\d+\. `([\w.]+)`", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)


def counts_of_the_page() -> tuple[int, int]:
    """How many functions the page says take part in the request, and in the rest."""
    found = re.search(
        r"\*\*(\d+) functions\*\* take part in the request, and \*\*(\d+)\*\*", PAGE.read_text(encoding="utf-8")
    )
    assert found is not None
    return int(found[1]), int(found[2])


async def written(api: Client, trace: Trace, slug: str) -> set[str]:
    """The functions that write a schedule that is due soon."""
    at = datetime.now(UTC) + timedelta(seconds=5)  # still ahead when a slow machine has written it
    definition = {
        "prompt": "What is new?",
        "schedule": {"type": "at", "at": at.isoformat()},
        "deliver": {"channel": "phone"},
    }
    trace.begin()
    assert (await api.put(slug, definition)).status == 201
    return trace.end()


async def fired(path: Path, trace: Trace, number: int) -> set[str]:
    """The functions that start its run, settle it, and deliver the reply."""
    trace.begin()
    async with asyncio.timeout(PATIENCE):
        while deliveries(path) != ["delivered"] * number:
            await asyncio.sleep(0.05)
    return trace.end()


def deliveries(path: Path) -> list[str]:
    """Their states. Asks the file: a query through the app would be traced."""
    with closing(sqlite3.connect(path)) as connection:
        return [state for (state,) in connection.execute("SELECT status FROM deliveries")]


async def test_the_walk_of_one_schedule_names_what_is_called(tmp_path: Path) -> None:
    """Each step of the walk happens, so a reader can follow it, and as many functions take part as the page says: a way
    that has become longer is noticed."""

    def agents(_: Clock, registry: Any) -> Any:
        registry.register("bot", lambda prompt: "nothing new")
        return {"default": CallAgent("bot", registry)}

    async with receiving() as receiver:

        def channels(clock: Clock, listener: Any) -> Any:
            return {"phone": TelegramChannel(Bot("1:x", receiver.url, clock, listener), "42", clock)}

        told = counts_of_the_page()
        with tracing() as trace:
            async with served(tmp_path, agents=agents, channels=channels) as api:
                writing, firing = await written(api, trace, "standup-1"), await fired(tmp_path / "wakeful.db", trace, 1)
                for number in range(2, TIMES_MAX + 1):
                    if number > TIMES_MIN and len(writing) <= told[0] * 1.05 and len(firing) <= told[1] * 1.05:
                        break
                    writing &= await written(api, trace, f"standup-{number}")
                    firing &= await fired(tmp_path / "wakeful.db", trace, number)
    for expected, functions in zip(told, (writing, firing), strict=True):
        assert expected * 0.9 <= len(functions) <= expected * 1.05, (
            f"ARCHITECTURE.md says {expected}, {len(functions)} were called each time: {sorted(functions)}"
        )
    steps = steps_of_the_walk()
    assert len(steps) == len(set(steps))
    assert set(steps) - trace.called == set(), "the walk names functions that are not called"
