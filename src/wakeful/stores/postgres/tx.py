"""The transaction object of a PostgreSQL connection."""

from functools import partial

from wakeful.ports.changes import Change
from wakeful.ports.store import HotPath, Tx
from wakeful.stores.postgres.alarms import PostgresAlarms
from wakeful.stores.postgres.cadences import PostgresCadences
from wakeful.stores.postgres.connection import Session
from wakeful.stores.postgres.database import PostgresDatabase
from wakeful.stores.postgres.lanes import PostgresLanes
from wakeful.stores.postgres.new_schedules import add_schedules
from wakeful.stores.postgres.plain import PostgresPlainPath
from wakeful.stores.postgres.runs import PostgresRuns


def tx_on(session: Session) -> Tx:
    """Transactions on this connection."""
    changes: list[Change] = []
    hot = HotPath(
        PostgresCadences(session, changes),
        PostgresAlarms(session),
        PostgresRuns(session, changes),
        PostgresLanes(session),
        PostgresPlainPath(session, changes),
        partial(add_schedules, session),
    )
    return Tx(PostgresDatabase(session), hot, changes)
