"""Deliveries, channels and the inbox for Python programs and for the edges."""

import hashlib
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final, NamedTuple, TypeAlias, TypeVar

from wakeful.app.bootstrap import FeatureContext
from wakeful.core.delivery.alert_rules import AlertTerms
from wakeful.core.delivery.retries import DeliveryLimits
from wakeful.core.errors import refuse
from wakeful.core.fields import shown
from wakeful.core.refusals import NotFound, NotStarted
from wakeful.core.run.effects import TakeMessage
from wakeful.core.self_scheduling.proposals import read_answer
from wakeful.core.time.instants import SECOND, Duration, Instant
from wakeful.features.delivery import commands, queries
from wakeful.features.delivery.feature import plug
from wakeful.features.delivery.inbound import InboundFinding
from wakeful.features.delivery.incident_watch import Explain
from wakeful.features.delivery.registry import ChannelRegistry
from wakeful.features.delivery.text import inert
from wakeful.features.delivery.views import (
    ChannelTest,
    ChannelView,
    DeliveryView,
    InboxView,
    InteractionView,
    view_delivery,
    view_interaction,
    view_item,
)
from wakeful.integrations.channels.inbox import InboxChannel
from wakeful.integrations.channels.program import DeliverFunction, ProgramChannel
from wakeful.ports.channel import Channel
from wakeful.ports.clock import Clock
from wakeful.ports.exchange import ExchangeListener
from wakeful.ports.handlers import FeatureHooks
from wakeful.ports.live import Live
from wakeful.ports.outbox import Delivery, DeliveryStatus, public_id
from wakeful.ports.store import Tx

T = TypeVar("T")

TEST_TEXT: Final = "This is a test message from Wakeful: the channel works."
TEST_WITHIN: Final[Duration] = 60 * SECOND
TEST_LOOK: Final[Duration] = 100

MakeChannels: TypeAlias = Callable[[Clock, ExchangeListener | None], Mapping[str, Channel]]
"""Creates the channels of this process, once its clock and the observer of outgoing requests are known."""


class Channels(NamedTuple):
    """Every channel, and the last interaction with a person."""

    channels: list[ChannelView]
    last: InteractionView | None


log = logging.getLogger("wakeful.approvals")


class NoAgentForMessages(RuntimeError):
    """This process has no agent that could take a turn for a person's message."""


