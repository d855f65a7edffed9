"""Chores: work that has a due time and leaves no row in the ledger, such as a delivery attempt or a quota poll.

A feature says when a chore is due, what to perform then, and what its result changes. Claim, fence, deadline, recovery,
clock steps and how many run at a time are the engine's (`engine.chores`), the same for all kinds.

The subject of a chore is the row that it is about: an addressee, a slot, an incident. It is locked before anything is
read or written for it, and its claim is kept in its own columns, where nodes of 0.2 look for it too.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

from wakeful.core.time.instants import SECOND, Duration, Instant
from wakeful.ports.store import Tx

Subject = TypeVar("Subject")


class ChoreClaim(NamedTuple):
    """The claim on a subject, as stored."""

    fence: Any  # differs after a claim that the result of an older one must not overwrite
    until: Instant | None  # when the work in progress is presumed lost; None: nothing is in progress


StillHeld: TypeAlias = Callable[[Tx], Any]
"""The subject, locked; None if the work has lost its claim, or the subject is gone."""


class Work(NamedTuple):
    """What to perform after the commit of the claim; the result goes to `Chore.end`."""

    name: str  # for the log: "poll of slot main"
    perform: Callable[[StillHeld], Awaitable[Any]]


class Left(NamedTuple):
    """It is due, and this node leaves it to others. The alarm stays as it is."""

    again_at: Instant | None  # when to look again at the latest; None: when something else happens


def rings_at(claim: ChoreClaim | None, due_at: Instant | None) -> Instant | None:
    """When the alarm of a chore rings: when its claim expires, or when it is due."""
    return due_at if claim is None or claim.until is None else claim.until


class Chore(Protocol[Subject]):
    """One kind of chore. A chore that keeps its claim in no column needs only what has no body here."""

    @property
    def kind(self) -> str:
        """The kind of its alarm."""
        ...

    @property
    def timeout(self) -> Duration:
        """When its work is cancelled."""
        ...

    @property
    def margin(self) -> Duration:
        """How long after that its claim expires."""
        return 30 * SECOND

    @property
    def is_single(self) -> bool:
        """Whether work that has lost its claim still keeps this process from working on the same subject. Its fences
        must grow."""
        return False

    def due(self, tx: Tx, *, now: Instant, limit: int) -> Sequence[Subject]:
        """Subjects whose alarm is due, oldest first, locked."""
        ...

    def page(self, tx: Tx, *, after_id: int, limit: int) -> Sequence[Subject]:
        """All subjects that may have an alarm, ordered by id, locked."""
        ...

    def lock(self, tx: Tx, ref: int) -> Subject | None:
        """The subject with this id, locked."""
        ...

    def ref_of(self, subject: Subject) -> int:
        """The id of a subject, which its alarm refers to."""
        ...

    def due_at(self, tx: Tx, subject: Subject, *, now: Instant) -> Instant | None:
        """When it is due, from stored facts and without regard to its claim."""
        ...

    def begin(self, tx: Tx, subject: Subject, *, now: Instant) -> "Work | Left | Instant | None":
        """It is due: what to perform, or when to look again. It does not write the subject itself."""
        ...

    def end(self, tx: Tx, subject: Subject, result: Any, *, now: Instant) -> None:
        """Record the result. The claim was still held, and is released already. Without a claim of its own, it checks
        whether the result still applies."""
        ...

    def late(self, tx: Tx, subject: Subject, result: Any, *, now: Instant) -> None:
        """The claim was lost: record what is true under any claim."""
        return

    def lost(self, tx: Tx, subject: Subject, *, now: Instant) -> None:
        """A claim expired: the result of its work was never recorded. It may be due again."""
        return

    def clamp(self, tx: Tx, subject: Subject, *, now: Instant) -> Subject:
        """The clock went back: store facts from later than `now` as `now`. (Limiting them whenever the due time is
        derived would postpone it each time.)"""
        return subject

    def claim_of(self, subject: Subject) -> ChoreClaim | None:
        """Its claim. None: this kind has no columns for it, and the time of its alarm is all that keeps others away."""
        return None

    def save_claim(self, tx: Tx, subject: Subject, until: Instant | None, *, is_new: bool) -> Subject:
        """Store until when it is claimed; a new claim gets a fence of its own."""
        return subject
