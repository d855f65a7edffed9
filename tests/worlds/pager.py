"""A channel that comes and goes with the settings: what is for it waits, and people are told."""

from collections.abc import Iterable, Iterator
from typing import Final, Protocol

from wakeful.core.time.instants import MINUTE, Duration, Instant, format_duration
from wakeful.engine.incident_rows import Incidents
from wakeful.features.delivery.attempts import MISSING_GRACE, MISSING_WAIT
from wakeful.features.delivery.incidents import of_channel
from wakeful.ports.outbox import Delivery
from worlds.inhabitants import Boot, Surroundings
from worlds.outbox_laws import describe
from worlds.system import PAGER

PAGED_MAX: Final = 30
"""In worlds of more days than this it is always there: what waits for it is looked at every half minute."""
PATIENCE: Final[Duration] = 2 * MISSING_GRACE + 5 * MINUTE


class Configure(Protocol):
    """Reads the settings again."""

    def __call__(self, *, has_pager: bool) -> None: ...


class Pager:
    """Whether the channel is there, and since when."""

    def __init__(self, world: Surroundings) -> None:
        self.is_there = True
        self._world = world
        self._changed_at = 0
        self._boots: list[tuple[Boot, Configure]] = []
        self._seen: dict[int, int] = {}  # deliveries that wait for it, and since when in true time
        self._missed = 0

    def move_in(self, boot: Boot, configure: Configure) -> None:
        self._boots = [(one, read) for one, read in self._boots if one.is_alive] + [(boot, configure)]

    def figures(self) -> dict[str, int]:
        """What it came to."""
        return {"letters for a missing channel": self._missed}

    def toggle(self) -> None:
        """Somebody takes it out of the settings, or puts it back; every node that is awake reads them."""
        self.is_there = not self.is_there
        self._changed_at = self._world.loop.now_ms
        for boot, configure in self._boots:
            if boot.is_alive and not boot.is_still:
                configure(has_pager=self.is_there)

    def ticked(self, due: Iterable[tuple[Delivery, Instant]], wall_now: Instant) -> Iterator[str]:
        """A node has looked at its clock; `due` are first in line, each for its addressee, and when they are due."""
        is_due = (head for head, due_at in due if head.channel == PAGER and due_at <= wall_now + MISSING_WAIT)
        waiting = {head.delivery_id: head for head in is_due if not self.is_there}
        now = self._world.loop.now_ms
        self._missed += len(waiting.keys() - self._seen.keys())
        self._seen = {number: self._seen.get(number, now) for number in waiting}
        if not waiting:
            return
        calm = [max(boot.began_at, boot.disturbed_at) for boot, _ in self._boots if boot.is_alive]
        since = max([self._changed_at, self._world.stepped_at, *calm])
        told = {incident.name for incident in self._world.seen_tx[Incidents].open()}
        for number, head in waiting.items():
            waits_for = now - max(since, self._seen[number])
            if waits_for > PATIENCE and of_channel(PAGER) not in told:
                yield f"L9 outbox: {describe(head)} waits for a channel that is missing, {format_duration(waits_for)}"