class Delivering:
    """The outbox of one app. Created before the app starts, so that channels exist before anything fires."""

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
        self._ack_token = ack_token  # the ack token, which is never shown to people
        self._limits = Live(limits)
        self._alerts = Live(alerts)
        self._shared = shared  # further settings that all nodes must share
        self._explain = explain
        self._is_traced = is_traced
        self._registry = ChannelRegistry()
        self._context: FeatureContext | None = None
        self._retired: list[Channel] = []

    # --- life --------------------------------------------------------------------------------------------------------

    async def plug(self, context: FeatureContext) -> FeatureHooks:
        """Plug the feature in: channels first, then whatever uses them."""
        self._context = context
        self._registry.begin(InboxChannel(context.store))
        if self._make_channels is not None:
            self._registry.configure(self._make_channels(context.clock, context.listener))
        return plug(
            context.store,
            context.clock,
            context.store_id,
            self._registry,
            self._limits,
            self._alerts,
            explain=self._explain,
            ack_token=self._ack_token,
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
        gone = self._registry.configure({}) + self._retired
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
            if self._context is not None:
                self._context.publish_terms(self.terms_hash)
        if channels is not None:
            self._make_channels = channels
            if self._context is not None:
                self._retired += self._registry.configure(channels(self._context.clock, self._context.listener))

    @property
    def terms_hash(self) -> str:
        """A hash of the settings that all nodes on a store must share, because any node may send the report or start
        the run."""
        return hashlib.sha256(repr((self._alerts.value, self._shared())).encode()).hexdigest()[:16]

    def register(self, name: str, to: str | None, deliver: DeliverFunction) -> Callable[[], None]:
        """Add a channel that is a function; returns a function that removes it."""
        return self._registry.register(name, ProgramChannel(deliver, to))

    # --- deliveries --------------------------------------------------------------------------------------------------

    async def send(self, text: str, *, channel: str | None = None, to: str | None = None) -> DeliveryView:
        """Queue a message for a person."""
        age_max, ack_token, registry = self._limits.value.age_max, self._ack_token(), self._registry
        row = await self._write(
            lambda tx, now: commands.send(
                tx, text, channel, to, registry=registry, now=now, age_max=age_max, ack_token=ack_token
            )
        )
        return self._view(row)

    async def retry(self, delivery_id: str) -> DeliveryView:
        """Retry a delivery now; a dead letter starts over."""
        number, age_max = self.number_of(delivery_id), self._limits.value.age_max
        return self._view(await self._write(lambda tx, now: commands.retry(tx, number, now=now, age_max=age_max)))

    async def discard(self, delivery_id: str) -> None:
        """Discard a delivery."""
        number = self.number_of(delivery_id)
        await self._write(lambda tx, now: commands.discard(tx, number))

    async def get(self, delivery_id: str) -> DeliveryView:
        """One delivery."""
        number = self.number_of(delivery_id)
        row = await self._open.store.read(lambda tx: tx.deliveries.get(number))
        if row is None:
            raise NotFound(f"there is no delivery {shown(delivery_id)}")
        return self._view(row)

    async def page(
        self, *, status: DeliveryStatus | None = None, before: int | None = None, limit: int = 100
    ) -> list[DeliveryView]:
        """Deliveries newest first."""
        rows = await self._open.store.read(lambda tx: tx.deliveries.page(status=status, before_id=before, limit=limit))
        return [self._view(row) for row in rows]

    def number_of(self, delivery_id: str) -> int:
        """The number in a delivery id; people may write just the number."""
        store_id, dash, number = delivery_id.partition(".")[0].rpartition("-")
        is_ours = not dash or store_id == self._open.store_id
        if not is_ours or not number.isascii() or not number.isdecimal() or len(number) > 18:
            raise NotFound(f"there is no delivery {shown(delivery_id)}")
        return int(number)

    # --- channels ----------------------------------------------------------------------------------------------------

    async def channels(self) -> Channels:
        """Every channel, in the order in which they are tried, and the last interaction."""

        now = self._open.clock.read().now

        def read(tx: Tx) -> Channels:
            last = next(iter(tx.channels.interactions()), None)
            views = queries.channels(tx, self._registry, now=now)
            return Channels(views, None if last is None else view_interaction(last))

        return await self._open.store.read(read)

    def inbound_findings(self, tx: Tx, *, now: Instant) -> list[InboundFinding]:
        """Problems with receiving on channels."""
        return queries.inbound_findings(tx, self._registry, now=now)

    async def test(self, channel: str, to: str | None = None) -> ChannelTest:
        """Send a test message through the outbox and wait for the result."""
        commands.known(channel, self._registry)
        clock = self._open.clock
        made = await self.send(TEST_TEXT, channel=channel, to=to)
        ends = clock.read().monotonic + TEST_WITHIN
        while (row := await self._find(made.id)) is not None and row.status == "pending":
            if row.last_error is not None or clock.read().monotonic >= ends:
                break
            await clock.sleep(TEST_LOOK)
        target = self._registry.get(channel)
        whom = to or (None if target is None else target.to)
        if row is not None and row.status == "delivered":
            return ChannelTest(channel, whom)
        if row is not None:
            await self.discard(made.id)
        error = (None if row is None else row.last_error) or await self._held_up(channel, whom)
        cure = f"correct [channels.{channel}] in wakeful.toml, then: wakeful channels test {channel}"
        return ChannelTest(channel, whom, error, cure)

    async def _find(self, delivery_id: str) -> Delivery | None:
        number = self.number_of(delivery_id)
        return await self._open.store.read(lambda tx: tx.deliveries.get(number))

    async def _held_up(self, channel: str, to: str | None) -> str:
        """Why no attempt was made."""
        rows = await self._open.store.read(lambda tx: tx.deliveries.page(status="pending", before_id=None, limit=1_000))
        before = [row for row in rows if row.channel == channel and row.recipient in (to, None)]
        if not before:
            return f"it was not sent within {TEST_WITHIN // SECOND} s"
        return f"{len(before)} messages are ahead of it, the first failing with: {before[-1].last_error or 'none yet'}"

    async def touch(self, channel: str, to: str | None = None) -> None:
        """Record an interaction on a channel."""
        await self._write(lambda tx, now: commands.touch(tx, channel, to, registry=self._registry, now=now))

    async def take_message(self, channel: str, to: str, text: str) -> None:
        """Receive a message: record the interaction, give the agent a turn, reply to the sender."""
        said = inert(text)
        if not said.strip():
            refuse("text", "is empty; write the person's message")
        apply = self._open.apply
        if read_answer(said) is not None:
            log.warning(
                "a decision on a proposal was sent as a message through the API for %s; it was refused", channel
            )
            refuse("text", "is a decision on a proposal, which is not accepted here; use wakeful approvals")

        def take(tx: Tx, now: Instant) -> None:
            commands.known(channel, self._registry)
            if not apply(tx, TakeMessage(channel, to, said), now):
                raise NoAgentForMessages(
                    "no agent answers messages in this process; enable the heartbeat under [heartbeat]"
                )

        await self._write(take)

    # --- the inbox ---------------------------------------------------------------------------------------------------

    async def inbox(
        self, *, unread: bool = False, before: int | None = None, limit: int = 100
    ) -> tuple[list[InboxView], int]:
        """Items, newest first, and the number of unread ones."""
        rows, count = await self._open.store.read(
            lambda tx: (tx.inbox.page(is_unread=unread, before_id=before, limit=limit), tx.inbox.unread())
        )
        return [view_item(row) for row in rows], count

    async def mark_read(self, item_id: int, *, is_read: bool = True) -> None:
        """Mark an item as read."""
        await self._write(lambda tx, now: commands.mark_read(tx, item_id, at=now if is_read else None))

    async def mark_all_read(self) -> int:
        """Mark all items as read; returns how many were unread."""
        return await self._write(lambda tx, now: tx.inbox.mark_all_read(at=now))

    async def remove_item(self, item_id: int) -> None:
        """Remove an item from the inbox."""
        await self._write(lambda tx, now: commands.remove_item(tx, item_id))

    # --- inside ------------------------------------------------------------------------------------------------------

    @property
    def _open(self) -> FeatureContext:
        if self._context is None:
            raise NotStarted
        return self._context

    async def _write(self, command: Callable[[Tx, Instant], T]) -> T:
        context = self._open
        now = context.clock.read().now
        answer = await context.store.write(lambda tx: command(tx, now))
        context.ring_bell()
        return answer

    def _view(self, row: Delivery) -> DeliveryView:
        return view_delivery(row, public_id(self._open.store_id, row))
