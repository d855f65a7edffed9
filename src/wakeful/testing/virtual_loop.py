"""An event loop in virtual time.

Theory of operation
-------------------
`VirtualLoop` is the ordinary asyncio loop with its own iteration, which never blocks: when nothing is ready, time jumps
to the next timer. So a year passes as fast as its code runs, and the order of events depends on the code
alone: not on the wall clock, on threads or on hash order. Time is kept in whole milliseconds, like instants; a timer
between two of them fires at the later one.

What cannot be virtual raises an error with a clear message: threads, sockets and pipes wait in real time. Two other
ways to hang become errors as well. A *deadlock*: nothing is ready and no timer is set, so nothing will ever happen. A
*livelock*: the loop keeps spinning while time stands still.

The code of one simulated process runs under a `Process`. Each of its callbacks carries the process in its handle, which
takes it from the context, so the process can be frozen (its callbacks are kept until it thaws: a suspended laptop, a
long pause of the machine) or killed (they are dropped, and no `finally` runs), without its code noticing.
"""

import asyncio
import contextlib
import heapq
import itertools
import selectors
import warnings
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextvars import Context, ContextVar, copy_context
from typing import Any, Final, NoReturn, TypeVar

from wakeful.core.time.instants import Duration
from wakeful.integrations.system.waiting import wait_until_set

T = TypeVar("T")

SPINS_MAX: Final = 200_000
"""How many loop iterations within one millisecond count as a livelock."""

_ROUNDING: Final = 1e-3
"""A thousandth of a millisecond: the tolerance for differences of floating-point seconds."""


class Deadlock(RuntimeError):
    """Nothing is ready and no timer is set."""


class Livelock(RuntimeError):
    """The loop spins while time stands still."""


class RealTime(RuntimeError):
    """Something requested a thread, a socket or a signal, which would wait in real time."""


