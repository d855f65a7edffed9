"""Hints from other nodes: each commit that may concern them is followed by a NOTIFY, and one connection here listens.

Nothing waits on that connection: what arrives lies in its buffer until `changed` is asked, which is one empty round
trip. The answer is certain for what was committed before the question, because the server delivers what it has before
it says that it is ready. A connection that was lost has missed hints, so losing one counts as a hint.

Behind a pooler nothing can be heard, because the session that listens serves others in between. There the answer is
always yes: those who ask look into the store each time, which costs more and misses nothing.
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
    """The channel on which the nodes of one schema hear of one another."""
    return f"wakeful_{schema}"


def news_of(schema: str, token: str) -> bytes:
    """The statement that tells the others; the token lets us ignore what we said ourselves."""
    return f"NOTIFY {channel_of(schema)}, '{token}'".encode()


class ListenerWorker:
    """One connection that hears; its only question is whether there was anything."""

    def __init__(self, door: Connector, token: str) -> None:
        self._door = door
        self._token = token.encode()
        self._connection: Connection | None = None
        self._is_deaf = False

    def serve(self, operation: Callable[[Any], Any]) -> Fate:
        return self.has_heard(), None

    def has_heard(self) -> bool:
        """Whether another process has told us anything since the last call, or may have."""
        if self._is_deaf:
            return True
        if self._connection is None:
            with suppress(psycopg.Error, StoreUnavailable):
                connection = self._door.open()
                if connection.is_pooled:
                    connection.close()
                    self._is_deaf = True
                    return True
                connection.execute(f"LISTEN {channel_of(self._door.address.schema)}".encode(), prepare=False)
                self._connection = connection
            return True
        pgconn = self._connection.pgconn
        try:
            is_alive = pgconn.exec_(b"").status == ExecStatus.EMPTY_QUERY
            is_news = False
            while (told := pgconn.notifies()) is not None:
                is_news = is_news or told.extra != self._token
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
