"""The ping: a request to a monitor at a regular interval, as long as the clock works.

There is one alarm for it in the store, so the node that rings it sends the ping, and several nodes send only one. It
rings in the tick's transaction and is sent after the commit: if the store cannot be written or the clock is stuck,
nothing is sent. It is suppressed while anything is overdue by more than a minute, because the clock then ticks without
working. A missing ping at the monitor means that something is wrong with Wakeful.
"""

import logging
from collections.abc import Callable
from typing import Final

from wakeful.core.delivery.alert_rules import AlertTerms
from wakeful.core.time.instants import MINUTE, SECOND, Duration, Instant
from wakeful.integrations.net.exchange import Exchanges, NoAnswer, NoConnection, NotAllowed, Request
from wakeful.ports.clock import Clock
from wakeful.ports.exchange import ExchangeListener, RequestContext
from wakeful.ports.handlers import Note, RingResult, SideTask
from wakeful.ports.outbox import ALARM_DELIVERY, ALARM_INCIDENT, ALARM_PING
from wakeful.ports.store import Alarm, Store, Tx

log = logging.getLogger("wakeful.delivery")

REF: Final = 1
SEND_WITHIN: Final[Duration] = 10 * SECOND
ERRAND_WITHIN: Final[Duration] = 15 * SECOND
OVERDUE_MAX: Final[Duration] = MINUTE
HELD_BACK: Final[Duration] = 10 * SECOND
"""When overdue alarms are checked again."""


class PingAlarms:
    """Handles the ping's alarm."""

    kind = ALARM_PING
    brings_runs = False

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

    def ring(self, tx: Tx, *, now: Instant, due_by: Instant, limit: int, late_max: int, gap_reason: str) -> RingResult:
        alarm = tx.alarms.by_refs(ALARM_PING, [REF]).get(REF)
        terms = self._terms()
        if alarm is None or alarm.due_at is None or alarm.due_at > due_by:
            return RingResult((), 0)
        if terms.ping is None:  # another node may have the address
            return RingResult((), 0, full=[ALARM_PING])
        due_at = tx.alarms.next_due_at(besides=[ALARM_DELIVERY, ALARM_INCIDENT, ALARM_PING])
        if due_at is not None and due_at < now - OVERDUE_MAX:
            self._move(tx, now + HELD_BACK)
            return RingResult((), 1)
        self._move(tx, now + terms.ping_every)
        return RingResult((), 1, [SideTask("ping", self._send, ERRAND_WITHIN)])

    def turn_back(self, tx: Tx, *, now: Instant, after_id: int, limit: int) -> int | None:
        alarm = tx.alarms.by_refs(ALARM_PING, [REF]).get(REF)
        if alarm is not None and alarm.due_at is not None and alarm.due_at > now + self._terms().ping_every:
            self._move(tx, now)
        return None

    def recover(self, tx: Tx, *, now: Instant) -> None:
        """Nothing to recover: the alarm is in the store."""

    def _set_up(self, tx: Tx, now: Instant) -> None:
        alarm = tx.alarms.by_refs(ALARM_PING, [REF]).get(REF)
        terms = self._terms()
        if terms.ping is None:
            return
        if alarm is None or alarm.due_at is None or alarm.due_at > now + terms.ping_every:
            self._move(tx, now)

    def _move(self, tx: Tx, due_at: Instant) -> None:
        tx.alarms.set_many([Alarm(ALARM_PING, REF, due_at, 1, None, 0)])

    async def _send(self) -> Note | None:
        url = self._terms().ping
        if url is None:
            return None
        request = Request("GET", url, read_max=64 * 1024, redirects_max=3, shown="the monitor")
        try:
            response = await self._exchanges.send(request, RequestContext("ping"), limit=SEND_WITHIN)
        except (NoAnswer, NoConnection, NotAllowed) as error:
            log.warning("ping to the monitor failed: %s", error)
            return None
        if not response.is_ok:
            log.warning("the monitor refused the ping: %s", response.line)
        return None
