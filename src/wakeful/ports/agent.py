"""The agent port: one prompt given to an agent, and the proof of its result.

An agent creates an `Exchange` for every turn. Some agents reply directly: `send` returns `Replied`, and the turn is
over. Others only accept the prompt: `send` returns `Accepted`, which proves nothing yet, and the exchange is polled
until it shows how the turn ended (L8). Nothing an agent returns is trusted: adapters limit and clean all text.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias

from wakeful.core.run.results import Busy, Failed, Throttled, Unconfirmed
from wakeful.core.run.runs import RungName
from wakeful.core.run.usage import Usage
from wakeful.core.schedule.actions import Memory
from wakeful.core.time.instants import Duration
from wakeful.ports.action import Fire, Ladder, NeverReceived, StillWorking


class ToolSpec(NamedTuple):
    """A tool that a model may call."""

    name: str
    says: str
    schema: Mapping[str, Any]


class Toolbox(NamedTuple):
    """The tools that agents get from us, for those that have none themselves."""

    tools: Callable[[], Sequence[ToolSpec]]
    call: Callable[[Fire, str, Any], Awaitable[str]]  # performs one for the agent of a run; JSON, also for a refusal


class Turn(NamedTuple):
    """One prompt for an agent."""

    prompt: str  # as its owner wrote it
    fire: Fire
    session_id: str | None  # the session to continue; None: start one
    is_persistent: bool  # whether the session is kept for the next turn
    config: Mapping[str, Any]  # the definition's `sessionConfig`
    memory: Memory | None = None  # what our own transcript keeps of it; None: everything
    session_node: str | None = None  # the other node that started the session; None: this node, or unknown
    toolbox: Toolbox | None = None  # what it may call


@dataclass(frozen=True, slots=True)
class Accepted:
    """The agent accepted the prompt; it is not proven yet that it does anything with it."""

    session_id: str
    confirm_within: Duration  # how long it may show neither activity nor an end


@dataclass(frozen=True, slots=True)
class Replied:
    """The agent is done. `text = None`: no reply, which differs from an empty reply."""

    text: str | None
    session_id: str | None = None
    usage: Usage | None = None
    output: str | None = None  # shown to people in addition to the reply
    refused: tuple[str, ...] = ()  # tools that it was not allowed to use


Answer: TypeAlias = Accepted | Replied | Failed | Busy | Throttled | Unconfirmed


@dataclass(frozen=True, slots=True)
class NoSign:
    """No sign of activity now, and no proof of an end."""

    why: str | None = None  # what is missing, in words


@dataclass(frozen=True, slots=True)
class NotVisible:
    """The turn's state cannot be read now."""


@dataclass(frozen=True, slots=True)
class Working:
    """The agent is working on the turn."""


@dataclass(frozen=True, slots=True)
class Finished:
    """Proven to have ended."""

    reply: str | None = None
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class WentIdle:
    """Seen working and then idle, for an agent configured to treat this as an end; its reply cannot be read."""


@dataclass(frozen=True, slots=True)
class Broken:
    """Proven to have ended with an error."""

    error: str


@dataclass(frozen=True, slots=True)
class ProofGone:
    """The evidence that could have proven it no longer exists."""

    error: str


Sight: TypeAlias = NoSign | NotVisible | Working | Finished | WentIdle | Broken | ProofGone

Fate: TypeAlias = Replied | Broken | StillWorking | NeverReceived | None
"""What an agent knows about a turn that a crash interrupted; None if it cannot tell."""


class Exchange(Protocol):
    """One turn with an agent."""

    async def send(self, ladder: Ladder) -> Answer:
        """Send the prompt, after recording `sent`."""
        ...

    async def look(self) -> Sight:
        """The current state of an accepted turn. Never raises because of the other side, and returns quickly."""
        ...

    async def cancel(self) -> bool:
        """End the turn in any state; True if its end is proven. Takes a few seconds at most."""
        ...

    async def clean_up(self, *, is_over: bool) -> None:
        """The last call: remove what is no longer needed. Never raises because of the other side.

        If not `is_over`, it may still be working, or what is left may still prove its result."""
        ...


class Agent(Protocol):
    """A named target for prompts."""

    @property
    def proves(self) -> RungName:
        """The highest rung it can prove; with `accepted` the turn ends there."""
        ...

    @property
    def knows(self) -> Mapping[str, type]:
        """The fields of a `sessionConfig` it accepts, besides `persistSession`, and their types."""
        ...

    def check(self, config: Mapping[str, Any]) -> str | None:
        """What is wrong with the agent, or with this `sessionConfig` for it, and the cure; None if nothing.

        Called when a definition is written, not when it is due: it may read files and import modules."""
        ...

    def begin(self, turn: Turn) -> Exchange: ...

    async def ask(self, turn: Turn) -> Fate:
        """The result of a turn that a crash interrupted, by its idempotency key. Nothing is sent again."""
        ...

    async def close(self) -> None: ...
