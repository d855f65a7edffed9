"""`app.delivering` of 0.2, which is deprecated: it works in this version, and is gone in 0.4."""

from typing import TYPE_CHECKING

from wakeful.features.delivery.views import ChannelList, ChannelTest, DeliveryView, InboxView
from wakeful.ports.outbox import DeliveryStatus

if TYPE_CHECKING:
    from wakeful.api.people import People


class OldDelivering:
    """Deliveries, channels and the inbox, with the names of 0.2."""

    def __init__(self, people: "People") -> None:
        self._people = people

    async def send(self, text: str, *, channel: str | None = None, to: str | None = None) -> DeliveryView:
        """`app.people.send`."""
        return await self._people.send(text, channel=channel, to=to)

    async def retry(self, delivery_id: str) -> DeliveryView:
        """`app.people.retry`."""
        return await self._people.retry(delivery_id)

    async def discard(self, delivery_id: str) -> None:
        """`app.people.discard`."""
        await self._people.discard(delivery_id)

    async def get(self, delivery_id: str) -> DeliveryView:
        """`app.people.delivery`."""
        return await self._people.delivery(delivery_id)

    async def page(
        self, *, status: DeliveryStatus | None = None, before: int | None = None, limit: int = 100
    ) -> list[DeliveryView]:
        """`app.people.deliveries`."""
        return (await self._people.deliveries(status=status, cursor=before, limit=limit)).deliveries

    async def channels(self) -> ChannelList:
        """`app.people.channels`."""
        return await self._people.channels()

    async def test(self, channel: str, to: str | None = None) -> ChannelTest:
        """`app.people.test_channel`."""
        return await self._people.test_channel(channel, to)

    async def touch(self, channel: str, to: str | None = None) -> None:
        """`app.touch`."""
        await self._people.touch(channel, to)

    async def take_message(self, channel: str, to: str, text: str) -> None:
        """`app.people.receive`."""
        await self._people.receive(channel, to, text)

    async def inbox(
        self, *, unread: bool = False, before: int | None = None, limit: int = 100
    ) -> tuple[list[InboxView], int]:
        """`app.people.inbox`."""
        page = await self._people.inbox(unread=unread, cursor=before, limit=limit)
        return page.items, page.unread

    async def mark_read(self, item_id: int, *, is_read: bool = True) -> None:
        """`app.people.mark_read`."""
        await self._people.mark_read(str(item_id), read=is_read)

    async def mark_all_read(self) -> int:
        """`app.people.mark_all_read`."""
        return await self._people.mark_all_read()

    async def remove_item(self, item_id: int) -> None:
        """`app.people.remove_item`."""
        await self._people.remove_item(str(item_id))
