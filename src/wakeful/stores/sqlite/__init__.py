"""The store in one SQLite file."""

from wakeful.stores.sqlite.group import Crashed
from wakeful.stores.sqlite.migrate import DatabaseRefused
from wakeful.stores.sqlite.store import SqliteStore
from wakeful.stores.sqlite.writer import Hook

__all__ = ["Crashed", "DatabaseRefused", "Hook", "SqliteStore"]
