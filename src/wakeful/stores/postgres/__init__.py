"""The store in a PostgreSQL database, for several nodes."""

from wakeful.stores.postgres.clock import PostgresClock
from wakeful.stores.postgres.connection import Timeouts
from wakeful.stores.postgres.fate import CommitUnknown
from wakeful.stores.postgres.migrate import DatabaseRefused
from wakeful.stores.postgres.store import PostgresStore

__all__ = ["CommitUnknown", "DatabaseRefused", "PostgresClock", "PostgresStore", "Timeouts"]
