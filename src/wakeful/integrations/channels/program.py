"""A channel implemented by a function that the program registers."""

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from wakeful.integrations.system.threads import in_thread
from wakeful.ports.channel import Outcome, OutgoingMessage, Refused, Sent, Unsent

DeliverFunction: TypeAlias = Callable[..., Awaitable[Any] | Any]
"""Takes the text, and the message as an optional second argument. Plain functions run in a thread."""


class ProgramChannel:
    """Calls the function; an exception is retried, unless the function returns an outcome itself."""

    kind = "python"

    def __init__(self, deliver: DeliverFunction, to: str | None) -> None:
        self._deliver = deliver
        self.to = to
        self._takes_message = _positional(deliver) >= 2

    async def send(self, message: OutgoingMessage) -> Outcome:
        message = message._replace(to=message.to or self.to)
        given = (message.text, message) if self._takes_message else (message.text,)
        if inspect.iscoroutinefunction(self._deliver) or inspect.iscoroutinefunction(
            getattr(self._deliver, "__call__", None)  # noqa: B004 - its type matters, not its existence
        ):
            answer = await self._deliver(*given)
        else:
            answer = await in_thread(lambda: self._deliver(*given), name="deliver")
            if inspect.isawaitable(answer):
                answer = await answer
        return answer if isinstance(answer, Sent | Unsent | Refused) else Sent()

    async def close(self) -> None:
        """Nothing to release."""


def _positional(function: DeliverFunction) -> int:
    """How many positional arguments it takes."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return 1
    return sum(
        parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD) for parameter in parameters
    )
