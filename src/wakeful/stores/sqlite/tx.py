"""The transaction object of a SQLite connection."""

from functools import partial
from sqlite3 import Connection

from wakeful.ports.changes import Change
from wakeful.ports.store import HotPath, Tx
from wakeful.stores.sqlite.alarms import SqliteAlarms
from wakeful.stores.sqlite.cadences import SqliteCadences
from wakeful.stores.sqlite.database import SqliteDatabase
from wakeful.stores.sqlite.lanes import SqliteLanes
from wakeful.stores.sqlite.new_schedules import add_schedules
from wakeful.stores.sqlite.plain import SqlitePlainPath
from wakeful.stores.sqlite.runs import SqliteRuns


def tx_on(connection: Connection) -> Tx:
    """Transactions on this connection."""
    changes: list[Change] = []
    hot = HotPath(
        SqliteCadences(connection, changes),
        SqliteAlarms(connection),
        SqliteRuns(connection, changes),
        SqliteLanes(connection),
        SqlitePlainPath(connection, changes),
        partial(add_schedules, connection),
    )
    return Tx(SqliteDatabase(connection), hot, changes)
