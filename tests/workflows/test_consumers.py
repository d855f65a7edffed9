"""Several consumers on one topic, consumers that come and go, wakeAt, and consumers that publish to themselves."""

import pytest

from features.kit import World, short, virtual
from wakeful import Context, Prepare, Produced, Publish, Workflow
from wakeful.core.workflow import rules
from wakeful.features.workflows.queries import handlers_of
from workflows.kit import Calls, Inbox, counts, decline, ledger, named, state_of, take_all, take_one


def declared(world: World, **consumers: Calls) -> Workflow:
    """A workflow whose consumers all read topic t; another one of the same name as before takes its place."""
    flow = Workflow("w")
    for name, calls in consumers.items():
        flow.consumer(subscribe=["t"], name=name)(named(calls))
    return flow


async def deployed(world: World, flow: Workflow) -> object:
    """An app with this workflow, started."""
    bench = world.bench()
    bench.workflows.add(flow)
    await bench.start()
    await world.settle()
    return bench


async def standing(flow: Workflow) -> dict[str, dict[str, int]]:
    """For each consumer, how many messages of each status it has."""
    view = await flow.get()
    found = {name: one["messages"]["t"] for name, one in view["consumers"].items()}
    return {name: {status: n for status, n in by.items() if n} for name, by in found.items()}


@virtual
async def test_each_consumer_of_a_topic_has_its_own_status_of_each_message(world: World) -> None:
    """What one consumes the other one still has; the counts are those of each, and of the topic in all."""
    first, second = Calls(world, take_all), Calls(world, decline)
    flow = declared(world, first=first, second=second)
    await deployed(world, flow)
    assert await flow.publish("t", "a", 1) == "published"
    assert await flow.publish("t", "b", 2) == "published"
    await world.sleep("1s")
    assert await standing(flow) == {"first": {"consumed": 2}, "second": {"pending": 2}}
    assert (await flow.get())["topics"]["t"] == {"pending": 2, "reserved": 0, "consumed": 2, "skipped": 0}
    second.usual = take_one
    await flow.publish("t", "c", 3)
    await world.sleep("1s")
    assert await standing(flow) == {"first": {"consumed": 3}, "second": {"consumed": 3}}


@virtual
async def test_publishing_an_id_again_updates_it_where_it_is_pending(world: World) -> None:
    """`updated` if that is the case for any consumer, else `duplicate`; a consumer that has it is not asked again."""
    first, second = Calls(world, take_all), Calls(world, decline)
    flow = declared(world, first=first, second=second)
    await deployed(world, flow)
    await flow.publish("t", "a", 1)
    await world.sleep("1s")
    looks = first.count
    assert await flow.publish("t", "a", 2) == "updated"
    await world.sleep("1s")
    assert first.count == looks
    assert [one.payload for one in second.contexts[-1].messages["t"]] == [2]
    await flow.skip("t", "a", consumer="second")
    assert await flow.publish("t", "a", 3) == "duplicate"
    assert await standing(flow) == {"first": {"consumed": 1}, "second": {"skipped": 1}}


@virtual
async def test_what_one_consumer_gives_back_does_not_wake_the_other(world: World) -> None:
    """A failed side effect of one is its own."""
    first, second = Calls(world, take_all), Calls(world, decline)
    flow = declared(world, first=first, second=second)
    effect = Calls(world, None)
    flow._consumers["first"][1].mutate(named(effect))
    await deployed(world, flow)
    effect.script = [ConnectionRefusedError("no")]
    await flow.publish("t", "a", 1)
    await world.sleep("1s")
    looks = second.count
    await world.sleep("1m")
    assert second.count == looks
    assert [[one.attempt for one in ctx.messages["t"]] for ctx in first.contexts[-2:]] == [[1], [2]]


@virtual
async def test_a_consumer_added_later_starts_with_what_is_published_from_then_on(world: World) -> None:
    """What was there before is not its business."""
    first, second = Calls(world, decline), Calls(world, decline)
    flow = declared(world, first=first)
    bench = await deployed(world, flow)
    await flow.publish("t", "old", 1)
    await world.sleep("1s")
    await bench.stop()  # type: ignore[attr-defined]
    flow = declared(world, first=first, second=second)
    await deployed(world, flow)
    await flow.publish("t", "new", 2)
    await world.sleep("1s")
    assert await standing(flow) == {"first": {"pending": 2}, "second": {"pending": 1}}
    assert [one.id for one in second.contexts[-1].messages["t"]] == ["new"]


@virtual
async def test_a_consumer_that_is_renamed_keeps_its_messages(world: World) -> None:
    """The only new one of a topic takes the place of the only one that left it with the same deploy."""
    before, after = Calls(world, decline), Calls(world, take_all)
    flow = declared(world, before=before)
    bench = await deployed(world, flow)
    await flow.publish("t", "a", 1)
    await world.sleep("1s")
    await bench.stop()  # type: ignore[attr-defined]
    flow = declared(world, after=after)
    await deployed(world, flow)
    await world.sleep("1s")
    assert await standing(flow) == {"after": {"consumed": 1}}


