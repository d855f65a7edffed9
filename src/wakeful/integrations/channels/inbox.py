"""The inbox: what is delivered lies in the store, to be read on the page, over REST, or at the command line."""

from wakeful.ports.channel import Outcome, OutgoingMessage, Sent, Unsent
from wakeful.ports.store import Store


class AnotherInbox:
    """The inbox under another name: the registry puts the inbox of the app in its place."""

    kind = "inbox"
    to: str | None = None

    async def send(self, letter: OutgoingMessage) -> Outcome:
        return Unsent("the inbox is not there yet")

    async def close(self) -> None:
        """Nothing is held."""


class InboxChannel:
    """Puts letters where they can be read."""

    kind = "inbox"
    to: str | None = None

    def __init__(self, store: Store) -> None:
        self._store = store

    async def send(self, letter: OutgoingMessage) -> Outcome:
        number = int(letter.delivery_id.partition(".")[0].rpartition("-")[2])
        await self._store.write(
            lambda tx: tx.inbox.add(
                delivery_id=number, text=letter.text, slug=letter.slug, run_id=letter.run_id, at=letter.at
            )
        )
        return Sent()

    async def close(self) -> None:
        """Nothing is held."""
