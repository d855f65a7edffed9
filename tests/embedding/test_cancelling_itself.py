"""Functions that cancel their own task, by themselves or by a library they use: their runs end."""

import asyncio
import contextlib
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from patience import PATIENCE
from wakeful import Wakeful, every
from wakeful.testing import virtual

START = "2026-03-28T12:00Z"
Function = Callable[[], Awaitable[Any]]


async def cancel_task() -> None:
    """Cancel the task that performs this function."""
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(1)


async def cancel_from_group() -> None:
    """The same from a child of a task group."""
    task = asyncio.current_task()
    assert task is not None
    async with asyncio.TaskGroup() as group:
        group.create_task(asyncio.sleep(0)).add_done_callback(lambda _: task.cancel())
        group.create_task(asyncio.sleep(60))


async def await_cancelled() -> None:
    """Await a task that was cancelled."""
    task = asyncio.create_task(asyncio.sleep(60))
    task.cancel()
    await task


async def raise_cancelled() -> None:
    raise asyncio.CancelledError


async def swallow_and_return() -> str:
    """Cancel the task, and give the cancellation back."""
    task = asyncio.current_task()
    assert task is not None
    with contextlib.suppress(asyncio.CancelledError):
        await cancel_task()
    task.uncancel()
    return "went on"


async def end_in_scope() -> str:
    """Leave a cancel scope, which cancels the task meanwhile."""
    with anyio.move_on_after(1):
        await anyio.sleep(60)
    return "went on"


async def end_in_time() -> None:
    async with asyncio.timeout(1):
        await asyncio.sleep(60)


@pytest.fixture
def app(tmp_path: Path) -> Wakeful:
    return Wakeful(tmp_path / "wakeful.db", timezone="UTC")


async def runs_of(app: Wakeful, function: Function, **options: Any) -> tuple[str, str | None, int]:
    """The outcome, the error and the number of attempts of the only run of a function."""

    @app.job(every("10h"), "itself", **options)
    async def itself() -> Any:
        return await function()

    async with virtual(app, start=START) as time:
        await time.advance("11h")
        (run,) = await app.runs("itself")
        return run.outcome, run.error, run.attempt


@pytest.mark.parametrize("on_crash", ["retry", "unknown"])
@pytest.mark.parametrize("function", [cancel_task, cancel_from_group, await_cancelled, raise_cancelled])
async def test_it_fails(app: Wakeful, function: Function, on_crash: str) -> None:
    """However it cancelled itself, and whether or not its start was recorded first."""
    assert await runs_of(app, function, on_crash=on_crash) == ("failed", "CancelledError: it cancelled itself", 1)


async def test_it_is_tried_again(app: Wakeful) -> None:
    """As after any other failure."""
    outcome, _, attempts = await runs_of(app, cancel_task, retries=2)
    assert (outcome, attempts) == ("failed", 3)


@pytest.mark.parametrize("on_crash", ["retry", "unknown"])
@pytest.mark.parametrize("function", [swallow_and_return, end_in_scope])
async def test_it_went_on(app: Wakeful, function: Function, on_crash: str) -> None:
    """What was cancelled and given back is no end."""
    assert await runs_of(app, function, on_crash=on_crash) == ("succeeded", None, 1)


async def test_a_timeout_of_its_own(app: Wakeful) -> None:
    """It cancels the task as well, and is a TimeoutError."""
    assert await runs_of(app, end_in_time) == ("failed", "TimeoutError", 1)


LEFT_RUNNING = """
import asyncio, sys
from wakeful import Wakeful

begun = asyncio.Event()

async def waits():
    begun.set()
    await asyncio.sleep(0 if __name__ == "left_running" else 3600)

async def main():
    app = Wakeful(sys.argv[1])
    await app.start()
    await app.add("waits", "in 1s", call="left_running:waits", on_crash=sys.argv[2])
    await begun.wait()

if __name__ == "__main__":
    sys.modules["left_running"] = sys.modules["__main__"]
    asyncio.run(main())
"""


@pytest.mark.parametrize(("on_crash", "ends"), [("retry", "succeeded"), ("unknown", "unknown")])
async def test_a_loop_that_closes_is_not_its_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_crash: str, ends: str
) -> None:
    """A program that ends without stopping its app cancels all tasks: the run was interrupted, as by a crash."""
    path, program = tmp_path / "wakeful.db", tmp_path / "left_running.py"
    program.write_text(LEFT_RUNNING)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, program.stem, raising=False)
    await asyncio.to_thread(
        subprocess.run, [sys.executable, str(program), str(path), on_crash], check=True, timeout=PATIENCE
    )
    async with Wakeful(path) as app, asyncio.timeout(PATIENCE):
        while (run := (await app.runs("waits"))[0]).outcome in ("running", "waiting"):
            await asyncio.sleep(0.01)
    assert run.outcome == ends
