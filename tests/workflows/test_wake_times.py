"""What the source document of workflows asks to be tested, on both stores, on a clock that is moved by hand."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from new_store import prepare
from postgres.server import emptied_url as url
from postgres.server import server
from sampling import sampled
from wakeful import Context, Prepare, Produced, Publish, Wakeful, every
from wakeful.core.time.instants import format_instant, parse_instant
from wakeful.ports.clock import Moment
from workflows.kit import state_of

pytestmark = pytest.mark.promise

__all__ = ["server", "url"]

BEGIN = parse_instant("2026-01-01T00:00:00Z")
SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000


class HandClock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = BEGIN
        self._moved = asyncio.Event()

    def read(self) -> Moment:
        return Moment(self.now, self.now - BEGIN)

    def is_before(self, moment: Moment) -> bool:
        return self.now < moment.now and self.now - BEGIN < moment.monotonic

    async def wait(self, bell: asyncio.Event, duration: int) -> bool:
        until = self.now + duration
        while not bell.is_set() and self.now < until:
            ringing, moving = asyncio.ensure_future(bell.wait()), asyncio.ensure_future(self._moved.wait())
            await asyncio.wait([ringing, moving], return_when=asyncio.FIRST_COMPLETED)
            for one in (ringing, moving):
                one.cancel()
        return bell.is_set()

    async def sleep(self, duration: int) -> None:
        await self.wait(asyncio.Event(), duration)

    def move(self, by: int) -> None:
        self.now += by
        self._moved.set()
        self._moved = asyncio.Event()


class Place:
    """A store, and the apps that open it one after another."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.clock = HandClock()
        self.prepared: list[tuple[str, int, list[str]]] = []  # consumer, when, ids shown
        self.answers: dict[str, Callable[[Context], Prepare]] = {}
        self.app: Wakeful | None = None

    async def start(self, *consumers: str) -> Any:
        """An app with these consumers, each reading the topic of its name."""
        app = self.app = Wakeful(self.address, timezone="UTC", clock=self.clock, shutdown_grace="1s")
        flow = app.workflow("w")
        flow.producer(every("30d"), publishes=[], name="p")(self._produce)
        for name in consumers:
            flow.consumer(subscribe=[name], name=name)(self._prepare(name))
        await app.start()
        return flow

    async def stop(self) -> None:
        if self.app is not None:
            await self.app.stop()
            self.app = None

    async def _produce(self, _: Context) -> Produced:
        return Produced()

    def _prepare(self, name: str) -> Callable[[Context], Any]:
        async def prepare(ctx: Context) -> Prepare:
            if not ctx.dry_run:
                self.prepared.append((name, self.clock.now, [one.id for one in ctx.messages[name]]))
            return self.answers.get(name, lambda _: Prepare())(ctx)

        return prepare

    async def view(self) -> Any:
        assert self.app is not None
        return await state_of(self.app, "w")

    async def idle(self) -> Any:
        """The workflow, when nothing of it runs and nothing is due."""
        for _ in range(3000):
            view = await self.view()
            due = view["nextRun"] is not None and parse_instant(view["nextRun"]) <= self.clock.now
            if view["openRun"] is None and view["session"] is None and not due:
                return view
            await asyncio.sleep(0.01)
        raise AssertionError(view)

    def times(self, name: str) -> list[int]:
        return [at - BEGIN for one, at, _ in self.prepared if one == name]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """What is about restarts and about all phases runs on both stores; `make torture` runs the others on both too."""
    stores = ["sqlite", "postgres"]
    is_on_both = metafunc.function in (
        test_a_message_goes_through_all_three_phases_with_its_state,
        test_restart_recovery_sets_dirty_for_consumers_with_pending_events,
        test_wake_at_persisted_and_survives_restart,
    )
    metafunc.parametrize("place", stores if is_on_both else sampled(stores, every=2), indirect=True)


@pytest.fixture
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Place]:
    """A store of each kind."""
    if request.param == "sqlite":
        prepare(tmp_path / "wakeful.db")
        one = Place(str(tmp_path / "wakeful.db"))
    else:
        one = Place(request.getfixturevalue("url"))
    yield one
    await one.stop()


def wake(after: int, clock: HandClock) -> Callable[[Context], Prepare]:
    return lambda _: Prepare(wake_at=format_instant(clock.now + after))


async def test_wake_at_clamping_to_min_and_max_bounds(place: Place) -> None:
    """Not sooner than 30 s from now, not later than 24 h."""
    place.answers = {
        "low": wake(-HOUR, place.clock),
        "high": wake(72 * HOUR, place.clock),
        "fits": wake(HOUR, place.clock),
    }
    await place.start("low", "high", "fits")
    view = await place.idle()
    wakes = {name: parse_instant(one["wakeAt"]) - BEGIN for name, one in view["consumers"].items()}
    assert wakes == {"low": 30 * SECOND, "high": 24 * HOUR, "fits": HOUR}


async def test_consumer_a_wakes_at_its_wake_at_while_consumer_b_keeps_its_different_wake_at(place: Place) -> None:
    """wakeAt belongs to a consumer, not to its workflow."""
    place.answers = {"a": wake(MINUTE, place.clock), "b": wake(HOUR, place.clock)}
    await place.start("a", "b")
    before = (await place.idle())["consumers"]["b"]["wakeAt"]
    place.answers["a"] = lambda _: Prepare()
    place.clock.move(MINUTE)
    view = await place.idle()
    assert place.times("a") == [0, MINUTE]
    assert place.times("b") == [0]
    assert view["consumers"]["b"]["wakeAt"] == before
    assert view["consumers"]["a"]["wakeAt"] is None


