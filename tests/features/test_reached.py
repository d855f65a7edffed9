"""How far a run got, as readers see it: the highest rung of any attempt. Decisions use their own attempt's."""

from typing import Any

from features.kit import Bench, World, virtual
from wakeful import every
from wakeful.core.run.results import Failed, Result
from wakeful.core.run.runs import RungName
from wakeful.core.schedule.actions import Http
from wakeful.features.schedules.why import why
from wakeful.ports.action import Fire, Ladder


class Target:
    """Each attempt gets as far as the script says, and fails."""

    is_local = False

    def __init__(self, *script: tuple[RungName, ...]) -> None:
        self._script = list(script)

    def proves(self, spec: Any) -> RungName:
        return "finished"

    def check(self, spec: Any) -> str | None:
        return None

    async def perform(self, spec: Any, fire: Fire, ladder: Ladder) -> Result:
        for rung in self._script.pop(0):
            await ladder.climb(rung)
        return Failed("it did not work")

    async def close(self) -> None: ...


async def _opened(world: World, target: Target) -> Bench:
    app = await world.open(actions={Http: target})
    request = {"method": "POST", "url": "http://127.0.0.1:9/"}
    await app.add("job", every("1h"), http=request, retry={"times": 2, "delay": "10m"})
    return app


@virtual
async def test_a_later_attempt_that_gets_less_far_takes_nothing_back(world: World) -> None:
    """The first was accepted; the next ones were not even sent. While the run waits, and at its end."""
    app = await _opened(world, Target(("sent", "accepted"), (), ("sent",)))
    await world.until("01-01 01:05:00")
    (waiting,) = await app.runs("job")
    assert (waiting.outcome, waiting.reached) == ("waiting", "accepted")
    await world.until("01-01 01:15:00")
    (waiting,) = await app.runs("job")
    assert (waiting.attempt, waiting.rung, waiting.reached) == (2, "claimed", "accepted")
    await world.until("01-01 01:30:00")
    (run,) = await app.runs("job")
    assert (run.outcome, run.attempt, run.rung, run.reached) == ("failed", 3, "sent", "accepted")
    assert [attempt.rung for attempt in run.attempts] == ["accepted", "claimed", "sent"]
    shown = (await app.ledger.get(run.run_id)).to_json()
    assert (shown["rung"], shown["reached"]) == ("sent", "accepted")
    now = world.now
    said = await app.store.read(lambda tx: why(tx, "job", at=None, now=now))
    assert "(it got as far as accepted)" in said.sentence
    assert said.facts["run"]["reached"] == "accepted"


@virtual
async def test_what_never_began_reached_nothing(world: World) -> None:
    """A gap has no rung."""
    app = await _opened(world, Target())
    await app.pause("job")
    await world.until("01-01 03:30:00")
    await app.resume("job")
    (gap,) = await app.runs("job")
    assert (gap.outcome, gap.rung, gap.reached) == ("skipped", None, None)
