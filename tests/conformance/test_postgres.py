"""The PostgreSQL store does what any store must do."""

from collections.abc import AsyncIterator

import pytest

from postgres.server import server, url
from wakeful.stores.postgres import PostgresStore
from wakeful.testing.conformance import *  # noqa: F403 - whatever a store must do, also what is added tomorrow
from wakeful.testing.conformance import MakeStore

__all__ = ["server", "url"]


@pytest.fixture
async def make_store(url: str) -> AsyncIterator[MakeStore]:
    """Stores on one schema."""
    opened: list[PostgresStore] = []

    async def make() -> PostgresStore:
        store = await PostgresStore.open(url)
        opened.append(store)
        return store

    yield make
    for store in opened:
        await store.close()
