"""The quota provider port: reading how much of a key's quota is used, and waking its window."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from wakeful.core.slot.slot import ReadFailure, Reading
from wakeful.core.time.instants import Instant
from wakeful.ports.action import Fire, Ladder


@dataclass(frozen=True, slots=True)
class WakeFailure:
    """Why a wake could not be sent, in a sentence; `until`: when the provider asks us to try again.

    `is_unreachable`: it did not arrive (no connection, no response, 5xx), and is repeated until it does."""

    error: str
    until: Instant | None = None
    is_unreachable: bool = False


def wake_failure(failure: ReadFailure) -> WakeFailure:
    """The failure of a request that was a wake."""
    is_unreachable = failure.kind == "unreachable"
    return WakeFailure(failure.error, None if is_unreachable else failure.until, is_unreachable)


class QuotaProvider(Protocol):
    """One key of one provider. Nothing it returns ever contains the key."""

    @property
    def mark(self) -> str:
        """Identifies the key without revealing it: equal for two slots with the same key."""
        ...

    @property
    def can_wake(self) -> bool: ...

    @property
    def has_statistics(self) -> bool: ...

    async def read(self, action: str) -> Reading | ReadFailure:
        """Read the quota with one request; `action` is its name in the log."""
        ...

    async def wake(self, action: str, fire: Fire, ladder: Ladder) -> WakeFailure | None:
        """Send a request that starts the window; None if it was accepted. Only a reading can show that it runs."""
        ...

    async def statistics(self, reading: Reading, *, now: Instant) -> Mapping[str, Any] | ReadFailure:
        """Calls, tokens and tools, for display; JSON names."""
        ...

    async def close(self) -> None: ...
