"""The delivery of seed 003: a slow receiver costs neither time nor needless looks."""

from typing import Any

from delivery.kit import reachable
from features.kit import World, virtual
from wakeful.core.time.instants import SECOND
from wakeful.features.delivery.attempts import SENDS_MAX, Attempts
from wakeful.ports.handlers import RingResult
from wakeful.ports.outbox import ALARM_DELIVERY


@virtual
async def test_the_ring_that_takes_the_last_room_says_that_it_is_full(world: World) -> None:
    """What is due beyond it is not looked at until a send ends: no second ring only to find that there is no room."""
    app, people = await reachable(world, "phone", usual=20 * SECOND)
    rungs: list[RingResult] = []
    (attempts,) = [one for one in app.parts.hooks.alarms if isinstance(one, Attempts)]
    ring = attempts.ring

    def heard(*args: Any, **given: Any) -> RingResult:
        rungs.append(ring(*args, **given))
        return rungs[-1]

    attempts.ring = heard  # type: ignore[method-assign]
    for n in range(SENDS_MAX + 6):
        await app.deliver("hello", channel="phone", to=f"r{n}")
    await world.sleep("1s")
    taken = [rung for rung in rungs if rung.side_tasks]
    assert sum(len(rung.side_tasks) for rung in taken) == SENDS_MAX
    assert list(taken[-1].full) == [ALARM_DELIVERY]
    await world.sleep("1m")
    assert len(people["phone"].got) == SENDS_MAX + 6
    assert people["phone"].under_way_max == SENDS_MAX
