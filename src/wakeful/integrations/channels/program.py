"""A channel implemented by a function that the program registers."""

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from wakeful.integrations.system.threads import in_thread
from wakeful.ports.channel import Outcome, OutgoingMessage, Refused, Sent, Unsent

DeliverFunction: TypeAlias = Callable[..., Awaitable[Any] | Any]
"""Takes the text, and the message if it has a second parameter for it. Plain functions run in a thread."""


class ProgramChannel:
    """Calls the function; an exception is retried, unless the function returns an outcome itself."""

    address = ""

    def __init__(self, deliver: DeliverFunction, to: str | None, kind: str = "python") -> None:
        self.kind = kind
        self._deliver = deliver
        self.to = to
        self._takes_message = _takes_message(deliver)

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


def _takes_message(function: DeliverFunction) -> bool:
    """Whether it asks for the message: with a required second parameter, or one named `message`. Any other default is
    the function's own."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    second = [one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)][1:2]
    return any(one.default is one.empty or one.name == "message" for one in second)
