"""Deploying, recovery, history: what stays when definitions, processes and time move on."""

from typing import Any

import pytest

from features.kit import Bench, World, short, virtual
from wakeful import Conflict, Context, Invalid, Prepare, Produced, cron, every
from wakeful.core.time.instants import MINUTE
from wakeful.core.workflow.definition_json import decode_workflow
from wakeful.core.workflow.rows import Workflow as Row
from wakeful.features.workflows import compiled
from wakeful.features.workflows.compiled import Broken, Compilations
from wakeful.ports.version_cache import VersionCache
from workflows.kit import Calls, Inbox, at, counts, decline, ledger, mail, named, rows, state_of


@virtual
async def test_parsed_configurations_are_kept_by_version(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """However often it runs and is looked at, a text is read once; another version is read once more."""
    parsed: list[str] = []

    def decode(text: str) -> Any:
        parsed.append(text)
        return decode_workflow(text)

    monkeypatch.setattr(compiled, "decode_workflow", decode)
    inbox = Inbox(world, found=mail("a"), period="1m")
    bench = await inbox.open()
    await world.sleep("1h")
    await state_of(bench, "inbox")
    assert inbox.poll.count == 61
    assert len(parsed) == 1
    world.tamper("UPDATE workflows SET version = 2")
    await world.sleep("5m")
    assert len(parsed) == 2


def test_the_cache_is_bounded() -> None:
    """Two generations: what is used stays, what is not is forgotten, another version is another entry."""
    cache: VersionCache[Broken] = VersionCache(2)
    for number in range(20):
        cache.keep(number, Broken(1, f"text {number}"))
        assert cache.get(0, 1) == Broken(1, "text 0")
    assert [number for number in range(20) if cache.get(number, 1) is not None] == [0, 18, 19]
    assert cache.get(0, 2) is None


def test_a_broken_text_harms_only_its_own() -> None:
    row = Row(0, "w", -1, "{", 1, "rest", "active", None, None, 0, 0, None, None, None, None)
    assert isinstance(Compilations().of(row), Broken)


@virtual
async def test_a_stored_definition_that_cannot_be_read_stops_its_own_workflow_only(world: World) -> None:
    """Its neighbour goes on, and the view says why."""
    one, two = Inbox(world, name="one", period="1m"), Inbox(world, name="two", period="1m")
    bench = world.bench()
    for inbox in (one, two):
        inbox.flow = inbox.declare(bench)
    await bench.start()
    await world.settle()
    world.tamper("UPDATE workflows SET version = 9, definition = '{}' WHERE name = 'one'")
    await world.sleep("5m")
    assert "cannot be read" in (await one.flow.get())["error"]
    assert two.poll.count == 6
    assert one.poll.count == 1


@virtual
async def test_a_state_that_cannot_be_read_stops_its_own_workflow_and_not_the_start(world: World) -> None:
    """L9: kept as it is for a person to look at; nobody goes on without it, and everything else does."""
    one, two = (
        Inbox(world, name=name, period="1m", found=lambda _: Produced(state={"n": 1})) for name in ("one", "two")
    )
    bench = world.bench()
    for inbox in (one, two):
        inbox.flow = inbox.declare(bench)
    await bench.start()
    await world.sleep("90s")
    await bench.stop()
    spoilt = "UPDATE workflow_handlers SET state = '{' WHERE name = 'poll' AND workflow_id = 1"
    world.tamper(spoilt)
    bench = world.bench()
    for inbox in (one, two):
        inbox.flow = inbox.declare(bench)
    await bench.start()
    counts = one.poll.count, two.poll.count
    await world.sleep("5m")
    assert one.poll.count == counts[0]
    assert two.poll.count >= counts[1] + 5
    assert world.query("SELECT state FROM workflow_handlers WHERE workflow_id = 1 AND name = 'poll'") == [("{",)]
    shown = await one.flow.get()
    assert shown["producers"]["poll"]["state"] == "{"
    assert shown["error"]


@virtual
async def test_registering_again_at_each_start_is_harmless(world: World) -> None:
    """No new version, no run before its time."""
    inbox = Inbox(world, period="1h")
    for _ in range(3):
        bench = await inbox.open()
        await world.sleep("5m")
        assert (await inbox.flow.get())["version"] == 1
        await bench.stop()
    assert inbox.poll.count == 1


async def deploy(world: World, bench: Bench | None, calls: dict[str, Calls], **timings: Any) -> Bench:
    """Stop, and start with these producers, and a consumer."""
    if bench is not None:
        await bench.stop()
    bench = world.bench()
    flow = bench.workflow("w")
    for name, timing in timings.items():
        flow.producer(timing, publishes=["t"], name=name)(named(calls.setdefault(name, Calls(world, Produced()))))
    flow.consumer(subscribe=["t"], name="c")(named(calls.setdefault("c", Calls(world, decline))))
    await bench.start()
    await world.settle()
    return bench


@virtual
async def test_a_changed_schedule_is_due_at_once_and_an_unchanged_one_keeps_its_time(world: World) -> None:
    """New ones are due at once, removed ones are gone, and what the others remember stays."""
    calls: dict[str, Calls] = {"kept": Calls(world, Produced(state={"n": 1}))}
    bench = await deploy(world, None, calls, kept=every("1h"), changed=every("1h"), gone=every("1h"))
    await world.sleep("10m")
    bench = await deploy(world, bench, calls, kept=every("1h"), changed=cron("0 9 * * *"), new=every("2h"))
    view = await state_of(bench, "w")
    assert view["version"] == 2
    assert {name: one.at for name, one in calls.items() if name != "c"} == {
        "kept": ["01-01 00:00:00"],
        "changed": ["01-01 00:00:00", "01-01 00:10:00"],
        "gone": ["01-01 00:00:00"],
        "new": ["01-01 00:10:00"],
    }
    assert {name: short(at(one["nextRun"])) for name, one in view["producers"].items()} == {
        "kept": "01-01 01:00:00",
        "changed": "01-01 09:00:00",
        "new": "01-01 02:10:00",
    }
    assert view["producers"]["kept"]["state"] == {"n": 1}
    assert calls["c"].count == 2  # every consumer is looked at after a deploy


@virtual
async def test_messages_of_a_topic_that_nobody_reads_any_more_wake_nobody(world: World) -> None:
    """They stay, and are read again when somebody subscribes."""
    bench = world.bench()
    flow = bench.workflow("w")
    prepares = Calls(world, decline)
    flow.consumer(subscribe=["a", "b"], name="c")(named(prepares))
    await bench.start()
    await flow.publish("b", "x")
    await world.sleep("1s")
    await bench.stop()
    for topics, shown in ((["a"], None), (["a", "b"], ["x"])):
        prepares.contexts.clear()
        bench = world.bench()
        flow = bench.workflow("w")
        flow.consumer(subscribe=topics, name="c")(named(prepares))
        await bench.start()
        await world.sleep("1h")
        assert prepares.count == 1
        assert (ids := prepares.contexts[0].messages.get("b")) is None or [one.id for one in ids] == shown
        await bench.stop()


@virtual
async def test_a_workflow_of_a_module_is_changed_there_and_nowhere_else(world: World) -> None:
    """Over REST only its status can be set; a bad one is refused before anything is written."""
    inbox = Inbox(world)
    bench = await inbox.open()
    http = {"http": {"url": "http://127.0.0.1:1"}}
    other = {"status": "draft", "consumers": {"c": {"subscribe": ["t"], "handler": http}}}
    with pytest.raises(Conflict, match="its Python module"):
        await bench.workflows.put("inbox", other)
    with pytest.raises(Conflict, match="its Python module"):
        await bench.workflows.remove("inbox")
    with pytest.raises(Conflict, match="its Python module"):
        await bench.workflows.patch("inbox", {"producers": {"poll": None}})
    await bench.workflows.patch("inbox", {"status": "paused"})
    assert (await inbox.flow.get())["status"] == "paused"
    with pytest.raises(Invalid, match="not one of draft"):
        await bench.workflows.patch("inbox", {"status": "asleep"})


@virtual
async def test_a_python_workflow_that_cannot_work_is_refused_at_the_start(world: World) -> None:
    """With every fault named; a prepare of the wrong shape is one."""
    bench = world.bench()
    flow = bench.workflow("w")
    flow.producer(every("1h"), publishes=["nowhere"], name="p")(named(Calls(world)))

    async def prepare(_: Context) -> str:
        return "all of them"

    flow.consumer(subscribe=["t"], name="c")(prepare)
    with pytest.raises(Invalid, match="no consumer reads 'nowhere'"):
        await bench.start()
    bench = world.bench()
    bench.workflow("w").consumer(subscribe=["t"], name="c")(prepare)
    with pytest.raises(Invalid, match="not a JSON object"):
        await bench.start()


@virtual
async def test_history_is_forgotten_with_the_ledger(world: World) -> None:
    """Runs, sessions and settled messages, by `ledger_days`; what is pending stays, and an open run keeps its own."""
    inbox = Inbox(world, found=mail("a"), period="30d")
    bench = await inbox.open(ledger_days=1)
    inbox.prepare.usual = decline
    await inbox.flow.publish("mail", "b", 1)
    await world.sleep("4d")
    assert await counts(bench) == {"pending": 1}
    assert rows(world, "SELECT * FROM handler_runs") == []
    assert rows(world, "SELECT * FROM sessions") == []
    assert await inbox.flow.publish("mail", "a", 1) == "published"


@virtual
async def test_a_clock_that_came_back_does_not_silence_a_producer(world: World) -> None:
    """It is planned from now; nothing waits for the future that was not."""
    world.sleep_max = MINUTE
    inbox = Inbox(world, period="1h", prepare=Prepare(wake_at="2099-01-01T00:00:00Z"))
    await inbox.open()
    world.wall.step(10 * 86_400_000)
    await world.sleep("2h")
    before = inbox.poll.count
    world.wall.step(-10 * 86_400_000)
    await world.sleep("3h")
    assert inbox.poll.count >= before + 2
    view = await inbox.flow.get()
    assert at(view["consumers"]["digest"]["wakeAt"]) <= world.now + 86_400_000


@virtual
async def test_reading_changes_nothing(world: World) -> None:
    """Asking about a workflow after a due time moves nothing (field note 1)."""
    inbox = Inbox(world, found=mail("a"), period="5m")
    bench = await inbox.open()
    await inbox.flow.pause()
    await world.sleep("12m")
    tables = ("workflows", "workflow_handlers", "topics", "messages", "sessions", "handler_runs", "alarms", "runs")
    before = [rows(world, f"SELECT * FROM {table}") for table in tables]
    for _ in range(3):
        await state_of(bench, "inbox")
        await bench.workflows.list()
        await bench.workflows.sessions("inbox")
        await bench.workflows.messages("inbox", "mail")
    assert [rows(world, f"SELECT * FROM {table}") for table in tables] == before


@virtual
async def test_a_draft_and_a_ready_one_do_not_run(world: World) -> None:
    """Statuses are a person's; what waits runs when it is made active."""
    bench = await world.open()
    http = {"http": {"url": "http://127.0.0.1:1"}}
    producer = {"schedule": {"type": "every", "every": "1m"}, "publishes": [], "handler": http}
    await bench.workflows.put("w", {"status": "draft", "producers": {"p": producer}})
    await world.sleep("1h")
    assert await ledger(bench, "w") == []
    assert (await state_of(bench, "w"))["status"] == "draft"


@virtual
async def test_a_producer_is_never_more_often_than_is_allowed(world: World) -> None:
    """As with schedules: an interval below `limits.every_min` becomes that, and writing it again changes nothing."""
    inbox = Inbox(world, period="1s")
    bench = await inbox.open()
    await world.sleep("60s")
    assert inbox.poll.count == 7
    assert (await state_of(bench, "inbox"))["producers"]["poll"]["schedule"]["every"] == "10s"
    await bench.stop()
    bench = await inbox.open()
    assert (await state_of(bench, "inbox"))["version"] == 1
