"""Workflows, their handlers and their topics. The row of a workflow is the lock for everything in it."""

from collections.abc import Iterable, Sequence

from wakeful.core.time.instants import Instant
from wakeful.core.workflow.rows import Feed, Handler, Loaded, Subscription, Topic, Workflow
from wakeful.ports.database import Database, PerDatabase, Table, grouped
from wakeful.ports.queries import due_of
from wakeful.ports.workflows import ALARM_WORKFLOW, NewWorkflow
from wakeful.stores.shared.payloads import forget_unused

_WORKFLOWS = Table("workflows", Workflow, key=("workflow_id",), fixed=("name", "created_at"))
_HANDLERS = Table("workflow_handlers", Handler, key=("workflow_id", "name"))
_TOPICS = Table("topics", Topic, key=("workflow_id", "name"))
_SUBSCRIPTIONS = Table("subscriptions", Subscription, key=("workflow_id", "topic", "consumer"))
_LOADED = Table("loaded_workflows", Loaded, key=("workflow", "node", "host", "pid"))
_FEEDS = Table("workflow_feeds", Feed, key=("source_id", "consumer", "target_id", "topic"))
_COLUMNS = _WORKFLOWS.columns

# Insert one workflow and return its id; an existing name is skipped.
ADD = """
INSERT INTO workflows (name, owner_id, definition, version, origin, status, created_at, updated_at)
VALUES (:name, :owner_id, :definition, 1, :origin, :status, :created_at, :created_at)
ON CONFLICT (name) WHERE deleted_at IS NULL DO NOTHING RETURNING workflow_id
"""

# The existing workflows with these names.
BY_NAMES = f"SELECT {_COLUMNS} FROM workflows INDEXED BY workflows_name WHERE deleted_at IS NULL AND name IN :names"

# Workflows by id, including deleted ones.
BY_IDS = f"SELECT {_COLUMNS} FROM workflows WHERE workflow_id IN :workflow_ids ORDER BY workflow_id"

# The same, locked.
LOCK = f"{BY_IDS} FOR UPDATE"

# Workflows whose alarm is due, locked.
DUE = due_of(ALARM_WORKFLOW, _WORKFLOWS)

# The same, without Python workflows that other processes have loaded, unless they were left to them for a while.
DUE_HERE = due_of(
    ALARM_WORKFLOW,
    _WORKFLOWS,
    which="\n  AND (workflows.origin <> 'python' OR workflows.name IN :loaded OR alarms.due_at <= :left_by)",
)

# Existing workflows ordered by name.
PAGE = f"""
SELECT {_COLUMNS} FROM workflows INDEXED BY workflows_name
WHERE deleted_at IS NULL AND name > :after ORDER BY name LIMIT :limit
"""

# Workflows that wait for a person. There are too few workflows to justify an index.
STOPPED = f"""
SELECT {_COLUMNS} FROM workflows INDEXED BY workflows_name
WHERE deleted_at IS NULL AND status = 'active' AND error IS NOT NULL ORDER BY name LIMIT :limit
"""

# Python workflows that may run.
OF_PYTHON = f"""
SELECT {_COLUMNS} FROM workflows INDEXED BY workflows_name
WHERE deleted_at IS NULL AND origin = 'python' AND status = 'active' AND error IS NULL ORDER BY name LIMIT :limit
"""

# The processes that loaded Python workflows.
LOADED = f"SELECT {_LOADED.columns} FROM loaded_workflows ORDER BY workflow, loaded_at, node, host, pid"

# Which consumers published to which topics through the API.
FEEDS = f"""
SELECT {_FEEDS.columns} FROM workflow_feeds WHERE seen_at >= :since ORDER BY source_id, consumer, target_id, topic
"""
FORGET_FEEDS = "DELETE FROM workflow_feeds WHERE seen_at < :before"

# Forget one of them.
FORGET_LOADED = """
DELETE FROM loaded_workflows WHERE workflow = :workflow AND node = :node AND host = :host AND pid = :pid
"""

# Existing workflows in id order, locked in that order.
AFTER = f"""
SELECT {_COLUMNS} FROM workflows WHERE workflow_id > :after_id AND deleted_at IS NULL
ORDER BY workflow_id LIMIT :limit FOR UPDATE
"""

