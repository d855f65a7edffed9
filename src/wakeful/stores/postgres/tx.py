"""The transaction object of a PostgreSQL connection."""

from functools import partial

from wakeful.ports.changes import Change
from wakeful.stores.postgres.alarms import PostgresAlarms
from wakeful.stores.postgres.cadences import PostgresCadences
from wakeful.stores.postgres.connection import Session
from wakeful.stores.postgres.database import PostgresDatabase
from wakeful.stores.postgres.lanes import PostgresLanes
from wakeful.stores.postgres.new_schedules import add_schedules
from wakeful.stores.postgres.plain import PostgresPlainPath
from wakeful.stores.postgres.runs import PostgresRuns
from wakeful.stores.shared.tx import HotPath, StoreTx


def tx_on(session: Session) -> StoreTx:
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
    return StoreTx(PostgresDatabase(session), hot, changes)
