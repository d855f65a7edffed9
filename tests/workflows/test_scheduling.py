"""When handlers run: producers by their schedules, consumers by messages and wakeAt, one at a time."""

import pytest

from features.kit import World, short, virtual
from wakeful import Conflict, Context, Prepare, Produced, every, manual
from workflows.kit import Calls, Inbox, at, counts, decline, ledger, mail, named, sessions, state_of, take_one


@virtual
async def test_a_message_goes_from_producer_through_topic_to_consumer(world: World) -> None:
    """Producers run at once after a deploy; what they publish is consumed, and nothing is asked twice."""
    inbox = Inbox(world, found=mail("a", "b"), following=Produced(state={"sent": 1}))
    bench = await inbox.open()
    assert inbox.poll.count == 1
    assert [one.payload["subject"] for one in inbox.prepare.contexts[0].messages["mail"]] == ["a", "b"]
    assert inbox.mutate.contexts[0].prepared["data"] == [{"subject": "a"}, {"subject": "b"}]
    assert inbox.next.contexts[0].mutation == {"outcome": "applied"}
    assert await counts(bench) == {"consumed": 2}
    assert await sessions(bench) == ["schedule completed: poll digest"]
    assert await ledger(bench) == ["succeeded"] * 2
    assert inbox.mutate.count == 1
    view = await state_of(bench, "inbox")
    assert view["consumers"]["digest"]["state"] == {"sent": 1}
    assert (view["status"], view["error"], view["openRun"], view["session"]) == ("active", None, None, None)


@virtual
async def test_producers_keep_their_grid(world: World) -> None:
    """The next time lies on the grid of the deploy, whatever a run took."""
    inbox = Inbox(world, period="5m")
    inbox.poll.script = [70_000]
    bench = await inbox.open()
    await world.sleep("16m")
    assert inbox.poll.at == ["01-01 00:00:00", "01-01 00:05:00", "01-01 00:10:00", "01-01 00:15:00"]
    view = await state_of(bench, "inbox")
    assert short(at(view["producers"]["poll"]["nextRun"])) == "01-01 00:20:00"


@virtual
async def test_wake_at_is_kept_between_30_seconds_and_24_hours(world: World) -> None:
    """Test wakeAt clamping to min/max bounds."""
    inbox = Inbox(world, prepare=Prepare(wake_at="2020-01-01T00:00:00Z"))
    bench = await inbox.open()
    view = await state_of(bench, "inbox")
    assert at(view["consumers"]["digest"]["wakeAt"]) == world.now + 30_000
    inbox.prepare.usual = Prepare(wake_at="2099-01-01T00:00:00Z")
    await world.sleep("30s")
    view = await state_of(bench, "inbox")
    assert at(view["consumers"]["digest"]["wakeAt"]) == world.now + 86_400_000


@virtual
async def test_a_consumer_that_says_nothing_of_wake_at_sleeps_until_a_message(world: World) -> None:
    """Each prepare overwrites it; left out, it is cleared."""
    inbox = Inbox(world, prepare=Prepare(wake_at="2026-01-01T00:01:00Z"), period="30d")
    bench = await inbox.open()
    inbox.prepare.usual = decline
    await world.sleep("2m")
    assert inbox.prepare.at == ["01-01 00:00:00", "01-01 00:01:00"]
    assert (await state_of(bench, "inbox"))["consumers"]["digest"]["wakeAt"] is None
    await world.sleep("3d")
    assert inbox.prepare.count == 2


@virtual
async def test_a_declined_message_does_not_spin(world: World) -> None:
    """It was looked at; only a new message, or wakeAt, brings another look."""
    inbox = Inbox(world, prepare=decline, period="30d")
    bench = await inbox.open()
    await inbox.flow.publish("mail", "a", 1)
    await world.sleep("1h")
    assert inbox.prepare.count == 2  # after the deploy, and for the message
    assert await counts(bench) == {"pending": 1}
    await inbox.flow.publish("mail", "b", 2)
    await world.sleep("1h")
    assert inbox.prepare.count == 3
    assert [one.id for one in inbox.prepare.contexts[-1].messages["mail"]] == ["a", "b"]


@virtual
async def test_a_message_published_during_a_run_leads_to_another(world: World) -> None:
    """Also when that run declined everything it was shown."""
    inbox = Inbox(world, prepare=decline, period="30d")
    await inbox.open()
    inbox.prepare.script = [20_000]
    await inbox.flow.publish("mail", "a", 1)
    await world.sleep("10s")
    assert inbox.prepare.count == 2
    await inbox.flow.publish("mail", "b", 2)
    await world.sleep("1h")
    assert inbox.prepare.count == 3
    assert [one.id for one in inbox.prepare.contexts[1].messages["mail"]] == ["a"]
    assert [one.id for one in inbox.prepare.contexts[2].messages["mail"]] == ["a", "b"]


@virtual
async def test_a_producer_that_is_due_while_the_workflow_is_busy_waits_coalesced_to_one_run(world: World) -> None:
    """It is shown as queued, and what was jumped over is in the ledger."""
    inbox = Inbox(world, found=mail("a"), period="5m", timeout="1h")
    inbox.mutate.script = [18 * 60_000]
    bench = await inbox.open()
    await world.sleep("4m")
    assert (await state_of(bench, "inbox"))["producers"]["poll"]["queued"] is False
    await world.sleep("2m")
    assert (await state_of(bench, "inbox"))["producers"]["poll"]["queued"] is True
    await world.sleep("13m")
    assert inbox.poll.at == ["01-01 00:00:00", "01-01 00:18:00"]
    assert (await state_of(bench, "inbox"))["producers"]["poll"]["queued"] is False
    # 00:05 and 00:10 are jumped over; the run at 00:18 is that of 00:15.
    assert await ledger(bench) == ["succeeded"] * 2 + ["skipped (coalesced) x2", "succeeded"]
    (newest,) = (await bench.workflows.sessions("inbox", limit=1)).sessions
    assert newest.runs[0].queued_for == 13 * 60
    await world.sleep("90s")
    assert inbox.poll.at[-1] == "01-01 00:20:00"


