"""What a commit changed is told after it, once, in batches, whoever made it; and a listener can break nothing."""

from typing import Any

from features.kit import AllTogether, Bot, World, virtual
from telemetry.kit import Heard, open_told
from wakeful import every
from wakeful.core.run.results import Busy
from wakeful.core.time.instants import HOUR, MINUTE, SECOND
from wakeful.observe.eventing_store import EventingStore, Guarded
from wakeful.observe.fan_out import FanOut
from wakeful.ports.meta import Meta
from wakeful.ports.sink import (
    ClockJumped,
    CommitTimed,
    InstantsMissed,
    InstantsSkipped,
    LeaseLost,
    NodeEntered,
    NodeLeft,
    RunsClaimed,
    RunsRescued,
    RunsSettled,
    RunsWaiting,
    SchedulesChanged,
    Ticked,
)
from wakeful.stores.sqlite.store import SqliteStore


def rows(heard: Heard, kind: type[Any]) -> list[Any]:
    """All runs of facts of one kind."""
    return [run for fact in heard.of(kind) for run in fact.runs]


@virtual
async def test_a_run_is_told_when_it_is_claimed_and_when_it_is_settled(world: World) -> None:
    """With its rows as they stand in the ledger then."""
    heard = Heard()
    app = await open_told(world, Bot(world, usual=5 * SECOND), heard)
    await app.add("tick", every("10m"))
    await world.until("01-01 00:10:02")
    assert [(run.outcome, run.attempt) for run in rows(heard, RunsClaimed)] == [("running", 1)]
    assert rows(heard, RunsSettled) == []
    await world.until("01-01 00:11:00")
    assert [(run.outcome, run.rung) for run in rows(heard, RunsSettled)] == [("succeeded", "finished")]


@virtual
async def test_runs_that_start_together_are_one_fact(world: World) -> None:
    """Thirty schedules due in one instant, one claim, one fact."""
    heard = Heard()
    app = await open_told(world, Bot(world), heard)
    for number in range(30):
        await app.add(f"tick-{number:02}", every("10m"))
    heard.forget()
    await world.until("01-01 00:10:30")
    assert [len(fact.runs) for fact in heard.of(RunsClaimed)] == [30]
    assert sum(len(fact.runs) for fact in heard.of(RunsSettled)) == 30
    assert len(heard.of(RunsSettled)) <= 2


@virtual
async def test_waiting_is_told_with_its_reason(world: World) -> None:
    """A busy target, then a retry."""
    heard = Heard()
    bot = Bot(world)
    bot.script = [Busy("Session busy"), RuntimeError("no")]
    app = await open_told(world, bot, heard)
    await app.add("tick", every("6h"), retry={"times": 1, "delay": "5m"})
    await world.until("01-01 08:00:00")
    assert [(run.outcome, run.reason) for run in rows(heard, RunsWaiting)] == [
        ("waiting", "busy"),
        ("waiting", "retry"),
    ]
    assert [run.outcome for run in rows(heard, RunsSettled)] == ["succeeded"]


@virtual
async def test_skipped_instants_are_told_as_many_as_are_new(world: World) -> None:
    """Instants blocked by a long run grow one row; each growth is told, and only the growth is counted."""
    heard = Heard()
    app = await open_told(world, Bot(world, usual=35 * MINUTE), heard)
    await app.add("tick", every("10m"))
    await world.until("01-01 00:44:00")
    facts = heard.of(InstantsSkipped)
    assert [fact.instants for fact in facts] == [[1], [1], [1]]
    assert [fact.runs[0].instants for fact in facts] == [1, 2, 3]
    assert {fact.runs[0].reason for fact in facts} == {"blocked"}


@virtual
async def test_missed_instants_are_told_at_the_next_start(world: World) -> None:
    """One row, forty-seven instants."""
    bot = Bot(world)
    app = await open_told(world, bot)
    await app.add("tick", every("1h"))
    await app.stop()
    await world.sleep("2d")
    heard = Heard()
    await open_told(world, bot, heard)
    await world.settle()
    assert [fact.instants for fact in heard.of(InstantsMissed)] == [[47]]


