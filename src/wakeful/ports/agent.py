"""The agent port: one prompt given to an agent, and the proof of what became of it.

An agent makes an `Exchange` for every turn. Some agents answer in one go: `send` returns `Replied`, and the turn is
over. Others only take the prompt: `send` returns `Accepted`, which proves nothing yet, and the exchange is then looked
at until it shows how the turn ended (L8). Nothing an agent says is trusted: adapters bound and clean every text.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias

from wakeful.core.run.results import Busy, Failed, Throttled
from wakeful.core.run.runs import RungName
from wakeful.core.run.usage import Usage
from wakeful.core.schedule.actions import Memory
from wakeful.core.time.instants import Duration
from wakeful.ports.action import Fire, Ladder, NeverReceived, StillWorking


class Turn(NamedTuple):
    """One prompt on its way to an agent."""

    prompt: str  # as its owner wrote it
    fire: Fire
    session_id: str | None  # the session to go on with; None: begin one
    is_persistent: bool  # whether the session is to be there for the next turn
    config: Mapping[str, Any]  # the definition's `sessionConfig`
    memory: Memory | None = None  # what is kept of it, where we keep the transcript; None: all of it
    session_node: str | None = None  # the other node that began the session; None: this node, or not known


@dataclass(frozen=True, slots=True)
class Accepted:
    """The agent took the prompt; that it does anything with it is still to be proven."""

    session_id: str
    confirm_within: Duration  # how long it may show neither a sign of life nor an end


@dataclass(frozen=True, slots=True)
class Replied:
    """The agent is done. `text = None`: it said nothing, which is not the same as an empty reply."""

    text: str | None
    session_id: str | None = None
    usage: Usage | None = None
    output: str | None = None  # what a person should see beside the reply
    refused: tuple[str, ...] = ()  # tools that it was not allowed to use


Answer: TypeAlias = Accepted | Replied | Failed | Busy | Throttled


@dataclass(frozen=True, slots=True)
class NoSign:
    """No sign of life now, and no proof of an end."""

    why: str | None = None  # what is missing, in words


@dataclass(frozen=True, slots=True)
class NotVisible:
    """It cannot be looked at now."""


@dataclass(frozen=True, slots=True)
class Working:
    """It is at it."""


@dataclass(frozen=True, slots=True)
class Finished:
    """Proven to have come to its end."""

    reply: str | None = None
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class WentIdle:
    """Seen at work and then idle, by an agent that is set to take this for an end; its reply cannot be read."""


@dataclass(frozen=True, slots=True)
class Broken:
    """Proven to have ended in error."""

    error: str


@dataclass(frozen=True, slots=True)
class ProofGone:
    """What could have proven it is no longer there."""

    error: str


Sight: TypeAlias = NoSign | NotVisible | Working | Finished | WentIdle | Broken | ProofGone

Fate: TypeAlias = Replied | Broken | StillWorking | NeverReceived | None
"""What an agent knows of a turn that a crash of ours cut off; None: it cannot tell."""


class Exchange(Protocol):
    """One turn with an agent."""

    async def send(self, ladder: Ladder) -> Answer:
        """Give it the prompt, after recording `sent`."""
        ...

    async def look(self) -> Sight:
        """What can be seen of an accepted turn now. Never raises for what the other side does, never takes long."""
        ...

    async def cancel(self) -> bool:
        """End the turn, whatever state it is in; True when its end is proven. Takes a few seconds at most."""
        ...

    async def clean_up(self, *, is_over: bool) -> None:
        """The last call: remove what nobody needs any more. Never raises for what the other side does.

        Not over: it may still be at work, or what is left could still tell what became of it."""
        ...


class Agent(Protocol):
    """A named target for prompts."""

    @property
    def proves(self) -> RungName:
        """The highest rung it can prove; with `accepted` nothing is waited for after that."""
        ...

    @property
    def knows(self) -> Mapping[str, type]:
        """The fields of a `sessionConfig` it understands, besides `persistSession`, and what each must be."""
        ...

    def check(self, config: Mapping[str, Any]) -> str | None:
        """A sentence naming what is wrong with the agent itself, or with it and this `sessionConfig`, and the cure.

        Asked when a definition is written, not when it is due: it may look at files and import modules."""
        ...

    def begin(self, turn: Turn) -> Exchange: ...

    async def ask(self, turn: Turn) -> Fate:
        """What became of a turn that a crash of ours cut off, by its idempotency key. Nothing is sent again."""
        ...

    async def close(self) -> None: ...


class TranscriptTurn(NamedTuple):
    """One turn of a transcript: what was asked under which key, and what came back."""

    key: str
    prompt: str
    reply: str


class Transcripts(Protocol):
    """Keeps what was said, for agents that remember nothing themselves. What it keeps is bounded."""

    async def read(self, session_id: str) -> Sequence[TranscriptTurn]:
        """What was said, oldest first; nothing for a session that is not known."""
        ...

    async def add(self, session_id: str, spoken: TranscriptTurn) -> None:
        """Keep one more turn; one under the same key takes the place of the older."""
        ...
