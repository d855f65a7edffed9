# ruff: noqa: E402 - pytest must know the parts before they are imported, to explain what they assert
"""What any store must do, as tests.

To run them on a store, import the classes into a test module and give them a fixture `make_store`: a function without
arguments that opens the store of the current test, at the same place on every call (as a second process would), and
closes whatever was opened when the test is over.

    from wakeful.testing.conformance import *

The suite knows the port and nothing of any store; it runs under pytest with pytest-asyncio.
"""

import pytest

pytest.register_assert_rewrite(
    *(
        f"wakeful.testing.conformance_{part}"
        for part in ("batches", "bus", "heartbeat", "ledger", "outbox", "plans", "slots", "store", "workflows")
    )
)

from wakeful.testing.conformance_batches import TestBatches
from wakeful.testing.conformance_bus import TestBus
from wakeful.testing.conformance_heartbeat import TestHeartbeats, TestSystemEvents
from wakeful.testing.conformance_ledger import (
    TestDueRuns,
    TestFences,
    TestPruning,
    TestReadingTheLedger,
    TestRunsAreWrittenOnce,
    TestWhatFellIntoAGap,
)
from wakeful.testing.conformance_outbox import TestChannels, TestInbox, TestIncidents, TestOutbox
from wakeful.testing.conformance_plans import TestAlarms, TestCadences, TestSchedules
from wakeful.testing.conformance_rows import MakeStore
from wakeful.testing.conformance_slots import TestSlots
from wakeful.testing.conformance_store import (
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
from wakeful.testing.conformance_workflows import TestMessages, TestSessions, TestWorkflows

__all__ = [
    "MakeStore",
    "TestAlarms",
    "TestAnswers",
    "TestBatches",
    "TestBus",
    "TestCadences",
    "TestChannels",
    "TestDueRuns",
    "TestFences",
    "TestHeartbeats",
    "TestInbox",
    "TestIncidents",
    "TestLanes",
    "TestLogins",
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
    "TestWhatFellIntoAGap",
    "TestWhatNodesPublish",
    "TestWorkflows",
]
