"""The call action, with real threads, tasks and processes."""

import asyncio
import contextvars
import functools
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from patience import PATIENCE
from wakeful.core.run.results import Busy, Done, Failed, Result
from wakeful.core.schedule.actions import OUTPUT_MAX, Call
from wakeful.integrations.actions.call import CallAction, CallRegistry
from wakeful.integrations.actions.fire import Fire as FireView
from wakeful.ports.action import FencedOff, Fire, StillRunning

Eventually = Callable[[Callable[[], object]], Awaitable[None]]
Module = Callable[[str, str], None]


class Caller:
    """A call action with what it calls."""

    def __init__(self, fire: Fire, ladder: Any) -> None:
        self.registry = CallRegistry()
        self.action = CallAction(self.registry, grace=200)
        self.fire = fire
        self.ladder = ladder

    async def call(self, target: Callable[..., Any] | str, **args: Any) -> Result:
        """Perform a callable, or a name."""
        return await self.action.perform(self.spec(target, **args), self.fire, self.ladder)

    async def call_isolated(self, target: Callable[..., Any] | str, **args: Any) -> Result:
        """The same in a process of its own."""
        call = self.spec(target, **args)
        return await self.action.perform(Call(call.target, call.args, "process"), self.fire, self.ladder)

    def spec(self, target: Callable[..., Any] | str, **args: Any) -> Call:
        if isinstance(target, str):
            return Call(target, args)
        self.registry.register("it", target)
        return Call("it", args)


@pytest.fixture
async def caller(fire: Fire, ladder: Any) -> AsyncIterator[Caller]:
    caller = Caller(fire, ladder)
    yield caller
    await caller.action.close()


async def test_what_the_callable_sees(caller: Caller) -> None:
    """It gets the fire, its instants as aware datetimes, and the definition's args by name."""
    seen: list[Any] = []

    def job(fire: FireView, *, colour: str) -> None:
        seen.extend([fire, colour])

    assert await caller.call(job, colour="red") == Done()
    planned_at, due_at = datetime(2026, 1, 30, 9, tzinfo=UTC), datetime(2026, 1, 30, 9, 0, 5, 250_000, tzinfo=UTC)
    fire, colour = seen
    assert (fire.slug, fire.planned_at, fire.due_at) == ("report", planned_at, due_at)
    assert (fire.attempt, fire.idempotency_key, fire.run_id, fire.trigger) == (2, "report-key-1", 42, "schedule")
    assert colour == "red"
    assert caller.ladder.rungs == ["started"]


@pytest.mark.parametrize(
    ("job", "args"),
    [
        (lambda: "called", {}),
        (lambda fire: "called", {}),
        (lambda path: "called", {"path": "x"}),
        (lambda **named: "called" if named == {"a": 1} else "no", {"a": 1}),
        (functools.partial(lambda fire, word: word, word="called"), {}),
    ],
    ids=["nothing", "the fire", "args alone", "any name", "a partial"],
)
async def test_the_fire_is_passed_where_there_is_room(
    caller: Caller, job: Callable[..., Any], args: dict[str, Any]
) -> None:
    """A callable that takes no fire is called without one."""
    assert caller.action.check(caller.spec(job, **args)) is None
    assert await caller.call(job, **args) == Done(output="called")


async def test_args_that_do_not_fit(caller: Caller) -> None:
    """Args that a callable does not take are found by the check, and fail for good."""
    result = await caller.call(lambda fire: None, colour="red")
    assert isinstance(result, Failed) and result.permanent and "'colour'" in result.error
    assert caller.action.check(caller.spec(lambda fire: None, colour="red")) == result.error


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize(
    ("value", "result"),
    [
        (None, Done()),
        ("text", Done(output="text")),
        ({"ä": [1, 2.5, None]}, Done(output='{"ä": [1, 2.5, null]}')),
        ({1}, Done(output="{1}")),
        ("a\0b\ud800", Done(output="a\ufffdb?")),
        (Busy("occupied"), Busy("occupied")),
        (Failed("no", permanent=True), Failed("no", permanent=True)),
    ],
    ids=["nothing", "text", "JSON", "other", "text no store takes", "a result", "a failure"],
)
async def test_what_it_returns(caller: Caller, value: object, result: Result, is_async: bool) -> None:
    """A value becomes the output, a result of its own making is taken as it is."""

    async def awaited() -> object:
        return value

    assert await caller.call(awaited if is_async else lambda: value) == result


