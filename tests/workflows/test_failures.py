"""What goes wrong in a handler, phase by phase: tried again, stopped, or left to a person."""

import asyncio
from dataclasses import replace

import pytest

from features.kit import World, short, virtual
from wakeful import Conflict, Context, LogicError, NotFound, Produced, Publish, Transient, every
from wakeful.core.delivery.incidents import handler_incident, stop_incident
from wakeful.core.run.effects import Alert, Observed
from wakeful.core.time.timing import Every
from wakeful.core.workflow.definition import Producer
from wakeful.features.workflows.compiled import Compiled
from wakeful.ports.store import Tx
from workflows.kit import Calls, Inbox, at, counts, decline, ledger, mail, named, rows, take_all


async def open_run(inbox: Inbox) -> int:
    """The run that is open."""
    return int((await inbox.flow.get())["openRun"]["runId"])


@virtual
async def test_a_handler_that_cannot_be_reached_is_tried_again_with_growing_pauses_without_end(world: World) -> None:
    """10 s doubling to 10 min; the workflow does not stop, and there is one incident."""
    inbox = Inbox(world, period="30d")
    inbox.poll.usual = Transient("the server sleeps")
    bench = await inbox.open()
    await world.sleep("1h")
    pauses = ("00:00", "00:10", "00:30", "01:10", "02:30", "05:10", "10:30", "20:30", "30:30", "40:30", "50:30")
    assert inbox.poll.at == [f"01-01 00:{at}" for at in pauses]
    view = await inbox.flow.get()
    assert (view["status"], view["error"], view["openRun"]) == ("active", None, None)
    assert view["producers"]["poll"]["lastError"] == "the server sleeps"
    assert view["producers"]["poll"]["heldUntil"] == "2026-01-01T01:00:30.000Z"
    assert set(await ledger(bench)) == {"failed (transient)", "succeeded"}
    await world.sleep("2m")
    assert world.reported() == ["handler:inbox/poll"]  # one incident, however often it is raised
    ((text,),) = world.query("SELECT text FROM incidents")
    assert "poll could not be reached 12 times in a row (the server sleeps)" in text
    inbox.poll.usual = Produced([Publish("mail", "a", 1)])
    await world.sleep("10m")
    assert await counts(bench) == {"consumed": 1}
    view = await inbox.flow.get()
    assert (view["producers"]["poll"]["lastError"], view["producers"]["poll"]["heldUntil"]) == (None, None)


@virtual
async def test_the_other_handlers_go_on_while_one_cannot_be_reached(world: World) -> None:
    """A consumer that is down keeps its messages; the producer, and another consumer, do not wait for it."""
    bench = world.bench()
    flow = bench.workflow("w")
    poll = Calls(world, lambda ctx: Produced([Publish("t", short(world.now), 1)]))
    down, up = Calls(world, ConnectionRefusedError("no")), Calls(world, take_all)
    flow.producer(every("1m"), publishes=["t"], name="poll")(named(poll))
    flow.consumer(subscribe=["t"], name="down")(named(down))
    flow.consumer(subscribe=["t"], name="up")(named(up))
    await bench.start()
    await world.sleep("10m30s")
    assert poll.count == 11
    view = await flow.get()
    assert view["error"] is None
    assert view["consumers"]["up"]["messages"]["t"]["consumed"] == 11
    assert view["consumers"]["down"]["messages"]["t"]["pending"] == 11
    assert down.count == 7
    down.usual = take_all
    await world.sleep("10m")
    assert (await flow.get())["consumers"]["down"]["messages"]["t"]["pending"] == 0


@virtual
async def test_instants_of_a_producer_that_is_held_off_are_skipped_and_counted(world: World) -> None:
    """Each try is a run of its own; the times between the tries are in the ledger with the reason."""
    inbox = Inbox(world, period="1m")
    inbox.poll.usual = Transient("down")
    bench = await inbox.open()
    await world.sleep("6m")
    inbox.poll.usual = Produced()
    await world.sleep("10m")
    lines = [line for line in await ledger(bench) if line not in ("failed (transient)", "succeeded")]
    assert lines == ["skipped (backoff) x2", "skipped (backoff) x4"]


