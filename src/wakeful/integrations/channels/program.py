"""A channel that is a function of the program: what Python code registers."""

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from wakeful.integrations.system.threads import in_thread
from wakeful.ports.channel import Outcome, OutgoingMessage, Refused, Sent, Unsent

DeliverFunction: TypeAlias = Callable[..., Awaitable[Any] | Any]
"""Takes the text, and the letter too if it has room for a second argument. Plain functions run in a thread."""


class ProgramChannel:
    """Calls the function; what it raises is an error to be tried again, unless it returns an outcome itself."""

    kind = "python"

    def __init__(self, deliver: DeliverFunction, to: str | None) -> None:
        self._deliver = deliver
        self.to = to
        self._takes_letter = _positional(deliver) >= 2

    async def send(self, letter: OutgoingMessage) -> Outcome:
        letter = letter._replace(to=letter.to or self.to)
        given = (letter.text, letter) if self._takes_letter else (letter.text,)
        if inspect.iscoroutinefunction(self._deliver) or inspect.iscoroutinefunction(
            getattr(self._deliver, "__call__", None)  # noqa: B004 - asked for what it is, not whether it is there
        ):
            answer = await self._deliver(*given)
        else:
            answer = await in_thread(lambda: self._deliver(*given), name="deliver")
            if inspect.isawaitable(answer):
                answer = await answer
        return answer if isinstance(answer, Sent | Unsent | Refused) else Sent()

    async def close(self) -> None:
        """Nothing is held."""


def _positional(function: DeliverFunction) -> int:
    """How many arguments it takes by position."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return 1
    return sum(one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD) for one in parameters)
