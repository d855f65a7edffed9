# ruff: noqa: E402 - pytest must register the modules before they are imported, to rewrite their assertions
"""What every store must do, as tests.

To run them on a store, import the classes into a test module and provide a fixture `make_store`: a function without
arguments that opens the store of the current test, the same store on every call (as a second process would), and closes
everything it opened when the test ends.

    from conformance.suite import *

The suite only knows the port; it runs under pytest with pytest-asyncio. A store outside this repository runs it with
`tests` of this version on its import path.
"""

from pathlib import Path

import pytest

_PARTS = {file.stem for file in Path(__file__).parent.glob("*.py")} - {"suite", "rows"}
pytest.register_assert_rewrite(*(f"conformance.{part}" for part in _PARTS))

from conformance.backfills import TestBackfills
from conformance.batches import TestBatches
from conformance.bus import TestBus
from conformance.cancels import TestCancels
from conformance.changes import TestChanges
from conformance.forecasts import TestForecasts
from conformance.heartbeat import TestHeartbeats, TestSystemEvents
from conformance.labelled import TestLabelled
from conformance.ledger import (
    TestDueRuns,
    TestFences,
    TestPruning,
    TestReadingTheLedger,
    TestRunsAreWrittenOnce,
    TestWhatFellIntoAGap,
)
from conformance.money import TestMoney
from conformance.moving import TestHandovers, TestOrigins
from conformance.outbox import TestChannels, TestInbox, TestIncidents, TestOutbox
from conformance.plain import MANY, TestPlainPath
from conformance.plans import TestAlarms, TestCadences, TestSchedules
from conformance.random_plain import TestPlainPathOnRandomStores
from conformance.rows import MakeStore
from conformance.self_scheduling import TestSelfScheduling
from conformance.slots import TestSlots
from conformance.store import (
    TestAnswers,
    TestLanes,
    TestLogins,
    TestMeta,
    TestNodes,
    TestOwners,
    TestTheClock,
    TestTransactions,
    TestWhatNodesPublish,
)
from conformance.workflows import TestClockSteps, TestMessages, TestSessions, TestWorkflows

__all__ = [
    "MANY",
    "MakeStore",
    "TestAlarms",
    "TestAnswers",
    "TestBackfills",
    "TestBatches",
    "TestBus",
    "TestCadences",
    "TestCancels",
    "TestChanges",
    "TestChannels",
    "TestClockSteps",
    "TestDueRuns",
    "TestFences",
    "TestForecasts",
    "TestHandovers",
    "TestHeartbeats",
    "TestInbox",
    "TestIncidents",
    "TestLabelled",
    "TestLanes",
    "TestLogins",
    "TestMessages",
    "TestMeta",
    "TestMoney",
    "TestNodes",
    "TestOrigins",
    "TestOutbox",
    "TestOwners",
    "TestPlainPath",
    "TestPlainPathOnRandomStores",
    "TestPruning",
    "TestReadingTheLedger",
    "TestRunsAreWrittenOnce",
    "TestSchedules",
    "TestSelfScheduling",
    "TestSessions",
    "TestSlots",
    "TestSystemEvents",
    "TestTheClock",
    "TestTransactions",
    "TestWhatFellIntoAGap",
    "TestWhatNodesPublish",
    "TestWorkflows",
]
