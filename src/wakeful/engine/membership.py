"""Membership: this node among the nodes that share a store.

A node enters by registering a new incarnation and writing a lease, renews the lease every few seconds, and leaves by
voiding it. Whoever renews also voids the nodes whose lease has expired and rescues the runs they left.
"""

import logging
from collections.abc import Callable
from typing import Final, NamedTuple

from wakeful.core.run.effects import Alert
from wakeful.core.schedule.labels import joined
from wakeful.core.time.instants import DAY, Duration, Instant, format_instant
from wakeful.engine.lease import Lease
from wakeful.engine.limits import JUMP_MIN, STEP_BACK_MIN, Limits
from wakeful.engine.orphans import OrphanInquiry
from wakeful.engine.recovery import note_clock, read_clock_high, rescue
from wakeful.engine.store_rollback import has_gone_back, mark
from wakeful.engine.this_node import ThisNode
from wakeful.engine.tick_gaps import note_leaving, note_tick, notice_silence
from wakeful.ports.clock import Clock, Moment
from wakeful.ports.handlers import AlarmHandler, EngineHooks
from wakeful.ports.meta import Meta
from wakeful.ports.store import STORE_ID, STORE_MARK, Store, StoreUnavailable, Tx

log = logging.getLogger("wakeful.engine")

BORN_AT: Final = "created_at"

_BEFORE_ALL: Final = -(2**62)
"""Lower than every id: cadences that belong to no schedule have negative ids."""
_OTHERS_MAX: Final = 100


class Identity(NamedTuple):
    """The name, host and process id of this node."""

    name: str
    host: str
    pid: int


class Load(NamedTuple):
    """What a node reports with its lease."""

    lag: Duration
    running: int
    capacity: int


class _ClockSet(Exception):
    """The clock was set to another time during a renewal: it is done again, by the new time."""


