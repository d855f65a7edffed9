"""Claiming one by one: one alarm per transaction, after claiming all due alarms together failed.

A row that cannot be read, or a handler that raises, fails its transaction, and with it everything else that is due. So
each alarm gets its own transaction. An alarm that fails is postponed by a minute and reported; all others proceed
normally (L9).
"""

import logging
from functools import partial
from typing import Final

from wakeful.core.run.effects import Alert
from wakeful.core.time.instants import MINUTE, Duration, Instant
from wakeful.engine.claiming import Claimed, ClaimRequest, claim
from wakeful.engine.effects import apply
from wakeful.engine.labels import due_kinds, hold_off_first, queues_for
from wakeful.engine.limits import RING_BATCH
from wakeful.ports.handlers import EngineHooks
from wakeful.ports.store import ALARM_RUN, Store, StoreUnavailable, Tx

log = logging.getLogger("wakeful.engine")

HELD_OFF: Final[Duration] = MINUTE


async def claim_one_by_one(store: Store, hooks: EngineHooks, request: ClaimRequest) -> Claimed:
    """Ring and claim what is due, one alarm at a time. Returns what was claimed even if a later alarm fails."""
    total = Claimed([], False, None, [], [])
    for kind in dict.fromkeys((ALARM_RUN, *(handler.kind for handler in hooks.alarms))):
        for _ in range(RING_BATCH):
            room = min(request.room - len(total.claims), 1)
            # Oldest first: the first alarm is the one that is postponed if it fails.
            first = request._replace(room=room, is_turn_of_late=True, only=kind)
            try:
                claimed = await store.write(partial(claim, hooks=hooks, request=first))
            except StoreUnavailable:
                return total
            except Exception as error:
                log.exception("cannot ring an alarm of kind %s", kind)
                if not await _postpone(store, hooks, kind, error, request, total):
                    break
                continue
            if claimed.is_lost:
                return total._replace(is_lost=True)
            total.claims.extend(claimed.claims)
            total.side_tasks.extend(claimed.side_tasks)
            total.alerts.extend(claimed.alerts)
            if not claimed.is_more:
                break
    return total


def postpone_each(tx: Tx, now: Instant, labels: frozenset[str] = frozenset()) -> None:
    """Postpone, by a minute, the first due alarm of each kind.

    Called when alarms stay due tick after tick without effect: they refer to a missing row, or to one this release does
    not know. Postponing lets the engine sleep until the next alarm that can ring."""
    queues = queues_for(tx, labels)
    for kind in sorted(due_kinds(tx, queues, now=now)):
        ref = hold_off_first(tx, queues, kind, now=now, until=now + HELD_OFF)
        log.warning("the alarm of %s %s is due but has no effect; checking again in a minute", kind, ref)


async def _postpone(
    store: Store, hooks: EngineHooks, kind: str, error: Exception, request: ClaimRequest, total: Claimed
) -> bool:
    """Postpone the alarm that failed by a minute and alert people; returns whether there was such an alarm."""
    now = request.now

    def hold_off(tx: Tx, is_told: bool) -> tuple[bool, list[Alert]]:
        ref = hold_off_first(tx, queues_for(tx, request.labels), kind, now=now, until=now + HELD_OFF)
        if ref is None or not is_told:
            return ref is not None, []
        text = f"cannot ring the alarm of {kind} {ref}, retrying every minute: {type(error).__name__}: {error}"
        return True, apply(tx, hooks, [Alert(f"unrung:{kind}-{ref}", text)], now)

    try:
        is_held, alerts = await store.write(partial(hold_off, is_told=True))
    except StoreUnavailable:
        return False
    except Exception:  # alerting itself is broken
        log.exception("cannot send the alert about a failed alarm of kind %s", kind)
        try:
            is_held, alerts = await store.write(partial(hold_off, is_told=False))
        except StoreUnavailable:
            return False
    total.alerts.extend(alerts)
    return is_held
