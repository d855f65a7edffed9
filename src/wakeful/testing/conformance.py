# ruff: noqa: E402 - pytest must register the modules before they are imported, to rewrite their assertions
"""What every store must do, as tests.

To run them on a store, import the classes into a test module and provide a fixture `make_store`: a function without
arguments that opens the store of the current test, the same store on every call (as a second process would), and closes
everything it opened when the test ends.

    from wakeful.testing.conformance import *

The suite only knows the port; it runs under pytest with pytest-asyncio.
"""

import pytest

pytest.register_assert_rewrite(
    *(
        f"wakeful.testing.conformance_{part}"
        for part in (
            "batches",
            "bus",
            "cancels",
            "changes",
            "heartbeat",
            "ledger",
            "moving",
            "outbox",
            "plain",
            "plans",
            "self_scheduling",
            "slots",
            "store",
            "workflows",
        )
    )
)

from wakeful.testing.conformance_batches import TestBatches
from wakeful.testing.conformance_bus import TestBus
from wakeful.testing.conformance_cancels import TestCancels
from wakeful.testing.conformance_changes import TestChanges
from wakeful.testing.conformance_heartbeat import TestHeartbeats, TestSystemEvents
from wakeful.testing.conformance_ledger import (
    TestDueRuns,
    TestFences,
    TestPruning,
    TestReadingTheLedger,
    TestRunsAreWrittenOnce,
    TestWhatFellIntoAGap,
)
from wakeful.testing.conformance_moving import TestHandovers, TestOrigins
from wakeful.testing.conformance_outbox import TestChannels, TestInbox, TestIncidents, TestOutbox
from wakeful.testing.conformance_plain import TestPlainPath
from wakeful.testing.conformance_plans import TestAlarms, TestCadences, TestSchedules
from wakeful.testing.conformance_rows import MakeStore
from wakeful.testing.conformance_self_scheduling import TestSelfScheduling
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
    "TestCancels",
    "TestChanges",
    "TestChannels",
    "TestDueRuns",
    "TestFences",
    "TestHandovers",
    "TestHeartbeats",
    "TestInbox",
    "TestIncidents",
    "TestLanes",
    "TestLogins",
    "TestMessages",
    "TestMeta",
    "TestNodes",
    "TestOrigins",
    "TestOutbox",
    "TestOwners",
    "TestPlainPath",
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
