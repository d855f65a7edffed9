"""The channel port: a way to a person.

A channel carries letters. It says of each whether it arrived, may be tried again, or never will; it repeats nothing
itself, because when to try again is decided where it is also remembered. A letter may come twice under one id (the
process may die after it was sent and before that was written down), so channels pass the id on where they can.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias, runtime_checkable

from wakeful.core.time.instants import Instant


class OutgoingMessage(NamedTuple):
    """A delivery as a channel sees it."""

    delivery_id: str  # the same each time it is sent
    channel: str
    to: str | None  # None: whoever the channel is for
    text: str  # free of control characters, bounded
    slug: str | None
    run_id: int | None
    at: Instant  # when it was written
    parts_sent: int = 0  # how many pieces of it went out before


@dataclass(frozen=True, slots=True)
class Sent:
    """The other side has it."""


@dataclass(frozen=True, slots=True)
class Unsent:
    """Not this time: it may be tried again, not before `retry_at`."""

    error: str
    retry_at: Instant | None = None
    parts_sent: int = 0


@dataclass(frozen=True, slots=True)
class Refused:
    """Never: the same letter would be refused again."""

    error: str


Outcome: TypeAlias = Sent | Unsent | Refused


class Channel(Protocol):
    """A way to a person. `send` ends within a minute, and whatever it raises counts as `Unsent`."""

    @property
    def kind(self) -> str:
        """What it is: webhook, telegram, …"""
        ...

    @property
    def to(self) -> str | None:
        """Who gets what is sent without a recipient."""
        ...

    async def send(self, letter: OutgoingMessage) -> Outcome: ...

    async def close(self) -> None: ...


class Sender(NamedTuple):
    """Someone who wrote without being allowed to."""

    id: str  # what to write under `senders`
    name: str


class IncomingMessage(NamedTuple):
    """What a person said on a channel, and how far the channel has been listened to with that."""

    mark: str
    to: str | None  # who said it; None: nothing that counts, only the mark moves
    text: str = ""
    unreadable: str | None = None  # what it is instead of text, like "a sticker"
    unknown: Sender | None = None
    moved: tuple[str, str] | None = None  # a chat that has another id from now on


class ListenTrouble(NamedTuple):
    """Why nothing can be heard at the moment."""

    error: str
    cure: str


class MessageReceiver(Protocol):
    """Takes what a channel hears."""

    @property
    def moved(self) -> Mapping[str, str]:
        """Chats that are known to have another id by now."""
        ...

    async def hear(self, heard: IncomingMessage) -> None:
        """When it returns, this is durable and need not be told again."""
        ...

    async def failing(self, trouble: ListenTrouble | None) -> None:
        """Nothing can be heard, and why; None: it works (again)."""
        ...


@runtime_checkable
class Listening(Protocol):
    """A channel on which people can be heard."""

    async def listen(self, mark: str | None, ear: MessageReceiver) -> None:
        """Listen from a mark on, until cancelled. It goes on by itself after trouble, and reports it."""
        ...

    def is_allowed(self, sender: str) -> bool:
        """Whether messages of this sender count."""
        ...
