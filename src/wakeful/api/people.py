"""People: what Wakeful tells them, what they tell it, and what needs their attention."""

from typing import Annotated

from wakeful.api.approvals import Approvals
from wakeful.api.channels import Channels
from wakeful.api.deliveries import Deliveries
from wakeful.api.operation import Blocking, Returns, read, write
from wakeful.api.parameters import Param
from wakeful.api.today import Today
from wakeful.core.time.instants import Instant
from wakeful.engine.incidents import end_incident
from wakeful.features.delivery import alerts
from wakeful.features.delivery.alerts import ALERTS, Alerts
from wakeful.features.schedules import commands
from wakeful.ports.store import Tx


class People(Deliveries, Channels, Approvals, Today):
    """Deliveries, channels, the inbox, alerts, approvals, and what needs attention."""

    @read(
        "GET /api/alerts",
        "List open and recent incidents",
        Returns(ALERTS, "Open incidents first."),
        id="list_alerts",
    )
    def alerts(
        self,
        tx: Tx,
        now: Instant,
        *,
        limit: Annotated[int, Param("maximum number of closed incidents", least=1, most=1_000)] = 50,
        is_open: Annotated[bool, Param("only open incidents", name="open")] = False,
    ) -> Alerts:
        return alerts.alerts(tx, limit=limit, is_open=is_open)

    @write(
        "POST /api/alerts/{id}/acknowledge",
        "Acknowledge an incident",
        Returns(ALERTS, "The incidents that are still open."),
        refuses=(404,),
        id="acknowledge_alert",
    )
    def acknowledge(
        self,
        tx: Tx,
        now: Instant,
        alert_id: Annotated[
            str, Param(name="id", schema={"type": "string", "pattern": "^[0-9]{1,18}$", "examples": ["7"]})
        ],
    ) -> Alerts:
        """Closes the incident without a recovery message. If its subject fails again, that is a new incident."""
        row = alerts.find(tx, alert_id)
        known = {} if row.owner_id is None else tx.schedules.by_ids([row.owner_id])
        if row.owner_id in known and known[row.owner_id].deleted_at is None:
            commands.acknowledge(tx, known[row.owner_id].slug, now=now)
        else:
            end_incident(tx, row.name, now=now)
        return alerts.alerts(tx, is_open=True)


class BlockingPeople(People, Blocking):
    """What Wakeful tells people, and what they tell it, for programs without an event loop."""
