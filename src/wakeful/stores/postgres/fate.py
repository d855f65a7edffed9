"""What became of a commit whose answer was lost.

Usually the server can be asked. When it cannot for too long, the caller is told `CommitUnknown`, and most operations
are safe to repeat: a settlement finds its run closed and leaves it alone, an identical definition changes nothing, a
mark is written twice. A claim is not: if it was kept, runs are ours that we know nothing of, and nobody would perform
them. So a node that had such a commit gives up its lease at its next renewal (`UncertainCommits`, `nodes.renew`) and
starts over: whatever the old incarnation owned is then found and rescued like the runs of any node that died.
"""

import time
from typing import Final, NamedTuple

import psycopg

from wakeful.core.schedule.policies import SECOND
from wakeful.ports.store import StoreUnavailable
from wakeful.stores.postgres.connection import Connection, Connector, UncertainCommits

# What the server knows of a transaction: committed, aborted, in progress; nothing, if it is too old.
STATUS = "SELECT pg_xact_status($1::xid8)"

# End a transaction that still hangs on a connection we lost. Its number is compared, because the process id alone may
# by now be another's.
END = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = $2 AND backend_xid = $1::xid8::xid"

PAUSE_S: Final = 0.1


class UncertainCommit(NamedTuple):
    """A transaction whose COMMIT was sent and not answered."""

    xid: str
    backend_pid: int


class CommitUnknown(StoreUnavailable):
    """COMMIT was sent, the connection broke, and the server could not be asked since: it was kept or it was not."""


def resolve(doubt: UncertainCommit, door: Connector, doubts: UncertainCommits) -> None:
    """Return if it was kept; raise `StoreUnavailable` if it was not, `CommitUnknown` if nobody could say."""
    # A stopwatch, and not the clock port: this thread waits for a server, and nothing that is due depends on it.
    until = time.monotonic() + door.patience.doubt / SECOND
    while True:
        status = _ask(doubt, door)
        if status == "committed":
            return
        if status == "aborted":
            raise StoreUnavailable("the connection was lost during commit; nothing of this was kept")
        if time.monotonic() >= until:
            doubts.is_any = True
            raise CommitUnknown("the connection was lost during commit, and the server cannot say what became of it")
        time.sleep(PAUSE_S)


def _ask(doubt: UncertainCommit, door: Connector) -> str | None:
    try:
        connection = door.open()
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
