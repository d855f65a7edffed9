"""Who lives in a world beside its schedules."""

from typing import Final

from wakeful.simulation.faults import Climate, streams
from wakeful.simulation.inhabitants import Inhabitant, Surroundings
from wakeful.simulation.outbox import NAME as OUTBOX
from wakeful.simulation.outbox import Outbox

EVERYBODY: Final = frozenset({OUTBOX})


def settle_in(seed: int, climate: Climate, world: Surroundings) -> list[Inhabitant]:
    """The inhabitants that a climate names, each with a generator of its own."""
    there: list[Inhabitant] = []
    (outbox,) = streams(seed, OUTBOX)
    if OUTBOX in climate.inhabitants:
        there.append(Outbox(outbox, world, days=climate.days, per_day=climate.deeds_per_day))
    return there
