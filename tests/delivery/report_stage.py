"""Subjects of every kind with every kind of trouble, on virtual time, and a person who is told of it."""

from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeAlias

from delivery.kit import Person
from features.kit import Bench, Bot, World
from features.quota_kit import Answer, Shop, config, open_quota
from features.voice import Voice, beating
from wakeful import Prepare, Produced, Transient, cron, every, manual, once
from wakeful.core.run.results import Failed, Throttled
from wakeful.core.schedule.gates import Defer
from wakeful.core.time.instants import HOUR, MINUTE
from wakeful.core.time.timing import Timing
from wakeful.features.heartbeat.rules import HeartbeatTerms
from wakeful.features.workflows.handler_calls import HandlerFailure

TIMEOUT: Final = 20 * MINUTE
QUOTA: Final = 5 * HOUR
OK: Final = "ok"
BAD: Final = "bad"

Script: TypeAlias = Callable[[int], Any]
"""What the n-th call does: OK, BAD, or a duration that it takes before it is OK."""

SCRIPTS: Final[dict[str, Script]] = {
    "once": lambda n: BAD if n == 0 else OK,
    "always": lambda n: BAD,
    "flaps": lambda n: BAD if n % 5 < 2 else OK,
    "timeout": lambda n: 3 * HOUR,
    "long": lambda n: 90 * MINUTE,
    "quota": lambda n: OK,
    "paused": lambda n: BAD,
}

TIMINGS: Final[dict[str, Timing]] = {
    "minutely": every("1m"),
    "hourly": every("1h"),
    "daily": cron("0 9 * * *", "UTC"),
    "once": once("2026-01-01T09:00Z"),
    "manual": manual(),
}

FIRST: Final = {"minutely": "1m", "hourly": "1h", "daily": "9h", "once": "9h", "heartbeat": "30m", "slot": "9h"}
"""When the first instant is, from the start of the world."""


class Acting:
    """Counts calls, and does what the script says."""

    def __init__(self, world: World, trouble: str) -> None:
        self._world = world
        self._script = SCRIPTS[trouble]
        self.calls = 0

    def next(self) -> Any:
        """What the next call does."""
        self.calls += 1
        return self._script(self.calls - 1)

    async def act(self, error: Callable[[], Any]) -> Any:
        """None, or what `error` makes of a call that is bad."""
        what = self.next()
        if isinstance(what, int):
            await self._world.clock.sleep(what)
        return error() if what == BAD else None


async def _schedule(world: World, kind: str, trouble: str, person: Person) -> Bench:
    free_at = world.now + QUOTA
    gates = [lambda tx, run, now: Defer(free_at, "quota") if now < free_at else None] if trouble == "quota" else []
    app = world.bench(gates=gates)
    app.register_channel("phone", None, person)
    await app.start()
    acting, bot = Acting(world, trouble), Bot(world)
    bot.usual = lambda: acting.act(_raise)
    options: dict[str, Any] = {"timeout": "20m"} if trouble == "timeout" else {"timeout": "2h"}
    if kind == "once":
        options["retry"] = {"times": 3, "delay": "25m"}
    await app.add("x", TIMINGS[kind], call=bot, **options)
    if trouble == "paused":
        await app.pause("x")
    if kind == "manual" and trouble != "paused":
        for _ in range(3):
            await app.run_now("x")
            await world.sleep("6h")
    return app


async def _heartbeat(world: World, kind: str, trouble: str, person: Person) -> Bench:
    acting, voice, free_at = Acting(world, trouble), Voice(world), world.now + QUOTA

    async def turn(fire: Any) -> Any:
        if trouble == "quota" and world.now < free_at:
            return Throttled("the usage limit is reached", free_at, reason="quota")
        return await acting.act(lambda: Failed("boom")) or "HEARTBEAT_OK"

    voice.usual = turn
    limit = TIMEOUT if trouble == "timeout" else 2 * HOUR
    terms = HeartbeatTerms(enabled=trouble != "paused", timeout=limit)
    return await beating(world, voice, terms, people={"phone": person})


async def _handler(world: World, kind: str, trouble: str, person: Person) -> Bench:
    acting, free_at = Acting(world, trouble), world.now + QUOTA
    app = world.bench()
    app.register_channel("phone", None, person)
    flow = app.workflow("inbox")

    async def poll(ctx: Any) -> Produced:
        if ctx.dry_run:
            return Produced()
        if trouble == "quota" and world.now < free_at:
            raise HandlerFailure("come back later", is_transient=True, until=free_at)
        await acting.act(_transient)
        return Produced()

    limit = "20m" if trouble == "timeout" else "2h"
    flow.producer(every("5m"), publishes=["mail"], name="poll", timeout=limit)(poll)
    flow.consumer(subscribe=["mail"], name="digest")(_nothing)
    await app.start()
    if trouble == "paused":
        await flow.pause()
    return app


async def _slot(world: World, kind: str, trouble: str, person: Person) -> Bench:
    acting, shop = Acting(world, trouble), Shop(world)
    account = shop.account("sk-main")
    account.warm("30m" if trouble != "quota" else "10d")
    answered = account.wake

    def wake(key: str) -> Answer:
        what = acting.next()
        if what == BAD:
            return Answer(401, '{"error": {"message": "boom"}}')
        return Answer(200, "{}", what) if isinstance(what, int) else answered(key)

    account.wake = wake  # type: ignore[method-assign]  # the script decides
    slot = {"times": ["09:00"], "enabled": trouble != "paused"}
    opened = await open_quota(world, shop, config(world, {"main": slot}), people={"phone": person})
    return opened.app


STAGES: Final[dict[str, Callable[[World, str, str, Person], Coroutine[Any, Any, Bench]]]] = {
    **dict.fromkeys(TIMINGS, _schedule),
    "heartbeat": _heartbeat,
    "handler": _handler,
    "slot": _slot,
}


async def _nothing(ctx: Any) -> Prepare:
    return Prepare()


def _raise() -> None:
    raise RuntimeError("boom")


def _transient() -> None:
    raise Transient("boom")
