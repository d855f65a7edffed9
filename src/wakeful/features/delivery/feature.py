"""The delivery feature: appliers for its effects, addressees' alarms, and background services."""

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from wakeful.core.delivery.alert_rules import AlertTerms
from wakeful.core.delivery.retries import DeliveryLimits
from wakeful.core.errors import FieldError, Invalid
from wakeful.core.run.effects import Alert, Deliver, Effect, Observed, Recovered
from wakeful.core.run.runs import idempotency_key
from wakeful.core.run.traces import delivery_of
from wakeful.core.schedule.definition import Definition, DeliverTo, addressees_of
from wakeful.core.time.instants import Duration, Instant
from wakeful.features.delivery.attempts import Attempts
from wakeful.features.delivery.commands import check_channel
from wakeful.features.delivery.incident_watch import Explain, IncidentLooks, observe, plainly
from wakeful.features.delivery.incidents import IncidentReporter, alert, recovered
from wakeful.features.delivery.listening import ChannelListeners
from wakeful.features.delivery.outages import look_at_outage, note_outage
from wakeful.features.delivery.ping import Ping
from wakeful.features.delivery.queue import deliver
from wakeful.features.delivery.registry import ChannelRegistry
from wakeful.ports.channel import OutgoingMessage
from wakeful.ports.clock import Clock
from wakeful.ports.exchange import ExchangeListener
from wakeful.ports.handlers import Applier, FeatureHooks
from wakeful.ports.live import Live
from wakeful.ports.outbox import Deliveries, public_id
from wakeful.ports.store import Store, Tx

log = logging.getLogger("wakeful.delivery")


def plug(
    store: Store,
    clock: Clock,
    store_id: str,
    registry: ChannelRegistry,
    limits: Live[DeliveryLimits],
    alerts: Live[AlertTerms],
    *,
    explain: Explain = plainly,
    ack_token: Callable[[], str],
    apply: Callable[[Tx, Effect, Instant], bool],
    ring_bell: Callable[[], None],
    listener: ExchangeListener | None = None,
    is_traced: Callable[[], bool] = lambda: False,
) -> FeatureHooks:
    """The feature for one store and the channels of one process."""

    def age_max() -> Duration:
        return limits.value.age_max

    reporter = IncidentReporter(registry, lambda: alerts.value.rule.channel, age_max, ack_token)
    appliers: dict[type[Any], Applier] = {
        Deliver: partial(deliver, registry=registry, age_max=age_max, ack_token=ack_token),
        Alert: partial(alert, reporter=reporter),
        Recovered: partial(recovered, reporter=reporter),
        Observed: partial(observe, terms=lambda: alerts.value, reporter=reporter),
    }
    attempts = Attempts(
        registry,
        limits,
        store,
        clock,
        public_id=partial(public_id, store_id),
        apply=apply,
        is_alone=store.is_exclusive,
        traced=DeliveryTraces(store, store_id, is_traced).add,
    )
    pings = Ping(store, clock, lambda: alerts.value, listener=listener)
    registry.on_change(ring_bell)
    return FeatureHooks(
        chores=[attempts, IncidentLooks(store, clock, reporter, explain=explain, outage=look_at_outage), pings],
        appliers=appliers,
        services=[_Recovery(store, clock, attempts), ChannelListeners(store, clock, registry, apply, ring_bell), pings],
        on_silence=[partial(note_outage, terms=lambda: alerts.value)],
        on_settings=[pings.changed],
        checks=[partial(check_channels, registry)],
    )


class _Recovery:
    """Runs before the first tick: everything already queued was left by an earlier process."""

    def __init__(self, store: Store, clock: Clock, attempts: Attempts) -> None:
        self._store = store
        self._clock = clock
        self._attempts = attempts

    async def start(self) -> None:
        left_over = await self._store.read(lambda tx: tx[Deliveries].last_id())
        self._attempts.begin_recovery(left_over, self._clock.read().now)

    async def stop(self) -> None:
        """Nothing to release."""


def check_channels(registry: ChannelRegistry, definition: Definition) -> Sequence[FieldError]:
    """Refuse unknown channels: a reply or alert for an unknown channel would never be delivered."""
    errors: list[FieldError] = []
    for number, addressee in enumerate(addressees_of(definition)):
        place = "deliver" if isinstance(definition.deliver, DeliverTo) else f"deliver[{number}]"
        try:
            check_channel(registry, addressee.channel, f"{place}.channel")
        except Invalid as invalid:
            errors.extend(invalid.errors)
    if definition.alert and definition.alert.channel is not None:
        try:
            check_channel(registry, definition.alert.channel, "alert.channel")
        except Invalid as invalid:
            errors.extend(invalid.errors)
    return errors


class DeliveryTraces:
    """Adds a `traceparent` to messages of runs, while runs are traced."""

    def __init__(self, store: Store, store_id: str, is_traced: Callable[[], bool]) -> None:
        self._store = store
        self._store_id = store_id
        self._is_traced = is_traced

    async def add(self, message: OutgoingMessage) -> OutgoingMessage:
        """Reads the run outside the transaction of the claim: there, its row would be locked after the addressee."""
        run_id = message.run_id
        if run_id is None or not self._is_traced():
            return message
        try:
            run = (await self._store.read(lambda tx: tx.runs.lock([run_id]))).get(run_id)
        except Exception as error:  # a message is sent with or without its trace
            log.warning("delivery %s is sent without a traceparent: %s", message.delivery_id, error)
            return message
        if run is None:
            return message
        span = delivery_of(idempotency_key(self._store_id, run), message.delivery_id)
        return message._replace(traceparent=span.traceparent)
