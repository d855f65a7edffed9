"""Claiming apart: one alarm at a time, when claiming all that is due failed.

A row that cannot be read, or a handler that raises, fails the transaction it is in, and with it whatever else is due.
So each alarm gets a transaction of its own: what cannot be rung is held off for a minute and told of, and everything
else goes on as if it were not there (L9).
"""

import logging
from functools import partial
from typing import Final

from wakeful.core.run.effects import Alert
from wakeful.core.time.instants import MINUTE, Duration, Instant
from wakeful.engine.claiming import Claimed, ClaimRequest, claim
from wakeful.engine.limits import RING_BATCH
from wakeful.engine.settling import apply
from wakeful.ports.handlers import EngineHooks
from wakeful.ports.store import ALARM_RUN, Store, StoreUnavailable, Tx

log = logging.getLogger("wakeful.engine")

HELD_OFF: Final[Duration] = MINUTE


async def claim_apart(store: Store, hooks: EngineHooks, asking: ClaimRequest) -> Claimed:
    """Ring and claim what is due by now, an alarm at a time. What was claimed is answered, whatever comes after it."""
    total = Claimed([], False, None, [], [])
    for kind in dict.fromkeys((ALARM_RUN, *(handler.kind for handler in hooks.alarms))):
        for _ in range(RING_BATCH):
            left = asking._replace(room=asking.room - len(total.claims))
            try:
                one = await store.write(partial(claim, hooks=hooks, asking=left, only=kind))
            except StoreUnavailable:
                return total
            except Exception as error:
                log.exception("an alarm of kind %s cannot be rung", kind)
                if not await _hold_off(store, hooks, kind, error, asking.now, total):
                    break
                continue
            if one.is_lost:
                return total._replace(is_lost=True)
            total.claims.extend(one.claims)
            total.side_tasks.extend(one.side_tasks)
            total.alerts.extend(one.alerts)
            if not one.is_more:
                break
    return total


def hold_off_each(tx: Tx, now: Instant) -> None:
    """Alarms are due, look after look, and nothing comes of them: they refer to nothing, or to what nobody here knows.
    The first of each kind rings in a minute, so that the engine sleeps until what is really due."""
    for kind in sorted(tx.alarms.due_kinds(now=now)):
        ref = tx.alarms.hold_off_first(kind, now=now, until=now + HELD_OFF)
        log.warning("the alarm of %s %s is due and nothing comes of it; it is looked at again in a minute", kind, ref)


async def _hold_off(
    store: Store, hooks: EngineHooks, kind: str, error: Exception, now: Instant, total: Claimed
) -> bool:
    """Let what cannot be rung ring in a minute, and tell people; answers whether there was such an alarm."""

    def hold_off(tx: Tx, is_told: bool) -> tuple[bool, list[Alert]]:
        ref = tx.alarms.hold_off_first(kind, now=now, until=now + HELD_OFF)
        if ref is None or not is_told:
            return ref is not None, []
        text = (
            f"the alarm of {kind} {ref} cannot be rung and is tried again each minute: {type(error).__name__}: {error}"
        )
        return True, apply(tx, hooks, [Alert(f"unrung:{kind}-{ref}", text)], now)

    try:
        is_held, alerts = await store.write(partial(hold_off, is_told=True))
    except StoreUnavailable:
        return False
    except Exception:  # telling people is what is broken
        log.exception("nobody could be told that an alarm of kind %s cannot be rung", kind)
        try:
            is_held, alerts = await store.write(partial(hold_off, is_told=False))
        except StoreUnavailable:
            return False
    total.alerts.extend(alerts)
    return is_held
