"""Delivery attempts: the alarms of addressees, and the result of each send.

A claim is written before anything else: the fence is incremented, and the alarm moves to the end of the claim. The
`sending` mark follows right before the channel is called, and counts the attempt: a process that ended before it has
sent nothing, so its claim is no attempt (`core.delivery.retries`). The channel's result is recorded only under that
fence, with one exception: that a message arrived is true regardless of the fence, and recording it spares the person a
second copy.

When several nodes share a store, a channel may exist on only some of them: each node has its own settings, and a
channel registered by a program exists only in that program. A node without the channel leaves due deliveries to the
nodes that have it. If none of them sends within `MISSING_GRACE`, the channel is reported as missing by a node that has
another channel to send the alert through. If there is no such node either, the alert goes to the inbox.
"""

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, Literal, TypeAlias

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
from wakeful.features.delivery.queue import report, set_alarm
from wakeful.features.delivery.registry import ChannelRegistry
from wakeful.features.delivery.text import undelivered
from wakeful.integrations.net.exchange import within
from wakeful.integrations.system.text import one_line
from wakeful.ports import events
from wakeful.ports.channel import Channel, Outcome, OutgoingMessage, Preparable, Refused, Sent, Unsent
from wakeful.ports.clock import Clock
from wakeful.ports.event import EventKind
from wakeful.ports.event_data import DeliveryChanged
from wakeful.ports.handlers import Note, RingResult, SideTask
from wakeful.ports.live import Live
from wakeful.ports.outbox import ALARM_DELIVERY, Addressee, Addressees, Deliveries, Delivery
from wakeful.ports.store import Store, StoreUnavailable, Tx

log = logging.getLogger("wakeful.delivery")

SENDS_MAX: Final = 64
"""The maximum number of concurrent sends in this process."""

SEND_WITHIN: Final[Duration] = 50 * SECOND
ERRAND_WITHIN: Final[Duration] = MINUTE
CLAIM: Final[Duration] = 75 * SECOND
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

Left: TypeAlias = Literal["left"]
LEFT: Final[Left] = "left"
"""The due delivery is left alone: another node may have the channel, or this one is still sending to the addressee."""


