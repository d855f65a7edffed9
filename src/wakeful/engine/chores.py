"""Chores: one claim, fence, deadline, recovery and turn-back for everything that leaves no row in the ledger.

A claim moves the alarm to the time at which it expires, so that it rings again whatever happens to this process. The
result is written in a transaction of its own, if the claim is still held. A clock that is set ends no claim of this
process, because its work continues.
"""

from functools import partial
from typing import Any, Final

from wakeful.core.time.instants import SECOND, Duration, Instant
from wakeful.ports.chores import Chore, ChoreClaim, Left, Work, rings_at
from wakeful.ports.clock import Clock
from wakeful.ports.handlers import Note, RingResult, SideTask
from wakeful.ports.store import Alarm, Tx

AT_ONCE_MAX: Final = 64
"""How much work of one kind this process performs at a time."""

LOOK_AGAIN: Final[Duration] = SECOND
"""How soon a subject is looked at again while earlier work of this process on it goes on."""

PAGE: Final = 500


class ChoreAlarms:
    """Rings the alarms of one kind of chore. It is an `AlarmHandler`."""

    brings_runs = False

    def __init__(self, chore: Chore[Any], clock: Clock) -> None:
        self.kind = chore.kind
        self._chore = chore
        self._clock = clock
        # The claims of this process and when they expire, in monotonic time: what it has in progress. Recorded when a
        # claim is made, although that commit may fail, because the next claim may be made before the work starts; one
        # that failed expires.
        self._in_progress: dict[tuple[int, Any], int] = {}  # by subject and fence

    def ring(self, tx: Tx, *, now: Instant, due_by: Instant, limit: int, late_max: int, gap_reason: str) -> RingResult:
        monotonic = self._clock.read().monotonic
        self._in_progress = {key: until for key, until in self._in_progress.items() if until > monotonic}
        room = min(AT_ONCE_MAX - len(self._in_progress), limit)
        if room <= 0:
            return RingResult((), 0, full=[self.kind])
        subjects = self._chore.due(tx, now=due_by, limit=room)
        side_tasks: list[SideTask] = []
        left: list[Left] = []
        for subject in subjects:
            match self._look(tx, subject, now, monotonic):
                case Left() as leaves:
                    left.append(leaves)
                case SideTask() as side_task:
                    side_tasks.append(side_task)
                case at:
                    self._set_alarm(tx, subject, at)
        is_full = bool(left) or len(subjects) == room < limit
        again_at = min((leaves.again_at for leaves in left if leaves.again_at is not None), default=None)
        full = [self.kind] if is_full else []
        return RingResult((), len(subjects) - len(left), side_tasks, full=full, again_at=again_at)

    def turn_back(self, tx: Tx, *, now: Instant, after_id: int, limit: int) -> int | None:
        """No claim lasts longer than a new one would, and what is due is derived from facts that are not ahead."""
        subjects = self._chore.page(tx, after_id=after_id, limit=limit)
        latest = self._until(now)
        for subject in subjects:
            nearer = self._chore.clamp(tx, subject, now=now)
            claim = self._chore.claim_of(nearer)
            if claim is not None and claim.until is not None and claim.until > latest:
                nearer = self._chore.save_claim(tx, nearer, latest, is_new=False)
            self._follow(tx, nearer, now)
        return self._chore.ref_of(subjects[-1]) if len(subjects) == limit else None

    def recover(self, tx: Tx, *, now: Instant) -> None:
        """No other process can perform any: what is claimed is due again, except what this one still performs."""
        after_id = 0
        while subjects := self._chore.page(tx, after_id=after_id, limit=PAGE):
            after_id = self._chore.ref_of(subjects[-1])
            for subject in subjects:
                claim = self._chore.claim_of(subject)
                if self._is_ours(subject, claim) or (claim is not None and claim.until is None):
                    continue
                self._follow(tx, self._chore.save_claim(tx, subject, None, is_new=False), now)

    def _look(self, tx: Tx, subject: Any, now: Instant, monotonic: int) -> SideTask | Left | Instant | None:
        """Claim a subject if it is due; otherwise, when its alarm rings next."""
        claim = self._chore.claim_of(subject)
        if claim is not None and claim.until is not None:
            if claim.until > now:
                return claim.until
            if self._is_ours(subject, claim):  # the clock was set; the work continues
                self._chore.save_claim(tx, subject, self._until(now), is_new=False)
                return self._until(now)
            subject = self._chore.save_claim(tx, subject, None, is_new=False)
            self._chore.lost(tx, subject, now=now)
        due_at = self._chore.due_at(tx, subject, now=now)
        if due_at is None or due_at > now:
            return due_at
        if self._chore.is_single and self._is_busy(subject, claim):
            return Left(now + LOOK_AGAIN)
        begun = self._chore.begin(tx, subject, now=now)
        return self._claim(tx, subject, begun, now, monotonic) if isinstance(begun, Work) else begun

    def _claim(self, tx: Tx, subject: Any, work: Work, now: Instant, monotonic: int) -> SideTask:
        until = self._until(now)
        subject = self._chore.save_claim(tx, subject, until, is_new=True)
        self._set_alarm(tx, subject, until)
        key = _key(self._chore, subject)
        self._in_progress[key] = monotonic + until - now
        return SideTask(work.name, partial(self._perform, work, key), self._chore.timeout)

    async def _perform(self, work: Work, key: tuple[int, Any]) -> Note:
        try:
            result = await work.perform(partial(self._held, key))
        except BaseException:  # nothing is in progress here any more: the claim expires
            self._in_progress.pop(key, None)
            raise
        return partial(self._note, key, result, self._clock.read().now)

    def _note(self, key: tuple[int, Any], result: Any, now: Instant, tx: Tx) -> None:
        """Record the result, and when the subject is due next."""
        self._in_progress.pop(key, None)
        subject = self._chore.lock(tx, key[0])
        if subject is None:
            return
        if not self._is_held(subject, key):
            self._chore.late(tx, subject, result, now=now)
            return
        # Released first: what `end` writes derives the due time from the subject.
        self._chore.end(tx, self._chore.save_claim(tx, subject, None, is_new=False), result, now=now)
        ended = self._chore.lock(tx, key[0])
        if ended is not None:
            self._follow(tx, ended, now)

    def _held(self, key: tuple[int, Any], tx: Tx) -> Any:
        subject = self._chore.lock(tx, key[0])
        return subject if subject is not None and self._is_held(subject, key) else None

    def _is_held(self, subject: Any, key: tuple[int, Any]) -> bool:
        claim = self._chore.claim_of(subject)
        return claim is None or (claim.until is not None and claim.fence == key[1])

    def _is_ours(self, subject: Any, claim: ChoreClaim | None) -> bool:
        """Whether this process made the claim and still performs its work."""
        return (self._chore.ref_of(subject), None if claim is None else claim.fence) in self._in_progress

    def _is_busy(self, subject: Any, claim: ChoreClaim | None) -> bool:
        """Whether this process still works on the subject although it lost the claim: it was frozen or suspended until
        after the claim had expired. Claims above the stored fence were not committed."""
        ref = self._chore.ref_of(subject)
        return claim is not None and any(to == ref and fence <= claim.fence for to, fence in self._in_progress)

    def _follow(self, tx: Tx, subject: Any, now: Instant) -> None:
        due_at = self._chore.due_at(tx, subject, now=now)
        self._set_alarm(tx, subject, rings_at(self._chore.claim_of(subject), due_at))

    def _set_alarm(self, tx: Tx, subject: Any, at: Instant | None) -> None:
        tx.alarms.set_many([Alarm(self.kind, self._chore.ref_of(subject), at, 1, None, 0)])

    def _until(self, now: Instant) -> Instant:
        return now + self._chore.timeout + self._chore.margin


def _key(chore: Chore[Any], subject: Any) -> tuple[int, Any]:
    claim = chore.claim_of(subject)
    return chore.ref_of(subject), None if claim is None else claim.fence