async def test_a_long_value_is_capped(caller: Caller) -> None:
    """Of a long text the head and the tail are kept."""
    result = await caller.call(lambda: "a" + "x" * 10_000_000 + "z")
    assert isinstance(result, Done) and result.output is not None
    assert len(result.output) < OUTPUT_MAX + 100 and result.output[0] + result.output[-1] == "az"


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("error", [ValueError("bad row"), SystemExit(3), KeyboardInterrupt(), GeneratorExit()])
async def test_what_it_raises(caller: Caller, error: BaseException, is_async: bool) -> None:
    """Anything it raises fails its run, and nothing but its run."""

    def job() -> None:
        raise error

    async def awaited() -> None:
        raise error

    result = await caller.call(awaited if is_async else job)
    assert isinstance(result, Failed) and not result.permanent
    assert result.error.startswith(type(error).__name__)
    assert "raise error" in (result.output or ""), "the traceback is the output"


async def test_an_error_that_cannot_be_shown(caller: Caller) -> None:
    """A broken message does not hide the failure."""

    class Broken(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    def job() -> None:
        raise Broken

    assert (await caller.call(job)).error.startswith("Broken")  # type: ignore[union-attr]


async def test_a_generator_ran_nothing(caller: Caller) -> None:
    """A generator function is refused: calling it runs nothing, and green would be false."""

    def job(fire: FireView) -> Iterator[int]:
        yield 1

    result = await caller.call(job)
    assert isinstance(result, Failed) and result.permanent and "generator" in result.error
    result = await caller.call(lambda: (n for n in range(3)))
    assert isinstance(result, Failed) and "generator" in result.error


async def test_names(caller: Caller, module: Module) -> None:
    """A name is a registered callable, or is imported."""
    module(
        "jobs_one",
        "def f(): return 'f'\nclass C:\n    @staticmethod\n    def m(): return 'm'\n    def i(self): pass\nx = 1",
    )
    caller.registry.register("__main__:job", lambda: "registered")
    for name, output in [("__main__:job", "registered"), ("jobs_one:f", "f"), ("jobs_one:C.m", "m")]:
        assert caller.action.check(Call(name)) is None
        assert await caller.call(name) == Done(output=output)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("nothing", "no callable is registered as 'nothing'"),
        ("no_such_module:f", "No module named 'no_such_module'"),
        ("jobs_broken:f", "ZeroDivisionError"),
        ("jobs_exiting:f", "SystemExit"),
        ("jobs_two:g", "'jobs_two' has no 'g'"),
        ("jobs_two:x", "cannot be called"),
        ("jobs_two:C.i", "needs an instance"),
        ("__main__:no_such_job", "no 'no_such_job'"),
    ],
)
async def test_names_that_lead_nowhere(caller: Caller, module: Module, name: str, says: str) -> None:
    """A name that cannot be resolved is found by the check, and fails for good with the cause."""
    module("jobs_broken", "1 / 0")
    module("jobs_exiting", "raise SystemExit")
    module("jobs_two", "x = 1\nclass C:\n    def i(self): pass")
    result = await caller.call(name)
    assert isinstance(result, Failed) and result.permanent and says in result.error
    assert caller.action.check(Call(name)) == result.error


async def test_an_import_does_not_stop_the_loop(caller: Caller, module: Module, tmp_path: Path) -> None:
    """A module that takes long to import is imported in a thread; an async function of it then runs on the loop."""
    module(
        "jobs_slow",
        "import os, time\n"
        f"while not os.path.exists({str(tmp_path / 'go')!r}): time.sleep(0.01)\n"
        "async def f(): return 'f'\n",
    )
    task = asyncio.create_task(caller.call("jobs_slow:f"))
    await asyncio.sleep(0.05)
    assert not task.done()
    (tmp_path / "go").touch()
    assert await task == Done(output="f")


async def test_where_it_runs(caller: Caller) -> None:
    """An async callable runs on the loop, a sync one in a daemon thread, which sees the caller's context."""
    variable = contextvars.ContextVar("variable", default="unset")
    variable.set("seen")

    async def on_loop() -> bool:
        return threading.current_thread() is threading.main_thread()

    def in_thread() -> str:
        return f"{threading.current_thread().daemon} {variable.get()}"

    assert await caller.call(on_loop) == Done(output="true")
    assert await caller.call(in_thread) == Done(output="True seen")


async def test_a_callable_object_and_a_hidden_coroutine(caller: Caller) -> None:
    """An object with an async call, and a function that returns a coroutine, are awaited."""

    class Job:
        async def __call__(self, fire: FireView) -> str:
            return fire.slug

    assert await caller.call(Job()) == Done(output="report")
    assert await caller.call(lambda fire: Job().__call__(fire)) == Done(output="report")


