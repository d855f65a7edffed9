"""Incidents: people are told once that something is wrong, and once that it is right again.

Word of an incident is a delivery like any other, and may itself not arrive. It never goes by a channel that is known to
be broken: the incident of that channel is open, so another one is taken, in the end the inbox, which cannot break. So
however many channels fail, each is told of once, and nothing goes in circles.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from wakeful.core.delivery.incidents import Incident
from wakeful.core.run.effects import Alert, Recovered
from wakeful.core.time.instants import HOUR, Duration, Instant, format_duration
from wakeful.features.delivery.queue import Target, enqueue, route
from wakeful.features.delivery.registry import INBOX, LAST, ChannelRegistry
from wakeful.ports.names import names_of
from wakeful.ports.outbox import Purpose
from wakeful.ports.store import Report, Tx

STREAM: Final = "incidents"
CHANNEL: Final = "delivery"
# Raised once for each time a person has to act: whoever resumed it knows of the one before.
_EACH_TIME: Final = frozenset({"workflow"})
QUIET: Final[Duration] = 36 * HOUR
"""Trouble that was not raised again for so long is over; if it comes back, that is news."""


def of_channel(channel: str) -> str:
    """The name of the incident that a channel does not deliver."""
    return f"{CHANNEL}:{channel}"


@dataclass(frozen=True, slots=True)
class IncidentReporter:
    """How people are told of incidents."""

    registry: ChannelRegistry
    channel: Callable[[], str]  # `alerts.channel`
    age_max: Callable[[], Duration]
    ack_token: Callable[[], str]

    def tell(
        self, tx: Tx, text: str, *, now: Instant, purpose: Purpose, slug: str | None, channel: str | None = None
    ) -> None:
        """Queue it for the alert channel, or for another one if that is known not to deliver."""
        avoid = _broken(tx)
        named = channel or self.channel()
        is_usable = named != LAST and named not in avoid and (named == INBOX or self.registry.get(named) is not None)
        target = Target(named, None) if is_usable else route(tx, self.registry, None, None, avoid=avoid)
        expires_at = now + self.age_max()
        enqueue(
            tx, target, text, now=now, expires_at=expires_at, ack_token=self.ack_token(), purpose=purpose, slug=slug
        )


def alert(tx: Tx, effect: Alert, now: Instant, *, reporter: IncidentReporter) -> None:
    """Tell people, unless they know."""
    known = next((one for one in tx.incidents.open() if one.name == effect.incident), None)
    if known is not None and (_kind(known.name) in _EACH_TIME or now - known.last_at > QUIET):
        tx.incidents.close([effect.incident], at=now)
    if not tx.incidents.note(effect.incident, effect.text, at=now):
        return
    slug = slug_of(tx, effect.incident)
    tx.report(Report(STREAM, "opened", {"incident": effect.incident, "text": effect.text}, slug=slug))
    text = effect.text if slug is None else f"{slug}: {effect.text}"
    reporter.tell(tx, text, now=now, purpose="alert", slug=slug)


def recovered(tx: Tx, effect: Recovered, now: Instant, *, reporter: IncidentReporter) -> None:
    """Tell people that it is over, if they were told that it began."""
    over = tx.incidents.close(effect.incidents, at=now)
    if not over:
        return
    slug = slug_of(tx, over[0].name)
    for one in over:
        tx.report(Report(STREAM, "closed", {"incident": one.name, "text": one.text, "times": one.times}, slug=slug))
    reporter.tell(tx, over_text(over[0], slug, now), now=now, purpose="note", slug=slug)


def _kind(name: str) -> str:
    return name.partition(":")[0]


def over_text(incident: Incident, slug: str | None, now: Instant) -> str:
    """What people are told when it is over."""
    who = slug or incident.name.partition(":")[2] or incident.name
    minutes = max(now - incident.opened_at, 0) // 60_000 * 60_000
    return f"{who}: works again, after {format_duration(minutes or 60_000)}. It was: {incident.text}"


def _broken(tx: Tx) -> set[str]:
    """Channels that are known not to deliver."""
    names = (incident.name.partition(":") for incident in tx.incidents.open())
    return {channel for kind, _, channel in names if kind == CHANNEL}


def slug_of(tx: Tx, incident: str) -> str | None:
    """Whose it is, where its name ends with the id of a schedule or of another owner of runs."""
    kind, _, ref = incident.partition(":")
    if kind == CHANNEL or not ref.removeprefix("-").isdecimal():
        return None
    return names_of(tx, [int(ref)]).get(int(ref))
