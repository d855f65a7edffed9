"""The exchange with an agent that replies in one call: when `send` returns, the turn is over."""

from collections.abc import Callable, Coroutine
from typing import Any

from wakeful.ports.action import Ladder
from wakeful.ports.agent import Answer, NoSign, Sight


class OneShot:
    """Sends once. Cancellation ends the request, process or task behind it, or `send` reports that it did not."""

    def __init__(self, send: Callable[[Ladder], Coroutine[Any, Any, Answer]]) -> None:
        self._send = send

    async def send(self, ladder: Ladder) -> Answer:
        return await self._send(ladder)

    async def look(self) -> Sight:
        return NoSign()

    async def cancel(self) -> bool:
        return True

    async def clean_up(self, *, is_over: bool) -> None: ...
