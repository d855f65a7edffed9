"""Who lives in a world beside its schedules."""

from typing import Final

from wakeful.simulation.faults import Climate, streams
from wakeful.simulation.heartbeat import NAME as HEARTBEAT
from wakeful.simulation.heartbeat import Beating
from wakeful.simulation.inhabitants import Inhabitant, Surroundings
from wakeful.simulation.outbox import NAME as OUTBOX
from wakeful.simulation.outbox import Outbox

EVERYBODY: Final = frozenset({OUTBOX, HEARTBEAT})


def settle_in(seed: int, climate: Climate, world: Surroundings) -> list[Inhabitant]:
    """The inhabitants that a climate names, each with a generator of its own."""
    there: list[Inhabitant] = []
    outbox, heartbeat = streams(seed, OUTBOX, HEARTBEAT)
    days, per_day = climate.days, climate.deeds_per_day
    if OUTBOX in climate.inhabitants:
        there.append(Outbox(outbox, world, days=days, per_day=per_day))
    if HEARTBEAT in climate.inhabitants:
        there.append(Beating(heartbeat, world, days=days, per_day=per_day, pace=2 * climate.pace, nodes=climate.nodes))
    return there