# Handlers of these workflows, in the order of their definitions.
HANDLERS = f"""
SELECT {_HANDLERS.columns} FROM workflow_handlers WHERE workflow_id IN :workflow_ids ORDER BY workflow_id, place
"""

# Delete handlers.
REMOVE_HANDLERS = "DELETE FROM workflow_handlers WHERE workflow_id = :workflow_id AND name IN :names"

# Topics of these workflows.
TOPICS = f"SELECT {_TOPICS.columns} FROM topics WHERE workflow_id IN :workflow_ids ORDER BY workflow_id, name"

# Subscriptions of these workflows.
SUBSCRIPTIONS = f"""
SELECT {_SUBSCRIPTIONS.columns} FROM subscriptions WHERE workflow_id IN :workflow_ids
ORDER BY workflow_id, topic, consumer
"""

# Delete a subscription.
REMOVE_SUBSCRIPTION = """
DELETE FROM subscriptions WHERE workflow_id = :workflow_id AND topic = :topic AND consumer = :consumer
"""

# Consumers with pending messages: one lookup per subscription.
WITH_PENDING = """
WITH busy AS (
  SELECT subscriptions.workflow_id, subscriptions.consumer FROM subscriptions
  JOIN workflows ON workflows.workflow_id = subscriptions.workflow_id AND workflows.deleted_at IS NULL
  WHERE subscriptions.workflow_id > :after_id AND subscriptions.is_active = 1 AND EXISTS (
    SELECT 1 FROM messages INDEXED BY messages_status
    WHERE messages.workflow_id = subscriptions.workflow_id AND messages.topic = subscriptions.topic
      AND messages.consumer = subscriptions.consumer AND messages.status = 'pending'
  )
)
SELECT DISTINCT workflow_id, consumer FROM busy
WHERE workflow_id IN (SELECT DISTINCT workflow_id FROM busy ORDER BY workflow_id LIMIT :limit)
ORDER BY workflow_id, consumer
"""

# Delete messages of deleted workflows that have no open run. They are found by their place in the table.
_DELETED = """
  SELECT messages.{place} FROM workflows JOIN messages ON messages.workflow_id = workflows.workflow_id
  WHERE deleted_at IS NOT NULL AND open_run_id IS NULL LIMIT :limit
"""
_KEYS = "RETURNING workflow_id, topic, message_id"
FORGET_MESSAGES = PerDatabase(
    sqlite=f"DELETE FROM messages WHERE rowid IN ({_DELETED.format(place='rowid')}) {_KEYS}",
    postgres=f"DELETE FROM messages WHERE ctid = ANY(ARRAY({_DELETED.format(place='ctid')})) {_KEYS}",
)

# Delete what else belongs to them once they have no messages.
_EMPTY = """
SELECT workflow_id FROM workflows WHERE deleted_at IS NOT NULL AND open_run_id IS NULL
  AND NOT EXISTS (SELECT 1 FROM messages WHERE messages.workflow_id = workflows.workflow_id)
"""
FORGET_HANDLERS = f"DELETE FROM workflow_handlers WHERE workflow_id IN ({_EMPTY})"
FORGET_TOPICS = f"DELETE FROM topics WHERE workflow_id IN ({_EMPTY})"
FORGET_SUBSCRIPTIONS = f"DELETE FROM subscriptions WHERE workflow_id IN ({_EMPTY})"


