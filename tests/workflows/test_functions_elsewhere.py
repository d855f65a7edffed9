"""A process that ticks without the functions of a Python workflow: it never claims its handlers. The work waits, a
finding says who ticks and who has the functions, and everything else goes on."""

from features.kit import Bench, World, virtual
from postgres.cluster import until
from postgres.server import emptied_url as url
from postgres.server import server
from wakeful import Context, Prepare, Wakeful
from wakeful.core.time.instants import HOUR, MINUTE, SECOND
from workflows.kit import Inbox, counts, ledger, mail, state_of, take_one

__all__ = ["server", "url"]


async def found(app: Wakeful) -> list[tuple[str, str]]:
    """What health says about workflows: sentences and cures."""
    health = await app.system.health()
    return [(one.sentence, one.cure or "") for one in health.findings if one.name == "workflows" and one.level != "ok"]


async def without(world: World) -> Bench:
    """An app over the same store that does not declare the workflow, as the daemon does."""
    bench = world.bench(name="daemon")
    await bench.start()
    return bench


@virtual
async def test_a_daemon_that_has_not_loaded_a_workflow_leaves_its_messages_alone(world: World) -> None:
    """The program ran and ended; a message published through the daemon waits, and is handled when it is back."""
    inbox = Inbox(world)
    first = await inbox.open()
    await first.stop()
    daemon = await without(world)
    await daemon.workflow("inbox").publish("mail", "a", 1)
    await world.sleep(HOUR)
    view = await state_of(daemon, "inbox")
    assert (view["error"], view["openRun"], await counts(daemon)) == (None, None, {"pending": 1})
    ((sentence, cure),) = await found(daemon)
    assert sentence.startswith("inbox is waiting for its Python functions: daemon (pid 1 on here) ticks and has not")
    assert "which had, ended at " in sentence and "start the program that declares it" in cure
    today = await daemon.people.today()
    assert [item.sentence for item in today.attention if item.title == "workflows"] == [sentence]
    explained = await daemon.why("workflow:inbox")
    assert sentence in explained.sentence and cure in explained.sentence
    await daemon.stop()
    again = await inbox.open()
    await world.sleep(MINUTE)
    assert await counts(again) == {"consumed": 1}
    assert not await found(again)
    await again.stop()


@virtual
async def test_producers_wait_too_and_their_times_are_counted(world: World) -> None:
    """Nothing runs while the functions are not here; then one run serves all times, and the others are one row."""
    inbox = Inbox(world, found=mail("a"))
    first = await inbox.open()
    await first.stop()
    daemon = await without(world)
    await world.sleep(HOUR)
    runs = await ledger(daemon)
    await daemon.stop()
    again = await inbox.open()
    await world.sleep(MINUTE)
    after = (await ledger(again))[len(runs) :]
    assert [line.rpartition(" x")[0] or line for line in after] == ["missed (outage)", "succeeded"]
    await again.stop()


@virtual
async def test_a_run_is_rescued_and_waits_for_a_process_with_its_function(world: World) -> None:
    """The only process with the functions dies in `prepare`: the daemon rescues the run and does not claim it."""
    inbox = Inbox(world)
    first = await inbox.open()
    inbox.prepare.script = [HOUR]
    await inbox.flow.publish("mail", "a", 1)
    await world.sleep(SECOND)
    await first.kill()
    daemon = await without(world)
    await world.sleep(HOUR)
    waiting = (await state_of(daemon, "inbox"))["openRun"]
    assert (waiting["outcome"], waiting["reason"], waiting["tries"]) == ("waiting", "callable elsewhere", 0)
    assert len(await found(daemon)) == 1
    await daemon.stop()
    again = await inbox.open()
    await world.sleep(MINUTE)
    assert await counts(again) == {"consumed": 1}
    await again.stop()