class Membership:
    """Enters, renews, rescues and leaves. `node_id` is None while this process does not hold the clock."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        hooks: EngineHooks,
        identity: Identity,
        limits: Limits,
        node: ThisNode,
        *,
        alert: Callable[[Alert, Instant], None],
    ) -> None:
        self._store = store
        self._clock = clock
        self._hooks = hooks
        self._identity = identity
        self._lease_length = limits.lease
        self._renew_every = limits.renew_every
        self._alert = alert
        self._node = node
        self._inquiry = OrphanInquiry(store, hooks, clock, self._on_inquiry_result)
        self._has_inquiry_result = False  # a target reported the result of a run of a dead node: rescue it now
        self._published = ("", frozenset[str]())
        self._renewed_at: Instant = 0
        self._was_set = False  # during the last renewal, which was not counted
        self._leases_known_at = 0  # monotonic: by then every live node has renewed by the current clock
        self.lease = Lease(clock, limits.lease, self._renew_now)
        self.node_id: int | None = None
        self.lease_until: Instant = 0  # as this node last wrote it
        self._unanswered: set[Instant] = set()  # earlier leases, by a clock that went back: the store may hold one
        self.renew_at = 0  # monotonic
        self.clock_high: Instant = 0  # the latest time known to this store
        self.ledger_days = limits.ledger_days
        self.labels = limits.labels  # as they will be at the next renewal
        self._born_at: Instant = 0
        self._store_id: str | None = None  # of the store that this node entered

    @property
    def kept_since(self) -> Instant:
        """No row in this store is older than this; a clock that shows an earlier time was not set yet."""
        return _kept_since(self._born_at)

    def is_clock_unset(self, now: Instant) -> bool:
        """Whether the clock is before the creation of the store, and so not set yet: nothing is planned by it."""
        return now < self.kept_since

    async def enter(self, moment: Moment, *, capacity: int) -> None:
        """Register as a new incarnation, and recover what earlier incarnations left."""
        published = self._node.terms, self.labels

        def enter(tx: Tx) -> tuple[int, Instant, Instant, int]:
            self._recognise(tx)
            node_id = tx.nodes.register(
                name=self._identity.name,
                host=self._identity.host,
                pid=self._identity.pid,
                now=moment.now,
                lease_until=moment.now + self._lease_length,
                capacity=capacity,
            )
            if self._store.is_exclusive:
                tx.nodes.void([n.node_id for n in tx.nodes.all() if n.node_id != node_id], now=moment.now)
                for handler in self._hooks.alarms:
                    _recover(handler, tx, moment.now)
            _publish(tx, node_id, *published, moment.now)
            born = tx[Meta].value(BORN_AT)
            if born is None:
                tx[Meta].set(BORN_AT, born := str(moment.now))
            if moment.now >= _kept_since(int(born)):  # otherwise the clock is not set yet and cannot measure a gap
                self._notice_silence(tx, moment.now, slept=0)
                note_tick(tx, moment.now)
            # The furthest planned instant counts too: a process may die before it records how far the clock got.
            ahead = tx.cadences.ahead_of(moment.now + STEP_BACK_MIN, after_id=0, limit=1)
            others = tx.cadences.ahead_of(moment.now + STEP_BACK_MIN, after_id=_BEFORE_ALL, limit=_OTHERS_MAX)
            ahead += [other for other in others if other.schedule_id < 0 and other.next_at is not None]
            high = max([read_clock_high(tx) or 0, *(cadence.planned_through for cadence in ahead)])
            if moment.now >= max(
                _kept_since(int(born)), high - STEP_BACK_MIN
            ):  # waiting runs without a cadence rely on it
                note_clock(tx, moment.now)
            return node_id, high, int(born), _advance(tx)

        self.node_id, self.clock_high, self._born_at, mark = await self._store.write(enter)
        await self._store.remember(mark)
        self._note_published(published)
        self._leases_known_at = moment.monotonic + self._lease_length
        self._hold_lease(moment)
        await self.rescue(moment.now)

    async def renew(self, moment: Moment, load: Load, *, stood_still: Duration = 0, slept: Duration = 0) -> bool:
        """Extend the lease, void dead nodes, and rescue their runs. Returns False if our own lease was taken."""
        node_id, published = self.node_id, (self._node.terms, self.labels)
        lost: list[Instant | None] = []  # the store was rolled back to that moment; None: another node recorded it
        lease_until = moment.now + self._lease_length
        if lease_until < self.lease_until:
            self._unanswered.add(lease_until)

        def renew(tx: Tx) -> tuple[bool, bool, int]:
            assert node_id is not None  # noqa: S101 - only a registered node renews
            self._recognise(tx)
            lost.clear()
            pruned_before = moment.now - self.ledger_days * DAY
            if has_gone_back(
                tx,
                node_id,
                lease_until=self.lease_until,
                pruned_before=pruned_before,
                unanswered=self._unanswered,
            ):
                lost.append(mark(tx, renewed_at=self._renewed_at, now=moment.now))
                return False, False, 0
            is_ours = tx.nodes.renew(
                node_id,
                now=moment.now,
                lease_until=lease_until,
                lag=load.lag,
                running=load.running,
                capacity=load.capacity,
            )
            if not is_ours:
                return False, False, 0
            took = self._took(moment)
            if not self.is_clock_unset(moment.now):
                if stood_still > 2 * self._renew_every:
                    self._notice_silence(tx, moment.now, slept=slept)
                note_tick(tx, moment.now)
            if self._published != published:
                _publish(tx, node_id, *published, moment.now)
            if not self.is_clock_unset(moment.now) and moment.now >= self.clock_high - STEP_BACK_MIN:
                note_clock(tx, moment.now)
            dead = self._expired(tx, moment, took)
            tx.nodes.void(dead, now=moment.now)
            return True, bool(dead) or bool(tx.nodes.with_leftovers()), _advance(tx)

        try:
            is_ours, is_work, reached = await self._store.write(renew)
        except _ClockSet:
            self._was_set, self.renew_at = True, moment.monotonic
            return True
        self._was_set = False
        if lost:
            self._report_rollback(lost[-1], moment.now)
        self.renew_at = moment.monotonic + self._renew_every
        if not is_ours:
            self.node_id = None
            self.lease.lose()
            return False
        self._note_published(published)
        self._hold_lease(moment)
        await self._store.remember(reached)
        if is_work:
            await self.rescue(moment.now)
        return True

    async def rescue_answered(self, now: Instant) -> None:
        """Settle the runs of dead nodes whose targets have reported since."""
        if self._has_inquiry_result and self.node_id is not None:
            await self.rescue(now)

    async def rescue(self, now: Instant) -> None:
        """Settle the runs that dead nodes left."""
        self._has_inquiry_result = False
        for alert in await rescue(self._store, self._hooks, self._inquiry, now=now):
            self._alert(alert, now)

    def doubt_leases(self, moment: Moment) -> None:
        """The clock jumped to `moment`: until they are renewed, leases of live nodes may lie behind or ahead of it."""
        self._leases_known_at = moment.monotonic + self._lease_length

    def turned_back(self, moment: Moment) -> None:
        """Everything is planned again from `moment`, to which the clock went back."""
        self.clock_high = moment.now
        self.doubt_leases(moment)

    async def leave(self) -> None:
        """Give up the lease and the clock."""
        await self._inquiry.close()
        node_id, self.node_id = self.node_id, None
        self.lease.lose()
        now = self._clock.read().now

        def leave(tx: Tx) -> None:
            if node_id is not None and tx.nodes.void([node_id], now=now):
                note_leaving(tx, now)

        if node_id is not None:
            try:
                await self._store.write(leave)
            except StoreUnavailable as error:
                log.warning("cannot record the shutdown; the lease will expire on its own: %s", error)
            await self._store.release_clock()

    def _took(self, moment: Moment) -> Duration | None:
        """How long ago `moment` was read; None if the clock was set to another time since. Renewing sets the clock of a
        node on PostgreSQL by the server's: if that was stepped, nothing is written or judged by the earlier reading,
        unless that happens at each renewal."""
        now = self._clock.read()
        took = now.monotonic - moment.monotonic
        if abs(now.now - moment.now - took) < JUMP_MIN:
            return took
        if self._was_set:
            return None
        raise _ClockSet

    def _expired(self, tx: Tx, moment: Moment, took: Duration | None) -> list[int]:
        """The other nodes whose leases are over, or were written by a clock that was ahead: no live node could hold
        such a lease. If this renewal waited for longer than a lease, any could, because the others went on."""
        if moment.monotonic < self._leases_known_at or took is None or took >= self._lease_length:
            return []
        beyond = moment.now + self._lease_length + STEP_BACK_MIN
        return [n.node_id for n in tx.nodes.expired(now=moment.now, beyond=beyond) if n.node_id != self.node_id]

    def _hold_lease(self, moment: Moment) -> None:
        self.renew_at = moment.monotonic + self._renew_every
        self._renewed_at, self.lease_until = moment.now, moment.now + self._lease_length
        self._unanswered.clear()
        self.lease.renew(moment)

    def _recognise(self, tx: Tx) -> None:
        """Refuse a database that is another store than the one this node entered: it was swapped."""
        found = tx[Meta].value(STORE_ID)
        if self._store_id is None:
            self._store_id = found
        if found != self._store_id:
            raise StoreUnavailable(
                f"the database is another store now ({found}; it was {self._store_id}); put the right one back, or "
                "restart this process to use the new one"
            )

    def _note_published(self, published: tuple[str, frozenset[str]]) -> None:
        self._published, self._node.labels_held = published, published[1]

    def _renew_now(self) -> None:
        """Renew before the next attempt starts: by our own clock the lease may have expired."""
        self.renew_at = self._clock.read().monotonic
        self._node.ring_bell()

    def _on_inquiry_result(self) -> None:
        self._has_inquiry_result = True
        self._node.ring_bell()

    def _notice_silence(self, tx: Tx, now: Instant, *, slept: Duration) -> None:
        """Report how long no node ticked; a listener that fails must not stop the engine (L9)."""
        try:
            notice_silence(tx, self._hooks.on_silence, now=now, slept=slept)
        except StoreUnavailable:
            raise
        except Exception:
            log.exception("cannot record a gap in which no node ticked")

    def _report_rollback(self, copied_at: Instant | None, now: Instant) -> None:
        """Report that the store lost commits, once for all nodes."""
        log.error("the store was rolled back: what was committed since this node's last renewal is gone")
        if copied_at is not None:
            text = (
                f"the store lost what was written after {format_instant(copied_at)}, as after a failover to a lagging "
                "copy: runs that were open are unknown, instants since then are missed"
            )
            self._alert(Alert("store", text), now)


def _advance(tx: Tx) -> int:
    """Record that the store has got further; returns how far."""
    reached = int(tx[Meta].value(STORE_MARK) or 0) + 1
    tx[Meta].set(STORE_MARK, str(reached))
    return reached


def kept_since(tx: Tx) -> Instant:
    """No row of this store is older; a clock that is behind it was not set yet."""
    return _kept_since(int(tx[Meta].value(BORN_AT) or 0))


def _kept_since(born_at: Instant) -> Instant:
    return born_at - DAY


def _publish(tx: Tx, node_id: int, terms: str, labels: frozenset[str], now: Instant) -> None:
    tx.nodes.publish(node_id, terms=terms, labels=joined(labels), now=now)


def _recover(handler: AlarmHandler, tx: Tx, now: Instant) -> None:
    try:
        handler.recover(tx, now=now)
    except StoreUnavailable:
        raise
    except Exception:  # its side tasks ring when their claims expire; the engine starts anyway (L9)
        log.exception("cannot recover side tasks of kind %s", handler.kind)
