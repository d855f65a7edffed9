"""The guard around plugins' objects: what passes through it, and what is reported."""

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

import pytest

from wakeful.integrations.plugins import guard
from wakeful.integrations.plugins.guard import guarded, guarded_function
from wakeful.ports.channel import Listening, Preparable


class Told:
    """Keeps what is reported."""

    def __init__(self) -> None:
        self.reported: list[str] = []

    def raised(self, method: str, error: Exception) -> str:
        self.reported.append(f"{method} raised {error}")
        return self.reported[-1]

    def blocked(self, method: str, seconds: float) -> None:
        self.reported.append(f"{method} blocked")

    def worked(self, method: str) -> None: ...


class Plugin:
    kind = "thing"

    def __init__(self) -> None:
        self.ended: list[str] = []

    async def wait(self) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.ended.append("cancelled")
            raise

    async def steps(self) -> list[int]:
        found = []
        for n in range(3):
            await asyncio.sleep(0)
            found.append(n)
        return found

    async def caught(self) -> str:
        try:
            await asyncio.wait_for(asyncio.Event().wait(), 0)
        except TimeoutError:
            return "caught"
        return "not caught"

    async def raises(self) -> None:
        await asyncio.sleep(0)
        raise ValueError("no")

    def busy(self) -> str:
        CLOCK.now += 2
        return "done"

    async def prepare(self) -> None: ...


class Clock:
    """A clock that stands still unless a test moves it."""

    now = 0.0

    def perf_counter(self) -> float:
        return self.now


CLOCK = Clock()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    monkeypatch.setattr(guard, "time", CLOCK)
    return CLOCK


async def test_a_coroutine_runs_as_without_it() -> None:
    """Its awaits, its result, and exceptions that come from outside."""
    told = Told()
    plugin = guarded(Plugin(), told, {})
    assert plugin.kind == "thing"
    assert await plugin.steps() == [0, 1, 2]
    assert await plugin.caught() == "caught"
    assert told.reported == []


async def test_a_cancellation_reaches_the_plugin() -> None:
    """And is no error of it."""
    told, target = Told(), Plugin()
    task = asyncio.create_task(guarded(target, told, {"wait": lambda _: "fallback"}).wait())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (target.ended, told.reported) == (["cancelled"], [])


async def test_what_raises_gets_its_fallback_or_is_raised_again() -> None:
    told = Told()
    assert (
        await guarded(Plugin(), told, {"raises": lambda why: f"instead: {why}"}).raises() == "instead: raises raised no"
    )
    with pytest.raises(ValueError, match="no"):
        await guarded(Plugin(), told, {}).raises()
    assert told.reported == ["raises raised no"] * 2


@pytest.mark.usefixtures("clock")
async def test_only_the_event_loop_is_blocked() -> None:
    """A thread may take its time."""
    told = Told()
    plugin = guarded(Plugin(), told, {})
    assert await asyncio.to_thread(plugin.busy) == "done" and told.reported == []
    assert plugin.busy() == "done" and told.reported == ["busy blocked"]


async def test_waiting_is_not_blocking(clock: Clock) -> None:
    """Each step is measured, not the whole."""
    told, answered = Told(), asyncio.Event()

    async def waits(*, is_busy: bool) -> None:
        await answered.wait()
        if is_busy:
            clock.now += 2

    for is_busy in (False, True):
        answered.clear()
        task = asyncio.create_task(guarded_function(waits, told, f"busy: {is_busy}")(is_busy=is_busy))
        await asyncio.sleep(0)
        clock.now += 10
        answered.set()
        await task
    assert told.reported == ["busy: True blocked"]


def test_optional_parts_of_a_port_are_still_recognised() -> None:
    plugin = guarded(Plugin(), Told(), {})
    assert isinstance(plugin, Preparable) and not isinstance(plugin, Listening)


@pytest.mark.parametrize("is_async", [True, False])
async def test_a_function_keeps_its_signature(is_async: bool) -> None:
    """An agent is called by the names of its parameters."""

    async def asynchronous(prompt: str, session_id: str | None = None) -> str:
        return prompt

    def plain(prompt: str, session_id: str | None = None) -> str:
        return prompt

    function: Callable[..., Any] = asynchronous if is_async else plain
    made = guarded_function(function, Told(), "it")
    assert inspect.signature(made) == inspect.signature(function)
    assert inspect.iscoroutinefunction(made) == is_async
    assert (await made("hi") if is_async else made("hi")) == "hi"
