"""The PostgreSQL store does what any store must do."""

from collections.abc import AsyncIterator

import pytest

from conformance.suite import *  # noqa: F403 - whatever a store must do, also what is added tomorrow
from conformance.suite import MakeStore
from postgres.server import emptied_url, server
from wakeful.stores.postgres import PostgresStore

__all__ = ["emptied_url", "server"]


@pytest.fixture
async def make_store(emptied_url: str) -> AsyncIterator[MakeStore]:
    """Stores on one schema."""
    opened: list[PostgresStore] = []

    async def make() -> PostgresStore:
        store = await PostgresStore.open(emptied_url)
        opened.append(store)
        return store

    yield make
    for store in opened:
        await store.close()