class SharedWorkflows:
    """See `ports.workflows.Workflows`."""

    __slots__ = ("_db",)

    def __init__(self, db: Database) -> None:
        self._db = db

    def add(self, row: NewWorkflow) -> int | None:
        added = self._db.change_returning(ADD, **row._asdict())
        return next((workflow_id for (workflow_id,) in added), None)

    def by_names(self, names: Sequence[str]) -> dict[str, Workflow]:
        rows = map(Workflow._make, self._db.rows(BY_NAMES, names=names))
        return {row.name: row for row in rows}

    def by_ids(self, workflow_ids: Iterable[int]) -> dict[int, Workflow]:
        rows = map(Workflow._make, self._db.rows(BY_IDS, workflow_ids=workflow_ids))
        return {row.workflow_id: row for row in rows}

    def lock(self, workflow_ids: Iterable[int]) -> dict[int, Workflow]:
        rows = map(Workflow._make, self._db.rows(LOCK, workflow_ids=workflow_ids))
        return {row.workflow_id: row for row in rows}

    def due(self, *, now: Instant, limit: int) -> list[Workflow]:
        return list(map(Workflow._make, self._db.rows(DUE, now=now, limit=limit)))

    def due_here(self, *, now: Instant, left_by: Instant, loaded: Iterable[str], limit: int) -> list[Workflow]:
        rows = self._db.rows(DUE_HERE, now=now, left_by=left_by, loaded=loaded, limit=limit)
        return list(map(Workflow._make, rows))

    def loaded(self) -> list[Loaded]:
        return list(map(Loaded._make, self._db.rows(LOADED)))

    def save_loaded(self, rows: Sequence[Loaded]) -> None:
        self._db.upsert(_LOADED, rows)

    def forget_loaded(self, row: Loaded) -> None:
        self._db.change(FORGET_LOADED, workflow=row.workflow, node=row.node, host=row.host, pid=row.pid)

    def feeds(self, *, since: Instant) -> list[Feed]:
        return list(map(Feed._make, self._db.rows(FEEDS, since=since)))

    def save_feeds(self, rows: Sequence[Feed]) -> None:
        self._db.upsert(_FEEDS, rows)

    def forget_feeds(self, *, before: Instant) -> int:
        return self._db.change(FORGET_FEEDS, before=before)

    def of_python(self, *, limit: int) -> list[Workflow]:
        return list(map(Workflow._make, self._db.rows(OF_PYTHON, limit=limit)))

    def save_many(self, rows: Sequence[Workflow]) -> None:
        self._db.update(_WORKFLOWS, rows)

    def page(self, *, after: str | None, limit: int) -> list[Workflow]:
        return list(map(Workflow._make, self._db.rows(PAGE, after=after or "", limit=limit)))

    def stopped(self, *, limit: int) -> list[Workflow]:
        return list(map(Workflow._make, self._db.rows(STOPPED, limit=limit)))

    def after(self, workflow_id: int, *, limit: int) -> list[Workflow]:
        return list(map(Workflow._make, self._db.rows(AFTER, after_id=workflow_id, limit=limit)))

    def handlers(self, workflow_ids: Iterable[int]) -> dict[int, list[Handler]]:
        rows = map(Handler._make, self._db.rows(HANDLERS, workflow_ids=workflow_ids))
        return grouped((row.workflow_id, row) for row in rows)

    def save_handlers(self, rows: Sequence[Handler]) -> None:
        self._db.upsert(_HANDLERS, rows)

    def remove_handlers(self, workflow_id: int, names: Sequence[str]) -> None:
        self._db.change(REMOVE_HANDLERS, workflow_id=workflow_id, names=names)

    def topics(self, workflow_ids: Iterable[int]) -> dict[int, list[Topic]]:
        rows = map(Topic._make, self._db.rows(TOPICS, workflow_ids=workflow_ids))
        return grouped((row.workflow_id, row) for row in rows)

    def save_topics(self, rows: Sequence[Topic]) -> None:
        self._db.upsert(_TOPICS, rows)

    def subscriptions(self, workflow_ids: Iterable[int]) -> dict[int, list[Subscription]]:
        rows = map(Subscription._make, self._db.rows(SUBSCRIPTIONS, workflow_ids=workflow_ids))
        return grouped((row.workflow_id, row) for row in rows)

    def save_subscriptions(self, rows: Sequence[Subscription]) -> None:
        self._db.upsert(_SUBSCRIPTIONS, rows)

    def remove_subscriptions(self, workflow_id: int, keys: Sequence[tuple[str, str]]) -> None:
        for topic, consumer in sorted(keys):
            self._db.change(REMOVE_SUBSCRIPTION, workflow_id=workflow_id, topic=topic, consumer=consumer)

    def with_pending(self, *, after_id: int, limit: int) -> dict[int, list[str]]:
        return grouped(self._db.rows(WITH_PENDING, after_id=after_id, limit=limit))

    def forget_deleted(self, *, limit: int) -> int:
        gone = self._db.change_returning(FORGET_MESSAGES, limit=limit)
        forget_unused(self._db, gone)
        return len(gone) + sum(map(self._db.change, (FORGET_HANDLERS, FORGET_TOPICS, FORGET_SUBSCRIPTIONS)))
