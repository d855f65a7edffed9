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
        """Record a schedule's owner, replacing an earlier one."""
        ...

    def by_ids(self, schedule_ids: Iterable[int]) -> dict[int, Ownership]:
        """The ownership of each of these schedules that has an owner."""
        ...

    def of_owner(self, owner: str) -> list[Ownership]:
        """An agent's existing schedules, by id."""
        ...

    def made_since(self, owner: str, since: Instant) -> list[Ownership]:
        """The schedules an agent made since `since`, including removed ones."""
        ...


class Proposals(Protocol):
    """Proposals: waiting for a person, or decided."""

    def add(self, row: Proposal) -> None: ...

    def get(self, proposal_id: str) -> Proposal | None:
        """A proposal by its id; locked in a write transaction."""
        ...

    def pending(self, *, now: Instant, owner: str | None = None) -> list[Proposal]:
        """Proposals that wait for a decision, in slug order."""
        ...

    def of_slug(self, slug: str, *, limit: int) -> list[Proposal]:
        """Proposals for one slug, newest first."""
        ...

    def rejected(self, owner: str, *, since: Instant) -> list[Proposal]:
        """An agent's proposals rejected since `since`, newest first."""
        ...

    def asked_since(self, owner: str, since: Instant) -> int:
        """How many proposals an agent made since `since`."""
        ...

    def wakes_pending(self, owner: str, *, since: Instant) -> int:
        """How many of an agent's `wake_me` requests since `since` wait for a person."""
        ...

    def save(self, rows: Sequence[Proposal]) -> None:
        """Update rows by their id."""
        ...

    def prune(self, *, before: Instant) -> int:
        """Remove decided proposals older than `before`."""
        ...
