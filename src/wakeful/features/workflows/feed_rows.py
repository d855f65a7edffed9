"""Which consumers published to which topics through the API."""

from typing import NamedTuple

from wakeful.core.time.instants import Instant
from wakeful.ports.database import columns_of
from wakeful.ports.table import Rows


class Feed(NamedTuple):
    """A consumer that published to a topic through the API, perhaps of another workflow."""

    source_id: int
    consumer: str
    target_id: int
    topic: str
    seen_at: Instant  # about when it did so last


SEEN = f"""
SELECT {columns_of(Feed, "workflow_feeds")} FROM workflow_feeds WHERE seen_at >= :since
ORDER BY source_id, consumer, target_id, topic
"""
FORGET = "DELETE FROM workflow_feeds WHERE seen_at < :before"


class Feeds(Rows[Feed]):
    """Consumers and the topics they feed."""

    row, table, key = Feed, "workflow_feeds", "source_id, consumer, target_id, topic"

    def seen(self, *, since: Instant) -> list[Feed]:
        """Which consumers published to which topics since then."""
        return self._made(self._db.rows(SEEN, since=since))

    def forget(self, *, before: Instant) -> int:
        """Delete the feeds that were not seen since; returns how many."""
        return self._db.change(FORGET, before=before)
