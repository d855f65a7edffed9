"""One transaction on one connection, grouped by noun. It has no state of its own, so it is reused."""

from sqlite3 import Connection

from wakeful.ports.store import Report
from wakeful.stores.sqlite.alarms import SqliteAlarms
from wakeful.stores.sqlite.answers import SqliteAnswers
from wakeful.stores.sqlite.bus import SqliteBus
from wakeful.stores.sqlite.cadences import SqliteCadences
from wakeful.stores.sqlite.channels import SqliteChannels
from wakeful.stores.sqlite.deliveries import SqliteDeliveries
from wakeful.stores.sqlite.heartbeats import SqliteHeartbeats
from wakeful.stores.sqlite.inbox import SqliteInbox
from wakeful.stores.sqlite.incidents import SqliteIncidents
from wakeful.stores.sqlite.lanes import SqliteLanes
from wakeful.stores.sqlite.logins import SqliteLogins
from wakeful.stores.sqlite.messages import SqliteMessages
from wakeful.stores.sqlite.meta import SqliteMeta
from wakeful.stores.sqlite.nodes import SqliteNodes
from wakeful.stores.sqlite.owners import SqliteOwners
from wakeful.stores.sqlite.runs import SqliteRuns
from wakeful.stores.sqlite.schedules import SqliteSchedules
from wakeful.stores.sqlite.sessions import SqliteSessions
from wakeful.stores.sqlite.slots import SqliteSlots
from wakeful.stores.sqlite.system_events import SqliteSystemEvents
from wakeful.stores.sqlite.workflows import SqliteWorkflows

# Changes when another connection has written.
DATA_VERSION = "PRAGMA data_version"


class SqliteTx:
    """See `ports.store.Tx`."""

    __slots__ = (
        "_connection",
        "alarms",
        "answers",
        "bus",
        "cadences",
        "channels",
        "deliveries",
        "heartbeats",
        "inbox",
        "incidents",
        "lanes",
        "logins",
        "messages",
        "meta",
        "nodes",
        "owners",
        "runs",
        "schedules",
        "sessions",
        "slots",
        "system_events",
        "workflows",
    )

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.schedules = SqliteSchedules(connection)
        self.slots = SqliteSlots(connection)
        self.cadences = SqliteCadences(connection)
        self.alarms = SqliteAlarms(connection)
        self.runs = SqliteRuns(connection)
        self.lanes = SqliteLanes(connection)
        self.nodes = SqliteNodes(connection)
        self.owners = SqliteOwners(connection)
        self.heartbeats = SqliteHeartbeats(connection)
        self.system_events = SqliteSystemEvents(connection)
        self.workflows = SqliteWorkflows(connection)
        self.messages = SqliteMessages(connection)
        self.sessions = SqliteSessions(connection)
        self.meta = SqliteMeta(connection)
        self.answers = SqliteAnswers(connection)
        self.logins = SqliteLogins(connection)
        self.deliveries = SqliteDeliveries(connection)
        self.channels = SqliteChannels(connection)
        self.inbox = SqliteInbox(connection)
        self.incidents = SqliteIncidents(connection)
        self.bus = SqliteBus(connection)

    def report(self, report: Report) -> None:
        """A bare store has no listeners; `observe.eventing_store` passes reports on."""

    def data_version(self) -> int:
        """A number that differs from the last one of this connection if another connection wrote since."""
        (version,) = self._connection.execute(DATA_VERSION).fetchone()
        return int(version)
