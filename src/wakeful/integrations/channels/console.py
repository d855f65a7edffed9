"""The console: letters are printed where the process runs."""

import sys
from typing import TextIO

from wakeful.core.time.instants import format_instant
from wakeful.integrations.system.threads import in_thread
from wakeful.ports.channel import Outcome, OutgoingMessage, Sent


class ConsoleChannel:
    """Prints letters. In a thread: a terminal that nobody reads from must not hold up the clock."""

    kind = "console"
    to: str | None = None

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out

    async def send(self, letter: OutgoingMessage) -> Outcome:
        first = f"{format_instant(letter.at)} {letter.slug or 'wakeful'}"
        lines = "\n".join(f"  {line}" for line in letter.text.splitlines())
        await in_thread(lambda: self._print(f"{first}\n{lines}\n"), name="console")
        return Sent()

    async def close(self) -> None:
        """Nothing is held."""

    def _print(self, text: str) -> None:
        out = self._out or sys.stdout
        out.write(text)
        out.flush()
