"""The messages of topics, in SQLite."""

import json
from collections.abc import Iterable, Sequence
from operator import attrgetter
from sqlite3 import Connection

from wakeful.core.instants import Instant
from wakeful.core.workflow_rows import Message, MessageStatus
from wakeful.ports.workflows import MOVED_COLUMNS, TopicKey
from wakeful.stores.sqlite.rows import columns_of, ids, plain, upsert_into

_COLUMNS = columns_of(Message, "messages")

# Messages by topic and id.
BY_IDS = f"""
SELECT {_COLUMNS} FROM json_each(?) AS wanted CROSS JOIN messages
ON messages.workflow_id = ? AND messages.topic = json_extract(wanted.value, '$[0]')
  AND messages.message_id = json_extract(wanted.value, '$[1]')
"""

# Write a message, new or known.
PUT = upsert_into("messages", Message, key=("workflow_id", "topic", "message_id"))

# Write what moved of a known message back.
SAVE = f"""
UPDATE messages SET {", ".join(f"{name} = ?" for name in MOVED_COLUMNS)}
WHERE workflow_id = ? AND topic = ? AND message_id = ?
"""
_moved = attrgetter(*MOVED_COLUMNS, "workflow_id", "topic", "message_id")

# The pending messages of a topic, oldest first.
PENDING = f"""
SELECT {_COLUMNS} FROM messages INDEXED BY messages_status
WHERE workflow_id = ? AND topic = ? AND status = 'pending' ORDER BY place LIMIT ?
"""

# What a run holds in reservation.
OF_RUN = f"""
SELECT {_COLUMNS} FROM messages INDEXED BY messages_of_run
WHERE run_id = ? AND status = 'reserved' ORDER BY topic, place
"""

# The oldest pending message of each topic: one seek each.
OLDEST = """
SELECT topics.workflow_id, topics.name, (
  SELECT published_at FROM messages INDEXED BY messages_status
  WHERE messages.workflow_id = topics.workflow_id AND messages.topic = topics.name AND status = 'pending'
  ORDER BY place LIMIT 1
) AS since
FROM json_each(?) AS wanted CROSS JOIN topics ON topics.workflow_id = wanted.value WHERE since IS NOT NULL
"""

# How many of each status, for all topics of these workflows: one walk in the index.
COUNTS = """
SELECT messages.workflow_id, topic, status, count(*)
FROM json_each(?) AS wanted CROSS JOIN messages INDEXED BY messages_status ON messages.workflow_id = wanted.value
GROUP BY messages.workflow_id, topic, status
"""

# Messages of a topic in the order of their places.
PAGE = f"SELECT {_COLUMNS} FROM messages WHERE workflow_id = ? AND topic = ? AND place > ? ORDER BY place LIMIT ?"


class SqliteMessages:
    """See `ports.workflows.Messages`."""

    __slots__ = ("_connection",)

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def by_ids(self, workflow_id: int, keys: Iterable[tuple[str, str]]) -> dict[tuple[str, str], Message]:
        wanted = json.dumps(sorted(set(keys)))
        rows = map(Message._make, self._connection.execute(BY_IDS, (wanted, workflow_id)))
        return {(row.topic, row.message_id): row for row in rows}

    def put_many(self, rows: Sequence[Message]) -> None:
        self._connection.executemany(PUT, plain(rows))

    def save_many(self, rows: Sequence[Message]) -> None:
        self._connection.executemany(SAVE, map(_moved, rows))

    def pending(self, workflow_id: int, topic: str, *, limit: int) -> list[Message]:
        return list(map(Message._make, self._connection.execute(PENDING, (workflow_id, topic, limit))))

    def of_run(self, run_id: int) -> list[Message]:
        return list(map(Message._make, self._connection.execute(OF_RUN, (run_id,))))

    def oldest(self, workflow_ids: Iterable[int]) -> dict[TopicKey, Instant]:
        rows = self._connection.execute(OLDEST, (ids(set(workflow_ids)),))
        return {(workflow_id, topic): since for workflow_id, topic, since in rows}

    def counts(self, workflow_ids: Iterable[int]) -> dict[TopicKey, dict[MessageStatus, int]]:
        found: dict[TopicKey, dict[MessageStatus, int]] = {}
        for workflow_id, topic, status, count in self._connection.execute(COUNTS, (ids(set(workflow_ids)),)):
            found.setdefault((workflow_id, topic), {})[status] = count
        return found

    def page(self, workflow_id: int, topic: str, *, after_place: int, limit: int) -> list[Message]:
        return list(map(Message._make, self._connection.execute(PAGE, (workflow_id, topic, after_place, limit))))
