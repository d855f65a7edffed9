"""Workflows, their handlers and their topics, in PostgreSQL. The row of a workflow is the lock for everything in it."""

from collections.abc import Iterable, Sequence
from typing import Final

from wakeful.core.time.instants import Instant
from wakeful.core.workflow.rows import Handler, Subscription, Topic, Workflow
from wakeful.ports.workflows import ALARM_WORKFLOW, NewWorkflow
from wakeful.stores.postgres.connection import Session
from wakeful.stores.postgres.due import due_of
from wakeful.stores.postgres.rows import arrays, columns_of, fields_of, ids, text_array, texts, update_of, upsert_into

_COLUMNS = columns_of(Workflow, "workflows")
_TEXTS: Final = frozenset({"name", "definition", "origin", "status", "error"})
_HANDLER_TEXTS: Final = frozenset({"name", "kind", "state", "last_error", "turn_topic", "lap_topic"})
_TOPIC_TEXTS: Final = frozenset({"name"})
_SUBSCRIPTION_TEXTS: Final = frozenset({"topic", "consumer"})
_FIXED: Final = ("name", "created_at")

# Insert one workflow and return its id; an existing name is skipped.
ADD = """
INSERT INTO workflows (name, owner_id, definition, version, origin, status, created_at, updated_at)
VALUES ($1, $2, $3, 1, $4, $5, $6, $6) ON CONFLICT (name) WHERE deleted_at IS NULL DO NOTHING RETURNING workflow_id
"""

# The existing workflows with these names.
BY_NAMES = f"SELECT {_COLUMNS} FROM workflows WHERE deleted_at IS NULL AND name = ANY($1::text[])"

# Workflows by id, including deleted ones.
BY_IDS = f"SELECT {_COLUMNS} FROM workflows WHERE workflow_id = ANY($1::bigint[]) ORDER BY workflow_id"

# The same, locked.
LOCK = f"{BY_IDS} FOR UPDATE"

# Workflows whose alarm is due; without and with locks.
LOOK_DUE, DUE = due_of(ALARM_WORKFLOW, "workflows", "workflow_id", fields_of(Workflow))

# Update whole rows.
SAVE = update_of("workflows", Workflow, _TEXTS, key="workflow_id", fixed=_FIXED)

# Existing workflows ordered by name.
PAGE = f"SELECT {_COLUMNS} FROM workflows WHERE deleted_at IS NULL AND name > $1 ORDER BY name LIMIT $2"

# Those that wait for a person. There are too few workflows to justify an index.
STOPPED = f"""
SELECT {_COLUMNS} FROM workflows WHERE deleted_at IS NULL AND status = 'active' AND error IS NOT NULL
ORDER BY name LIMIT $1
"""

# Existing workflows in id order; locked in that order.
AFTER = f"SELECT {_COLUMNS} FROM workflows WHERE workflow_id > $1 AND deleted_at IS NULL ORDER BY workflow_id LIMIT $2"

# Handlers of these workflows, in the order of their definitions.
HANDLERS = f"""
SELECT {columns_of(Handler, "workflow_handlers")} FROM workflow_handlers
WHERE workflow_id = ANY($1::bigint[]) ORDER BY workflow_id, place
"""

# Insert or update handlers.
SAVE_HANDLERS = upsert_into("workflow_handlers", Handler, _HANDLER_TEXTS, key=("workflow_id", "name"))

# Delete handlers.
REMOVE_HANDLERS = "DELETE FROM workflow_handlers WHERE workflow_id = $1 AND name = ANY($2::text[])"

# Topics of these workflows.
TOPICS = f"""
SELECT {columns_of(Topic, "topics")} FROM topics WHERE workflow_id = ANY($1::bigint[]) ORDER BY workflow_id, name
"""

# Insert or update topics.
SAVE_TOPICS = upsert_into("topics", Topic, _TOPIC_TEXTS, key=("workflow_id", "name"))

# Subscriptions of these workflows.
SUBSCRIPTIONS = f"""
SELECT {columns_of(Subscription, "subscriptions")} FROM subscriptions
WHERE workflow_id = ANY($1::bigint[]) ORDER BY workflow_id, topic, consumer
"""

# Insert or update subscriptions.
SAVE_SUBSCRIPTIONS = upsert_into(
    "subscriptions", Subscription, _SUBSCRIPTION_TEXTS, key=("workflow_id", "topic", "consumer")
)

# Delete subscriptions.
REMOVE_SUBSCRIPTIONS = """
DELETE FROM subscriptions
WHERE workflow_id = $1 AND (topic, consumer) IN (SELECT * FROM unnest($2::text[], $3::text[]))
"""

# Consumers with pending messages: one lookup per subscription.
WITH_PENDING = """
WITH busy AS (
  SELECT subscriptions.workflow_id, subscriptions.consumer FROM subscriptions
  JOIN workflows ON workflows.workflow_id = subscriptions.workflow_id AND workflows.deleted_at IS NULL
  WHERE subscriptions.workflow_id > $1 AND subscriptions.is_active = 1 AND EXISTS (
    SELECT 1 FROM messages
    WHERE messages.workflow_id = subscriptions.workflow_id AND messages.topic = subscriptions.topic
      AND messages.consumer = subscriptions.consumer AND messages.status = 'pending'
  )
)
SELECT DISTINCT workflow_id, consumer FROM busy
WHERE workflow_id IN (SELECT DISTINCT workflow_id FROM busy ORDER BY workflow_id LIMIT $2)
ORDER BY workflow_id, consumer
"""

