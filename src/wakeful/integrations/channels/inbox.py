"""The inbox: messages are kept in the store, to be read on the page, over REST, or on the command line."""

from wakeful.ports.channel import Outcome, OutgoingMessage, Sent, Unsent
from wakeful.ports.inbox import Inbox
from wakeful.ports.store import Store


class AnotherInbox:
    """The inbox under another name: the registry replaces it with the app's inbox."""

    kind = "inbox"
    address = ""
    to: str | None = None

    async def send(self, message: OutgoingMessage) -> Outcome:
        return Unsent("the inbox is not available yet")

    async def close(self) -> None:
        """Nothing to release."""


class InboxChannel:
    """Stores messages in the inbox."""

    kind = "inbox"
    address = ""
    to: str | None = None

    def __init__(self, store: Store) -> None:
        self._store = store

    async def send(self, message: OutgoingMessage) -> Outcome:
        number = int(message.delivery_id.partition(".")[0].rpartition("-")[2])
        await self._store.write(
            lambda tx: tx[Inbox].add_item(
                delivery_id=number, text=message.text, slug=message.slug, run_id=message.run_id, at=message.at
            )
        )
        return Sent()

    async def close(self) -> None:
        """Nothing to release."""