async def test_consumer_wakes_on_new_event_before_wake_at(place: Place) -> None:
    """Whichever is first; and that run overwrites the wakeAt."""
    place.answers = {"a": wake(HOUR, place.clock)}
    flow = await place.start("a")
    await place.idle()
    place.clock.move(MINUTE)
    place.answers = {}
    await flow.publish("a", "x", 1)
    view = await place.idle()
    assert place.times("a") == [0, MINUTE]
    assert view["consumers"]["a"]["wakeAt"] is None


async def test_dirty_flag_set_on_event_publish(place: Place) -> None:
    """Seen while the workflow is paused, so that nobody clears it."""
    flow = await place.start("a", "b")
    await place.idle()
    await flow.pause()
    await flow.publish("a", "x", 1)
    view = await place.view()
    assert (view["consumers"]["a"]["dirty"], view["consumers"]["b"]["dirty"]) == (True, False)
    assert view["topics"]["a"]["pending"] == 1


async def test_dirty_flag_cleared_on_consumer_commit(place: Place) -> None:
    """Also when the message was declined: it was looked at."""
    flow = await place.start("a")
    await place.idle()
    await flow.publish("a", "x", 1)
    view = await place.idle()
    assert view["consumers"]["a"]["dirty"] is False
    assert view["topics"]["a"]["pending"] == 1
    assert len(place.prepared) == 2


async def test_restart_recovery_sets_dirty_for_consumers_with_pending_events(place: Place) -> None:
    """Each is looked at once after a start, and no other is."""
    flow = await place.start("a", "b")
    await place.idle()
    await flow.publish("a", "x", 1)
    await place.idle()
    await place.stop()
    place.prepared.clear()
    place.clock.move(MINUTE)
    await place.start("a", "b")
    await place.idle()
    assert [(name, ids) for name, _, ids in place.prepared] == [("a", ["x"])]


async def test_wake_at_persisted_and_survives_restart(place: Place) -> None:
    """No recovery is needed for it."""
    place.answers = {"a": wake(HOUR, place.clock)}
    await place.start("a")
    before = (await place.idle())["consumers"]["a"]["wakeAt"]
    await place.stop()
    place.answers = {}
    await place.start("a")
    assert (await place.idle())["consumers"]["a"]["wakeAt"] == before
    place.clock.move(HOUR)
    await place.idle()
    assert place.times("a") == [0, HOUR]


async def test_empty_reservations_with_wake_at_schedules_next_run(place: Place) -> None:
    """Nothing to do now, but later."""
    place.answers = {"a": wake(5 * MINUTE, place.clock)}
    await place.start("a")
    for _ in range(3):
        await place.idle()
        place.clock.move(5 * MINUTE)
    await place.idle()
    assert place.times("a") == [0, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE]


async def test_multiple_consumers_with_different_wake_at_values(place: Place) -> None:
    """Each at its own time, none at another's."""
    after = {"a": 2 * MINUTE, "b": 3 * MINUTE, "c": 5 * MINUTE}
    place.answers = {name: wake(one, place.clock) for name, one in after.items()}
    await place.start(*after)
    for _ in range(6):
        await place.idle()
        place.clock.move(MINUTE)
    await place.idle()
    assert {name: [at // MINUTE for at in place.times(name)] for name in after} == {
        "a": [0, 2, 4, 6],
        "b": [0, 3, 6],
        "c": [0, 5],
    }


async def test_a_message_goes_through_all_three_phases_with_its_state(place: Place) -> None:
    """Reserved, mutated, consumed and published into the next topic, in the same way on both stores."""
    app = place.app = Wakeful(place.address, timezone="UTC", clock=place.clock, shutdown_grace="1s")
    flow = app.workflow("w")
    sent: list[Any] = []

    @flow.producer(every("30d"), publishes=["mail"])
    async def poll(_: Context) -> Produced:
        return Produced([Publish("mail", f"m{n}", n) for n in range(3)], state={"seen": 3})

    @flow.consumer(subscribe=["mail"], publishes=["out"])
    async def digest(ctx: Context) -> Prepare:
        return Prepare(
            {"mail": [one.id for one in ctx.messages["mail"]]}, data=[one.id for one in ctx.messages["mail"]]
        )

    @digest.mutate
    async def send(ctx: Context) -> dict[str, Any]:
        sent.append(ctx.prepared["data"])
        return {"result": len(sent)}

    @digest.next
    async def after(ctx: Context) -> Produced:
        if not ctx.prepared.get("data"):
            return Produced()
        return Produced([Publish("out", "done", ctx.mutation["result"])], state={"last": ctx.prepared["data"]})

    @flow.consumer(subscribe=["out"])
    async def keep(_: Context) -> Prepare:
        return Prepare()

    await app.start()
    view = await place.idle()
    assert sent == [["m0", "m1", "m2"]]
    assert view["topics"]["mail"] == {"pending": 0, "reserved": 0, "consumed": 3, "skipped": 0}
    assert view["topics"]["out"]["pending"] == 1
    assert view["consumers"]["digest"]["state"] == {"last": ["m0", "m1", "m2"]}
    assert view["producers"]["poll"]["state"] == {"seen": 3}
    assert await flow.publish("mail", "m1", 9) == "duplicate"
