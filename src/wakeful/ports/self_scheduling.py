"""What agents own, and what they proposed, in the store."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from wakeful.core.self_scheduling.proposals import Ownership, Proposal
from wakeful.core.time.instants import Instant


class Ownerships(Protocol):
    """Schedules that agents made. A row stays when its schedule is removed, until that is forgotten."""

    def lock(self, owner: str) -> None:
        """Let no other transaction write for this agent until this one ends, so that its limits hold."""
        ...

    def add(self, row: Ownership) -> None:
        """Add one, replacing the one of that schedule."""
        ...

    def by_ids(self, schedule_ids: Iterable[int]) -> dict[int, Ownership]:
        """Those of these schedules that have one."""
        ...

    def of_owner(self, owner: str) -> list[Ownership]:
        """All of an agent whose schedules exist, by id."""
        ...

    def made_since(self, owner: str, since: Instant) -> list[Ownership]:
        """What an agent made since a time, removed schedules included."""
        ...


class Proposals(Protocol):
    """What waits for a person, and what was decided."""

    def add(self, row: Proposal) -> None: ...

    def get(self, proposal_id: str) -> Proposal | None:
        """One by its id, locked in a write."""
        ...

    def pending(self, *, now: Instant, owner: str | None = None) -> list[Proposal]:
        """Those that wait for a decision, in slug order."""
        ...

    def of_slug(self, slug: str, *, limit: int) -> list[Proposal]:
        """Those of one slug, the newest first."""
        ...

    def rejected(self, owner: str, *, since: Instant) -> list[Proposal]:
        """Those of an agent that a person rejected since a time, the newest first."""
        ...

    def asked_since(self, owner: str, since: Instant) -> int:
        """How many an agent made since a time."""
        ...

    def wakes_pending(self, owner: str, *, since: Instant) -> int:
        """How many `wake_me` of an agent since a time wait for a person."""
        ...

    def save(self, rows: Sequence[Proposal]) -> None:
        """Update rows by their id."""
        ...

    def prune(self, *, before: Instant) -> int:
        """Remove decided ones older than this."""
        ...