@virtual
async def test_resuming_and_running_by_hand_try_a_handler_that_is_held_off_at_once(world: World) -> None:
    """A person who does so knows that it is back."""
    inbox = Inbox(world, period="30d", found=Transient("down"))
    await inbox.open()
    await world.sleep("1h")
    tried = inbox.poll.count
    await inbox.flow.run()
    await world.sleep("1s")
    assert inbox.poll.count == tried + 1
    await inbox.flow.resume()
    await world.sleep("1s")
    assert inbox.poll.count == tried + 2


@virtual
async def test_a_transient_failure_before_the_side_effect_starts_fresh_and_gives_back_what_it_reserved(
    world: World,
) -> None:
    """The attempt of the message rises, and its place in the queue stays."""
    inbox = Inbox(world, period="30d")
    bench = await inbox.open()
    inbox.mutate.script = [Transient("429"), ConnectionRefusedError("no")]
    await inbox.flow.publish("mail", "a", 1)
    await world.sleep("5s")
    assert await counts(bench) == {"pending": 1}
    await inbox.flow.publish("mail", "b", 2)
    await world.sleep("1m")
    assert await counts(bench) == {"consumed": 2}
    shown = [[(one.id, one.attempt) for one in ctx.messages["mail"]] for ctx in inbox.prepare.contexts[1:]]
    assert shown == [[("a", 1)], [("a", 2), ("b", 1)], [("a", 3), ("b", 2)]]
    keys = [ctx.idempotency_key for ctx in inbox.mutate.contexts]
    assert len(set(keys)) == 3  # each prepare may choose others, so each side effect has a key of its own


@virtual
async def test_a_failure_after_the_side_effect_resumes_at_next(world: World) -> None:
    """`prepare` and `mutate` are not called again, the reservations stay, and the commit consumes them."""
    inbox = Inbox(world, period="30d", mutate=lambda ctx: {"result": {"sent": ctx.prepared["data"]}})
    bench = await inbox.open()
    inbox.next.script = [Transient("not now"), TimeoutError()]
    await inbox.flow.publish("mail", "a", 1)
    await world.sleep("5s")
    assert await counts(bench) == {"reserved": 1}
    await world.sleep("1m")
    assert await counts(bench) == {"consumed": 1}
    assert inbox.mutate.count == 1
    assert [ctx.mutation for ctx in inbox.next.contexts[1:4]] == [{"outcome": "applied", "result": {"sent": [1]}}] * 3


@virtual
async def test_a_logic_error_stops_the_workflow_until_a_person_acts(world: World) -> None:
    """Nothing of it runs meanwhile, whatever is published; resuming looks at everything that is pending."""
    inbox = Inbox(world, period="5m", found=mail("a"))
    inbox.prepare.script = [ValueError("bad subject")]
    bench = await inbox.open()
    view = await inbox.flow.get()
    assert "digest, prepare: ValueError: bad subject" in view["error"]
    assert (await ledger(bench))[-1] == "failed"
    await inbox.flow.publish("mail", "b", 1)
    await world.sleep("1h")
    assert (inbox.poll.count, inbox.prepare.count) == (1, 1)
    assert await counts(bench) == {"pending": 2}
    await inbox.flow.resume()
    await world.sleep("1s")
    assert await counts(bench) == {"consumed": 2}


@virtual
async def test_a_logic_error_behind_the_side_effect_waits_open_and_resumes_at_next(world: World) -> None:
    """No message stays reserved for ever, and the side effect is not repeated."""
    inbox = Inbox(world, period="30d")
    bench = await inbox.open()
    inbox.next.script = [Produced([Publish("elsewhere", "x")])]
    await inbox.flow.publish("mail", "a", 1)
    await world.sleep("1h")
    view = await inbox.flow.get()
    assert "is not one of its declared topics" in view["error"]
    assert (view["openRun"]["phase"], view["openRun"]["awaits"]) == ("mutated", "stopped")
    assert await counts(bench) == {"reserved": 1}
    await inbox.flow.resume()
    await world.sleep("1s")
    assert await counts(bench) == {"consumed": 1}
    assert inbox.mutate.count == 1