class Process:
    """One simulated operating-system process: its tasks are frozen and killed together."""

    __slots__ = ("_held", "_loop", "_tasks", "is_alive", "is_frozen", "name")

    def __init__(self, loop: "VirtualLoop", name: str) -> None:
        self.name = name
        self.is_alive = True
        self.is_frozen = False
        self._loop = loop
        self._held: list[_Handle | _Timer] = []
        self._tasks: dict[asyncio.Task[Any], None] = {}

    @property
    def is_awake(self) -> bool:
        """Whether its code may run now."""
        return self.is_alive and not self.is_frozen

    def start(self, coro: Coroutine[Any, Any, T], *, name: str | None = None) -> "asyncio.Task[T]":
        """Run a coroutine in this process; tasks it starts belong to the process too."""
        context = copy_context()
        context.run(_PROCESS.set, self)
        return self._loop.create_task(coro, name=name, context=context)

    def freeze(self) -> None:
        """Stop running its code; callbacks that become ready are kept, in order."""
        self.is_frozen = True

    def thaw(self) -> None:
        """Continue where it was frozen."""
        self.is_frozen = False
        self._loop.turns += self._held
        self._held.clear()

    def kill(self) -> None:
        """End it like kill -9: none of its code runs after this, not even a `finally`."""
        self.is_alive = False
        self._held.clear()

    def reap(self) -> None:
        """Release what a killed process left in memory. Not from inside the process."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # no warnings about coroutines that a killed process never awaited
            for task in tuple(self._tasks):
                task._log_destroy_pending = False  # type: ignore[attr-defined]  # asyncio's own way to say the same
                # The coroutine's clean-up runs against dead handles, so its errors do not matter.
                with contextlib.suppress(BaseException):
                    task.get_coro().close()
        self._tasks.clear()

    def _adopt(self, task: "asyncio.Task[Any]") -> None:
        self._tasks[task] = None
        task.add_done_callback(self._forget_task, context=_NOBODY)

    def _forget_task(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.pop(task, None)

    def hold(self, handle: "_Handle | _Timer") -> None:
        """Keep a callback until the process thaws; drop it if the process is dead."""
        if self.is_alive:
            self._held.append(handle)


_PROCESS: Final[ContextVar[Process | None]] = ContextVar("process", default=None)
_NOBODY: Final = Context()


def current_process() -> Process | None:
    """The process of the running code; None outside of all."""
    return _PROCESS.get()


class _Handle(asyncio.Handle):
    """A callback that is ready, and the process it belongs to."""

    __slots__ = ("process",)

    def __init__(
        self,
        callback: Callable[..., object],
        args: Sequence[Any],
        loop: asyncio.AbstractEventLoop,
        context: Context | None,
        process: Process | None,
    ) -> None:
        super().__init__(callback, args, loop, context)
        self.process = process


class _Timer(asyncio.TimerHandle):
    """A callback for a later time, and the process it belongs to."""

    __slots__ = ("process",)

    def __init__(
        self,
        when: float,
        callback: Callable[..., object],
        args: Sequence[Any],
        loop: asyncio.AbstractEventLoop,
        context: Context | None,
        process: Process | None,
    ) -> None:
        super().__init__(when, callback, args, loop, context)
        self.process = process


class VirtualLoop(asyncio.SelectorEventLoop):
    """An asyncio loop whose time jumps to the next timer when nothing is ready."""

    def __init__(self) -> None:
        selector = _NoSelector()
        super().__init__(selector)
        selector.is_open = False
        self.now_ms = 0
        """Milliseconds since the loop was created."""
        self.turns: deque[_Handle | _Timer] = deque()
        """The callbacks that are ready, in order."""
        # Timers for the same time fire in the order they were set: in asyncio that depends on its heap, and so on when
        # the garbage collector removes what a killed process left.
        self._timers: list[tuple[float, int, _Timer]] = []
        self._orders = itertools.count()
        self._spins = 0
        self.set_task_factory(_in_its_process)

    def time(self) -> float:
        return self.now_ms / 1000

    async def sleep(self, duration: Duration) -> None:
        """Return after `duration` of the loop's time."""
        await asyncio.sleep(duration / 1000)

    async def wait_until_set(self, bell: asyncio.Event, duration: Duration) -> bool:
        """Whether the event was set within this much loop time."""
        return await wait_until_set(bell, duration)

    def call_at_ms(self, when: int, callback: Callable[..., object], *args: Any) -> asyncio.TimerHandle:
        """Like `call_at`, in milliseconds of the loop."""
        return self.call_at(when / 1000, callback, *args)

    def call_soon(  # type: ignore[override]  # the stub's TypeVarTuple adds nothing here
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        process = _PROCESS.get() if context is None else context.get(_PROCESS)
        handle = _Handle(callback, args, self, context, process)
        if process is None or process.is_awake:
            self.turns.append(handle)
        else:
            process.hold(handle)
        return handle

    def call_at(  # type: ignore[override]  # the stub's TypeVarTuple adds nothing here
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        process = _PROCESS.get() if context is None else context.get(_PROCESS)
        timer = _Timer(when, callback, args, self, context, process)
        heapq.heappush(self._timers, (when, next(self._orders), timer))
        return timer

    def _run_once(self) -> None:
        """One iteration: replaces that of asyncio, which waits for sockets."""
        turns, timers = self.turns, self._timers
        while timers and timers[0][2].cancelled():
            heapq.heappop(timers)
        if turns or self._stopping:  # type: ignore[attr-defined]  # asyncio's own flag
            self._spins += 1
            if self._spins > SPINS_MAX:
                raise Livelock(
                    f"livelock: {SPINS_MAX} loop iterations while time does not advance, at {self.now_ms} ms"
                )
        elif not timers:
            raise Deadlock("deadlock: nothing is ready and no timer is set, so nothing will ever happen")
        else:
            self._spins = 0
            self.now_ms = max(self.now_ms, int(timers[0][0] * 1000 - _ROUNDING) + 1)  # a timer is never early
        due = (self.now_ms + _ROUNDING) / 1000
        while timers and timers[0][0] <= due:
            turns.append(heapq.heappop(timers)[2])
        for _ in range(len(turns)):
            handle = turns.popleft()
            if handle.cancelled():
                continue
            process = handle.process
            # The process may have been frozen or killed since the callback became ready.
            if process is None or process.is_awake:
                handle._run()
            else:
                process.hold(handle)

    def call_soon_threadsafe(self, *_: Any, **__: Any) -> NoReturn:  # type: ignore[override]  # refused whatever is asked
        raise RealTime("a thread tried to call into the virtual loop; run that work inline in the simulation")

    def run_in_executor(self, *_: Any, **__: Any) -> NoReturn:  # type: ignore[override]  # refused whatever is asked
        raise RealTime("a thread was requested on the virtual loop; run that work inline in the simulation")

    def add_signal_handler(self, *_: Any, **__: Any) -> NoReturn:  # type: ignore[override]  # refused whatever is asked
        raise RealTime("a signal handler was requested on the virtual loop; a simulated process is ended by its world")

    def run(self, coro: Coroutine[Any, Any, T], *, until: Duration | None = None) -> T | None:
        """Run to the end of `coro`, or until the loop's time is `until`: then it is cancelled and None is returned."""
        main = self.create_task(coro)
        if until is not None:
            self.call_at_ms(until, main.cancel)
        try:
            return self.run_until_complete(main)
        except asyncio.CancelledError:
            if until is not None and self.now_ms >= until:
                return None
            raise


def run(coro: Coroutine[Any, Any, T], *, until: Duration | None = None) -> T | None:
    """Run a coroutine on a new virtual loop and close it; see `VirtualLoop.run`."""
    loop = VirtualLoop()
    try:
        return loop.run(coro, until=until)
    finally:
        drain(loop)


def drain(loop: VirtualLoop) -> None:
    """Cancel what is left on the loop, let it end, and close the loop."""
    left = sorted((task for task in asyncio.all_tasks(loop)), key=lambda task: task.get_name())
    for task in left:
        task.cancel()
    if left:
        with contextlib.suppress(Deadlock, Livelock):  # tasks that ignore their cancellation are left behind
            loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
    loop.close()


def _in_its_process(
    loop: asyncio.AbstractEventLoop, coro: Any, *, context: Context | None = None, **options: Any
) -> "asyncio.Task[Any]":
    """A task that belongs to the process that starts it."""
    task: asyncio.Task[Any] = asyncio.Task(coro, loop=loop, context=context, **options)
    process = _PROCESS.get() if context is None else context.get(_PROCESS)
    if process is not None:
        process._adopt(task)
    return task


class _NoSelector(selectors.BaseSelector):
    """A selector that selects nothing: sockets and pipes would wait in real time."""

    def __init__(self) -> None:
        self.is_open = True  # while the loop registers its own wake-up pipe
        self._keys: dict[int, selectors.SelectorKey] = {}

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        return []

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        if not self.is_open:
            raise RealTime("a socket or pipe was registered on the virtual loop; it would wait in real time")
        key = selectors.SelectorKey(fileobj, fileobj if isinstance(fileobj, int) else fileobj.fileno(), events, data)
        self._keys[key.fd] = key
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._keys.pop(fileobj if isinstance(fileobj, int) else fileobj.fileno())

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._keys
