"""The messages of topics, in SQLite."""

import json
from collections.abc import Iterable, Sequence
from operator import attrgetter
from sqlite3 import Connection

from wakeful.core.time.instants import Instant
from wakeful.core.workflow.rows import Message, MessageStatus
from wakeful.ports.workflows import MOVED_COLUMNS, SubscriptionKey, Waiting
from wakeful.stores.sqlite.rows import columns_of, ids, plain, upsert_into

_COLUMNS = columns_of(Message, "messages")

# Messages by topic and id.
BY_IDS = f"""
SELECT {_COLUMNS} FROM json_each(?) AS wanted CROSS JOIN messages
ON messages.workflow_id = ? AND messages.topic = json_extract(wanted.value, '$[0]')
  AND messages.message_id = json_extract(wanted.value, '$[1]')
"""

# Insert or update a message.
PUT = upsert_into("messages", Message, key=("workflow_id", "topic", "message_id", "consumer"))

# Update the columns of a message that change.
SAVE = f"""
UPDATE messages SET {", ".join(f"{name} = ?" for name in MOVED_COLUMNS)}
WHERE workflow_id = ? AND topic = ? AND message_id = ? AND consumer = ?
"""
_moved = attrgetter(*MOVED_COLUMNS, "workflow_id", "topic", "message_id", "consumer")

# The pending messages of a consumer in a topic, oldest first.
PENDING = f"""
SELECT {_COLUMNS} FROM messages INDEXED BY messages_status
WHERE workflow_id = ? AND topic = ? AND consumer = ? AND status = 'pending' AND place > ? ORDER BY place LIMIT ?
"""

# Move all messages of a consumer in a topic to another consumer, except those it already has.
HAND_OVER = """
UPDATE messages SET consumer = :heir
WHERE workflow_id = :workflow_id AND topic = :topic AND consumer = :consumer AND NOT EXISTS (
  SELECT 1 FROM messages AS own
  WHERE own.workflow_id = :workflow_id AND own.topic = :topic AND own.message_id = messages.message_id
    AND own.consumer = :heir
)
"""
COUNT_PENDING = """
SELECT count(*) FROM messages INDEXED BY messages_status
WHERE workflow_id = ? AND topic = ? AND consumer = ? AND status = 'pending'
"""

# The messages a run has reserved.
OF_RUN = f"""
SELECT {_COLUMNS} FROM messages INDEXED BY messages_of_run
WHERE run_id = ? AND status = 'reserved' ORDER BY topic, place
"""

_OLDEST = """(
  SELECT published_at FROM messages INDEXED BY messages_status
  WHERE messages.workflow_id = subscriptions.workflow_id AND messages.topic = subscriptions.topic
    AND messages.consumer = subscriptions.consumer AND status = 'pending'
  ORDER BY place LIMIT 1
) AS since"""

# The oldest pending message of each subscription: one index seek each.
OLDEST = f"""
SELECT subscriptions.workflow_id, subscriptions.topic, subscriptions.consumer, {_OLDEST}
FROM json_each(?) AS wanted CROSS JOIN subscriptions ON subscriptions.workflow_id = wanted.value
WHERE since IS NOT NULL
"""

# Subscriptions of active workflows whose oldest pending message is too old.
WAITING_SINCE = f"""
SELECT name, topic, consumer, is_active, since FROM (
  SELECT workflows.name, subscriptions.topic, subscriptions.consumer, subscriptions.is_active, {_OLDEST}
  FROM workflows JOIN subscriptions ON subscriptions.workflow_id = workflows.workflow_id
  WHERE workflows.deleted_at IS NULL AND workflows.status = 'active'
) WHERE since < ? ORDER BY since, name, topic, consumer LIMIT ?
"""

# Counts by status, for all topics and consumers of these workflows: one index scan.
COUNTS = """
SELECT messages.workflow_id, topic, consumer, status, count(*)
FROM json_each(?) AS wanted CROSS JOIN messages INDEXED BY messages_status ON messages.workflow_id = wanted.value
GROUP BY messages.workflow_id, topic, consumer, status
"""

# Messages of a topic in the order of their places.
PAGE = f"""
SELECT {_COLUMNS} FROM messages WHERE workflow_id = :workflow_id AND topic = :topic AND place > :after_place
  AND (:status IS NULL OR status = :status) AND (:consumer IS NULL OR consumer = :consumer)
ORDER BY place LIMIT :limit
"""


class SqliteMessages:
    """See `ports.workflows.Messages`."""

    __slots__ = ("_connection",)

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def by_ids(self, workflow_id: int, keys: Iterable[tuple[str, str]]) -> dict[tuple[str, str], dict[str, Message]]:
        wanted = json.dumps(sorted(set(keys)))
        found: dict[tuple[str, str], dict[str, Message]] = {}
        for row in map(Message._make, self._connection.execute(BY_IDS, (wanted, workflow_id))):
            found.setdefault((row.topic, row.message_id), {})[row.consumer] = row
        return found

    def put_many(self, rows: Sequence[Message]) -> None:
        self._connection.executemany(PUT, plain(rows))

    def save_many(self, rows: Sequence[Message]) -> None:
        self._connection.executemany(SAVE, map(_moved, rows))

    def pending(
        self, workflow_id: int, topic: str, consumer: str, *, after_place: int = 0, limit: int
    ) -> list[Message]:
        rows = self._connection.execute(PENDING, (workflow_id, topic, consumer, after_place, limit))
        return list(map(Message._make, rows))

    def hand_over(self, workflow_id: int, topic: str, consumer: str, heir: str) -> int:
        wanted = {"workflow_id": workflow_id, "topic": topic, "consumer": consumer, "heir": heir}
        self._connection.execute(HAND_OVER, wanted)
        (pending,) = self._connection.execute(COUNT_PENDING, (workflow_id, topic, heir)).fetchone()
        return int(pending)

    def of_run(self, run_id: int) -> list[Message]:
        return list(map(Message._make, self._connection.execute(OF_RUN, (run_id,))))

    def oldest(self, workflow_ids: Iterable[int]) -> dict[SubscriptionKey, Instant]:
        rows = self._connection.execute(OLDEST, (ids(set(workflow_ids)),))
        return {(workflow_id, topic, consumer): since for workflow_id, topic, consumer, since in rows}

    def waiting_since(self, *, before: Instant, limit: int) -> list[Waiting]:
        return list(map(Waiting._make, self._connection.execute(WAITING_SINCE, (before, limit))))

    def counts(self, workflow_ids: Iterable[int]) -> dict[SubscriptionKey, dict[MessageStatus, int]]:
        found: dict[SubscriptionKey, dict[MessageStatus, int]] = {}
        rows = self._connection.execute(COUNTS, (ids(set(workflow_ids)),))
        for workflow_id, topic, consumer, status, count in rows:
            found.setdefault((workflow_id, topic, consumer), {})[status] = count
        return found

    def page(
        self,
        workflow_id: int,
        topic: str,
        *,
        after_place: int,
        limit: int,
        status: MessageStatus | None = None,
        consumer: str | None = None,
    ) -> list[Message]:
        wanted = {
            "workflow_id": workflow_id,
            "topic": topic,
            "after_place": after_place,
            "limit": limit,
            "status": status,
            "consumer": consumer,
        }
        return list(map(Message._make, self._connection.execute(PAGE, wanted)))
