"""Incidents: people are alerted once when something fails, and once when it has recovered.

An alert is a delivery like any other and may itself fail. It is never sent through a channel that has an open incident
itself; another channel is used, and finally the inbox, which cannot fail. So however many channels fail, each is
reported once, and alerts cannot loop.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from wakeful.core.delivery.incidents import Incident
from wakeful.core.run.effects import Alert, Recovered
from wakeful.core.time.instants import HOUR, Duration, Instant, format_duration
from wakeful.engine.incident_rows import Incidents
from wakeful.features.delivery.queue import Target, enqueue, route
from wakeful.features.delivery.registry import INBOX, LAST, ChannelRegistry
from wakeful.ports import events
from wakeful.ports.event_data import IncidentClosed, IncidentOpened
from wakeful.ports.names import names_of
from wakeful.ports.outbox import Purpose
from wakeful.ports.store import Report, Tx

CHANNEL: Final = "delivery"
# Raised once each time a person has to act: resuming implies that the previous one is known.
_EACH_TIME: Final = frozenset({"workflow"})
QUIET: Final[Duration] = 36 * HOUR
"""An incident not raised again for this long is over; if it recurs, it is reported again."""


def of_channel(channel: str) -> str:
    """The name of a channel's incident."""
    return f"{CHANNEL}:{channel}"


@dataclass(frozen=True, slots=True)
class IncidentReporter:
    """Queues alerts."""

    registry: ChannelRegistry
    channel: Callable[[], str]  # `alerts.channel`
    age_max: Callable[[], Duration]
    ack_token: Callable[[], str]

    def tell(
        self, tx: Tx, text: str, *, now: Instant, purpose: Purpose, slug: str | None, channel: str | None = None
    ) -> None:
        """Queue the alert for the alert channel, or for another one if that channel has an open incident."""
        avoid = _broken(tx)
        named = channel or self.channel()
        is_usable = named != LAST and named not in avoid and (named == INBOX or self.registry.get(named) is not None)
        target = Target(named, None) if is_usable else route(tx, self.registry, None, None, avoid=avoid)
        expires_at = now + self.age_max()
        enqueue(
            tx, target, text, now=now, expires_at=expires_at, ack_token=self.ack_token(), purpose=purpose, slug=slug
        )


def alert(tx: Tx, effect: Alert, now: Instant, *, reporter: IncidentReporter) -> None:
    """Alert people, unless the incident is already open."""
    known = next((incident for incident in tx[Incidents].open() if incident.name == effect.incident), None)
    if known is not None and (_kind(known.name) in _EACH_TIME or now - known.last_at > QUIET):
        tx[Incidents].close([effect.incident], at=now)
    if not tx[Incidents].note(effect.incident, effect.text, at=now):
        return
    slug = slug_of(tx, effect.incident)
    tx.report(Report(events.INCIDENT_OPENED, IncidentOpened(effect.incident, effect.text), slug=slug))
    text = effect.text if slug is None else f"{slug}: {effect.text}"
    reporter.tell(tx, text, now=now, purpose="alert", slug=slug)


def recovered(tx: Tx, effect: Recovered, now: Instant, *, reporter: IncidentReporter) -> None:
    """Report the recovery, if the incident was reported."""
    over = tx[Incidents].close(effect.incidents, at=now)
    if not over:
        return
    slug = slug_of(tx, over[0].name)
    for incident in over:
        closed = IncidentClosed(incident.name, incident.text, incident.times)
        tx.report(Report(events.INCIDENT_CLOSED, closed, slug=slug))
    reporter.tell(tx, over_text(over[0], slug, now), now=now, purpose="note", slug=slug)


def _kind(name: str) -> str:
    return name.partition(":")[0]


def over_text(incident: Incident, slug: str | None, now: Instant) -> str:
    """The text of a recovery report."""
    who = slug or incident.name.partition(":")[2] or incident.name
    minutes = max(now - incident.opened_at, 0) // 60_000 * 60_000
    return f"{who}: recovered after {format_duration(minutes or 60_000)}. The problem was: {incident.text}"


def _broken(tx: Tx) -> set[str]:
    """Channels with an open incident."""
    names = (incident.name.partition(":") for incident in tx[Incidents].open())
    return {channel for kind, _, channel in names if kind == CHANNEL}


def has_usable(tx: Tx, registry: ChannelRegistry, *, besides: str) -> bool:
    """Whether an alert about this channel can go out through another channel of this process."""
    avoid = _broken(tx) | {besides}
    channels = (registry.get(name) for name in registry.names if name not in avoid)
    return any(channel is not None and channel.kind != INBOX for channel in channels)


def slug_of(tx: Tx, incident: str) -> str | None:
    """The slug of an incident's owner, if its name ends with the id of a schedule or another owner of runs."""
    kind, _, ref = incident.partition(":")
    if kind == CHANNEL or not ref.removeprefix("-").isdecimal():
        return None
    return names_of(tx, [int(ref)]).get(int(ref))
