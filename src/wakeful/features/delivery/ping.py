"""The ping: a request to a monitor at a regular interval, as long as the clock works.

It is one chore of the store, so several nodes send only one. It is claimed in the tick's transaction and sent after the
commit: if the store cannot be written or the clock is stuck, nothing is sent. It is suppressed while anything is
overdue by more than a minute, because the clock then ticks without working. A missing ping at the monitor means that
something is wrong with Wakeful.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from wakeful.core.delivery.alert_rules import AlertTerms
from wakeful.core.time.instants import MINUTE, SECOND, Duration, Instant
from wakeful.integrations.net.exchange import Exchanges, NoAnswer, NoConnection, NotAllowed, Request
from wakeful.ports.chores import Chore, Left, StillHeld, Work
from wakeful.ports.clock import Clock
from wakeful.ports.exchange import ExchangeListener, RequestContext
from wakeful.ports.meta import Meta
from wakeful.ports.outbox import ALARM_DELIVERY, ALARM_INCIDENT, ALARM_PING
from wakeful.ports.store import Alarm, Store, Tx

log = logging.getLogger("wakeful.delivery")

REF: Final = 1
SENT_AT: Final = "ping_sent_at"
SEND_WITHIN: Final[Duration] = 10 * SECOND
OVERDUE_MAX: Final[Duration] = MINUTE
HELD_BACK: Final[Duration] = 10 * SECOND
"""When overdue alarms are checked again."""


class LastPing(NamedTuple):
    """The subject of the chore."""

    sent_at: Instant | None


class Ping(Chore[LastPing]):
    """The chore. Its service sets the alarm."""

    kind = ALARM_PING
    timeout = 15 * SECOND

    def __init__(
        self, store: Store, clock: Clock, terms: Callable[[], AlertTerms], *, listener: ExchangeListener | None
    ) -> None:
        self._store = store
        self._clock = clock
        self._terms = terms
        self._exchanges = Exchanges(clock, listener)

    async def start(self) -> None:
        """Set the alarm if there is an address; an existing alarm keeps its time."""
        now = self._clock.read().now
        await self._store.write(lambda tx: self._set_up(tx, now))

    async def stop(self) -> None:
        await self._exchanges.close()

    async def changed(self, _old: object, _new: object) -> None:
        """The settings changed: there may be an address now, or another interval."""
        await self.start()

    def due(self, tx: Tx, *, now: Instant, limit: int) -> Sequence[LastPing]:
        alarm = tx.alarms.by_refs(ALARM_PING, [REF]).get(REF)
        return [] if alarm is None or alarm.due_at is None or alarm.due_at > now else [self.lock(tx, REF)]

    def page(self, tx: Tx, *, after_id: int, limit: int) -> Sequence[LastPing]:
        return [self.lock(tx, REF)] if after_id < REF and tx.alarms.by_refs(ALARM_PING, [REF]) else []

    def lock(self, tx: Tx, ref: int) -> LastPing:
        sent_at = tx[Meta].value(SENT_AT)  # locks the name
        return LastPing(None if sent_at is None else int(sent_at))

    def ref_of(self, subject: LastPing) -> int:
        return REF

    def due_at(self, tx: Tx, subject: LastPing, *, now: Instant) -> Instant:
        return now if subject.sent_at is None else subject.sent_at + self._terms().ping_every

    def clamp(self, tx: Tx, subject: LastPing, *, now: Instant) -> LastPing:
        if subject.sent_at is not None and subject.sent_at > now:
            tx[Meta].set(SENT_AT, str(now))
            return LastPing(now)
        return subject

    def begin(self, tx: Tx, subject: LastPing, *, now: Instant) -> Work | Left | Instant:
        if self._terms().ping is None:  # another node may have the address
            return Left(None)
        due_at = tx.alarms.next_due_at(besides=[ALARM_DELIVERY, ALARM_INCIDENT, ALARM_PING])
        if due_at is not None and due_at < now - OVERDUE_MAX:
            return now + HELD_BACK
        tx[Meta].set(SENT_AT, str(now))  # before it is sent: the interval is that of its claims
        return Work("ping", self._send)

    def end(self, tx: Tx, subject: LastPing, result: None, *, now: Instant) -> None:
        """The next one is due an interval after this one was claimed."""

    def _set_up(self, tx: Tx, now: Instant) -> None:
        terms = self._terms()
        if terms.ping is None:
            return
        alarm = tx.alarms.by_refs(ALARM_PING, [REF]).get(REF)
        if alarm is None or alarm.due_at is None or alarm.due_at > now + terms.ping_every:
            tx.alarms.set_many([Alarm(ALARM_PING, REF, now, 1, None, 0)])

    async def _send(self, _: StillHeld) -> None:
        url = self._terms().ping
        if url is None:
            return
        request = Request("GET", url, read_max=64 * 1024, redirects_max=3, shown="the monitor")
        try:
            response = await self._exchanges.send(request, RequestContext("ping"), limit=SEND_WITHIN)
        except (NoAnswer, NoConnection, NotAllowed) as error:
            log.warning("ping to the monitor failed: %s", error)
            return
        if not response.is_ok:
            log.warning("the monitor refused the ping: %s", response.line)
