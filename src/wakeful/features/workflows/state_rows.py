"""The tables of what a workflow consists of, besides its row: handlers, topics and subscriptions."""

from collections.abc import Iterable, Sequence

from wakeful.core.workflow.rows import Handler, Subscription, Topic
from wakeful.ports.database import columns_of, grouped
from wakeful.ports.table import Rows
from wakeful.ports.workflows import EMPTIED

# Handlers of these workflows, in the order of their definitions.
HANDLERS = f"""
SELECT {columns_of(Handler, "workflow_handlers")} FROM workflow_handlers WHERE workflow_id IN :workflow_ids
ORDER BY workflow_id, place
"""
REMOVE_HANDLERS = "DELETE FROM workflow_handlers WHERE workflow_id = :workflow_id AND name IN :names"
FORGET_HANDLERS = f"DELETE FROM workflow_handlers WHERE workflow_id IN ({EMPTIED})"

# Topics of these workflows.
TOPICS = f"""
SELECT {columns_of(Topic, "topics")} FROM topics WHERE workflow_id IN :workflow_ids ORDER BY workflow_id, name
"""
FORGET_TOPICS = f"DELETE FROM topics WHERE workflow_id IN ({EMPTIED})"

# Subscriptions of these workflows.
SUBSCRIPTIONS = f"""
SELECT {columns_of(Subscription, "subscriptions")} FROM subscriptions WHERE workflow_id IN :workflow_ids
ORDER BY workflow_id, topic, consumer
"""
REMOVE_SUBSCRIPTION = """
DELETE FROM subscriptions WHERE workflow_id = :workflow_id AND topic = :topic AND consumer = :consumer
"""
FORGET_SUBSCRIPTIONS = f"DELETE FROM subscriptions WHERE workflow_id IN ({EMPTIED})"


class Handlers(Rows[Handler]):
    """Producers and consumers."""

    row, table, key = Handler, "workflow_handlers", "workflow_id, name"

    def of(self, workflow_ids: Iterable[int]) -> dict[int, list[Handler]]:
        """Handlers of these workflows, in the order of their definitions."""
        rows = self._made(self._db.rows(HANDLERS, workflow_ids=workflow_ids))
        return grouped((row.workflow_id, row) for row in rows)

    def remove_named(self, workflow_id: int, names: Sequence[str]) -> None:
        """Delete handlers of a workflow."""
        self._db.change(REMOVE_HANDLERS, workflow_id=workflow_id, names=names)

    def forget_deleted(self) -> int:
        """Delete the handlers of deleted workflows that have no messages left; returns how many."""
        return self._db.change(FORGET_HANDLERS)


class Topics(Rows[Topic]):
    """Streams of messages."""

    row, table, key = Topic, "topics", "workflow_id, name"

    def of(self, workflow_ids: Iterable[int]) -> dict[int, list[Topic]]:
        """Topics of these workflows, by name."""
        rows = self._made(self._db.rows(TOPICS, workflow_ids=workflow_ids))
        return grouped((row.workflow_id, row) for row in rows)

    def forget_deleted(self) -> int:
        """Delete the topics of deleted workflows that have no messages left; returns how many."""
        return self._db.change(FORGET_TOPICS)


class Subscriptions(Rows[Subscription]):
    """Which consumers read which topics."""

    row, table, key = Subscription, "subscriptions", "workflow_id, topic, consumer"

    def of(self, workflow_ids: Iterable[int]) -> dict[int, list[Subscription]]:
        """The subscriptions of these workflows, by topic and consumer."""
        rows = self._made(self._db.rows(SUBSCRIPTIONS, workflow_ids=workflow_ids))
        return grouped((row.workflow_id, row) for row in rows)

    def remove_one(self, workflow_id: int, topic: str, consumer: str) -> None:
        """Delete the subscription of a consumer to a topic."""
        self._db.change(REMOVE_SUBSCRIPTION, workflow_id=workflow_id, topic=topic, consumer=consumer)

    def forget_deleted(self) -> int:
        """Delete the subscriptions of deleted workflows that have no messages left; returns how many."""
        return self._db.change(FORGET_SUBSCRIPTIONS)