@virtual
async def test_what_happens_to_a_schedule_is_told_by_name(world: World) -> None:
    """Created, paused, resumed, edited, disabled by its errors, removed."""
    heard = Heard()
    bot = Bot(world)
    app = await open_told(world, bot, heard)
    await app.add("tick", every("1h"), max_consecutive_errors=1)
    await app.pause("tick")
    await app.resume("tick")
    await app.update("tick", timeout="1h")
    bot.usual = RuntimeError("no")
    await world.until("01-01 01:30:00")
    await app.remove("tick")
    changes = [change for fact in heard.of(SchedulesChanged) for change in fact.changes]
    assert [change.kind for change in changes] == ["created", "paused", "resumed", "edited", "disabled", "removed"]
    assert changes[4].reason == "an error: RuntimeError: no"


@virtual
async def test_writing_the_same_definition_again_is_no_fact(world: World) -> None:
    """Registering at each start is harmless, and silent."""
    heard = Heard()
    app = await open_told(world, Bot(world), heard)
    await app.add("tick", every("1h"))
    heard.forget()
    await app.add("tick", every("1h"))
    assert heard.of(SchedulesChanged) == []


@virtual
async def test_a_row_that_only_gets_a_copy_of_its_definition_is_no_fact(world: World) -> None:
    """An edit puts the old text on the newest row; its run does not happen again because of that."""
    heard = Heard()
    app = await open_told(world, Bot(world), heard)
    await app.add("tick", every("1h"))
    await world.until("01-01 01:30:00")
    heard.forget()
    await app.update("tick", timeout="1h")
    assert rows(heard, RunsSettled) == []
    assert [change.kind for fact in heard.of(SchedulesChanged) for change in fact.changes] == ["edited"]


@virtual
async def test_a_crash_is_told_as_a_rescue(world: World) -> None:
    """The next start takes over what the killed one had under way."""
    app = await open_told(world, Bot(world, usual=HOUR))
    await app.add("tick", every("10m"))
    await world.until("01-01 00:10:30")
    await app.kill()
    heard = Heard()
    await open_told(world, Bot(world), heard)
    await world.settle()
    assert [(run.outcome, run.reason) for run in rows(heard, RunsRescued)] == [("waiting", "crash")]
    assert [fact.name for fact in heard.of(NodeEntered)] == ["node"]
    assert len(heard.of(NodeLeft)) == 1
    assert [run.attempt for run in rows(heard, RunsClaimed)] == [2]


@virtual
async def test_jumps_of_the_clock_are_told(world: World) -> None:
    """Both ways, by how much."""
    world.sleep_max = MINUTE
    heard = Heard()
    app = await open_told(world, Bot(world), heard)
    await app.add("tick", every("1h"))
    await world.sleep("5m")
    world.wall.step(10 * MINUTE)
    await world.sleep("2m")
    world.wall.step(-3 * MINUTE)
    await world.sleep("2m")
    assert [fact.by for fact in heard.of(ClockJumped)] == [10 * MINUTE, -3 * MINUTE]


@virtual
async def test_losing_the_lease_is_told(world: World) -> None:
    """The node that was taken for dead says so itself."""
    heard = Heard()
    app = await open_told(world, Bot(world), heard, limits={"lease": 30 * SECOND, "renew_every": 10 * SECOND})
    await app.add("tick", every("1h"))
    world.tamper("UPDATE nodes SET voided_at = 1")
    await world.sleep("30s")
    assert len(heard.of(LeaseLost)) == 1
    assert len(heard.of(NodeEntered)) == 2


@virtual
async def test_a_write_that_was_refused_is_never_told(world: World) -> None:
    """The disk was full: nothing happened, and only that is said."""
    heard = Heard()
    app = await open_told(world, Bot(world), heard)
    await app.add("tick", every("10m"))
    await world.settle()
    heard.forget()
    app.store.is_down = True
    await world.until("01-01 00:12:00")
    assert heard.of(RunsClaimed) == []
    assert {fact.is_kept for fact in heard.of(CommitTimed)} == {False}
    app.store.is_down = False
    await world.until("01-01 00:13:00")
    assert len(heard.of(RunsClaimed)) == 1


