"""Effects: what a settlement or a ring leads to in other features, in the same transaction."""

from collections.abc import Sequence

from wakeful.core.run.effects import Alert, Effect
from wakeful.core.time.instants import Instant
from wakeful.ports.handlers import EngineHooks
from wakeful.ports.store import Tx


def apply(tx: Tx, hooks: EngineHooks, effects: Sequence[Effect], now: Instant) -> list[Alert]:
    """Apply effects in the transaction of what caused them. Returns the alerts, to be sent after the commit."""
    alerts: list[Alert] = []
    for effect in effects:
        if isinstance(effect, Alert):
            alerts.append(effect)
        applier = hooks.appliers.get(type(effect))
        if applier is not None:
            applier(tx, effect, now)
    return alerts
