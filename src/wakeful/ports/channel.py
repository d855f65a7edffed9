"""The channel port: sends messages to people.

For each message, a channel returns whether it arrived, may be tried again, or never will. It retries nothing itself,
because retries are decided where they are also stored. A message may be sent twice under one id (the process may die
after sending it and before recording that), so channels pass the id on if they can.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias, runtime_checkable

from wakeful.core.time.instants import Instant


class OutgoingMessage(NamedTuple):
    """A delivery as passed to a channel."""

    delivery_id: str  # the same each time it is sent
    channel: str
    to: str | None  # None: the channel's own recipient
    text: str  # free of control characters, limited in length
    slug: str | None
    run_id: int | None
    at: Instant  # when it was written
    parts_sent: int = 0  # how many parts were sent before
    traceparent: str | None = None  # of the delivery, if its run is traced


@dataclass(frozen=True, slots=True)
class Sent:
    """The other side has accepted it."""


@dataclass(frozen=True, slots=True)
class Unsent:
    """Failed this time: it may be tried again, but not before `retry_at`."""

    error: str
    retry_at: Instant | None = None
    parts_sent: int = 0


@dataclass(frozen=True, slots=True)
class Refused:
    """Failed for good: the same message would be refused again."""

    error: str


Outcome: TypeAlias = Sent | Unsent | Refused


class Channel(Protocol):
    """Sends messages to people. `send` ends within a minute; any exception counts as `Unsent`."""

    @property
    def kind(self) -> str:
        """Its type: webhook, telegram, …"""
        ...

    @property
    def address(self) -> str:
        """The settings that say where it sends to, for people; empty if there are none."""
        ...

    @property
    def to(self) -> str | None:
        """The default recipient."""
        ...

    async def send(self, letter: OutgoingMessage) -> Outcome: ...

    async def close(self) -> None: ...


@runtime_checkable
class Preparable(Protocol):
    """A channel whose first message takes longer than the others."""

    async def prepare(self) -> None:
        """Load what sending needs. Called before the `sending` mark, so that little lies between the mark and the
        message: a process that is killed in between has used up an attempt and sent nothing."""
        ...


class Sender(NamedTuple):
    """Someone who wrote without permission."""

    id: str  # the value to add to `senders`
    name: str


class IncomingMessage(NamedTuple):
    """A message from a person, and the position up to which the channel has been read with it."""

    mark: str
    to: str | None  # the sender; None: not a message, only the position advances
    text: str = ""
    unreadable: str | None = None  # what it is if it is not text, such as "a sticker"
    unknown: Sender | None = None
    moved: tuple[str, str] | None = None  # a chat that has a new id
    author: str | None = None  # who wrote it, if several people share the chat; None: `to`


class ListenTrouble(NamedTuple):
    """Why no messages can be received at the moment."""

    error: str
    cure: str


class MessageReceiver(Protocol):
    """Takes the messages that a channel receives."""

    @property
    def moved(self) -> Mapping[str, str]:
        """Chats that are known to have a new id."""
        ...

    async def hear(self, heard: IncomingMessage) -> None:
        """When it returns, the message is durable and need not be passed again."""
        ...

    async def failing(self, trouble: ListenTrouble | None) -> None:
        """Reports that no messages can be received, and why; None if it works (again)."""
        ...


@runtime_checkable
class Listening(Protocol):
    """A channel that can receive messages from people."""

    async def listen(self, mark: str | None, ear: MessageReceiver) -> None:
        """Receive from a position on, until cancelled. It recovers from errors by itself, and reports them."""
        ...

    def is_allowed(self, sender: str) -> bool:
        """Whether messages from this sender are accepted."""
        ...