@virtual
async def test_times_that_pass_during_a_producers_own_run_are_counted_and_not_repeated(world: World) -> None:
    """One row says how many, and which run blocked them."""
    inbox = Inbox(world, period="5m", timeout="1h")
    inbox.poll.script = [16 * 60_000]
    bench = await inbox.open()
    await world.sleep("21m")
    assert inbox.poll.at == ["01-01 00:00:00", "01-01 00:20:00"]
    assert "skipped (blocked) x3" in await ledger(bench)


@virtual
async def test_a_restart_brings_one_catch_up_run_however_long_it_was_off(world: World) -> None:
    """And one counted row for what was missed."""
    inbox = Inbox(world, period="5m")
    bench = await inbox.open()
    await bench.stop()
    await world.sleep("33m")
    bench = await inbox.open()
    assert inbox.poll.at == ["01-01 00:00:00", "01-01 00:33:00"]
    assert "missed (outage) x5" in await ledger(bench)
    assert short(at((await state_of(bench, "inbox"))["producers"]["poll"]["nextRun"])) == "01-01 00:35:00"


@virtual
async def test_one_handler_at_a_time_per_workflow_and_many_workflows_at_once(world: World) -> None:
    """Two producers of one workflow follow one another; those of two workflows run together."""
    bench = world.bench()
    calls = {name: Calls(world, Produced()) for name in ("a1", "a2", "b1")}
    for one in calls.values():
        one.script = [60_000]
    for flow, names in (("a", ("a1", "a2")), ("b", ("b1",))):
        declared = bench.workflow(flow)
        for name in names:
            declared.producer(every("1d"), name=name)(named(calls[name]))
    await bench.start()
    await world.sleep("3m")
    assert {name: one.at for name, one in calls.items()} == {
        "a1": ["01-01 00:00:00"],
        "a2": ["01-01 00:01:00"],
        "b1": ["01-01 00:00:00"],
    }


@virtual
async def test_the_consumer_that_has_waited_longest_runs_first(world: World) -> None:
    """The smallest of the oldest pending message and the due wakeAt; the definition's order on ties."""
    bench = world.bench()
    ran: list[str] = []
    flow = bench.workflow("w")
    busy = Calls(world, Produced())
    flow.producer(manual(), name="busy")(named(busy))
    wakes: dict[str, str | None] = {"c1": None, "c2": None, "c3": None, "c4": None}

    def declare(name: str) -> None:
        async def prepare(ctx: Context) -> Prepare:
            if not ctx.dry_run:
                ran.append(name)
            return Prepare(wake_at=wakes[name])

        flow.consumer(subscribe=[f"t-{name}"], name=name)(prepare)

    for name in wakes:
        declare(name)
    wakes["c4"] = "2026-01-01T00:00:40Z"
    await bench.start()
    await world.settle()
    assert ran == ["c1", "c2", "c3", "c4"]
    ran.clear()
    wakes["c4"] = None
    busy.script = [60_000]
    await flow.run()
    await world.settle()
    for seconds, name in ((20, "c3"), (10, "c1"), (0, "c2")):
        await world.sleep(f"{seconds}s")
        await flow.publish(f"t-{name}", "x")
    await world.sleep("1m")
    assert ran == ["c3", "c1", "c2", "c4"]


@virtual
async def test_a_session_holds_a_hundred_consumer_runs_and_the_next_one_goes_on(world: World) -> None:
    """Nothing is lost at the limit; producers that came due meanwhile get their turn."""
    inbox = Inbox(world, prepare=take_one, period="30d")
    bench = await inbox.open()
    for n in range(150):
        await inbox.flow.publish("mail", f"m{n:03}", n)
    await world.sleep("1s")
    assert await counts(bench) == {"consumed": 150}
    assert [ctx.prepared["data"] for ctx in inbox.mutate.contexts] == list(range(150))
    found = (await bench.workflows.sessions("inbox", limit=1000)).sessions
    assert max(len(one.runs) for one in found) == 100
    assert all(one.result == "completed" for one in found)


@virtual
async def test_a_manual_session_runs_every_producer_and_an_event_session_none(world: World) -> None:
    """Manual is refused while the workflow is at work, or not active."""
    bench = world.bench()
    flow = bench.workflow("w")
    calls = [Calls(world, Produced()) for _ in range(2)]
    flow.producer(every("1d"), publishes=[], name="p1")(named(calls[0]))
    flow.producer(manual(), publishes=[], name="p2")(named(calls[1]))
    prepare = Calls(world, decline)
    flow.consumer(subscribe=["t"], name="c")(named(prepare))
    await bench.start()
    await world.settle()
    assert [one.count for one in calls] == [1, 0]
    calls[0].script = [10_000]
    await flow.run()
    with pytest.raises(Conflict, match="is already running"):
        await flow.run()
    await world.sleep("1m")
    assert [one.count for one in calls] == [2, 1]
    await flow.publish("t", "x")
    await world.sleep("1m")
    assert [one.count for one in calls] == [2, 1]
    assert await sessions(bench, "w") == ["schedule completed: p1 c", "manual completed: p1 p2", "event completed: c"]
    await flow.pause()
    with pytest.raises(Conflict, match="is paused"):
        await flow.run()
