"""APScheduler 3 as its guide sets it up for durable jobs: SQLAlchemy's job store, a pool of threads or asyncio.

A late job is dropped after one second by default; here it may be as late as it likes, else a burst would be lost. On
SQLite the file is in write-ahead mode, which spares APScheduler two of three syncs, with `synchronous = FULL`.
"""

from typing import Any, Final

from apscheduler.executors.asyncio import AsyncIOExecutor
from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.schedulers.base import BaseScheduler
from sqlalchemy import create_engine, event

WORKERS: Final = 10  # APScheduler's own default
DEFAULTS: Final = {"misfire_grace_time": None, "coalesce": True, "max_instances": 1}


def job_store(store: str) -> SQLAlchemyJobStore:
    """The store at an address: a file's path, or postgresql://…"""
    if store.startswith("postgresql://"):
        return SQLAlchemyJobStore(engine=create_engine(store.replace("postgresql://", "postgresql+psycopg://", 1)))
    engine = create_engine(f"sqlite:///{store}")

    @event.listens_for(engine, "connect")
    def set_up(connection: Any, _: Any) -> None:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")

    return SQLAlchemyJobStore(engine=engine)


def make_scheduler(store: str, executor: str) -> BaseScheduler:
    """A scheduler over that store; the asyncio one has to be made on its loop."""
    kind, pool = (
        (AsyncIOScheduler, AsyncIOExecutor())
        if executor == "asyncio"
        else (BackgroundScheduler, ThreadPoolExecutor(WORKERS))
    )
    return kind(
        jobstores={"default": job_store(store)}, executors={"default": pool}, job_defaults=DEFAULTS, timezone="UTC"
    )