@virtual
async def test_what_a_removed_consumer_leaves_behind_is_told_and_kept_for_its_return(world: World) -> None:
    """In the answer to the deploy and in the log; nothing of it is lost."""
    stays, leaves = Calls(world, take_all), Calls(world, decline)
    bench = await deployed(world, flow := declared(world, stays=stays, leaves=leaves))
    await flow.publish("t", "a", 1)
    await world.sleep("1s")
    workflows = bench._workflows
    definition = declared(world, stays=stays).definition
    told = await workflows._deploy(definition, None, origin="python", force=True, then=lambda *given: given[-1])
    (warning,) = told.warnings
    assert "consumer 'leaves' no longer reads 't' and leaves 1 pending message in it" in warning
    assert "wakeful workflows skip w t --all --consumer leaves" in warning
    view = await flow.get()
    assert view["topics"]["t"] == {"pending": 1, "reserved": 0, "consumed": 1, "skipped": 0}
    leaves.usual = take_all
    definition = declared(world, stays=stays, leaves=leaves).definition
    await workflows._deploy(definition, None, origin="python", force=True, then=lambda *_: None)
    await world.sleep("1s")
    assert await standing(flow) == {"stays": {"consumed": 1}, "leaves": {"consumed": 1}}


@virtual
async def test_wake_at_of_a_run_that_reserved_something_stays(world: World) -> None:
    """Nothing is pending afterwards, so nothing is asked that could clear it; it fires at its time."""

    def prepare(ctx: Context) -> Prepare:
        if not ctx.messages["mail"]:
            return Prepare()
        return Prepare({"mail": [one.id for one in ctx.messages["mail"]]}, wake_at="2026-01-01T00:01:00Z")

    inbox = Inbox(world, prepare=prepare, period="30d")
    bench = await inbox.open()
    await inbox.flow.publish("mail", "a", 1)
    await world.sleep("20s")
    assert inbox.prepare.count == 2  # after the deploy, and for the message
    assert (await state_of(bench, "inbox"))["consumers"]["digest"]["wakeAt"] == "2026-01-01T00:01:00.000Z"
    await world.sleep("1m")
    assert inbox.prepare.at[-1] == "01-01 00:01:00"
    assert (await state_of(bench, "inbox"))["consumers"]["digest"]["wakeAt"] is None


@virtual
async def test_a_prepare_that_was_shown_nothing_and_not_woken_does_not_clear_wake_at(world: World) -> None:
    """A deploy looks at every consumer once; that look says nothing about the wakeAt."""
    inbox = Inbox(world, prepare=Prepare(wake_at="2026-01-01T01:00:00Z"), period="30d")
    bench = await inbox.open()
    inbox.prepare.usual = decline
    await bench.stop()
    inbox.period = "31d"  # another definition: every consumer is looked at
    bench = await inbox.open()
    assert inbox.prepare.count == 2
    assert (await state_of(bench, "inbox"))["consumers"]["digest"]["wakeAt"] == "2026-01-01T01:00:00.000Z"
    await inbox.flow.publish("mail", "a", 1)
    await world.sleep("1s")
    assert (await state_of(bench, "inbox"))["consumers"]["digest"]["wakeAt"] is None


@virtual
async def test_a_consumer_that_publishes_to_its_own_topic_is_slowed_down_visibly(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So many runs a minute; then the consumers wait for the next one, and the workflow says so."""
    assert rules.LOOP_RUNS_MAX == 300
    monkeypatch.setattr(rules, "LOOP_RUNS_MAX", 60)
    bench = world.bench()
    flow = bench.workflow("w")
    prepare = Calls(world, take_all)
    following = Calls(world, lambda ctx: Produced([Publish("t", f"m{following.count}", 1)]))
    flow.consumer(subscribe=["t"], publishes=["t"], name="echo")(named(prepare)).next(named(following))
    await bench.start()
    await world.settle()
    await flow.publish("t", "m", 1)
    await world.sleep("59s")
    assert prepare.count == 60
    view = await flow.get()
    assert view["limitedUntil"] == view["nextRun"] == "2026-01-01T00:01:00.000Z"
    await world.sleep("1m")
    assert prepare.count == 120


@pytest.mark.torture
@virtual
async def test_a_queue_that_does_not_feed_itself_is_not_limited(world: World) -> None:
    """However many messages it drains one by one."""
    inbox = Inbox(world, prepare=take_one, period="30d")
    bench = await inbox.open()
    inbox.poll.script = [Produced([Publish("mail", f"{n:03}", n) for n in range(400)])]
    await inbox.flow.run()
    await world.sleep("1s")
    assert await counts(bench) == {"consumed": 400}


@virtual
async def test_the_ledger_says_which_handler_ran_and_which_did_not(world: World) -> None:
    """Rows of times that were skipped too."""
    inbox = Inbox(world, period="5m", timeout="1h")
    inbox.poll.script = [16 * 60_000]
    bench = await inbox.open()
    await world.sleep("17m")
    runs = await bench.runs("workflow:inbox", limit=100)
    handlers = await bench.parts.store.read(lambda tx: handlers_of(tx, [run.run_id for run in runs]))
    told = {f"{handlers[run.run_id]} {run.outcome}" for run in runs}
    assert told == {"poll succeeded", "poll skipped", "digest succeeded"}
    assert len(await ledger(bench)) == len(handlers)
    assert short(world.now) == "01-01 00:17:00"


@virtual
async def test_a_draft_that_was_paused_is_tried_out_when_it_is_resumed(world: World) -> None:
    """The dry prepare is owed until it has happened."""
    bench = world.bench()
    await bench.start()
    written = {
        "id": "d",
        "status": "draft",
        "consumers": {"c": {"subscribe": ["t"], "handler": {"command": {"argv": ["/no/such/program"]}}}},
    }
    await bench.workflows.put("d", written)
    await bench.workflows.pause("d")
    with pytest.raises(ValueError, match="/no/such/program"):
        await bench.workflows.resume("d")
    assert (await state_of(bench, "d"))["status"] == "paused"