class Attempts:
    """Handles the alarms of addressees."""

    kind = ALARM_DELIVERY
    brings_runs = False

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
        # Claims of this process and when they expire, in monotonic time: what it has in flight. A wall clock that is
        # set, or a suspend, ends no claim, because the send continues. Recorded when a claim is made, although
        # that commit may fail, because the next claim may be made before the first send starts; a failed one expires.
        self._claims: dict[tuple[int, int], int] = {}
        self._left_over = 0  # deliveries up to this id existed before this process
        self._recovered_by: Instant = 0
        self._started_at: Instant = 0

    def begin_recovery(self, left_over: int, now: Instant) -> None:
        """Send the backlog of earlier processes within a budget, so that a start does not flood people."""
        self._left_over = left_over
        self._started_at = now
        self._recovered_by = now + self._limits.value.recovery_budget

    # --- alarms ------------------------------------------------------------------------------------------------------

    def ring(self, tx: Tx, *, now: Instant, due_by: Instant, limit: int, late_max: int, gap_reason: str) -> RingResult:
        monotonic = self._clock.read().monotonic
        for claim, until in list(self._claims.items()):
            if until <= monotonic:
                self._claims.pop(claim, None)
        room = min(SENDS_MAX - len(self._claims), limit)
        if room <= 0:
            return RingResult((), 0, full=[ALARM_DELIVERY])
        rows = tx[Addressees].due(now=due_by, limit=room)
        looks = [self._look(tx, row, now) for row in rows]
        side_tasks = [look for look in looks if isinstance(look, SideTask)]
        is_left = LEFT in looks
        is_full = len(rows) == room < limit or is_left
        return RingResult(
            (),
            len(rows) - looks.count(LEFT),
            side_tasks,
            full=[ALARM_DELIVERY] if is_full else (),
            again_at=now + LEFT_LOOK if is_left else None,
        )

    def turn_back(self, tx: Tx, *, now: Instant, after_id: int, limit: int) -> int | None:
        rows = tx[Addressees].page(after_id=after_id, limit=limit)
        for row in rows:
            self._pull_back_times(tx, row, now)
        return rows[-1].addressee_id if len(rows) == limit else None

    def recover(self, tx: Tx, *, now: Instant) -> None:
        after_id = 0
        while rows := tx[Addressees].page(after_id=after_id, limit=500):
            after_id = rows[-1].addressee_id
            for row in rows:
                if row.claimed_until is not None and not self._is_ours(row):
                    self._free(tx, row)

    # --- one addressee -----------------------------------------------------------------------------------------------

    def _pull_back_times(self, tx: Tx, row: Addressee, now: Instant) -> None:
        """Its times were computed on a clock that was ahead: pull them back so that nothing waits longer."""
        if row.claimed_until is not None:
            row = row._replace(claimed_until=min(row.claimed_until, now + CLAIM))
            tx[Addressees].save(row)
        head = tx[Deliveries].head(row.addressee_id)
        if head is not None:
            tx[Deliveries].hurry(row.addressee_id, now=now)  # the ones behind it too: each becomes first in line
            soon = min(head.next_attempt_at or now, now + retry_delay(head.attempts))
            tx[Deliveries].save(head._replace(next_attempt_at=soon))
        set_alarm(tx, row)

    def _look(self, tx: Tx, row: Addressee, now: Instant) -> SideTask | Left | None:
        """Claim the first delivery in line, correct the alarm, or leave both alone."""
        for _ in range(_STEPS_MAX):
            head = tx[Deliveries].head(row.addressee_id)
            if head is None or (row.claimed_until or 0) > now:
                break
            if row.claimed_until is not None and self._is_ours(row):  # the clock was set; the send continues
                row = row._replace(claimed_until=now + CLAIM)
                tx[Addressees].save(row)
                break
            if row.claimed_until is not None:  # its result was never recorded: if it was marked, it counts
                row = row._replace(claimed_until=None)
                tx[Addressees].save(row)
                head = head._replace(next_attempt_at=now)
                tx[Deliveries].save(head)
            reason = self._reason_to_give_up(head, now)
            if reason is not None:
                self._dead_letter(tx, head, reason, now)
                continue
            if (head.next_attempt_at or 0) > now:
                break
            return self._begin(tx, row, head, now)
        set_alarm(tx, row)
        return None

    def _is_ours(self, row: Addressee) -> bool:
        """Whether this process holds the claim and is still sending."""
        return (row.addressee_id, row.fence) in self._claims

    def _is_sending_to(self, row: Addressee) -> bool:
        """Whether a send of this process is in progress although it lost the claim: it was frozen or suspended until
        after the claim had expired, and another node took it. Claims above the row's fence were not committed."""
        return any(to == row.addressee_id and fence <= row.fence for to, fence in self._claims)

    def _reason_to_give_up(self, head: Delivery, now: Instant) -> str | None:
        """Why the delivery is dead-lettered without another attempt."""
        limits = self._limits.value
        if now >= head.expires_at:
            return too_old(head.expires_at - head.enqueued_at, head.last_error)
        if is_last(head.attempts, limits.retries_max):
            return head.last_error or "the process ended during its last attempt"
        return None

    def _begin(self, tx: Tx, row: Addressee, head: Delivery, now: Instant) -> SideTask | Left | None:
        channel = self._registry.get(head.channel)
        if channel is None:
            if self._may_be_elsewhere(tx, head, now):
                set_alarm(tx, row)
                return LEFT
            self._miss(tx, row, head, now)
            return None
        if head.delivery_id <= self._left_over and self._recovered_by <= now < self._recovered_by + DEFERRED_BY:
            moved = head._replace(next_attempt_at=self._recovered_by + DEFERRED_BY)
            tx[Deliveries].save(moved)
            set_alarm(tx, row)
            _report(tx, events.DELIVERY_DEFERRED, moved)
            return None
        if self._is_sending_to(row):  # the end of that send rings the bell
            set_alarm(tx, row)
            return LEFT
        if self._is_held_back(tx, row, head, now):
            return None
        row = row._replace(fence=row.fence + 1, claimed_until=now + CLAIM)
        head = head._replace(unsent_claims=head.unsent_claims + 1)
        tx[Addressees].save(row)
        tx[Deliveries].save(head)
        set_alarm(tx, row)
        self._claims[row.addressee_id, row.fence] = self._clock.read().monotonic + CLAIM
        perform = partial(self._perform, channel, self._message(head), row, head.delivery_id)
        return SideTask(f"delivery {head.delivery_id}", perform, ERRAND_WITHIN)

    def _is_held_back(self, tx: Tx, row: Addressee, head: Delivery, now: Instant) -> bool:
        """Whether the processes before this one ended in a row before they could send it, and this one is young."""
        until = steady_at(head.unsent_claims, started_at=self._started_at, now=now)
        if until is None:
            return False
        error = (
            f"the process ended {head.unsent_claims} times in a row before this was sent, so it waits until the "
            f"process has been up for {format_duration(STEADY_AFTER)}; "
            f"to send it now: wakeful outbox retry {self._public_id(head)}"
        )
        moved = head._replace(next_attempt_at=until, last_error=error)
        tx[Deliveries].save(moved)
        set_alarm(tx, row)
        _report(tx, events.DELIVERY_DEFERRED, moved)
        return True

    def _may_be_elsewhere(self, tx: Tx, head: Delivery, now: Instant) -> bool:
        """Whether another live node may have the channel, or one to report it missing, and has not had time yet."""
        if self._is_alone:
            return False
        grace = MISSING_GRACE if has_usable(tx, self._registry, besides=head.channel) else REPORT_GRACE
        if now - (head.next_attempt_at or 0) >= grace:
            return False
        return sum(node.voided_at is None and node.lease_until > now for node in tx.nodes.all()) > 1

    def _miss(self, tx: Tx, row: Addressee, head: Delivery, now: Instant) -> None:
        """Its channel is missing: it waits until the channel is back, or until the delivery is too old."""
        who = "there is no" if self._is_alone else "no running node has a"
        error = f"{who} channel {head.channel!r}; add [channels.{head.channel}], register it, or discard this delivery"
        moved = head._replace(next_attempt_at=now + MISSING_WAIT, last_error=error)
        tx[Deliveries].save(moved)
        set_alarm(tx, row)
        if head.last_error != error:
            _report(tx, events.DELIVERY_MISSING, moved)
        # A delivery queued in the future is not known to be new: the clock was set back since.
        if not 0 <= now - head.enqueued_at < MISSING_GRACE:
            self._apply(tx, Alert(of_channel(head.channel), error), now)

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
        self, channel: Channel, message: OutgoingMessage, row: Addressee, delivery_id: int
    ) -> Note | None:
        place = row.addressee_id, row.fence
        try:
            message = message if self._traced is None else await self._traced(message)
            await self._prepare(channel)
            if not await self._marked(partial(self._mark, *place, delivery_id)):
                self._claims.pop(place, None)
                return None
            outcome = await self._send(channel, message)
        except BaseException:  # nothing is under way here: the claim expires
            self._claims.pop(place, None)
            raise
        return partial(self._note, *place, delivery_id, outcome, self._clock.read().now)

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

    def _mark(self, addressee_id: int, fence: int, delivery_id: int, tx: Tx) -> bool:
        """Record that it is being sent, which counts the attempt; False if it may not be sent any more."""
        row = tx[Addressees].lock([addressee_id]).get(addressee_id)
        if row is None or row.fence != fence or row.claimed_until is None:
            return False
        head = tx[Deliveries].get(delivery_id)
        if head is None or head.status != "pending":
            self._free(tx, row)
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

    def _note(self, addressee_id: int, fence: int, delivery_id: int, outcome: Outcome, now: Instant, tx: Tx) -> None:
        """Record the result."""
        self._claims.pop((addressee_id, fence), None)
        row = tx[Addressees].lock([addressee_id]).get(addressee_id)
        if row is None:
            return
        head = tx[Deliveries].get(delivery_id)
        is_ours = row.fence == fence and row.claimed_until is not None
        if head is not None and head.status == "pending" and (is_ours or isinstance(outcome, Sent)):
            self._settle(tx, head, outcome, now)
        if is_ours:
            self._free(tx, row)

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

    def _free(self, tx: Tx, row: Addressee) -> None:
        """Release the claim: the delivery now first in line may be tried."""
        row = row._replace(claimed_until=None)
        tx[Addressees].save(row)
        set_alarm(tx, row)


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