@virtual
async def test_what_is_behind_its_side_effect_and_cannot_end_may_be_skipped(world: World) -> None:
    """Its messages are skipped, the run ends as failed, the rest goes on."""
    inbox = Inbox(world, period="30d")
    bench = await inbox.open()
    inbox.next.script = [LogicError("never")]
    await inbox.flow.publish("mail", "a", 1)
    await world.sleep("1s")
    run_id = await open_run(inbox)
    with pytest.raises(Conflict, match="is recorded"):
        await inbox.flow.resolve(run_id, "didNotHappen")
    await inbox.flow.resolve(run_id, "skip")
    await inbox.flow.publish("mail", "b", 1)
    await world.sleep("1s")
    assert await counts(bench) == {"consumed": 1, "skipped": 1}
    assert "failed (skipped by a person)" in await ledger(bench)


@pytest.mark.parametrize("choice", ["retry", "didNotHappen", "skip"])
@pytest.mark.parametrize("trouble", [TimeoutError(), ConnectionResetError("gone"), RuntimeError("what now"), 600_000])
def test_an_uncertain_side_effect_waits_for_a_person(choice: str, trouble: object, tmp_path: object) -> None:
    """Whatever it was: a timeout, a broken connection, an exception, no answer."""

    @virtual
    async def story(world: World) -> None:
        inbox = Inbox(world, period="30d")
        bench = await inbox.open()
        inbox.mutate.script = [trouble]
        await inbox.flow.publish("mail", "a", 1)
        await world.sleep("1h")
        view = await inbox.flow.get()
        assert (view["openRun"]["phase"], view["openRun"]["awaits"]) == ("mutating", "uncertain")
        assert view["openRun"]["outcome"] == "waiting"
        assert "it is unknown whether it happened" in view["error"]
        assert await counts(bench) == {"reserved": 1}
        assert inbox.mutate.count == 1
        run_id = await open_run(inbox)
        with pytest.raises(Conflict, match="waits to be resolved"):
            await inbox.flow.resume()
        prepares = inbox.prepare.count
        await inbox.flow.resolve(run_id, choice)
        await world.sleep("1s")
        assert (await inbox.flow.get())["error"] is None
        if choice == "retry":
            first, second = inbox.mutate.contexts
            assert first.idempotency_key == second.idempotency_key
            assert inbox.prepare.count == prepares
            assert await counts(bench) == {"consumed": 1}
        elif choice == "didNotHappen":
            assert [one.attempt for one in inbox.prepare.contexts[prepares].messages["mail"]] == [2]
            assert inbox.mutate.count == 2
            assert await counts(bench) == {"consumed": 1}
        else:
            assert inbox.mutate.count == 1
            assert {"outcome": "skipped"} in [ctx.mutation for ctx in inbox.next.contexts]
            assert await counts(bench) == {"skipped": 1}
        with pytest.raises(Conflict, match="does not need to be resolved"):
            await inbox.flow.resolve(run_id, choice)

    story(tmp_path=tmp_path)


@virtual
async def test_a_crash_in_the_side_effect_is_uncertain_and_never_repeated_by_itself(world: World) -> None:
    """Not by the rescue, not by a second restart, not by resuming."""
    inbox = Inbox(world, period="30d")
    bench = await inbox.open()
    inbox.mutate.script = [60_000]
    await inbox.flow.publish("mail", "a", 1)
    await world.sleep("10s")
    assert inbox.mutate.count == 1
    await bench.kill()
    for _ in range(2):
        bench = await inbox.open()
        await world.sleep("1h")
        view = await inbox.flow.get()
        assert view["openRun"]["awaits"] == "uncertain"
        assert inbox.mutate.count == 1
        await bench.stop()
    bench = await inbox.open()
    await inbox.flow.resolve(await open_run(inbox), "retry")
    await world.sleep("1s")
    assert inbox.mutate.count == 2
    assert await counts(bench) == {"consumed": 1}


