"""One transaction on one connection, grouped by noun. It has no state of its own, so it is reused."""

from wakeful.ports.store import Report
from wakeful.stores.postgres.alarms import PostgresAlarms
from wakeful.stores.postgres.answers import PostgresAnswers
from wakeful.stores.postgres.bus import PostgresBus
from wakeful.stores.postgres.cadences import PostgresCadences
from wakeful.stores.postgres.channels import PostgresChannels
from wakeful.stores.postgres.connection import Session
from wakeful.stores.postgres.deliveries import PostgresDeliveries
from wakeful.stores.postgres.heartbeats import PostgresHeartbeats
from wakeful.stores.postgres.inbox import PostgresInbox
from wakeful.stores.postgres.incidents import PostgresIncidents
from wakeful.stores.postgres.lanes import PostgresLanes
from wakeful.stores.postgres.logins import PostgresLogins
from wakeful.stores.postgres.messages import PostgresMessages
from wakeful.stores.postgres.meta import PostgresMeta
from wakeful.stores.postgres.nodes import PostgresNodes
from wakeful.stores.postgres.owners import PostgresOwners
from wakeful.stores.postgres.runs import PostgresRuns
from wakeful.stores.postgres.schedules import PostgresSchedules
from wakeful.stores.postgres.sessions import PostgresSessions
from wakeful.stores.postgres.slots import PostgresSlots
from wakeful.stores.postgres.system_events import PostgresSystemEvents
from wakeful.stores.postgres.workflows import PostgresWorkflows


class PostgresTx:
    """See `ports.store.Tx`."""

    __slots__ = (
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

    def __init__(self, session: Session) -> None:
        self.schedules = PostgresSchedules(session)
        self.slots = PostgresSlots(session)
        self.cadences = PostgresCadences(session)
        self.alarms = PostgresAlarms(session)
        self.runs = PostgresRuns(session)
        self.lanes = PostgresLanes(session)
        self.nodes = PostgresNodes(session)
        self.owners = PostgresOwners(session)
        self.heartbeats = PostgresHeartbeats(session)
        self.system_events = PostgresSystemEvents(session)
        self.workflows = PostgresWorkflows(session)
        self.messages = PostgresMessages(session)
        self.sessions = PostgresSessions(session)
        self.meta = PostgresMeta(session)
        self.answers = PostgresAnswers(session)
        self.logins = PostgresLogins(session)
        self.deliveries = PostgresDeliveries(session)
        self.channels = PostgresChannels(session)
        self.inbox = PostgresInbox(session)
        self.incidents = PostgresIncidents(session)
        self.bus = PostgresBus(session)

    def report(self, report: Report) -> None:
        """A bare store has no listeners; `observe.eventing_store` passes reports on."""