@virtual
async def test_a_listener_that_breaks_is_dropped_and_harms_nobody(world: World) -> None:
    """The run ends well, the other listener hears all of it, the broken one was called once."""
    calls: list[int] = []

    def broken(facts: Any, slugs: Any) -> None:
        calls.append(1)
        raise RuntimeError("I am broken")

    heard = Heard()
    bot = Bot(world)
    app = await open_told(world, bot, broken, heard)
    await app.add("tick", every("10m"))
    await world.until("01-01 00:15:00")
    assert len(calls) == 1
    assert bot.planned == ["01-01 00:10:00"]
    assert [run.outcome for run in rows(heard, RunsSettled)] == ["succeeded"]


@virtual
async def test_a_slug_not_yet_known_is_looked_up_and_order_is_kept(world: World) -> None:
    """After a restart nobody knows the names; facts wait for them, and nothing overtakes."""
    app = await open_told(world, Bot(world))
    await app.add("daily", every("1h"))
    await app.stop()
    seen: list[tuple[str, str | None]] = []

    def note(facts: Any, slugs: Any) -> None:
        for fact in facts:
            if isinstance(fact, RunsClaimed | RunsSettled):
                seen.extend((type(fact).__name__, slugs.get(run.schedule_id)) for run in fact.runs)

    await open_told(world, Bot(world), note)
    await world.until("01-01 02:30:00")
    assert seen == [("RunsClaimed", "daily"), ("RunsSettled", "daily")] * 2


@virtual
async def test_every_look_of_the_engine_is_told_with_its_lag(world: World) -> None:
    """Nothing is late here."""
    heard = Heard()
    app = await open_told(world, Bot(world), heard)
    await app.add("tick", every("10m"))
    await world.until("01-01 00:15:00")
    assert {tick.lag for tick in heard.of(Ticked)} == {0}
    assert max(tick.claimed for tick in heard.of(Ticked)) == 1


@virtual
async def test_a_sink_that_raises_is_asked_once_and_the_commit_stands(world: World) -> None:
    """What was written is written, whatever becomes of the telling."""

    class Broken:
        def __init__(self) -> None:
            self.told = 0

        def begin(self, store: Any) -> None: ...

        def tell(self, facts: Any) -> None:
            self.told += 1
            raise RuntimeError("I am broken")

    sink = Broken()
    path = world.path.with_name("other.db")
    store = SqliteStore.open_inline(path, hook=AllTogether())
    told_store = EventingStore(store, Guarded(sink), world.clock)
    for value in ("1", "2"):
        await told_store.write(lambda tx, value=value: tx[Meta].set("a", value))  # type: ignore[misc]
    assert await told_store.read(lambda tx: tx[Meta].value("a")) == "2"
    assert sink.told == 1
    await told_store.close()


@virtual
async def test_an_operation_that_runs_twice_is_told_once(world: World) -> None:
    """A database may ask for a second go; only what was committed is told."""
    heard = Heard()
    fan_out = FanOut()
    fan_out.listen(heard)
    store = SqliteStore.open_inline(world.path.with_name("other.db"), hook=AllTogether())

    told_store = EventingStore(_Again(store), fan_out, world.clock)  # type: ignore[arg-type]
    await told_store.write(
        lambda tx: tx.nodes.register(name="n", host="h", pid=1, now=1, lease_until=2, capacity=3) and None
    )
    assert len(heard.of(NodeEntered)) == 1
    await told_store.close()


class _Again:
    """A store that runs each operation twice, as after a serialization failure."""

    def __init__(self, inner: SqliteStore) -> None:
        self._inner = inner

    async def write(self, operation: Any, *, is_urgent: bool = False) -> Any:
        def twice(tx: Any) -> Any:
            operation(tx)
            return operation(tx)

        return await self._inner.write(twice, is_urgent=is_urgent)

    async def close(self) -> None:
        await self._inner.close()