@virtual
async def test_a_crash_before_the_side_effect_starts_fresh_and_one_behind_it_resumes(world: World) -> None:
    """The run is the same, its attempts are counted."""
    inbox = Inbox(world, period="30d")
    bench = await inbox.open()
    inbox.prepare.script = [30_000]
    await inbox.flow.publish("mail", "a", 1)
    await world.sleep("10s")
    await bench.kill()
    bench = await inbox.open()
    inbox.next.script = [decline, 30_000]
    await world.sleep("1s")
    assert inbox.mutate.count == 1
    await bench.kill()
    bench = await inbox.open()
    await world.sleep("10s")
    assert inbox.mutate.count == 1
    assert await counts(bench) == {"consumed": 1}


@virtual
async def test_a_shutdown_in_the_side_effect_is_uncertain_too(world: World) -> None:
    """It is given its grace; what is ended then, nobody knows of."""
    inbox = Inbox(world, period="30d")
    bench = await inbox.open()
    inbox.mutate.script = [200_000]
    await inbox.flow.publish("mail", "a", 1)
    await world.sleep("1s")
    await bench.stop()
    await inbox.open()
    assert (await inbox.flow.get())["openRun"]["awaits"] == "uncertain"


@virtual
async def test_a_handler_may_publish_while_its_app_stops(world: World) -> None:
    """What it asks for within the grace is done, and its run succeeds."""
    inbox = Inbox(world, period="30d")
    bench = await inbox.open()

    async def publish(_: Context) -> None:
        await world.clock.sleep(2_000)
        await inbox.flow.publish("mail", "b", 2)

    inbox.mutate.script = [publish]
    await inbox.flow.publish("mail", "a", 1)
    await world.sleep("1s")
    await bench.stop()
    bench = await inbox.open()
    await world.sleep("1s")
    assert await counts(bench) == {"consumed": 2}
    assert (await inbox.flow.get())["status"] == "active"


@virtual
async def test_a_handler_that_kills_its_node_twice_stops_its_workflow(world: World) -> None:
    """Instead of killing it for ever."""
    inbox = Inbox(world, period="30d")
    bench = await inbox.open()
    inbox.prepare.script = [30_000, 30_000, 30_000]
    await inbox.flow.publish("mail", "a", 1)
    for _ in range(2):
        await world.sleep("5s")
        await bench.kill()
        bench = await inbox.open()
    await world.sleep("1m")
    assert "twice in this run" in (await inbox.flow.get())["error"]
    assert await counts(bench) == {"pending": 1}


@virtual
async def test_a_thread_that_cannot_be_ended_is_left_to_a_person(world: World) -> None:
    """Nothing else of the workflow starts until somebody has decided."""
    inbox = Inbox(world, period="30d", timeout="5s")
    bench = world.bench()
    flow = inbox.flow = inbox.declare(bench)
    stuck: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def prepare(ctx: object) -> object:
        if not getattr(ctx, "dry_run", False) and not stuck.done():
            while not stuck.done():
                try:
                    await asyncio.shield(stuck)
                except asyncio.CancelledError:
                    continue
        return decline(ctx)  # type: ignore[arg-type]

    flow._consumers["digest"][1]._phases["prepare"] = prepare
    await bench.start()
    await world.sleep("5m")
    assert "could not be stopped" in (view := await flow.get())["error"] or "still running" in view["error"]
    stuck.set_result(None)
    await world.sleep("1s")
    await flow.resume()
    await world.sleep("1s")
    assert (await flow.get())["error"] is None


@virtual
async def test_pausing_lets_a_run_that_waits_rest_and_resuming_lets_it_go_on(world: World) -> None:
    """A status that a person set is never overwritten by the engine."""
    inbox = Inbox(world, period="30d")
    bench = await inbox.open()
    inbox.mutate.script = [Transient("later")]
    await inbox.flow.publish("mail", "a", 1)
    await world.sleep("1s")
    await inbox.flow.pause()
    await world.sleep("1h")
    assert inbox.mutate.count == 1
    assert (await inbox.flow.get())["status"] == "paused"
    await inbox.flow.resume()
    await world.sleep("1s")
    assert await counts(bench) == {"consumed": 1}


