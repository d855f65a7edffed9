"""Delivery attempts: a chore of each addressee, and the result of each send.

The claim is written before anything else (`engine.chores`). The `sending` mark follows right before the channel is
called, and counts the attempt: a process that ended before it has sent nothing, so its claim is no attempt
(`core.delivery.retries`). The channel's result is recorded only under that claim, with one exception: that a message
arrived is true under any claim, and recording it spares the person a second copy.

When several nodes share a store, a channel may exist on only some of them: each node has its own settings, and a
channel registered by a program exists only in that program. A node without the channel leaves due deliveries to the
nodes that have it. If none of them sends within `MISSING_GRACE`, the channel is reported as missing by a node that has
another channel to send the alert through. If there is no such node either, the alert goes to the inbox.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final, NamedTuple, TypeAlias

from wakeful.core.delivery.retries import (
    STEADY_AFTER,
    DeliveryLimits,
    is_last,
    retry_at,
    retry_delay,
    steady_at,
    too_old,
)
from wakeful.core.run.effects import Alert, Effect, Recovered
from wakeful.core.time.instants import MINUTE, SECOND, Duration, Instant, format_duration
from wakeful.features.delivery.incidents import has_usable, of_channel
from wakeful.features.delivery.queue import claim_of, due_at, report
from wakeful.features.delivery.registry import ChannelRegistry
from wakeful.features.delivery.text import undelivered
from wakeful.integrations.net.exchange import within
from wakeful.integrations.system.text import one_line
from wakeful.ports import events
from wakeful.ports.channel import Channel, Outcome, OutgoingMessage, Preparable, Refused, Sent, Unsent
from wakeful.ports.chores import Chore, ChoreClaim, Left, StillHeld, Work
from wakeful.ports.clock import Clock
from wakeful.ports.event import EventKind
from wakeful.ports.event_data import DeliveryChanged
from wakeful.ports.live import Live
from wakeful.ports.outbox import ALARM_DELIVERY, Addressee, Addressees, Deliveries, Delivery
from wakeful.ports.store import Store, StoreUnavailable, Tx

log = logging.getLogger("wakeful.delivery")

SEND_WITHIN: Final[Duration] = 50 * SECOND
MISSING_WAIT: Final[Duration] = 30 * SECOND
"""How soon a missing channel is checked again."""

MISSING_GRACE: Final[Duration] = 2 * MINUTE
"""How long a channel may be missing before people are alerted: settings are edited, programs start, another node may
have it.

