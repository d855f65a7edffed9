"""Failpoints: a store whose process is killed or frozen at one chosen commit.

Every commit of the engine is a named operation. `before` means that all of it was written and nothing is committed;
`after` means that it is committed and its caller does not know yet. `held` is `before` with a delay: the COMMIT is held
back for a moment, and then the process dies. Nothing can happen in that moment, unless a caller got its result too
early; what that caller does then reaches its target, and the store does not know of it.

Only the processes of a drill and of the fault tests wrap their store in this.

A process that is to be frozen waits for a moment in which no attempt is under way except those of the chosen operation.
An attempt that is on its way to its target while its process is frozen would arrive when it continues, and nothing
can prevent that; so it would say nothing about the lease.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final, Literal, NamedTuple, TypeAlias, TypeVar

from wakeful.drill.held import before_commit
from wakeful.ports.handlers import Job
from wakeful.ports.store import Store, Tx

T = TypeVar("T")

Point: TypeAlias = Literal["before", "held", "after"]
Act: TypeAlias = Literal["kill", "freeze"]

ATTEMPTS_MIN: Final = 4
"""A process freezes at a commit with at least this many attempts in it. A single one may belong to a schedule that
rules out repetition, and another node would then not repeat it. A mark is held back under the same condition: a single
one may be the second of its attempt, and its loss has no effect."""

HELD_FOR: Final = 0.2
"""How long a commit is held back at least, in seconds."""

TURNS: Final = 5
"""How many turns the event loop makes in that time at least. A result that was given too early reaches its caller
within two, however busy the machine is."""

ACTED_WITHIN: Final = 3.0
"""How long a caller that got its result too early has to reach its target, before the process dies."""

_POINTS: Final[dict[str, Point]] = {"before": "before", "held": "held", "after": "after"}
_HELD_MIN: Final = {"claim": 1, "mark": ATTEMPTS_MIN}
_NAMES: Final = {"settle_and_claim": "settle", "_settle_lost": "rescue"}
"""Operations whose functions have longer names."""


class Failpoint(NamedTuple):
    """The `number`th commit of this operation from now on, and what happens at that point."""

    operation: str  # enter, claim, mark, settle, renew, rescue, leave, …
    point: Point
    number: int = 1
    act: Act = "kill"

    @classmethod
    def parse(cls, text: str) -> Failpoint:
        """`claim:after:3` or `mark:after:1:freeze`."""
        operation, point, number, *act = text.split(":")
        return cls(operation, _POINTS[point], int(number), "freeze" if act else "kill")

    def __str__(self) -> str:
        return f"{self.operation}:{self.point}:{self.number}{':freeze' if self.act == 'freeze' else ''}"


class FailingStore:
    """See `ports.store.Store`; while no failpoint is set, everything passes through."""

    def __init__(self, inner: Store, failpoint: Failpoint | None = None) -> None:
        self._inner = inner
        self._failpoint = failpoint
        self._left = 0 if failpoint is None else failpoint.number
        self._under_way = 0  # attempts that this process claimed and has not settled

    def arm(self, failpoint: Failpoint | None) -> None:
        """Set the failpoint; None: remove it."""
        self._failpoint, self._left = failpoint, 0 if failpoint is None else failpoint.number

    async def write(self, operation: Callable[[Tx], T], *, is_urgent: bool = False) -> T:
        name = name_of(operation)
        failpoint = self._failpoint
        if failpoint is None or failpoint.operation != name:
            answer = await self._inner.write(operation, is_urgent=is_urgent)
            self._count(name, operation, answer)
            return answer
        if failpoint.act == "freeze":
            return await self._freeze(name, operation)
        if failpoint.point == "held":
            returned = threading.Event()  # the caller has its result, although the commit is held back
            loop = asyncio.get_running_loop()
            answer = await self._inner.write(lambda tx: self._hold(operation, tx, loop, returned))
            returned.set()
            self._count(name, operation, answer)
            return answer
        self._left -= 1
        if self._left == 0 and failpoint.point == "before":
            return await self._inner.write(lambda tx: _die_after(operation, tx))
        answer = await self._inner.write(operation)
        if self._left == 0:
            die()
        self._count(name, operation, answer)
        return answer

    async def _freeze(self, name: str, operation: Callable[[Tx], T]) -> T:
        answer = await self._inner.write(operation)
        if self._count(name, operation, answer) == self._under_way >= ATTEMPTS_MIN:
            self.arm(None)
            os.kill(os.getpid(), signal.SIGSTOP)
        return answer

    def _hold(
        self, operation: Callable[[Tx], T], tx: Tx, loop: asyncio.AbstractEventLoop, returned: threading.Event
    ) -> T:
        """On the writer's thread, inside the transaction: hold back its commit, and die instead of committing. A claim
        or a mark of too few attempts is let through: perhaps no target would see anything of it."""
        answer = operation(tx)
        name = name_of(operation)
        if name not in _HELD_MIN or _attempts(name, answer) >= _HELD_MIN[name]:
            before_commit(tx, partial(self._die_late, loop, returned))
        return answer

    def _die_late(self, loop: asyncio.AbstractEventLoop, returned: threading.Event) -> None:
        """Die after a while, and later if the caller has its result: then what it does reaches its target."""
        self._left -= 1
        if self._left == 0:
            time.sleep(HELD_FOR)
            for _ in range(TURNS):
                turned = threading.Event()
                loop.call_soon_threadsafe(turned.set)
                turned.wait(ACTED_WITHIN)
            if returned.is_set():
                time.sleep(ACTED_WITHIN)
            die()

    def _count(self, name: str, operation: Callable[..., Any], answer: Any) -> int:
        """Count the attempts in progress; returns how many the operation concerns."""
        if name == "enter":
            self._under_way = 0
        elif name in ("claim", "settle"):
            ended = len(_arguments(operation)["ended"]) if name == "settle" else 0
            self._under_way = max(self._under_way - ended, 0) + _attempts(name, answer)
        return _attempts(name, answer)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def name_of(operation: Callable[..., Any]) -> str:
    while isinstance(operation, partial):
        operation = operation.func
    name = getattr(operation, "__name__", "")
    return _NAMES.get(name, name)


def _attempts(name: str, answer: Any) -> int:
    """How many attempts the operation claimed or marked."""
    if name == "mark":
        return len(answer)
    return sum(isinstance(claim.job, Job) for claim in answer.claims) if name in ("claim", "settle") else 0


def _arguments(operation: Callable[..., Any]) -> dict[str, Any]:
    return operation.keywords if isinstance(operation, partial) else {}


def _die_after(operation: Callable[[Tx], T], tx: Tx) -> T:
    """Die after everything is written and before anything is committed."""
    answer = operation(tx)
    die()
    return answer


def die() -> None:
    """kill -9 this process."""
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)  # the signal is delivered asynchronously
