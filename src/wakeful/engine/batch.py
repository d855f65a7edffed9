"""Batching: concurrent requests of the same kind go to the store as one batch."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Generic, TypeVar

I = TypeVar("I")  # noqa: E741 - item in
O = TypeVar("O")  # noqa: E741 - result out

BATCH_MAX: Final = 200


class Batcher(Generic[I, O]):
    """Returns a result for each item; while one batch is being written, the next one collects.

    An item never waits for others: if no batch is being written, it is sent immediately. Under load the batches grow
    by themselves, because everything that arrives during a commit goes into the next batch.
    """

    def __init__(self, flush: Callable[[list[I]], Awaitable[list[O]]]) -> None:
        self._flush = flush
        self._waiting: list[tuple[I, asyncio.Future[O]]] = []
        self._task: asyncio.Task[None] | None = None

    def submit(self, item: I) -> "asyncio.Future[O]":
        """Put the item into the next batch."""
        future: asyncio.Future[O] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, future))
        if self._task is None:
            self._task = asyncio.create_task(self._drain())
        return future

    async def _drain(self) -> None:
        try:
            await asyncio.sleep(0)  # let every task that is ready now join this batch
            while self._waiting:
                batch, self._waiting = self._waiting[:BATCH_MAX], self._waiting[BATCH_MAX:]
                await self._send(batch)
        finally:
            self._task = None

    async def _send(self, batch: list[tuple[I, "asyncio.Future[O]"]]) -> None:
        try:
            results = await self._flush([item for item, _ in batch])
        except Exception as error:
            for _, future in batch:
                if not future.done():
                    future.set_exception(error)
            return
        for (_, future), result in zip(batch, results, strict=True):
            if not future.done():
                future.set_result(result)
