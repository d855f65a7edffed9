"""One plugin of each kind. Each is made with the settings that its table in `wakeful.toml` has besides ours."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from wakeful.plugins import (
    AgentReply,
    Context,
    Entry,
    Fire,
    Ladder,
    OutgoingMessage,
    Reading,
    Refused,
    Sent,
    SourceFile,
    WakeFailure,
    slug_of,
)


def shout(settings: Mapping[str, Any]) -> Callable[[str], Awaitable[AgentReply]]:
    """An agent that is a function: it gets the prompt, and returns its reply with what it used."""
    ending = settings.get("ending", "!")

    async def answer(prompt: str) -> AgentReply:
        return AgentReply(prompt.upper() + ending, usage={"input": len(prompt), "output": len(prompt)})

    return answer


class Logbook:
    """A channel that adds a line to a file."""

    kind = "logbook"
    to = None

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.address = str(settings["file"])

    async def send(self, letter: OutgoingMessage) -> Sent | Refused:
        if not letter.text.strip():
            return Refused("an empty line says nothing")
        await asyncio.to_thread(self._write, f"{letter.slug or ''}: {letter.text}\n")  # a file may be slow
        return Sent()

    def _write(self, line: str) -> None:
        with Path(self.address).open("a", encoding="utf-8") as file:
            file.write(line)

    async def close(self) -> None: ...


class Fixed:
    """A quota provider whose key is always used as much as its settings say."""

    can_wake = True
    has_statistics = False

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.mark = str(settings.get("account", "one"))  # equal for two slots with the same key
        self._percentage = float(settings["percentage"])

    async def read(self, action: str) -> Reading:
        return Reading(self._percentage, None)

    async def wake(self, action: str, fire: Fire, ladder: Ladder) -> WakeFailure | None:
        return None

    async def statistics(self, reading: Reading, *, now: int) -> Mapping[str, Any]:
        return {}

    async def close(self) -> None: ...


class Todo:
    """An importer of files with lines like `09:00 make report`. Its methods are called in a thread."""

    def __init__(self, settings: Mapping[str, Any]) -> None: ...

    def find(self, context: Context) -> list[SourceFile]:
        place = context.user_home / "todo.txt"
        return self.open(place) if place.is_file() else []

    def open(self, path: Path) -> list[SourceFile]:
        return [SourceFile(str(path), path.read_text(encoding="utf-8"), path)]

    def read(self, files: Sequence[SourceFile], context: Context) -> list[Entry]:
        lines = [
            (file.place, number, line)
            for file in files
            for number, line in enumerate(file.text.splitlines(), 1)
            if line.strip()
        ]
        return [_entry(place, number, line, context.zone) for place, number, line in lines]


def _entry(place: str, number: int, line: str, zone: str) -> Entry:
    at, _, command = line.strip().partition(" ")
    return Entry(
        place=place,
        ref=f"{place}:{number}",
        source=line,
        name=slug_of(command),
        line=number,
        schedule={"type": "times", "times": [at], "timezone": zone},
        action={"command": {"argv": command.split()}},
    )
