"""From schema 10, where a topic had one consumer: what is there becomes that consumer's, in both stores."""

from pathlib import Path
from typing import Any

import psycopg

from postgres.server import Server, schema_of, server, url
from wakeful.core.workflow.rows import Subscription, Topic
from wakeful.features.workflows.message_rows import Message, Messages
from wakeful.features.workflows.state_rows import Subscriptions, Topics
from wakeful.ports.store import Store, Tx
from wakeful.ports.workflows import StoredWorkflows
from wakeful.stores.postgres import PostgresStore
from wakeful.stores.postgres import migrate as postgres
from wakeful.stores.postgres.address import parse
from wakeful.stores.postgres.connection import Timeouts
from wakeful.stores.postgres.connection import connect as connect_to
from wakeful.stores.sqlite import SqliteStore
from wakeful.stores.sqlite import migrate as sqlite
from wakeful.stores.sqlite.files import APPLICATION_ID

__all__ = ["server", "url"]

OLD = 10
ROWS = """
INSERT INTO workflows (name, owner_id, definition, version, origin, status, created_at, updated_at)
  VALUES ('one', -1, '{}', 3, 'rest', 'active', 0, 0);
INSERT INTO workflows (name, owner_id, definition, version, origin, status, created_at, updated_at)
  VALUES ('two', -2, '{}', 2, 'rest', 'draft', 0, 0);
INSERT INTO topics (workflow_id, name, consumer, published, seen) VALUES (1, 'mail', 'digest', 3, 2);
INSERT INTO topics (workflow_id, name, consumer, published, seen) VALUES (1, 'left', NULL, 2, 1);
INSERT INTO topics (workflow_id, name, consumer, published, seen) VALUES (1, 'empty', NULL, 1, 1);
INSERT INTO messages (workflow_id, topic, message_id, place, seq, payload, status, attempt, run_id, published_by,
  published_at, updated_at) VALUES (1, 'mail', 'a', 1, 1, '1', 'consumed', 1, 7, NULL, 10, 11);
INSERT INTO messages (workflow_id, topic, message_id, place, seq, payload, status, attempt, run_id, published_by,
  published_at, updated_at) VALUES (1, 'mail', 'b', 2, 3, '2', 'pending', 2, NULL, 6, 12, 13);
INSERT INTO messages (workflow_id, topic, message_id, place, seq, payload, status, attempt, run_id, published_by,
  published_at, updated_at) VALUES (1, 'left', 'c', 1, 2, '3', 'pending', 1, NULL, NULL, 14, 14)
"""


async def judge(store: Store) -> None:
    """What the new release finds."""

    def look(tx: Tx) -> Any:
        return (
            tx[Topics].of([1]),
            tx[Subscriptions].of([1]),
            tx[Messages].page(1, "mail", after_place=0, limit=9),
            tx[Messages].page(1, "left", after_place=0, limit=9),
            [row.tried_version for row in tx[StoredWorkflows].page(after=None, limit=9)],
        )

    topics, subscriptions, mail, left, tried = await store.read(look)
    assert topics == {1: [Topic(1, "empty", 1), Topic(1, "left", 2), Topic(1, "mail", 3)]}
    assert subscriptions == {
        1: [Subscription(1, "left", "", 2, 1, 0), Subscription(1, "mail", "digest", 3, 2, 1)],
    }
    assert mail == [
        Message(1, "mail", "digest", "a", 1, 1, "1", "consumed", 1, 7, None, 10, 11),
        Message(1, "mail", "digest", "b", 2, 3, "2", "pending", 2, None, 6, 12, 13),
    ]
    assert [(row.consumer, row.message_id, row.status) for row in left] == [("", "c", "pending")]
    assert tried == [3, 0]


async def test_sqlite(tmp_path: Path) -> None:
    """One step, with the file copied before."""
    path = tmp_path / "wakeful.db"
    connection = sqlite.sqlite3.connect(path, isolation_level=None)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    sqlite.migrate(connection, path, [step for step in sqlite.migrations() if step.number <= OLD])
    for statement in ROWS.split(";\n"):
        connection.execute(statement)
    connection.close()
    store = await SqliteStore.open(path)
    await judge(store)
    await store.close()


async def test_postgres(url: str, server: Server) -> None:
    """One step, in one transaction."""
    schema = schema_of(url)
    await (await PostgresStore.open(url)).close()
    with server.connect() as connection:
        connection.execute(f"DROP SCHEMA {schema} CASCADE".encode())
        connection.execute(f"CREATE SCHEMA {schema}".encode())
    with connect_to(parse(url), Timeouts()) as connection:
        _at_old(connection, schema)
    store = await PostgresStore.open(url)
    await judge(store)
    await store.close()


def _at_old(connection: psycopg.Connection[Any], schema: str) -> None:
    postgres.migrate(connection, schema, [step for step in postgres.migrations() if step.number <= OLD])
    for statement in ROWS.split(";\n"):
        connection.execute(statement.encode(), prepare=False)
