"""The console channel: prints messages to the terminal of the process."""

import sys
from typing import TextIO

from wakeful.core.time.instants import format_instant
from wakeful.integrations.system.threads import in_thread
from wakeful.ports.channel import Outcome, OutgoingMessage, Sent


class ConsoleChannel:
    """Prints messages, in a thread: a blocked terminal must not block the clock."""

    kind = "console"
    address = ""
    to: str | None = None

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out

    async def send(self, message: OutgoingMessage) -> Outcome:
        first = f"{format_instant(message.at)} {message.slug or 'wakeful'}"
        lines = "\n".join(f"  {line}" for line in message.text.splitlines())
        await in_thread(lambda: self._print(f"{first}\n{lines}\n"), name="console")
        return Sent()

    async def close(self) -> None:
        """Nothing to release."""

    def _print(self, text: str) -> None:
        out = self._out or sys.stdout
        out.write(text)
        out.flush()