Longer than any node may be busy with one send."""

REPORT_GRACE: Final[Duration] = 2 * MISSING_GRACE
"""`MISSING_GRACE` for a node whose alert could only go to the inbox: it gives nodes with a channel time to report
it."""

LEFT_LOOK: Final[Duration] = SECOND
"""How soon deliveries left to other nodes are checked again."""

DEFERRED_BY: Final[Duration] = MINUTE
"""How long the part of the backlog that exceeds the startup budget waits."""

_STEPS_MAX: Final = 100  # deliveries of one addressee that are dead-lettered in one ring

Traced: TypeAlias = Callable[[OutgoingMessage], Awaitable[OutgoingMessage]]
"""Adds the `traceparent` of a delivery whose run is traced."""


class Attempt(NamedTuple):
    """What became of a send."""

    delivery_id: int
    outcome: Outcome | None  # None: it was not sent


class Attempts(Chore[Addressee]):
    """Sends deliveries; an addressee gets them one after another."""

    kind = ALARM_DELIVERY
    timeout = MINUTE
    margin = 15 * SECOND  # a person waits
    is_single = True

    def __init__(
        self,
        registry: ChannelRegistry,
        limits: Live[DeliveryLimits],
        store: Store,
        clock: Clock,
        *,
        public_id: Callable[[Delivery], str],
        apply: Callable[[Tx, Effect, Instant], bool],
        is_alone: bool = True,
        traced: Traced | None = None,
    ) -> None:
        self._registry = registry
        self._limits = limits
        self._store = store
        self._clock = clock
        self._public_id = public_id
        self._apply = apply
        self._traced = traced
        self._is_alone = is_alone  # no other node can be alive
        self._left_over = 0  # deliveries up to this id existed before this process
        self._recovered_by: Instant = 0
        self._started_at: Instant = 0

    def begin_recovery(self, left_over: int, now: Instant) -> None:
        """Send the backlog of earlier processes within a budget, so that a start does not flood people."""
        self._left_over = left_over
        self._started_at = now
        self._recovered_by = now + self._limits.value.recovery_budget

    # --- the chore ---------------------------------------------------------------------------------------------------

    def due(self, tx: Tx, *, now: Instant, limit: int) -> Sequence[Addressee]:
        return tx[Addressees].due(now=now, limit=limit)

    def page(self, tx: Tx, *, after_id: int, limit: int) -> Sequence[Addressee]:
        return tx[Addressees].page(after_id=after_id, limit=limit)

    def lock(self, tx: Tx, ref: int) -> Addressee | None:
        return tx[Addressees].lock([ref]).get(ref)

    def ref_of(self, subject: Addressee) -> int:
        return subject.addressee_id

    def claim_of(self, subject: Addressee) -> ChoreClaim:
        return claim_of(subject)

    def save_claim(self, tx: Tx, subject: Addressee, until: Instant | None, *, is_new: bool) -> Addressee:
        subject = subject._replace(fence=subject.fence + is_new, claimed_until=until)
        tx[Addressees].save(subject)
        return subject

    def due_at(self, tx: Tx, subject: Addressee, *, now: Instant) -> Instant | None:
        return due_at(tx, subject)

    def clamp(self, tx: Tx, subject: Addressee, *, now: Instant) -> Addressee:
        """Nothing waits longer than it would from now: neither the first in line nor those behind it."""
        head = tx[Deliveries].head(subject.addressee_id)
        if head is not None:
            tx[Deliveries].hurry(subject.addressee_id, now=now)
            soon = min(head.next_attempt_at or now, now + retry_delay(head.attempts))
            tx[Deliveries].save(head._replace(next_attempt_at=soon))
        return subject

    def begin(self, tx: Tx, subject: Addressee, *, now: Instant) -> Work | Left | Instant | None:
        """Send the first delivery in line; those before it are given up, and one whose channel is missing waits."""
        for _ in range(_STEPS_MAX):
            head = tx[Deliveries].head(subject.addressee_id)
            if head is None:
                break
            reason = self._reason_to_give_up(head, now)
            if reason is not None:
                self._dead_letter(tx, head, reason, now)
            elif (head.next_attempt_at or 0) > now:
                break
            else:
                return self._begin(tx, head, now)
        return due_at(tx, subject)

    def end(self, tx: Tx, subject: Addressee, result: Attempt, *, now: Instant) -> None:
        head = tx[Deliveries].get(result.delivery_id)
        if result.outcome is not None and head is not None and head.status == "pending":
            self._settle(tx, head, result.outcome, now)

    def late(self, tx: Tx, subject: Addressee, result: Attempt, *, now: Instant) -> None:
        if isinstance(result.outcome, Sent):
            self.end(tx, subject, result, now=now)

    def lost(self, tx: Tx, subject: Addressee, *, now: Instant) -> None:
        """It waits since now: whichever node has the channel gets the whole `MISSING_GRACE` again."""
        head = tx[Deliveries].head(subject.addressee_id)
        if head is not None and (head.next_attempt_at or 0) < now:
            tx[Deliveries].save(head._replace(next_attempt_at=now))

    # --- the first in line -------------------------------------------------------------------------------------------

    def _reason_to_give_up(self, head: Delivery, now: Instant) -> str | None:
        """Why the delivery is dead-lettered without another attempt."""
        limits = self._limits.value
        if now >= head.expires_at:
            return too_old(head.expires_at - head.enqueued_at, head.last_error)
        if is_last(head.attempts, limits.retries_max):
            return head.last_error or "the process ended during its last attempt"
        return None

    def _begin(self, tx: Tx, head: Delivery, now: Instant) -> Work | Left | Instant:
        channel = self._registry.get(head.channel)
        if channel is None:
            return Left(now + LEFT_LOOK) if self._may_be_elsewhere(tx, head, now) else self._miss(tx, head, now)
        if head.delivery_id <= self._left_over and self._recovered_by <= now < self._recovered_by + DEFERRED_BY:
            return self._defer(tx, head, self._recovered_by + DEFERRED_BY)
        steady = steady_at(head.unsent_claims, started_at=self._started_at, now=now)
        if steady is not None:
            return self._defer(tx, head._replace(last_error=self._held_back(head)), steady)
        tx[Deliveries].save(head._replace(unsent_claims=head.unsent_claims + 1))
        perform = partial(self._perform, channel, self._message(head), head.delivery_id)
        return Work(f"delivery {head.delivery_id}", perform)

    def _defer(self, tx: Tx, head: Delivery, until: Instant) -> Instant:
        moved = head._replace(next_attempt_at=until)
        tx[Deliveries].save(moved)
        _report(tx, events.DELIVERY_DEFERRED, moved)
        return min(until, moved.expires_at)

    def _held_back(self, head: Delivery) -> str:
        """Why it waits: the processes before this one ended in a row before they could send it, and this one is
        young."""
        return (
            f"the process ended {head.unsent_claims} times in a row before this was sent, so it waits until the "
            f"process has been up for {format_duration(STEADY_AFTER)}; "
            f"to send it now: wakeful outbox retry {self._public_id(head)}"
        )

    def _may_be_elsewhere(self, tx: Tx, head: Delivery, now: Instant) -> bool:
        """Whether another live node may have the channel, or one to report it missing, and has not had time yet."""
        if self._is_alone:
            return False
        grace = MISSING_GRACE if has_usable(tx, self._registry, besides=head.channel) else REPORT_GRACE
        if now - (head.next_attempt_at or 0) >= grace:
            return False
        return sum(node.voided_at is None and node.lease_until > now for node in tx.nodes.all()) > 1

    def _miss(self, tx: Tx, head: Delivery, now: Instant) -> Instant:
        """Its channel is missing: it waits until the channel is back, or until the delivery is too old."""
        who = "there is no" if self._is_alone else "no running node has a"
        error = f"{who} channel {head.channel!r}; add [channels.{head.channel}], register it, or discard this delivery"
        moved = head._replace(next_attempt_at=now + MISSING_WAIT, last_error=error)
        tx[Deliveries].save(moved)
        if head.last_error != error:
            _report(tx, events.DELIVERY_MISSING, moved)
        # A delivery queued in the future is not known to be new: the clock was set back since.
        if not 0 <= now - head.enqueued_at < MISSING_GRACE:
            self._apply(tx, Alert(of_channel(head.channel), error), now)
        return min(now + MISSING_WAIT, moved.expires_at)

    def _message(self, head: Delivery) -> OutgoingMessage:
        return OutgoingMessage(
            self._public_id(head),
            head.channel,
            head.recipient,
            head.text,
            head.slug,
            head.run_id,
            head.enqueued_at,
            head.parts_sent,
        )

    # --- sending -----------------------------------------------------------------------------------------------------

    async def _perform(
        self, channel: Channel, message: OutgoingMessage, delivery_id: int, still_held: StillHeld
    ) -> Attempt:
        message = message if self._traced is None else await self._traced(message)
        await self._prepare(channel)
        may_be_sent = await self._marked(partial(self._mark, still_held, delivery_id))
        return Attempt(delivery_id, await self._send(channel, message) if may_be_sent else None)

    async def _prepare(self, channel: Channel) -> None:
        if isinstance(channel, Preparable):
            try:
                await channel.prepare()
            except Exception:  # sending reports what is wrong
                log.debug("a channel could not be prepared", exc_info=True)

    async def _marked(self, mark: Callable[[Tx], bool]) -> bool:
        while True:  # until the deadline of the side task
            try:
                return await self._store.write(mark)
            except StoreUnavailable:
                await self._clock.sleep(SECOND)

    def _mark(self, still_held: StillHeld, delivery_id: int, tx: Tx) -> bool:
        """Record that it is being sent, which counts the attempt; False if it may not be sent any more."""
        if still_held(tx) is None:
            return False
        head = tx[Deliveries].get(delivery_id)
        if head is None or head.status != "pending":
            return False
        if head.unsent_claims:  # otherwise it was marked, and the answer of that commit was lost
            tx[Deliveries].save(head._replace(attempts=head.attempts + 1, unsent_claims=0))
        return True

    async def _send(self, channel: Channel, message: OutgoingMessage) -> Outcome:
        try:
            return await within(self._clock, SEND_WITHIN, channel.send(message))
        except TimeoutError:
            return Unsent(f"{message.channel}: no answer within {SEND_WITHIN // SECOND} s")
        except Exception as error:  # a failing channel must not affect the others (L9)
            log.debug("channel %s failed", message.channel, exc_info=True)
            return Unsent(one_line(f"{type(error).__name__}: {error}"))

    def _settle(self, tx: Tx, head: Delivery, outcome: Outcome, now: Instant) -> None:
        match outcome:
            case Sent():
                moved = head._replace(status="delivered", next_attempt_at=None, ended_at=now, last_error=None)
                tx[Deliveries].save(moved)
                _report(tx, events.DELIVERY_DELIVERED, moved)
                self._apply(tx, Recovered((of_channel(head.channel),)), now)
            case Refused(error=error):
                self._dead_letter(tx, head, error, now)
            case Unsent(error=error, retry_at=asked, parts_sent=parts):
                head = head._replace(last_error=error, parts_sent=parts)
                if is_last(head.attempts, self._limits.value.retries_max):
                    self._dead_letter(tx, head, error, now)
                    return
                moved = head._replace(next_attempt_at=retry_at(head.attempts, now=now, asked=asked))
                tx[Deliveries].save(moved)
                _report(tx, events.DELIVERY_RETRYING, moved)

    def _dead_letter(self, tx: Tx, head: Delivery, error: str, now: Instant) -> None:
        """Move the delivery to the dead letters, content included, and alert people."""
        moved = head._replace(status="dead", last_error=error, next_attempt_at=None, ended_at=now)
        tx[Deliveries].save(moved)
        _report(tx, events.DELIVERY_DEAD, moved)
        self._apply(tx, Alert(of_channel(head.channel), undelivered(moved, self._public_id(head))), now)


def _report(tx: Tx, event: EventKind[DeliveryChanged], row: Delivery) -> None:
    report(
        tx,
        event,
        row,
        row.delivery_id,
        error=row.last_error if event is not events.DELIVERY_DELIVERED else None,
        next_attempt_at=row.next_attempt_at,
        attempts=row.attempts,
    )