async def test_fenced_off_before_it_begins(caller: Caller) -> None:
    """A run that was taken from us is not begun."""
    begun: list[int] = []
    caller.ladder.refuses["started"] = FencedOff("taken")
    with pytest.raises(FencedOff):
        await caller.call(lambda: begun.append(1))
    assert begun == []


async def test_cancelling_an_async_callable(caller: Caller, eventually: Eventually) -> None:
    """Cancelled, an async callable cleans up and is proven to have ended."""
    steps: list[str] = []

    async def job() -> None:
        try:
            steps.append("begun")
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            steps.append("cleaned up")

    task = asyncio.create_task(caller.call(job))
    await eventually(lambda: steps)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert steps == ["begun", "cleaned up"]


async def test_cancelled_before_the_first_step(caller: Caller) -> None:
    """Cancelled at once, the callable never begins, and nothing complains of it."""
    begun: list[int] = []

    async def job() -> None:
        begun.append(1)

    for turns in range(5):
        task = asyncio.create_task(caller.call(job))
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        outcome = (await asyncio.gather(task, return_exceptions=True))[0]
        assert isinstance(outcome, asyncio.CancelledError) != bool(begun)
        begun.clear()


async def test_an_async_callable_that_swallows_cancellation(caller: Caller) -> None:
    """One that goes on after being cancelled keeps its attempt open; when it ends it was ended, whatever it answers."""
    begun, finish = asyncio.Event(), asyncio.Event()

    async def job() -> str:
        begun.set()
        while not finish.is_set():
            try:
                await finish.wait()
            except asyncio.CancelledError:
                continue
        return "too late"

    task = asyncio.create_task(caller.call(job))
    await begun.wait()
    task.cancel()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not task.done()
    finish.set()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_an_async_callable_that_cancels_itself(caller: Caller) -> None:
    """Cancelling itself is its failure, not the end of the engine's task."""

    async def job() -> None:
        raise asyncio.CancelledError

    result = await caller.call(job)
    assert isinstance(result, Failed) and "cancelled itself" in result.error


async def test_a_stuck_thread(caller: Caller) -> None:
    """A sync callable cannot be ended: it is still running, others go on, and its end is noticed."""
    begun, finish = threading.Event(), threading.Event()

    def job() -> None:
        begun.set()
        finish.wait()

    task = asyncio.create_task(caller.call(job))
    await asyncio.to_thread(begun.wait)
    task.cancel()
    with pytest.raises(StillRunning, match="isolate: process") as still:
        await task
    assert await caller.call(lambda: "others") == Done(output="others")
    assert not still.value.ended.done()
    finish.set()
    async with asyncio.timeout(PATIENCE):
        await still.value.ended


async def test_threads_are_used_again_and_let_go(caller: Caller, eventually: Eventually) -> None:
    """Calls in turn share a thread, calls at once do not wait for one another, and none outlives the close."""
    before = set(threading.enumerate())
    names = [await caller.call(lambda: str(threading.get_ident())) for _ in range(5)]
    assert len({name.output for name in names if isinstance(name, Done)}) == 1
    together = threading.Barrier(8, timeout=PATIENCE)
    met = await asyncio.gather(*(caller.call(lambda: f"met {together.wait() >= 0}") for _ in range(8)))
    assert met == [Done(output="met True")] * 8
    await caller.action.close()
    await eventually(lambda: set(threading.enumerate()) <= before)


