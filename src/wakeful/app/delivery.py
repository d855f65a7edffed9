"""Delivery as a part of an app: its channels, and the settings that apply to them."""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeAlias

from wakeful.app.bootstrap import FeatureContext
from wakeful.core.delivery.alert_rules import AlertTerms
from wakeful.core.delivery.retries import DeliveryLimits
from wakeful.core.refusals import NotStarted
from wakeful.features.delivery.feature import plug
from wakeful.features.delivery.incident_watch import Explain
from wakeful.features.delivery.registry import ChannelRegistry
from wakeful.integrations.channels.inbox import InboxChannel
from wakeful.integrations.channels.program import DeliverFunction, ProgramChannel
from wakeful.ports.channel import Channel
from wakeful.ports.clock import Clock
from wakeful.ports.exchange import ExchangeListener
from wakeful.ports.handlers import FeatureHooks
from wakeful.ports.live import Live

MakeChannels: TypeAlias = Callable[[Clock, ExchangeListener | None], Mapping[str, Channel]]
"""Creates the channels of this process, once its clock and the observer of outgoing requests are known."""


class DeliveryFeature:
    """Delivery for one app. Created before the app starts, so that channels exist before anything fires."""

    def __init__(
        self,
        channels: MakeChannels | None,
        limits: DeliveryLimits,
        alerts: AlertTerms,
        *,
        explain: Explain,
        ack_token: Callable[[], str],
        shared: Callable[[], object] = lambda: None,
        is_traced: Callable[[], bool] = lambda: False,
    ) -> None:
        self._make_channels = channels
        self.ack_token = ack_token  # the ack token, which is never shown to people
        self._limits = Live(limits)
        self._alerts = Live(alerts)
        self._shared = shared  # further settings that all nodes must share
        self._explain = explain
        self._is_traced = is_traced
        self.registry = ChannelRegistry()
        self._context: FeatureContext | None = None
        self._retired: list[Channel] = []

    async def plug(self, context: FeatureContext) -> FeatureHooks:
        """Plug the feature in: channels first, then whatever uses them."""
        self._context = context
        self.publish_terms()
        self.registry.begin(InboxChannel(context.store))
        if self._make_channels is not None:
            self.registry.configure(self._make_channels(context.clock, context.listener))
        return plug(
            context.store,
            context.clock,
            context.store_id,
            self.registry,
            self._limits,
            self._alerts,
            explain=self._explain,
            ack_token=self.ack_token,
            apply=context.apply,
            ring_bell=context.ring_bell,
            listener=context.listener,
            is_traced=self._is_traced,
        )

    @contextmanager
    def own_channels_only(self) -> Iterator[None]:
        """In this context, only the inbox and channels that are functions are plugged in."""
        given, self._make_channels = self._make_channels, None
        try:
            yield
        finally:
            self._make_channels = given

    async def close(self) -> None:
        """Release the channels' resources."""
        gone = self.registry.configure({}) + self._retired
        self._retired = []
        self._context = None
        for channel in gone:
            await channel.close()

    def change(
        self,
        *,
        channels: MakeChannels | None = None,
        limits: DeliveryLimits | None = None,
        alerts: AlertTerms | None = None,
    ) -> None:
        """Use other channels, limits or alerts from now on; a send in progress finishes on its channel."""
        if limits is not None:
            self._limits.value = limits
        if alerts is not None:
            self._alerts.value = alerts
            self.publish_terms()
        if channels is not None:
            self._make_channels = channels
            if self._context is not None:
                self._retired += self.registry.configure(channels(self._context.clock, self._context.listener))

    @property
    def limits(self) -> DeliveryLimits:
        """The limits in effect."""
        return self._limits.value

    @property
    def store_id(self) -> str:
        """The identity of the store, with which delivery ids begin."""
        if self._context is None:
            raise NotStarted
        return self._context.store_id

    def publish_terms(self) -> None:
        """Publish a hash of the settings that all nodes on a store must share, because any node may send the report or
        start the run."""
        if self._context is not None:
            shared = repr((self._alerts.value, self._shared()))
            self._context.publish_terms(hashlib.sha256(shared.encode()).hexdigest()[:16])

    def register(self, name: str, to: str | None, deliver: DeliverFunction) -> Callable[[], None]:
        """Add a channel that is a function; returns a function that removes it."""
        return self.registry.register(name, ProgramChannel(deliver, to))
