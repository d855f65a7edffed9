"""The store as the engine uses it: its operations go ahead of those that wait.

A tick waits for each of its operations, and nothing that becomes due meanwhile can start. So a claim, a settlement or
the renewal of the lease must not wait behind the commands of many clients. The engine has only a few operations at a
time, so commands still get their turn.
"""

from collections.abc import Callable
from typing import TypeVar

from wakeful.ports.store import Store, Tx

T = TypeVar("T")


class UrgentStore:
    """See `ports.store.Store`."""

    def __init__(self, inner: Store) -> None:
        self._inner = inner

    async def write(self, operation: Callable[[Tx], T], *, is_urgent: bool = True) -> T:
        return await self._inner.write(operation, is_urgent=is_urgent)

    async def read(self, operation: Callable[[Tx], T], *, is_urgent: bool = True) -> T:
        return await self._inner.read(operation, is_urgent=is_urgent)

    async def hold_clock(self) -> bool:
        return await self._inner.hold_clock()

    async def release_clock(self) -> None:
        await self._inner.release_clock()

    @property
    def is_exclusive(self) -> bool:
        return self._inner.is_exclusive

    async def remember(self, mark: int) -> None:
        await self._inner.remember(mark)

    async def changed(self) -> bool:
        return await self._inner.changed()

    def trouble(self) -> str | None:
        return self._inner.trouble()

    async def close(self) -> None:
        await self._inner.close()
