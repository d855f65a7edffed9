"""The quota provider port: reading how much of a key's quota is used, and waking its window."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from wakeful.core.slot.slot import ReadFailure, Reading
from wakeful.core.time.instants import Instant
from wakeful.ports.action import Fire, Ladder


@dataclass(frozen=True, slots=True)
class WakeFailure:
    """Why a wake could not be sent, in a sentence; `until`: when the provider asks to be asked again.

    `is_unreachable`: it did not arrive (no connection, no answer, 5xx), and is repeated until it does."""

    error: str
    until: Instant | None = None
    is_unreachable: bool = False


def wake_failure(failure: ReadFailure) -> WakeFailure:
    """What went wrong with a request that was a wake."""
    is_unreachable = failure.kind == "unreachable"
    return WakeFailure(failure.error, None if is_unreachable else failure.until, is_unreachable)


class QuotaProvider(Protocol):
    """One key of one provider. Nothing it answers ever shows the key."""

    @property
    def mark(self) -> str:
        """Tells one key from another: equal for two slots that name the same, and nothing can be read from it."""
        ...

    @property
    def can_wake(self) -> bool: ...

    @property
    def has_statistics(self) -> bool: ...

    async def read(self, action: str) -> Reading | ReadFailure:
        """How the quota stands, by one request; `action` is what the log calls it."""
        ...

    async def wake(self, action: str, fire: Fire, ladder: Ladder) -> WakeFailure | None:
        """Send what makes the window run; None: it was accepted. That it runs, only a reading can show."""
        ...

    async def statistics(self, reading: Reading, *, now: Instant) -> Mapping[str, Any] | ReadFailure:
        """Calls, tokens and tools, for people to look at; JSON names."""
        ...

    async def close(self) -> None: ...