@virtual
async def test_times_that_pass_in_a_pause_are_one_row_and_not_caught_up(world: World) -> None:
    """A pause is not an outage."""
    inbox = Inbox(world, period="5m")
    bench = await inbox.open()
    await world.sleep("1m")
    await inbox.flow.pause()
    await world.sleep("30m")
    await inbox.flow.resume()
    await world.sleep("1s")
    assert inbox.poll.count == 1
    assert "skipped (paused) x6" in await ledger(bench)
    await world.sleep("4m")
    assert inbox.poll.at[-1] == "01-01 00:35:00"


@virtual
async def test_setting_the_status_to_active_is_resuming(world: World) -> None:
    """By a patch as by the command: nothing that passed in the pause is caught up."""
    inbox = Inbox(world, period="5m")
    bench = await inbox.open()
    await bench.workflows.patch("inbox", {"status": "paused"})
    await world.sleep("31m")
    await bench.workflows.patch("inbox", {"status": "active"})
    await world.sleep("1s")
    assert inbox.poll.count == 1
    assert "skipped (paused) x6" in await ledger(bench)


@virtual
async def test_a_schedule_that_cannot_be_reckoned_stops_its_own_workflow_and_not_the_clock(world: World) -> None:
    """The other one goes on at its times."""
    one, two = Inbox(world, name="one", period="1m"), Inbox(world, name="two", period="1m")
    bench = world.bench()
    for inbox in (one, two):
        inbox.flow = inbox.declare(bench)
    await bench.start()
    await world.settle()
    compiled = bench._workflows.compilations
    known = compiled._cache.get(1, 1)
    assert isinstance(known, Compiled)
    poll = known.handlers["poll"]
    assert isinstance(poll, Producer)
    compiled._cache.keep(1, known._replace(handlers={**known.handlers, "poll": replace(poll, timing=Every(0, 0))}))
    await world.sleep("5m")
    assert "its next time cannot be computed" in (await one.flow.get())["error"]
    assert two.poll.count == 6


@virtual
async def test_a_retry_is_told_when_to_come_back_by_429(world: World) -> None:
    """Not sooner than it was told, not sooner than the backoff."""
    inbox = Inbox(world, period="30d")
    await inbox.open()
    inbox.prepare.script = [Transient("busy")]
    await inbox.flow.publish("mail", "a", 1)
    await world.sleep("1s")
    view = (await inbox.flow.get())["consumers"]["digest"]
    assert view["lastError"] == "busy"
    assert at(view["heldUntil"]) == world.now - 1_000 + 10_000


@virtual
async def test_resolving_what_is_not_there_says_so(world: World) -> None:
    """A run of another workflow, or of none."""
    inbox = Inbox(world, period="30d")
    await inbox.open()
    with pytest.raises(NotFound, match="no run 999"):
        await inbox.flow.resolve(999, "retry")
    with pytest.raises(ValueError, match="not one of retry"):
        await inbox.flow.resolve(1, "perhaps")


@virtual
async def test_deleting_under_an_open_run_lets_it_end_and_leaves_nothing_reserved(world: World) -> None:
    """A waiting one is given up; the ledger stays."""
    inbox = Inbox(world, period="30d")
    bench = await inbox.open()
    inbox.mutate.script = [TimeoutError()]
    await inbox.flow.publish("mail", "a", 1)
    await world.sleep("1s")
    world.tamper("UPDATE workflows SET origin = 'rest'")
    await bench.workflows.remove("inbox")
    with pytest.raises(NotFound):
        await inbox.flow.get()
    assert [row["status"] for row in rows(world, "SELECT status FROM messages")] == ["skipped"]
    assert [row["outcome"] for row in rows(world, "SELECT outcome FROM runs ORDER BY run_id")][-1] == "unknown"
    await world.sleep("7h")
    assert rows(world, "SELECT * FROM messages UNION ALL SELECT * FROM messages") == []


