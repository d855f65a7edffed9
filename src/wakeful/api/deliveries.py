"""Messages to people: the outbox, and the inbox."""

from typing import Annotated, Final, TypeAlias

from wakeful.api.operation import Noun, Returns, read, write
from wakeful.api.parameters import Param
from wakeful.api.shared_parameters import IdCursor, Limit, filled
from wakeful.core.time.instants import Instant
from wakeful.features.delivery import commands, queries
from wakeful.features.delivery.views import DELIVERIES, DELIVERY, INBOX, DeliveryPage, DeliveryView, InboxPage
from wakeful.ports.inbox import Inbox
from wakeful.ports.outbox import DeliveryStatus
from wakeful.ports.store import Tx

DeliveryId: TypeAlias = Annotated[
    str, Param(name="id", schema={"type": "string", "pattern": "^([0-9a-f]{12}-)?[0-9]{1,18}$", "examples": ["42"]})
]
ItemId: TypeAlias = Annotated[
    str, Param(name="id", schema={"type": "string", "pattern": "^[0-9]{1,18}$", "examples": ["42"]})
]
DONE: Final = Returns(None, "Successful Response")


class Deliveries(Noun):
    """The outbox and the inbox."""

    @read(
        "GET /api/deliveries",
        "List deliveries (the outbox)",
        Returns(DELIVERIES, "Newest first."),
        id="list_deliveries",
    )
    def deliveries(
        self,
        tx: Tx,
        now: Instant,
        *,
        status: Annotated[DeliveryStatus | None, Param("only this status")] = None,
        limit: Limit = 100,
        cursor: IdCursor = None,
    ) -> DeliveryPage:
        return queries.deliveries(tx, status=status, limit=limit, before_id=cursor, store_id=self._store_id)

    @write(
        "POST /api/deliveries",
        "Send a message to a person",
        Returns(DELIVERY, "It is queued."),
        statuses=(201,),
        least="admin",
        id="post_delivery",
        body_name="NewDelivery",
        body_says="A message for a person.",
    )
    def send(
        self,
        tx: Tx,
        now: Instant,
        text: Annotated[str, filled("text", "write the text to deliver")],
        *,
        channel: Annotated[str | None, Param("a channel, or last; default: by routing")] = None,
        to: str | None = None,
    ) -> DeliveryView:
        """Without a channel it goes to the channel of the last interaction, else the first channel, else the inbox."""
        delivery = self._app._delivery
        row = commands.send(
            tx,
            text,
            channel,
            to,
            registry=delivery.registry,
            now=now,
            age_max=delivery.limits.age_max,
            ack_token=delivery.ack_token(),
        )
        return queries.view_of(row, self._store_id)

    @read(
        "GET /api/deliveries/{id}",
        "One delivery",
        Returns(DELIVERY, "The delivery."),
        refuses=(404,),
        id="get_delivery",
    )
    def delivery(self, tx: Tx, now: Instant, delivery_id: DeliveryId) -> DeliveryView:
        return queries.delivery(tx, delivery_id, store_id=self._store_id)

    @write(
        "POST /api/deliveries/{id}/retry",
        "Retry a delivery now",
        Returns(DELIVERY, "It is queued again."),
        refuses=(404, 409),
        id="retry_delivery",
    )
    def retry(self, tx: Tx, now: Instant, delivery_id: DeliveryId) -> DeliveryView:
        """A dead letter starts over, a waiting delivery is sent immediately; a delivered one is not sent again."""
        number = queries.number_of(delivery_id, self._store_id)
        row = commands.retry(tx, number, now=now, age_max=self._app._delivery.limits.age_max)
        return queries.view_of(row, self._store_id)

    @write(
        "DELETE /api/deliveries/{id}",
        "Discard a delivery",
        DONE,
        statuses=(204,),
        refuses=(404,),
        least="admin",
        id="discard_delivery",
    )
    def discard(self, tx: Tx, now: Instant, delivery_id: DeliveryId) -> None:
        commands.discard(tx, queries.number_of(delivery_id, self._store_id), now=now)

    @read("GET /api/inbox", "List inbox items", Returns(INBOX, "Newest first."), id="list_inbox")
    def inbox(
        self,
        tx: Tx,
        now: Instant,
        *,
        unread: Annotated[bool, Param("only unread items")] = False,
        limit: Limit = 100,
        cursor: IdCursor = None,
    ) -> InboxPage:
        return queries.inbox(tx, is_unread=unread, limit=limit, before_id=cursor)

    @write("POST /api/inbox/read", "Mark all items as read", DONE, statuses=(204,), id="read_all")
    def mark_all_read(self, tx: Tx, now: Instant) -> int:
        return tx[Inbox].mark_all_read(at=now)

    @write(
        "POST /api/inbox/{id}/read",
        "Mark an item as read or unread",
        DONE,
        statuses=(204,),
        refuses=(404,),
        id="read_item",
        body_name="Read",
        body_says="Whether the item was read.",
    )
    def mark_read(self, tx: Tx, now: Instant, item_id: ItemId, *, read: bool = True) -> None:
        commands.mark_read(tx, queries.item_number(item_id), at=now if read else None)

    @write(
        "DELETE /api/inbox/{id}",
        "Remove an item",
        DONE,
        statuses=(204,),
        refuses=(404,),
        least="admin",
        id="remove_item",
    )
    def remove_item(self, tx: Tx, now: Instant, item_id: ItemId) -> None:
        commands.remove_item(tx, queries.item_number(item_id))

    @property
    def _store_id(self) -> str:
        return self._app._delivery.store_id
