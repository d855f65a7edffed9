"""Channels: how messages reach people, and come from them."""

import logging
from dataclasses import dataclass
from typing import Annotated, Final, Literal, TypeAlias

from wakeful.api.operation import Noun, Returns, perform, read, write
from wakeful.api.parameters import Param
from wakeful.api.shared_parameters import filled
from wakeful.core.errors import refuse
from wakeful.core.returned import returned
from wakeful.core.run.effects import TakeMessage
from wakeful.core.self_scheduling.proposals import read_answer
from wakeful.core.time.instants import SECOND, Duration, Instant
from wakeful.features.delivery import commands, queries
from wakeful.features.delivery.text import inert
from wakeful.features.delivery.views import CHANNEL_TEST, CHANNELS, ChannelList, ChannelTest
from wakeful.ports.outbox import Deliveries, Delivery
from wakeful.ports.store import Tx

log = logging.getLogger("wakeful.approvals")

TEST_TEXT: Final = "This is a test message from Wakeful: the channel works."
TEST_WITHIN: Final[Duration] = 60 * SECOND
TEST_LOOK: Final[Duration] = 100
WAITING_MAX: Final = 1_000
WRITE_MESSAGE: Final = "write the person's message"

ChannelName: TypeAlias = Annotated[
    str, Param(name="name", longest=64, schema={"type": "string", "examples": ["phone"]})
]


class NoAgentForMessages(RuntimeError):
    """This process has no agent that could take a turn for a person's message."""

    def __init__(self) -> None:
        super().__init__("no agent answers messages in this process; enable the heartbeat under [heartbeat]")


@dataclass(frozen=True, slots=True)
class Taken:
    """The message was accepted."""

    status: Literal["taken"]


class Channels(Noun):
    """The channels, and who was last active where."""

    @read(
        "GET /api/channels",
        "List channels and the last interaction",
        Returns(CHANNELS, "In the order in which they are tried."),
        id="list_channels",
    )
    def channels(self, tx: Tx, now: Instant) -> ChannelList:
        return queries.channels(tx, self._app._delivery.registry, now=now)

    @write(
        "POST /api/channels/{name}/touch",
        "Record an interaction on a channel",
        Returns(CHANNELS, "Recorded."),
        refuses=(404,),
        least="admin",
        id="touch_channel",
        body_name="Touch",
        body_says="The person who interacted.",
    )
    def touch(self, tx: Tx, now: Instant, channel: ChannelName, to: str | None = None) -> ChannelList:
        """Deliveries without a channel go to this one from now on."""
        registry = self._app._delivery.registry
        commands.touch(tx, channel, to, registry=registry, now=now)
        return queries.channels(tx, registry, now=now)

    @perform(
        "POST /api/channels/{name}/test",
        "Send a test message",
        Returns(CHANNEL_TEST, "Whether it was delivered within a minute."),
        refuses=(404,),
        id="test_channel",
        body_name="Touch",
        body_says="The person who interacted.",
    )
    async def test_channel(self, channel: ChannelName, to: str | None = None) -> ChannelTest:
        """One attempt through the outbox. An undelivered message is discarded, so it does not arrive later."""
        registry = self._app._delivery.registry
        commands.known(channel, registry)
        made = await self._app.people.send(TEST_TEXT, channel=channel, to=to)
        row = await self._attempted(made.number)
        target = registry.get(channel)
        whom = to or (None if target is None else target.to)
        if row is not None and row.status == "delivered":
            return ChannelTest(channel, whom, None, None)
        if row is not None:
            await self._app.people.discard(made.id)
        error = (None if row is None else row.last_error) or await self._held_up(channel, whom)
        cure = f"correct [channels.{channel}] in wakeful.toml, then: wakeful channels test {channel}"
        return ChannelTest(channel, whom, error, cure)

    @perform(
        "POST /api/channels/{name}/messages",
        "Receive a message from a person",
        Returns(returned(Taken), "The agent gets a turn; the reply goes to `to`."),
        statuses=(202,),
        refuses=(404,),
        least="admin",
        id="post_message",
        body_name="PersonsMessage",
        body_says="A message from a person.",
    )
    async def receive(
        self,
        channel: ChannelName,
        to: Annotated[str, filled("to", "name the sender, who gets the reply")],
        text: Annotated[str, filled("text", WRITE_MESSAGE)],
    ) -> Taken:
        """Records the interaction, gives the agent a turn, and sends the reply to the sender."""
        said = inert(text)
        if not said.strip():
            refuse("text", f"is empty; {WRITE_MESSAGE}")
        if read_answer(said) is not None:
            log.warning(
                "a decision on a proposal was sent as a message through the API for %s; it was refused", channel
            )
            refuse("text", "is a decision on a proposal, which is not accepted here; use wakeful approvals")

        def take(tx: Tx, now: Instant) -> None:
            commands.known(channel, self._app._delivery.registry)
            if not self._app._open.apply(tx, TakeMessage(channel, to, said), now):
                raise NoAgentForMessages

        await self._app._command(take)
        return Taken("taken")

    async def _attempted(self, number: int) -> Delivery | None:
        """A delivery after its first attempt, or when the time for it is over."""
        ends = self._app._moment().monotonic + TEST_WITHIN
        while (row := await self._app._store.read(lambda tx: tx[Deliveries].get(number))) is not None:
            if row.status != "pending" or row.last_error is not None or self._app._moment().monotonic >= ends:
                break
            await self._app.sleep(TEST_LOOK)
        return row

    async def _held_up(self, channel: str, to: str | None) -> str:
        """Why no attempt was made."""
        rows = await self._app._store.read(
            lambda tx: tx[Deliveries].page(status="pending", before_id=None, limit=WAITING_MAX)
        )
        before = [row for row in rows if row.channel == channel and row.recipient in (to, None)]
        if not before:
            return f"it was not sent within {TEST_WITHIN // SECOND} s"
        return f"{len(before)} messages are ahead of it, the first failing with: {before[-1].last_error or 'none yet'}"
