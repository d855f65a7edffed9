"""Workflows, their handlers and their topics, in SQLite."""

from collections.abc import Iterable, Sequence
from sqlite3 import Connection

from wakeful.core.time.instants import Instant
from wakeful.core.workflow.rows import Handler, Subscription, Topic, Workflow
from wakeful.ports.workflows import ALARM_WORKFLOW, NewWorkflow
from wakeful.stores.sqlite.due import due_of
from wakeful.stores.sqlite.rows import columns_of, ids, plain, texts, update_of, upsert_into

_COLUMNS = columns_of(Workflow, "workflows")

# Insert one workflow and return its id; an existing name is skipped.
ADD = """
INSERT INTO workflows (name, owner_id, definition, version, origin, status, created_at, updated_at)
VALUES (:name, :owner_id, :definition, 1, :origin, :status, :created_at, :created_at)
ON CONFLICT (name) WHERE deleted_at IS NULL DO NOTHING
"""

# The existing workflows with these names.
BY_NAMES = f"""
SELECT {_COLUMNS} FROM workflows INDEXED BY workflows_name
WHERE deleted_at IS NULL AND name IN (SELECT value FROM json_each(?))
"""

# Workflows by id, including deleted ones. There is one writer, so reading a row is locking it.
BY_IDS = f"SELECT {_COLUMNS} FROM json_each(?) AS wanted CROSS JOIN workflows ON workflow_id = wanted.value"

# Workflows whose alarm is due.
DUE = due_of(ALARM_WORKFLOW, "workflows", "workflow_id", _COLUMNS)

# Update a whole row.
SAVE = update_of("workflows", Workflow, key=("workflow_id",), fixed=("name", "created_at"))

# Existing workflows ordered by name.
PAGE = f"""
SELECT {_COLUMNS} FROM workflows INDEXED BY workflows_name
WHERE deleted_at IS NULL AND name > ? ORDER BY name LIMIT ?
"""

# Those that wait for a person. There are too few workflows to justify an index.
STOPPED = f"""
SELECT {_COLUMNS} FROM workflows INDEXED BY workflows_name
WHERE deleted_at IS NULL AND status = 'active' AND error IS NOT NULL ORDER BY name LIMIT ?
"""

# Existing workflows in id order.
AFTER = f"SELECT {_COLUMNS} FROM workflows WHERE workflow_id > ? AND deleted_at IS NULL ORDER BY workflow_id LIMIT ?"

# Handlers of these workflows, in the order of their definitions.
HANDLERS = f"""
SELECT {columns_of(Handler, "workflow_handlers")}
FROM json_each(?) AS wanted CROSS JOIN workflow_handlers ON workflow_id = wanted.value ORDER BY workflow_id, place
"""

# Insert or update a handler.
SAVE_HANDLER = upsert_into("workflow_handlers", Handler, key=("workflow_id", "name"))

# Delete handlers.
REMOVE_HANDLERS = """
DELETE FROM workflow_handlers WHERE workflow_id = ? AND name IN (SELECT value FROM json_each(?))
"""

# Topics of these workflows.
TOPICS = f"""
SELECT {columns_of(Topic, "topics")}
FROM json_each(?) AS wanted CROSS JOIN topics ON workflow_id = wanted.value ORDER BY workflow_id, name
"""

# Insert or update a topic.
SAVE_TOPIC = upsert_into("topics", Topic, key=("workflow_id", "name"))

# Subscriptions of these workflows.
SUBSCRIPTIONS = f"""
SELECT {columns_of(Subscription, "subscriptions")}
FROM json_each(?) AS wanted CROSS JOIN subscriptions ON workflow_id = wanted.value
ORDER BY workflow_id, topic, consumer
"""

# Insert or update a subscription.
SAVE_SUBSCRIPTION = upsert_into("subscriptions", Subscription, key=("workflow_id", "topic", "consumer"))

# Delete a subscription.
REMOVE_SUBSCRIPTION = "DELETE FROM subscriptions WHERE workflow_id = ? AND topic = ? AND consumer = ?"

_HAS_PENDING = """EXISTS (
    SELECT 1 FROM messages INDEXED BY messages_status
    WHERE messages.workflow_id = subscriptions.workflow_id AND messages.topic = subscriptions.topic
      AND messages.consumer = subscriptions.consumer AND messages.status = 'pending'
  )"""

# Consumers with pending messages: one lookup per subscription.
WITH_PENDING = f"""
SELECT subscriptions.workflow_id, subscriptions.consumer FROM subscriptions
WHERE subscriptions.is_active AND subscriptions.workflow_id IN (
  SELECT workflow_id FROM workflows WHERE workflow_id > ? AND deleted_at IS NULL AND EXISTS (
    SELECT 1 FROM subscriptions WHERE subscriptions.workflow_id = workflows.workflow_id
      AND subscriptions.is_active AND {_HAS_PENDING}
  ) ORDER BY workflow_id LIMIT ?
) AND {_HAS_PENDING}
GROUP BY subscriptions.workflow_id, subscriptions.consumer
ORDER BY subscriptions.workflow_id, subscriptions.consumer
"""

