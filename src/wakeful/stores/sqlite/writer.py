"""The drivers of group commit: a thread in production, the loop itself in a simulation.

The thread starts a group as soon as one operation waits, with all that are waiting. During its commit the next ones
accumulate, so groups grow with the load. Waiting for more on purpose was measured (0.2, 1 and 5 ms with 1, 10 and 200
callers): it gains nothing under load and only adds delay otherwise.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Protocol

from wakeful.stores.sqlite.group import GROUP_MAX, Call, Crashed, Fate, GroupCommit, answer


class Writer(Protocol):
    """Takes operations, and returns their results after the commit."""

    def submit(self, call: Call) -> None: ...

    async def close(self) -> None:
        """Finish what was submitted, then close the connection."""
        ...


class WriterThread:
    """One thread, one connection. Belongs to the loop it was created on."""

    def __init__(self, steps: GroupCommit) -> None:
        self._steps = steps
        self._loop = asyncio.get_running_loop()
        self._ended = self._loop.create_future()
        self._waiting: SimpleQueue[Call | None] = SimpleQueue()
        self._thread = Thread(target=self._drive, name="wakeful-writer", daemon=True)
        self._thread.start()

    def submit(self, call: Call) -> None:
        self._waiting.put(call)

    async def close(self) -> None:
        self._waiting.put(None)
        await asyncio.shield(self._ended)
        self._thread.join()

    def _drive(self) -> None:
        is_last = False
        while not is_last:
            calls, is_last = self._gather()
            if calls:
                self._post(answer, calls, self._group(calls))
            del calls  # an idle writer keeps nothing of the last group alive
        self._steps.close()
        self._post(self._ended.set_result, None)

    def _gather(self) -> tuple[list[Call], bool]:
        """Wait for one operation, then take all others that are waiting; None among them is the end."""
        calls: list[Call] = []
        call = self._waiting.get()
        with suppress(Empty):
            while call is not None:
                calls.append(call)
                if len(calls) == GROUP_MAX:
                    return calls, False
                call = self._waiting.get_nowait()
            return calls, True
        return calls, False

    def _group(self, calls: list[Call]) -> list[Fate]:
        try:
            self._steps.apply(calls)
            return self._steps.commit()
        except BaseException as error:  # a bug here must not leave callers waiting forever
            self._steps.close()
            return [(None, error) for _ in calls]

    def _post(self, callback: Callable[..., object], *args: object) -> None:
        with suppress(RuntimeError):  # the loop is closed, so there is no caller any more
            self._loop.call_soon_threadsafe(callback, *args)


class Hook(Protocol):
    """What a simulation decides about each group."""

    def group_size(self, waiting: int) -> int:
        """How many of the waiting operations form the next group."""
        ...

    def before_commit(self) -> None:
        """May raise `Crashed`: the group is lost."""
        ...

    def after_commit(self) -> None:
        """May raise `Crashed`: the group is committed, and no caller gets a result."""
        ...


class InlineWriter:
    """The same steps on the running loop, one group per iteration. After a crash no caller gets a result."""

    def __init__(self, steps: GroupCommit, hook: Hook, die: Callable[[], None]) -> None:
        self._steps = steps
        self._hook = hook
        self._die = die
        self._waiting: deque[Call] = deque()
        self._is_dead = False

    def submit(self, call: Call) -> None:
        self._waiting.append(call)
        if len(self._waiting) == 1:
            call.future.get_loop().call_soon(self._turn)

    async def close(self) -> None:
        while self._waiting and not self._is_dead:
            self._group()
        self._steps.close()

    def _turn(self) -> None:
        if self._is_dead or not self._waiting:
            return
        loop = self._waiting[0].future.get_loop()
        self._group()
        if self._waiting:
            loop.call_soon(self._turn)

    def _group(self) -> None:
        size = max(1, min(self._hook.group_size(len(self._waiting)), len(self._waiting), GROUP_MAX))
        calls = [self._waiting.popleft() for _ in range(size)]
        try:
            self._steps.apply(calls)
            self._hook.before_commit()
            fates = self._steps.commit()
            self._hook.after_commit()
        except Crashed:
            self._is_dead = True
            self._waiting.clear()
            self._steps.close()
            self._die()
            return
        answer(calls, fates)
