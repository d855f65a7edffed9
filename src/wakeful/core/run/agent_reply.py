"""What an agent that is a Python function returns if it has more to report than text."""

from dataclasses import dataclass
from typing import Any

from wakeful.core.run.results import Done
from wakeful.core.run.usage import Usage, usage_of


@dataclass(frozen=True, slots=True)
class AgentReply:
    """The reply to a prompt, what the turn used, and the session that it belongs to.

    `text` may also be the result object of a framework, or None if there is nothing to report. `usage` has the names of
    a run's usage; those of a provider are read too. Without it, the cost of the turn is unknown. The next turn gets
    `session` as its `session_id`."""

    text: Any
    usage: Usage | None = None
    session: str | None = None

    def as_reply(self) -> Done:
        """The end of an agent's turn."""
        return Done(reply=self.text, usage=usage_of(self.usage), session_id=self.session)

    def trouble(self) -> str | None:
        """Why its usage cannot be counted; the reply counts all the same."""
        if not self.usage or usage_of(self.usage) is not None:
            return None
        return f"the usage {self.usage!r} has no known counts; write for example {{'input': 1200, 'output': 210}}"