@virtual
async def test_a_run_that_was_open_in_a_copy_put_back_is_unknown_and_its_workflow_waits_for_a_person(
    world: World,
) -> None:
    """A copy put back repeats nothing: what happened after it was made, nobody here can know."""
    inbox = Inbox(world, period="30d")
    bench = await inbox.open()
    inbox.mutate.script = [60_000]
    await inbox.flow.publish("mail", "a", 1)
    await world.sleep("1s")
    await bench.kill()
    world.tamper("INSERT INTO meta VALUES ('copied_at', ?)", str(world.now))
    bench = await inbox.open()
    await world.sleep("1h")
    view = await inbox.flow.get()
    assert "it was open in the backup" in view["error"]
    assert await counts(bench) == {"skipped": 1}
    assert (await ledger(bench))[-1].startswith("unknown")
    assert inbox.mutate.count == 1


@virtual
async def test_a_copy_put_back_starts_nothing_of_its_workflows_before_a_person_has_looked(world: World) -> None:
    """What is pending in it may have been consumed since; producers would find it all again."""
    inbox = Inbox(world, period="5m", found=mail("a"), prepare=decline)
    bench = await inbox.open()
    await bench.stop()
    world.tamper("INSERT INTO meta VALUES ('copied_at', ?)", str(world.now))
    await world.sleep("1h")
    inbox.prepare.usual = take_all
    bench = await inbox.open()
    await world.sleep("1h")
    assert (inbox.poll.count, inbox.prepare.count, inbox.mutate.count) == (1, 1, 0)
    assert "the store was restored from a backup" in (await inbox.flow.get())["error"]
    await inbox.flow.resume()
    await world.sleep("1s")
    assert await counts(bench) == {"consumed": 1}


@virtual
async def test_a_workflow_that_waits_for_a_person_is_a_finding_with_its_cure(world: World) -> None:
    """Of a logic error: resume; of an uncertain side effect: resolve, with the run; when it goes on, there is none."""
    inbox = Inbox(world, period="30d")
    bench = await inbox.open()

    async def found() -> list[tuple[str, str | None]]:
        health = await bench.system.health()
        return [(one.level, one.cure) for one in health.findings if one.name == "workflows"]

    assert await found() == [("ok", None)]
    inbox.prepare.script = [LogicError("no such field")]
    await inbox.flow.publish("mail", "a", 1)
    await world.sleep("1s")
    assert await found() == [("warn", "fix the cause, then: wakeful workflows resume inbox")]
    inbox.mutate.script = [TimeoutError("no answer")]
    await inbox.flow.resume()
    await world.sleep("1s")
    run_id = await open_run(inbox)
    cure = f"find out what happened, then: wakeful workflows resolve inbox {run_id} retry|didNotHappen|skip"
    assert await found() == [("warn", cure)]
    await inbox.flow.resolve(run_id, "retry")
    await world.sleep("1s")
    assert await found() == [("ok", None)]


@virtual
async def test_a_workflow_that_is_removed_has_no_open_incident(world: World) -> None:
    """Neither of a handler nor of the workflow itself."""
    bench = await world.open()
    flow = {
        "status": "draft",
        "consumers": {"c": {"subscribe": ["t"], "handler": {"command": {"argv": ["/bin/true"]}}}},
    }
    await bench.workflows.put("w", flow, force=True)
    parts, now = bench.parts, world.now

    def fail(tx: Tx) -> None:
        parts.apply(tx, Observed(handler_incident("w", "c"), False, now, None, "no", is_urgent=True), now)
        parts.apply(tx, Alert(stop_incident("w"), "it stopped"), now)

    await parts.store.write(fail)
    assert [one.incident for one in (await bench.people.alerts(is_open=True)).alerts] == ["handler:w/c", "workflow:w"]
    await bench.workflows.remove("w")
    assert (await bench.people.alerts(is_open=True)).alerts == []