# Rows of deleted workflows that have no open run.
FORGET_MESSAGES = """
DELETE FROM messages WHERE rowid IN (
  SELECT messages.rowid FROM workflows JOIN messages ON messages.workflow_id = workflows.workflow_id
  WHERE deleted_at IS NOT NULL AND open_run_id IS NULL LIMIT ?
)
"""
_EMPTY = """
SELECT workflow_id FROM workflows WHERE deleted_at IS NOT NULL AND open_run_id IS NULL
  AND NOT EXISTS (SELECT 1 FROM messages WHERE messages.workflow_id = workflows.workflow_id)
"""
FORGET_HANDLERS = f"DELETE FROM workflow_handlers WHERE workflow_id IN ({_EMPTY})"
FORGET_TOPICS = f"DELETE FROM topics WHERE workflow_id IN ({_EMPTY})"
FORGET_SUBSCRIPTIONS = f"DELETE FROM subscriptions WHERE workflow_id IN ({_EMPTY})"


class SqliteWorkflows:
    """See `ports.workflows.Workflows`."""

    __slots__ = ("_connection",)

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, row: NewWorkflow) -> int | None:
        added = self._connection.execute(ADD, row._asdict())
        return added.lastrowid if added.rowcount else None

    def by_names(self, names: Sequence[str]) -> dict[str, Workflow]:
        rows = map(Workflow._make, self._connection.execute(BY_NAMES, (texts(set(names)),)))
        return {row.name: row for row in rows}

    def by_ids(self, workflow_ids: Iterable[int]) -> dict[int, Workflow]:
        rows = map(Workflow._make, self._connection.execute(BY_IDS, (ids(set(workflow_ids)),)))
        return {row.workflow_id: row for row in rows}

    def lock(self, workflow_ids: Iterable[int]) -> dict[int, Workflow]:
        return self.by_ids(workflow_ids)

    def due(self, *, now: Instant, limit: int) -> list[Workflow]:
        return list(map(Workflow._make, self._connection.execute(DUE, {"now": now, "limit": limit})))

    def save_many(self, rows: Sequence[Workflow]) -> None:
        self._connection.executemany(SAVE, plain(rows))

    def page(self, *, after: str | None, limit: int) -> list[Workflow]:
        return list(map(Workflow._make, self._connection.execute(PAGE, (after or "", limit))))

    def stopped(self, *, limit: int) -> list[Workflow]:
        return list(map(Workflow._make, self._connection.execute(STOPPED, (limit,))))

    def after(self, workflow_id: int, *, limit: int) -> list[Workflow]:
        return list(map(Workflow._make, self._connection.execute(AFTER, (workflow_id, limit))))

    def handlers(self, workflow_ids: Iterable[int]) -> dict[int, list[Handler]]:
        found: dict[int, list[Handler]] = {}
        for row in map(Handler._make, self._connection.execute(HANDLERS, (ids(set(workflow_ids)),))):
            found.setdefault(row.workflow_id, []).append(row)
        return found

    def save_handlers(self, rows: Sequence[Handler]) -> None:
        self._connection.executemany(SAVE_HANDLER, plain(rows))

    def remove_handlers(self, workflow_id: int, names: Sequence[str]) -> None:
        self._connection.execute(REMOVE_HANDLERS, (workflow_id, texts(names)))

    def topics(self, workflow_ids: Iterable[int]) -> dict[int, list[Topic]]:
        found: dict[int, list[Topic]] = {}
        for row in map(Topic._make, self._connection.execute(TOPICS, (ids(set(workflow_ids)),))):
            found.setdefault(row.workflow_id, []).append(row)
        return found

    def save_topics(self, rows: Sequence[Topic]) -> None:
        self._connection.executemany(SAVE_TOPIC, plain(rows))

    def subscriptions(self, workflow_ids: Iterable[int]) -> dict[int, list[Subscription]]:
        found: dict[int, list[Subscription]] = {}
        for row in map(Subscription._make, self._connection.execute(SUBSCRIPTIONS, (ids(set(workflow_ids)),))):
            found.setdefault(row.workflow_id, []).append(row)
        return found

    def save_subscriptions(self, rows: Sequence[Subscription]) -> None:
        self._connection.executemany(SAVE_SUBSCRIPTION, plain(rows))

    def remove_subscriptions(self, workflow_id: int, keys: Sequence[tuple[str, str]]) -> None:
        gone = [(workflow_id, topic, consumer) for topic, consumer in keys]
        self._connection.executemany(REMOVE_SUBSCRIPTION, gone)

    def with_pending(self, *, after_id: int, limit: int) -> dict[int, list[str]]:
        found: dict[int, list[str]] = {}
        for workflow_id, consumer in self._connection.execute(WITH_PENDING, (after_id, limit)):
            found.setdefault(workflow_id, []).append(consumer)
        return found

    def forget_deleted(self, *, limit: int) -> int:
        gone = self._connection.execute(FORGET_MESSAGES, (limit,)).rowcount
        for forget in (FORGET_HANDLERS, FORGET_TOPICS, FORGET_SUBSCRIPTIONS):
            gone += self._connection.execute(forget).rowcount
        return gone