def test_a_stuck_thread_does_not_keep_the_interpreter() -> None:
    """A program with a stuck callable still exits."""
    script = """
import asyncio, threading
from wakeful.integrations.actions.call import CallAction, CallRegistry
from wakeful.core.schedule.actions import Call
from wakeful.ports.action import Fire, StillRunning

class Ladder:
    async def climb(self, rung, *, process=None): pass

async def main():
    registry = CallRegistry()
    registry.register("stuck", lambda: threading.Event().wait())
    fire = Fire(1, 1, "job", 0, 0, "schedule", 1, "key")
    task = asyncio.create_task(CallAction(registry).perform(Call("stuck"), fire, Ladder()))
    while threading.active_count() == 1:
        await asyncio.sleep(0.01)
    task.cancel()
    try:
        await task
    except StillRunning:
        print("still running")

asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "still running\n", "")


async def test_isolated(caller: Caller, module: Module) -> None:
    """Isolated, it runs in another process, with the fire and args, and prints without spoiling its result."""
    module(
        "jobs_apart",
        "import os\n"
        "def f(fire, word): print('noise'); return [os.getpid(), fire.slug, word, os.environ['WAKEFUL_RUN_ID']]\n"
        "async def g(): return 'awaited'\n"
        "def h(): raise ValueError('bad row')\n"
        "def i(): os._exit(9)\n"
        "def j(): os.kill(os.getpid(), 9)\n"
        "import asyncio\n"
        "async def k(): raise asyncio.CancelledError\n",
    )
    spec = Call("jobs_apart:f", {"word": "x"}, "process")
    assert caller.action.check(spec) is None
    result = await caller.call_isolated("jobs_apart:f", word="x")
    assert isinstance(result, Done) and result.output is not None
    assert result.output == f'[{caller.ladder.process.pid}, "report", "x", "42"]'
    assert caller.ladder.rungs == ["started"]
    assert await caller.call_isolated("jobs_apart:g") == Done(output="awaited")
    failed = await caller.call_isolated("jobs_apart:h")
    assert (
        isinstance(failed, Failed) and failed.error == "ValueError: bad row" and "jobs_apart.py" in str(failed.output)
    )
    assert await caller.call_isolated("jobs_apart:i") == Failed("its process ended without a result (exit code 9)")
    assert await caller.call_isolated("jobs_apart:j") == Failed(
        "its process ended without a result (killed by SIGKILL)"
    )
    cancelled = await caller.call_isolated("jobs_apart:k")
    assert isinstance(cancelled, Failed) and "asyncio.exceptions.CancelledError" in cancelled.raised
    missing = await caller.call_isolated("jobs_apart:missing")
    assert isinstance(missing, Failed) and missing.permanent and "no 'missing'" in missing.error


async def test_isolated_registered(caller: Caller) -> None:
    """A registered function is found again by the other process; one that cannot be is refused with the cure."""
    spec = caller.spec(os.getpid)
    assert caller.action.check(Call(spec.target, {}, "process")) is None
    result = await caller.call_isolated(os.getpid)
    assert result == Done(output=str(caller.ladder.process.pid))
    refused = await caller.call_isolated(lambda: None)
    assert isinstance(refused, Failed) and refused.permanent and "a module-level function" in refused.error
    assert caller.action.check(Call("it", {}, "process")) == refused.error


def test_isolated_from_a_script(tmp_path: Path) -> None:
    """A function of the script that was started is found, and the script is not started again."""
    script = tmp_path / "script.py"
    script.write_text(
        """
import asyncio, os
from wakeful.integrations.actions.call import CallAction, CallRegistry
from wakeful.core.schedule.actions import Call
from wakeful.ports.action import Fire

class Ladder:
    async def climb(self, rung, *, process=None): pass

def job(fire):
    return f"{fire.slug} {os.getpid() != int(os.environ['PARENT'])}"

async def main():
    os.environ["PARENT"] = str(os.getpid())
    registry = CallRegistry()
    registry.register("job", job)
    fire = Fire(1, 1, "slug", 0, 0, "schedule", 1, "key")
    for target in ("job", "__main__:job"):
        result = await CallAction(registry).perform(Call(target, {}, "process"), fire, Ladder())
        print(getattr(result, "output", result))

if __name__ == "__main__":
    asyncio.run(main())
"""
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (done.stdout, done.stderr) == ("slug True\nslug True\n", "")


async def test_killing_an_isolated_callable(
    caller: Caller, module: Module, tmp_path: Path, eventually: Eventually, is_alive: Callable[[int], bool]
) -> None:
    """An isolated callable that refuses to end, and the child it started, are killed and proven gone."""
    module(
        "jobs_stubborn",
        "import os, signal, subprocess, time\n"
        "def f(folder):\n"
        "    signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "    child = subprocess.Popen(['sleep', '60'])\n"
        "    open(folder + '/child.part', 'w').write(str(child.pid))\n"
        "    os.rename(folder + '/child.part', folder + '/child')\n"
        "    while True: time.sleep(1)\n",
    )
    task = asyncio.create_task(caller.call_isolated("jobs_stubborn:f", folder=str(tmp_path)))
    await eventually((tmp_path / "child").exists)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not is_alive(caller.ladder.process.pid)
    assert not is_alive(int((tmp_path / "child").read_text()))


async def test_fenced_off_before_an_isolated_callable(caller: Caller, module: Module, tmp_path: Path) -> None:
    """A process whose order never came has run nothing."""
    module("jobs_fenced", "def f(path): open(path, 'w')")
    caller.ladder.refuses["started"] = FencedOff("taken")
    with pytest.raises(FencedOff):
        await caller.call_isolated("jobs_fenced:f", path=str(tmp_path / "ran"))
    assert not (tmp_path / "ran").exists()
