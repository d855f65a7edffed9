"""Resolving a commit whose response was lost.

Usually the server can be asked. If it cannot be reached for too long, the caller gets `CommitUnknown`, and most
operations are safe to repeat: a settlement finds its run closed and leaves it alone, an identical definition changes
nothing, a mark is written twice. A claim is not: if it was committed, we own runs that we do not know of, and no node
would perform them. So a node with such a commit gives up its lease at its next renewal (`UncertainCommits`,
`nodes.renew`) and enters again: the runs of the old incarnation are then rescued like those of any dead node.
"""

import time
from typing import Final, NamedTuple

import psycopg

from wakeful.core.time.instants import SECOND
from wakeful.ports.store import StoreUnavailable
from wakeful.stores.postgres.connection import Connection, Connector, UncertainCommits

# The server's status of a transaction: committed, aborted, in progress; NULL if it is too old.
STATUS = "SELECT pg_xact_status($1::xid8)"

# End a transaction that is still open on a connection we lost. Its number is compared, because the process id alone
# may have been reused.
END = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = $2 AND backend_xid = $1::xid8::xid"

PAUSE_S: Final = 0.1


class UncertainCommit(NamedTuple):
    """A transaction whose COMMIT was sent and got no response."""

    xid: str
    backend_pid: int


class CommitUnknown(StoreUnavailable):
    """COMMIT was sent, the connection broke, and the server cannot be reached: it was committed or it was not."""


def resolve(doubt: UncertainCommit, connector: Connector, uncertain: UncertainCommits) -> None:
    """Return if it was committed; raise `StoreUnavailable` if it was not, `CommitUnknown` if that is unknown."""
    until = connector.monotonic() + connector.timeouts.doubt / SECOND
    while True:
        status = _ask(doubt, connector)
        if status == "committed":
            return
        if status == "aborted":
            raise StoreUnavailable("the connection was lost during commit; nothing was stored")
        if connector.monotonic() >= until:
            uncertain.is_any = True
            raise CommitUnknown("the connection was lost during commit, and the server does not know its result")
        time.sleep(PAUSE_S)


def _ask(doubt: UncertainCommit, connector: Connector) -> str | None:
    try:
        connection = connector.open()
    except StoreUnavailable:
        return None
    try:
        return _status(connection, doubt)
    except psycopg.Error:
        return None
    finally:
        connection.close()


def _status(connection: Connection, doubt: UncertainCommit) -> str | None:
    found = connection.execute(STATUS.encode(), [doubt.xid]).fetchone()
    status = None if found is None else found[0]
    if status == "in progress":
        connection.execute(END.encode(), [doubt.xid, str(doubt.backend_pid)])
    return status
