"""The bus in the store: how processes that share a store inform each other of events, while someone watches.

It carries hints for live views only; nothing is decided by it. A sender takes its sequence number from a counter inside
the publishing transaction, so numbers have no gaps and appear in the order of their commits: a reader that continues
from a number misses nothing, and can see when older events are no longer kept.
"""

from typing import NamedTuple, Protocol

from wakeful.core.time.instants import Instant


class Relayed(NamedTuple):
    """Events that one process published together."""

    seq: int
    sender: str
    events: str | None  # JSON, see `observe.relay`; None for the reader's own events


class Bus(Protocol):
    """The watchers and their events."""

    def watch(self, watcher: str, *, now: Instant, until: Instant) -> int:
        """Register a watcher until `until`, and remove watchers that expired before `now`; returns the number of the
        last published events."""
        ...

    def is_watched(self, *, now: Instant, but: str) -> bool:
        """Whether there is another watcher than this one."""
        ...

    def publish(self, sender: str, events: str, *, now: Instant, keep_from: Instant) -> int:
        """Publish under the next number and return it; also deletes some events older than `keep_from`."""
        ...

    def after(self, seq: int, *, reader: str, limit: int) -> list[Relayed]:
        """Events after this number, oldest first; the reader's own without their text."""
        ...
