"""A new chore is one class: it says when it is due, what it does and what that changes; the engine does the rest."""

from collections.abc import Callable, Sequence

from delivery.kit import reachable
from features.kit import Bench, World, virtual
from wakeful.app.bootstrap import FeatureContext
from wakeful.core.time.instants import HOUR, MINUTE, SECOND, Instant
from wakeful.ports.chores import Chore, StillHeld, Work
from wakeful.ports.handlers import FeatureHooks
from wakeful.ports.meta import Meta
from wakeful.ports.outbox import Deliveries, Delivery
from wakeful.ports.store import Tx


class Echo(Chore[Delivery]):
    """Repeats what was delivered, once, a minute later."""

    kind = "echo"
    timeout = 20 * SECOND

    def __init__(self, context: FeatureContext, takes: int) -> None:
        self._clock = context.clock
        self._takes = takes
        self.begun: list[Instant] = []
        self.said: list[str] = []

    def due(self, tx: Tx, *, now: Instant, limit: int) -> Sequence[Delivery]:
        rows = self.page(tx, after_id=0, limit=limit)
        alarms = tx.alarms.by_refs(self.kind, [row.delivery_id for row in rows])
        due = {ref for ref, alarm in alarms.items() if alarm.due_at is not None and alarm.due_at <= now}
        return [row for row in rows if row.delivery_id in due]

    def page(self, tx: Tx, *, after_id: int, limit: int) -> Sequence[Delivery]:
        rows = tx[Deliveries].page(status="delivered", before_id=None, limit=100)
        return sorted(row for row in rows if row.delivery_id > after_id)[:limit]

    def lock(self, tx: Tx, ref: int) -> Delivery | None:
        return tx[Deliveries].get(ref)

    def ref_of(self, subject: Delivery) -> int:
        return subject.delivery_id

    def due_at(self, tx: Tx, subject: Delivery, *, now: Instant) -> Instant | None:
        is_said = tx[Meta].value(f"echo.{subject.delivery_id}") is not None
        return None if is_said or subject.ended_at is None else subject.ended_at + MINUTE

    def begin(self, tx: Tx, subject: Delivery, *, now: Instant) -> Work:
        async def perform(_: StillHeld) -> str:
            self.begun.append(self._clock.read().now)
            await self._clock.sleep(self._takes)
            return subject.text

        return Work("echo", perform)

    def end(self, tx: Tx, subject: Delivery, result: str, *, now: Instant) -> None:
        tx[Meta].set(f"echo.{subject.delivery_id}", result)
        self.said.append(result)


async def echoing(world: World, takes: int = SECOND) -> tuple[Bench, Echo]:
    made: list[Echo] = []

    async def feature(context: FeatureContext) -> FeatureHooks:
        made.append(Echo(context, takes))
        return FeatureHooks(chores=made)

    app = await world.open(features=[feature])
    return app, made[0]


async def delivered(world: World, *texts: str) -> None:
    app, people = await reachable(world, "phone")
    for text in texts:
        await app.people.send(text)
    await world.settle()
    assert people["phone"].got == list(texts)
    await app.stop()


async def until(world: World, is_so: Callable[[], object]) -> None:
    for _ in range(300):
        if is_so():
            return
        await world.sleep(SECOND)
    raise AssertionError("it did not happen within 300 seconds")


@virtual
async def test_a_new_chore_is_performed_once_when_it_is_due(world: World) -> None:
    """Without a change elsewhere; also after a restart it is not repeated."""
    await delivered(world, "hello", "there")
    app, echo = await echoing(world)
    await world.sleep(50 * SECOND)
    assert not echo.begun
    await until(world, lambda: len(echo.said) == 2)
    assert echo.said == ["hello", "there"]
    await app.stop()
    app, echo = await echoing(world)
    await world.sleep(HOUR)
    assert not echo.begun


@virtual
async def test_one_that_a_process_took_with_it_is_due_again(world: World) -> None:
    """A new process that ticks alone does not wait for the end of the claim."""
    await delivered(world, "hello")
    app, echo = await echoing(world, takes=10 * SECOND)
    await until(world, lambda: echo.begun)
    await app.kill()
    started_at = world.now
    app, echo = await echoing(world, takes=10 * SECOND)
    await until(world, lambda: echo.said)
    assert echo.begun[0] - started_at < SECOND
    assert echo.said == ["hello"]


@virtual
async def test_one_that_takes_too_long_is_cancelled_and_claimed_again(world: World) -> None:
    """At its deadline; its claim expires after it, so that the two do not overlap."""
    await delivered(world, "hello")
    _, echo = await echoing(world, takes=HOUR)
    await until(world, lambda: len(echo.begun) == 2)
    assert echo.begun[1] - echo.begun[0] > Echo.timeout
    assert not echo.said
