"""The PostgreSQL store does what any store must do."""

from collections.abc import AsyncIterator

import pytest

from postgres.server import server, url
from wakeful.stores.postgres import PostgresStore
from wakeful.testing.conformance import (
    MakeStore,
    TestAlarms,
    TestAnswers,
    TestCadences,
    TestChannels,
    TestDueRuns,
    TestFences,
    TestHeartbeats,
    TestInbox,
    TestIncidents,
    TestLanes,
    TestMessages,
    TestMeta,
    TestNodes,
    TestOutbox,
    TestOwners,
    TestPruning,
    TestReadingTheLedger,
    TestRunsAreWrittenOnce,
    TestSchedules,
    TestSessions,
    TestSlots,
    TestSystemEvents,
    TestTheClock,
    TestTransactions,
    TestWorkflows,
)

__all__ = [
    "TestAlarms",
    "TestAnswers",
    "TestCadences",
    "TestChannels",
    "TestDueRuns",
    "TestFences",
    "TestHeartbeats",
    "TestInbox",
    "TestIncidents",
    "TestLanes",
    "TestMessages",
    "TestMeta",
    "TestNodes",
    "TestOutbox",
    "TestOwners",
    "TestPruning",
    "TestReadingTheLedger",
    "TestRunsAreWrittenOnce",
    "TestSchedules",
    "TestSessions",
    "TestSlots",
    "TestSystemEvents",
    "TestTheClock",
    "TestTransactions",
    "TestWorkflows",
    "server",
    "url",
]


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