# Rows of deleted workflows that have no open run.
FORGET_MESSAGES = """
DELETE FROM messages WHERE ctid = ANY(ARRAY(
  SELECT messages.ctid FROM workflows JOIN messages ON messages.workflow_id = workflows.workflow_id
  WHERE deleted_at IS NOT NULL AND open_run_id IS NULL LIMIT $1
))
"""
_EMPTY = """
SELECT workflow_id FROM workflows WHERE deleted_at IS NOT NULL AND open_run_id IS NULL
  AND NOT EXISTS (SELECT 1 FROM messages WHERE messages.workflow_id = workflows.workflow_id)
"""
FORGET_HANDLERS = f"DELETE FROM workflow_handlers WHERE workflow_id IN ({_EMPTY})"
FORGET_TOPICS = f"DELETE FROM topics WHERE workflow_id IN ({_EMPTY})"
FORGET_SUBSCRIPTIONS = f"DELETE FROM subscriptions WHERE workflow_id IN ({_EMPTY})"


class PostgresWorkflows:
    """See `ports.workflows.Workflows`."""

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def add(self, row: NewWorkflow) -> int | None:
        added = self._session.change_returning(ADD, *row)
        return int(added[0][0]) if added else None

    def by_names(self, names: Sequence[str]) -> dict[str, Workflow]:
        rows = map(Workflow._make, self._session.rows(BY_NAMES, texts(set(names))))
        return {row.name: row for row in rows}

    def by_ids(self, workflow_ids: Iterable[int]) -> dict[int, Workflow]:
        rows = map(Workflow._make, self._session.rows(BY_IDS, ids(set(workflow_ids))))
        return {row.workflow_id: row for row in rows}

    def lock(self, workflow_ids: Iterable[int]) -> dict[int, Workflow]:
        query = BY_IDS if self._session.is_reading else LOCK
        rows = map(Workflow._make, self._session.rows(query, ids(set(workflow_ids))))
        return {row.workflow_id: row for row in rows}

    def due(self, *, now: Instant, limit: int) -> list[Workflow]:
        query = LOOK_DUE if self._session.is_reading else DUE
        return list(map(Workflow._make, self._session.rows(query, now, limit)))

    def save_many(self, rows: Sequence[Workflow]) -> None:
        if rows:
            self._session.save(SAVE, len(rows), *arrays(rows, Workflow, _TEXTS, fixed=_FIXED))

    def page(self, *, after: str | None, limit: int) -> list[Workflow]:
        return list(map(Workflow._make, self._session.rows(PAGE, after or "", limit)))

    def stopped(self, *, limit: int) -> list[Workflow]:
        return list(map(Workflow._make, self._session.rows(STOPPED, limit)))

    def after(self, workflow_id: int, *, limit: int) -> list[Workflow]:
        query = AFTER if self._session.is_reading else f"{AFTER} FOR UPDATE"
        return list(map(Workflow._make, self._session.rows(query, workflow_id, limit)))

    def handlers(self, workflow_ids: Iterable[int]) -> dict[int, list[Handler]]:
        found: dict[int, list[Handler]] = {}
        for row in map(Handler._make, self._session.rows(HANDLERS, ids(set(workflow_ids)))):
            found.setdefault(row.workflow_id, []).append(row)
        return found

    def save_handlers(self, rows: Sequence[Handler]) -> None:
        if rows:
            self._session.change(SAVE_HANDLERS, *arrays(rows, Handler, _HANDLER_TEXTS))

    def remove_handlers(self, workflow_id: int, names: Sequence[str]) -> None:
        self._session.change(REMOVE_HANDLERS, workflow_id, texts(names))

    def topics(self, workflow_ids: Iterable[int]) -> dict[int, list[Topic]]:
        found: dict[int, list[Topic]] = {}
        for row in map(Topic._make, self._session.rows(TOPICS, ids(set(workflow_ids)))):
            found.setdefault(row.workflow_id, []).append(row)
        return found

    def save_topics(self, rows: Sequence[Topic]) -> None:
        if rows:
            self._session.change(SAVE_TOPICS, *arrays(rows, Topic, _TOPIC_TEXTS))

    def subscriptions(self, workflow_ids: Iterable[int]) -> dict[int, list[Subscription]]:
        found: dict[int, list[Subscription]] = {}
        for row in map(Subscription._make, self._session.rows(SUBSCRIPTIONS, ids(set(workflow_ids)))):
            found.setdefault(row.workflow_id, []).append(row)
        return found

    def save_subscriptions(self, rows: Sequence[Subscription]) -> None:
        if rows:
            self._session.change(SAVE_SUBSCRIPTIONS, *arrays(rows, Subscription, _SUBSCRIPTION_TEXTS))

    def remove_subscriptions(self, workflow_id: int, keys: Sequence[tuple[str, str]]) -> None:
        if keys:
            topics, consumers = zip(*keys, strict=True)
            self._session.change(REMOVE_SUBSCRIPTIONS, workflow_id, text_array(topics), text_array(consumers))

    def with_pending(self, *, after_id: int, limit: int) -> dict[int, list[str]]:
        found: dict[int, list[str]] = {}
        for workflow_id, consumer in self._session.rows(WITH_PENDING, after_id, limit):
            found.setdefault(workflow_id, []).append(consumer)
        return found

    def forget_deleted(self, *, limit: int) -> int:
        gone = self._session.change(FORGET_MESSAGES, limit)
        return gone + sum(map(self._session.change, (FORGET_HANDLERS, FORGET_TOPICS, FORGET_SUBSCRIPTIONS)))
