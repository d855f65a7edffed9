"""What repeats safely is tried again: `next` after the death of its process, and any phase but `mutate` after an error
of the handler's server."""

from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from features.kit import World, virtual
from new_store import prepare
from wakeful import Wakeful
from wakeful.core.time.instants import HOUR, MINUTE, SECOND
from wakeful.features.workflows.handler_calls import HandlerFailure
from workflows.handlers import Handler, flow, handling, says
from workflows.kit import Inbox, at, counts, ledger
from workflows.test_programs import until

FAULT = HandlerFailure("HTTP 500 Internal Server Error", is_fault=True)


@pytest.mark.parametrize("has_mutate", [True, False])
def test_a_process_that_dies_again_and_again_in_next(has_mutate: bool, tmp_path: Path) -> None:
    """The workflow goes on: later and later, with an incident after the second death; no side effect is repeated."""

    @virtual
    async def story(world: World) -> None:
        inbox = Inbox(world, period="30d", has_mutate=has_mutate)
        bench = await inbox.open()
        await world.sleep(MINUTE)
        inbox.next.script = [30 * SECOND] * 8
        await inbox.flow.publish("mail", "a", 1)
        starts, before = [], inbox.next.count
        for deaths in range(1, 8):
            while inbox.next.count < before + deaths:
                await world.sleep(SECOND)
            starts.append(world.now)
            await bench.kill()
            bench = await inbox.open()
            view = await inbox.flow.get()
            assert view["error"] is None and view["openRun"]["outcome"] in ("waiting", "running")
            assert world.reported() == (["handler:inbox/digest"] if deaths > 2 else [])
        pauses = [(later - sooner) // SECOND for sooner, later in pairwise(starts)]
        assert pauses[0] <= 2 and [round(pause / 10) for pause in pauses[1:]] == [1, 2, 4, 8, 16]
        inbox.next.script = []
        await world.sleep("20m")
        assert await counts(bench) == {"consumed": 1}
        assert inbox.mutate.count == (1 if has_mutate else 0)
        assert (await ledger(bench))[-1] == "succeeded"
        await bench.stop()

    story(tmp_path=tmp_path)


@pytest.mark.parametrize("phase", ["poll", "prepare", "next"])
def test_an_error_of_the_server_is_tried_again_five_times(phase: str, tmp_path: Path) -> None:
    """Then the workflow stops; resuming it starts over."""

    @virtual
    async def story(world: World) -> None:
        inbox = Inbox(world, period="30d")
        calls = getattr(inbox, phase)
        if phase == "poll":
            calls.script = [FAULT] * 6
        bench = await inbox.open()
        if phase != "poll":
            calls.script, calls.at[:] = [FAULT] * 6, []
            await inbox.flow.publish("mail", "a", 1)
        await world.sleep("4m")
        view = await inbox.flow.get()
        assert (view["error"], len(calls.at)) == (None, 5)
        handler = view["producers"]["poll"] if phase == "poll" else view["consumers"]["digest"]
        assert handler["lastError"].startswith("HTTP 500") and at(handler["heldUntil"]) > world.now
        await world.sleep("4m")
        view = await inbox.flow.get()
        assert "HTTP 500 Internal Server Error, 6 times in a row" in view["error"]
        assert [text[-5:] for text in calls.at] == ["00:00", "00:10", "00:30", "01:10", "02:30", "05:10"]
        calls.script = [FAULT] * 5
        await inbox.flow.resume()
        await world.sleep("30m")
        assert (await inbox.flow.get())["error"] is None
        assert len(calls.at) == 12
        await bench.stop()

    story(tmp_path=tmp_path)


@virtual
async def test_a_run_that_is_tried_again_is_what_the_workflow_does_next(world: World) -> None:
    """`nextRun` is the first entry of what is upcoming; while a person is asked, there is none."""
    inbox = Inbox(world, period="30d", has_mutate=True)
    bench = await inbox.open()
    await world.sleep(MINUTE)
    inbox.next.script = [FAULT] * 2
    await inbox.flow.publish("mail", "a", 1)
    await world.sleep(SECOND)
    view = await inbox.flow.get()
    (first, *_) = (await bench.schedules.upcoming(world.now + HOUR)).instants
    assert view["openRun"]["outcome"] == "waiting"
    assert at(view["nextRun"]) == first.due_at == world.now + 9 * SECOND
    await inbox.flow.pause()
    assert (await inbox.flow.get())["nextRun"] is None
    await bench.stop()


@virtual
async def test_success_in_between_forgives_the_errors(world: World) -> None:
    """Five in a row are too many, not five in all."""
    inbox = Inbox(world, period="30d")
    bench = await inbox.open()
    await world.sleep(MINUTE)
    for n in range(3):
        inbox.prepare.script = [FAULT] * 4
        await inbox.flow.publish("mail", f"m{n}", 1)
        await world.sleep("30m")
    assert (await inbox.flow.get())["error"] is None
    assert await counts(bench) == {"consumed": 3}
    await bench.stop()


@pytest.fixture
async def handler() -> AsyncIterator[Handler]:
    async with handling() as one:
        yield one


@pytest.mark.parametrize("phase", ["produce", "prepare", "next"])
async def test_a_500_over_http_does_not_stop_a_workflow(handler: Handler, phase: str, tmp_path: Path) -> None:
    """One hiccup of a web handler: the handler is held off, and `resume` tries it at once."""
    prepare(tmp_path / "wakeful.db")
    async with Wakeful(tmp_path / "wakeful.db", timezone="UTC", shutdown_grace="1s") as app:
        await app.workflows.put("inbox", flow(handler.address))
        handler.answers["produce"] = {"messages": [{"topic": "mail", "id": "a", "payload": 1}]}

        def is_idle(view: Any) -> bool:
            return view["openRun"] is None and not view["consumers"]["digest"]["dirty"]

        await until(app, is_idle)
        handler.script[phase] = [says(500, "boom")]
        await app.workflow("inbox").run()

        def is_held(view: Any) -> bool:
            return any(
                "HTTP 500" in (one["lastError"] or "")
                for one in (*view["producers"].values(), *view["consumers"].values())
            )

        view = await until(app, is_held)
        assert view["error"] is None
        await (app.workflow("inbox").run() if phase == "produce" else app.workflow("inbox").resume())
        await until(app, lambda view: view["topics"]["mail"]["consumed"] == 1)