@virtual
async def test_an_uncertain_side_effect_is_resolved_without_the_function(world: World) -> None:
    """A person may decide wherever the run was rescued."""
    inbox = Inbox(world)
    first = await inbox.open()
    inbox.mutate.script = [HOUR]
    await inbox.flow.publish("mail", "a", 1)
    await world.sleep(SECOND)
    await first.kill()
    daemon = await without(world)
    await world.sleep(MINUTE)
    view = await state_of(daemon, "inbox")
    assert view["openRun"]["awaits"] == "uncertain"
    await daemon.workflow("inbox").resolve(int(view["openRun"]["runId"]), "didNotHappen")
    await world.sleep(MINUTE)
    view = await state_of(daemon, "inbox")
    assert (view["error"], view["openRun"]["phase"], await counts(daemon)) == (None, "preparing", {"pending": 1})
    await daemon.stop()
    again = await inbox.open()
    await world.sleep(MINUTE)
    assert (await counts(again), inbox.mutate.count) == ({"consumed": 1}, 2)
    await again.stop()


@virtual
async def test_an_older_module_does_not_run_what_it_lacks(world: World) -> None:
    """The newer module has a side effect; a process with the older one must not skip it silently."""
    older, newer = Inbox(world, has_mutate=False), Inbox(world)
    one = await older.open(name="older", is_shared=True)
    other = await newer.open(name="newer", is_shared=True)
    await newer.flow.pause()
    await newer.flow.publish("mail", "a", 1)
    await other.stop()
    before = older.prepare.count
    await older.flow.resume()
    await world.sleep(HOUR)
    assert (older.prepare.count, await counts(one)) == (before, {"pending": 1})
    ((sentence, cure),) = await found(one)
    assert sentence == (
        "inbox is waiting for a handler that the module loaded by older (pid 1 on here) does not have"
    ) and cure.startswith("load the same version of the module everywhere")
    await one.stop()


@virtual
async def test_many_workflows_of_others_do_not_delay_ones_own(world: World) -> None:
    """Three hundred that nobody here has loaded are due, before one that is here."""

    async def nothing(_: Context) -> Prepare:
        return Prepare()

    names = [f"far-{n:03}" for n in range(300)]
    others = world.bench(name="others")
    for name in names:
        flow = others.workflow(name)
        flow.consumer(subscribe=["mail"], name="digest")(nothing)
    await others.start()
    for name in names:
        await others.workflow(name).pause()
        await others.workflow(name).publish("mail", "a", 1)
    await others.stop()
    inbox = Inbox(world, prepare=take_one)
    mine = await inbox.open()
    for name in names:
        await mine.workflow(name).resume()
    await inbox.flow.publish("mail", "a", 1)
    await world.sleep(MINUTE)
    assert await counts(mine) == {"consumed": 1}
    assert len(await found(mine)) == 10
    await mine.stop()


async def test_on_postgres_the_node_with_the_functions_takes_every_message(url: str) -> None:
    """One node declares the workflow, one is plain and gets all the messages; nothing stops, nothing runs twice."""
    taken: list[str] = []
    plain = Wakeful(url, timezone="UTC", name="plain", shutdown_grace="5s")
    python = Wakeful(url, timezone="UTC", name="python", shutdown_grace="5s")
    flow = python.workflow("inbox")

    @flow.consumer(subscribe=["mail"])
    async def digest(ctx: Context) -> Prepare:
        ids = [one.id for one in ctx.messages["mail"][:1]]
        return Prepare({"mail": ids} if ids else {}, data=ids)

    @digest.mutate
    async def send(ctx: Context) -> None:
        taken.extend(ctx.prepared["data"])

    await plain.start()
    await python.start()
    try:
        for n in range(30):
            await plain.workflow("inbox").publish("mail", f"m{n:02}", n)

        async def is_done() -> bool:
            view = await state_of(plain, "inbox")
            assert view["error"] is None
            return bool(view["topics"]["mail"]["consumed"] == 30)

        await until(is_done)
        assert taken == [f"m{n:02}" for n in range(30)]
        assert not await found(plain)
        await python.stop()
        await plain.workflow("inbox").publish("mail", "late", 0)

        async def is_found() -> bool:
            return bool(await found(plain))

        await until(is_found)
        ((sentence, _),) = await found(plain)
        assert sentence.startswith("inbox is waiting for its Python functions: plain (pid ")
        view = await state_of(plain, "inbox")
        assert (view["error"], view["openRun"]) == (None, None)
    finally:
        await python.stop()
        await plain.stop()
