"""The PostgreSQL store does what any store must do."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from conformance.suite import *  # noqa: F403 - whatever a store must do, also what is added tomorrow
from conformance.suite import MakeStore
from postgres.server import Server, emptied_url, server
from wakeful.stores.postgres import PostgresStore

__all__ = ["emptied_url", "server"]


@pytest.fixture(scope="module")
def idle(server: Server) -> Iterator[list[PostgresStore]]:
    """Stores that earlier tests have opened: to connect takes longer than most of these tests."""
    stores: list[PostgresStore] = []
    yield stores
    asyncio.run(_close(stores))


@pytest.fixture
async def make_store(emptied_url: str, idle: list[PostgresStore]) -> AsyncIterator[MakeStore]:
    """Stores on one schema."""
    used: list[PostgresStore] = []

    async def make() -> PostgresStore:
        store = idle.pop() if idle else await PostgresStore.open(emptied_url)
        used.append(store)
        await store.changed()  # what earlier tests wrote is no news
        return store

    yield make
    ready = [store for store in used if _is_at_rest(store)]
    idle += ready
    await _close([store for store in used if store not in ready])


def _is_at_rest(store: PostgresStore) -> bool:
    """Whether it is open, and nothing that a test submitted is under way."""
    return not store._is_closed and not store._writers._unanswered and not store._readers._unanswered


async def _close(stores: list[PostgresStore]) -> None:
    for store in stores:
        await store.close()
