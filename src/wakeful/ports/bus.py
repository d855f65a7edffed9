"""The bus in the store: what processes that share a store tell one another of what they did, while somebody watches.

It carries hints for people who look on, never anything that is decided upon. A sender takes its number from a counter
inside the publishing transaction, so numbers have no gaps and appear in the order of their commits: whoever reads from
a number on misses nothing, and sees when what it wanted is no longer kept.
"""

from typing import NamedTuple, Protocol

from wakeful.core.time.instants import Instant


class Relayed(NamedTuple):
    """Events that one process told the others, in one piece."""

    seq: int
    sender: str
    events: str | None  # JSON, see `telemetry.relay`; None: the reader's own


class Bus(Protocol):
    """Who watches, and what they are told."""

    def watch(self, watcher: str, *, now: Instant, until: Instant) -> int:
        """Somebody watches there until then, and whoever watched until before `now` is forgotten; answers the number
        of what was told last."""
        ...

    def is_watched(self, *, now: Instant, but: str) -> bool:
        """Whether anybody watches, apart from this one."""
        ...

    def publish(self, sender: str, events: str, *, now: Instant, keep_from: Instant) -> int:
        """Tell the others, under the next number, which is answered; a few of those told before `keep_from` go."""
        ...

    def after(self, seq: int, *, reader: str, limit: int) -> list[Relayed]:
        """What was told after this number, oldest first; the reader's own without its text."""
        ...
