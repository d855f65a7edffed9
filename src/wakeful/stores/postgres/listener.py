"""Hints from other nodes: each commit that may concern them is followed by a NOTIFY, and one connection listens.

Nothing blocks on that connection: notifications stay in its buffer until `changed` is called, which is one empty round
trip. The result is certain for what was committed before the call, because the server delivers pending notifications
before it reports that it is ready. A lost connection may have missed hints, so losing it counts as a hint.

Behind a pooler LISTEN does not work, because the session serves others in between. There the result is always True:
callers check the store each time, which costs more and misses nothing.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import psycopg
from psycopg.pq import ExecStatus

from wakeful.ports.store import StoreUnavailable
from wakeful.stores.postgres.connection import Connection, Connector
from wakeful.stores.postgres.workers import Fate


def channel_of(schema: str) -> str:
    """The notification channel of the nodes of one schema."""
    return f"wakeful_{schema}"


def notify_of(schema: str, token: str) -> bytes:
    """The statement that notifies the other nodes; the token lets us ignore our own notifications."""
    return f"NOTIFY {channel_of(schema)}, '{token}'".encode()


class ListenerWorker:
    """One connection that listens; it only reports whether there was anything."""

    def __init__(self, connector: Connector, token: str) -> None:
        self._connector = connector
        self._token = token.encode()
        self._connection: Connection | None = None
        self._is_deaf = False

    def serve(self, operation: Callable[[Any], Any]) -> Fate:
        return self.has_notifications(), None

    def has_notifications(self) -> bool:
        """Whether another process has notified us since the last call, or may have."""
        if self._is_deaf:
            return True
        if self._connection is None:
            with suppress(psycopg.Error, StoreUnavailable):
                connection = self._connector.open()
                if connection.is_pooled:
                    connection.close()
                    self._is_deaf = True
                    return True
                connection.execute(f"LISTEN {channel_of(self._connector.address.schema)}".encode(), prepare=False)
                self._connection = connection
            return True
        pgconn = self._connection.pgconn
        try:
            is_alive = pgconn.exec_(b"").status == ExecStatus.EMPTY_QUERY
            is_news = False
            while (notification := pgconn.notifies()) is not None:
                is_news = is_news or notification.extra != self._token
        except psycopg.Error:
            is_alive = False
        if not is_alive:
            self.close()
            return True
        return is_news

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
