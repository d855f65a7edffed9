"""One transaction on one connection, grouped by noun. It is reused for the next, after its changes were cleared."""

from typing import NamedTuple

from wakeful.ports.changes import Change
from wakeful.ports.plain import PlainPath
from wakeful.ports.store import Alarms, Cadences, Lanes, Report, Runs
from wakeful.stores.shared.answers import SharedAnswers
from wakeful.stores.shared.backfills import SharedBackfills
from wakeful.stores.shared.bus import SharedBus
from wakeful.stores.shared.cancels import SharedCancels
from wakeful.stores.shared.channels import SharedChannels
from wakeful.stores.shared.database import Database
from wakeful.stores.shared.deliveries import SharedDeliveries
from wakeful.stores.shared.forecasts import SharedForecasts
from wakeful.stores.shared.heartbeats import SharedHeartbeats
from wakeful.stores.shared.inbox import SharedInbox
from wakeful.stores.shared.incidents import SharedIncidents
from wakeful.stores.shared.labelled import SharedLabelled
from wakeful.stores.shared.logins import SharedLogins
from wakeful.stores.shared.merged_runs import SharedMergedRuns
from wakeful.stores.shared.messages import SharedMessages
from wakeful.stores.shared.meta import SharedMeta
from wakeful.stores.shared.money import SharedBudgets, SharedCharges
from wakeful.stores.shared.moving import SharedHandovers, SharedOrigins
from wakeful.stores.shared.nodes import SharedNodes
from wakeful.stores.shared.owners import SharedOwners
from wakeful.stores.shared.schedules import AddSchedules, SharedSchedules
from wakeful.stores.shared.self_scheduling import SharedOwnerships, SharedProposals
from wakeful.stores.shared.sessions import SharedSessions
from wakeful.stores.shared.slots import SharedSlots
from wakeful.stores.shared.system_events import SharedSystemEvents
from wakeful.stores.shared.totals import SharedTotals
from wakeful.stores.shared.workflows import SharedWorkflows


class HotPath(NamedTuple):
    """The part that each database implements itself: the tables that every fire writes."""

    cadences: Cadences
    alarms: Alarms
    runs: Runs
    lanes: Lanes
    plain: PlainPath
    add_schedules: AddSchedules


class StoreTx:
    """See `ports.store.Tx`."""

    __slots__ = (
        "alarms",
        "answers",
        "backfills",
        "budgets",
        "bus",
        "cadences",
        "cancels",
        "changes",
        "channels",
        "charges",
        "db",
        "deliveries",
        "forecasts",
        "handovers",
        "heartbeats",
        "inbox",
        "incidents",
        "labelled",
        "lanes",
        "logins",
        "merged_runs",
        "messages",
        "meta",
        "nodes",
        "origins",
        "owners",
        "ownerships",
        "plain",
        "proposals",
        "runs",
        "schedules",
        "sessions",
        "slots",
        "system_events",
        "totals",
        "workflows",
    )

    def __init__(self, db: Database, hot: HotPath, changes: list[Change]) -> None:
        self.db = db
        self.changes = changes
        self.cadences = hot.cadences
        self.alarms = hot.alarms
        self.runs = hot.runs
        self.lanes = hot.lanes
        self.plain = hot.plain
        self.schedules = SharedSchedules(db, hot.add_schedules, changes)
        self.labelled = SharedLabelled(db)
        self.slots = SharedSlots(db)
        self.nodes = SharedNodes(db, changes)
        self.owners = SharedOwners(db)
        self.ownerships = SharedOwnerships(db)
        self.proposals = SharedProposals(db)
        self.heartbeats = SharedHeartbeats(db)
        self.system_events = SharedSystemEvents(db)
        self.workflows = SharedWorkflows(db)
        self.messages = SharedMessages(db)
        self.sessions = SharedSessions(db)
        self.meta = SharedMeta(db)
        self.answers = SharedAnswers(db)
        self.logins = SharedLogins(db)
        self.totals = SharedTotals(db)
        self.deliveries = SharedDeliveries(db)
        self.channels = SharedChannels(db)
        self.inbox = SharedInbox(db)
        self.incidents = SharedIncidents(db)
        self.bus = SharedBus(db)
        self.origins = SharedOrigins(db)
        self.handovers = SharedHandovers(db)
        self.merged_runs = SharedMergedRuns(db)
        self.charges = SharedCharges(db)
        self.budgets = SharedBudgets(db, self.charges)
        self.cancels = SharedCancels(db)
        self.backfills = SharedBackfills(db)
        self.forecasts = SharedForecasts(db)

    def report(self, report: Report) -> None:
        self.changes.append(report)
