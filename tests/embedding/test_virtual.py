"""An app on a virtual clock, inside the loop of its test."""

import asyncio
import time as real_time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from embedding import jobs
from wakeful import Heartbeat, Invalid, Prepare, Produced, Publish, Wakeful, cron, every, manual, once
from wakeful import sync as blocking
from wakeful.testing import VirtualTime, virtual

START = "2026-03-28T12:00Z"


@pytest.fixture
def app(tmp_path: Path) -> Wakeful:
    return Wakeful(tmp_path / "wakeful.db", timezone="UTC")


async def outcomes(app: Wakeful, slug: str) -> list[str]:
    return [run.outcome for run in await app.runs(slug)]


# --- time ------------------------------------------------------------------------------------------------------------


async def test_two_days_run_everything_due_in_order(app: Wakeful) -> None:
    """The example of the contract: two instants, two rows, in the order of their times."""
    async with virtual(app, start=START) as time:
        await app.add("report", every("1d"), call=jobs.note)
        await app.add("tick", every("12h"), call=jobs.note)
        await time.advance("2d")
        assert await outcomes(app, "report") == ["succeeded"] * 2
        assert time.now == datetime(2026, 3, 30, 12, tzinfo=UTC)
        assert [at for _, at in jobs.CALLS] == sorted(at for _, at in jobs.CALLS)
        assert [slug for slug, _ in jobs.CALLS].count("tick") == 4


async def test_real_time_does_not_move_it(app: Wakeful) -> None:
    """What is not yet due does not run, however long the test takes."""
    async with virtual(app, start=START) as time:
        await app.add("report", every("10s"), call=jobs.note)
        await time.advance("9999ms")
        await asyncio.sleep(0.05)
        assert jobs.CALLS == []
        await time.advance(timedelta(milliseconds=1))
        assert jobs.CALLS == [("report", "2026-03-28T12:00:10+00:00")]


async def test_wall_clock_times_follow_summer_time(app: Wakeful) -> None:
    """Nine in Berlin is eight in UTC before the change of 29 March 2026, and seven after it."""
    async with virtual(app, start=START) as time:
        await app.add("standup", cron("0 9 * * *", tz="Europe/Berlin"), call=jobs.note)
        await time.advance_to("2026-03-31T00:00Z")
        assert [at for _, at in jobs.CALLS] == ["2026-03-29T07:00:00+00:00", "2026-03-30T07:00:00+00:00"]
    jobs.CALLS.clear()
    async with virtual(app, start="2026-10-24T00:00Z") as time:
        await time.advance_to("2026-10-26T00:00Z")
        assert [at for _, at in jobs.CALLS][-2:] == ["2026-10-24T07:00:00+00:00", "2026-10-25T08:00:00+00:00"]


async def test_advance_to_takes_a_datetime(app: Wakeful) -> None:
    async with virtual(app, start=datetime(2026, 3, 28, 12, tzinfo=UTC)) as time:
        await time.advance_to(datetime(2026, 4, 1, tzinfo=UTC))
        assert time.now == datetime(2026, 4, 1, tzinfo=UTC)


# --- calls -----------------------------------------------------------------------------------------------------------


async def test_a_plain_function_runs_in_a_thread(app: Wakeful) -> None:
    async with virtual(app, start=START) as time:
        await app.add("plain", every("1h"), call=jobs.note_in_thread)
        await time.advance("1h")
        assert jobs.CALLS == [("plain", False)]
        assert (await app.runs("plain"))[0].output == "noted"


async def test_a_call_does_real_io_while_the_clock_stands(app: Wakeful) -> None:
    """A server on the same loop is spoken to; the run begins and ends at the same virtual moment."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = await reader.readline()
        await asyncio.sleep(0.02)
        writer.write(line)
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server, virtual(app, start=START) as time:
        port = server.sockets[0].getsockname()[1]
        await app.add("ask", every("1h"), call=jobs.echo_over_tcp, args={"port": port})
        await time.advance("2h")
        runs = await app.runs("ask")
        assert [run.output for run in runs] == ["hello", "hello"]
        assert [run.ended_at for run in runs] == [run.planned_at for run in runs]


async def test_asyncio_sleep_in_a_call_is_real(app: Wakeful) -> None:
    """The clock waits for it."""
    async with virtual(app, start=START) as time:
        await app.add("slow", every("1h"), call=jobs.really_sleep)
        await time.advance("3h")
        assert jobs.CALLS == ["slept"] * 3
        assert [run.ended_at for run in await app.runs("slow")] == [run.planned_at for run in await app.runs("slow")]


async def test_a_call_that_sleeps_on_the_apps_clock_takes_virtual_time(app: Wakeful) -> None:
    """And so its timeout can be tested."""

    @app.job(manual())
    async def short(fire: Any) -> None:
        await app.sleep("20m")

    @app.job(every("1d"), timeout="1h")
    async def long(fire: Any) -> None:
        await app.sleep("3h")

    async with virtual(app, start=START) as time:
        run = await app.run_now("short")
        await time.advance("30m")
        ended = await app.ledger.get(run.run_id)
        assert ended.outcome == "succeeded"
        assert ended.ended_at - ended.started_at == timedelta(minutes=20)
        await time.advance("26h")
        assert (await app.runs("long"))[0].outcome == "timedOut"


async def test_run_now_waits_without_an_advance(app: Wakeful) -> None:
    """Code of the test that waits on the app's clock moves it by as little as it needs."""
    async with virtual(app, start=START) as time:
        await app.add("report", manual(), call=jobs.really_sleep)
        assert (await app.run_now("report", wait=True)).outcome == "succeeded"
        assert time.now - datetime(2026, 3, 28, 12, tzinfo=UTC) < timedelta(seconds=1)


async def test_a_call_that_never_ends_is_named(app: Wakeful) -> None:
    """Instead of a test that hangs."""
    async with virtual(app, start=START, patience=0.1) as time:
        await app.add("stuck", every("1h"), call=jobs.never_end)
        with pytest.raises(TimeoutError, match="run 1 of 'stuck'"):
            await time.advance("1h")


# --- policies --------------------------------------------------------------------------------------------------------


async def test_retries_happen_in_virtual_time(app: Wakeful) -> None:
    async with virtual(app, start=START) as time:
        jobs.TROUBLE += [ConnectionError("down"), ConnectionError("down")]
        await app.add("flaky", every("1d"), call=jobs.flaky, retry={"times": 3, "delay": "10m"})
        await time.advance("25h")
        (run,) = await app.runs("flaky")
        assert (run.outcome, run.attempt) == ("succeeded", 3)
        assert run.ended_at - run.planned_at == timedelta(minutes=20)


async def test_what_was_due_while_the_app_was_away_is_caught_up(app: Wakeful) -> None:
    """Leaving and entering again is a restart: the file and its time go on."""
    async with virtual(app, start=START) as time:
        await app.add("report", every("1h"), call=jobs.note)
        await time.advance("90m")
    async with virtual(app, start="2026-03-28T18:30Z") as time:
        assert [at[11:16] for _, at in jobs.CALLS] == ["13:00", "18:00"]  # catch_up="once": the latest of five
        assert await outcomes(app, "report") == ["succeeded", "missed", "succeeded"]
        await time.advance("30m")
        assert jobs.CALLS[-1][1][11:16] == "19:00"


async def test_entering_again_goes_on_where_time_stopped(app: Wakeful) -> None:
    async with virtual(app, start=START) as time:
        await time.advance("5h")
    async with virtual(app) as time:
        assert time.now == datetime(2026, 3, 28, 17, tzinfo=UTC)


async def test_deliveries_are_tried_again_in_virtual_time(app: Wakeful) -> None:
    """A channel that is a function really runs."""
    heard: list[str] = []

    async def deliver(text: str) -> None:
        heard.append(text)
        if len(heard) < 3:
            raise ConnectionError("no line")

    app.register_channel("desk", "me", deliver)
    async with virtual(app, start=START, on_command=lambda command: "good morning") as time:
        await app.add("greet", every("1h"), command=["say", "it"], deliver={"channel": "desk"})
        await time.advance("1h")
        assert heard == ["good morning"]
        await time.advance("1m")
        assert heard == ["good morning"] * 3
        (delivery,) = (await app.people.deliveries()).deliveries
        assert delivery.status == "delivered"


async def test_a_workflow_in_python_runs(app: Wakeful) -> None:
    """And one with handlers over HTTP is refused."""
    inbox = app.workflow("inbox")
    sent: list[Any] = []

    @inbox.producer(every("1h"), publishes=["mail"])
    async def poll(ctx: Any) -> Produced:
        return Produced([Publish("mail", str((ctx.state or 0) + 1), "hello")], state=(ctx.state or 0) + 1)

    @inbox.consumer(subscribe=["mail"])
    async def digest(ctx: Any) -> Prepare:
        return Prepare({"mail": [message.id for message in ctx.messages["mail"]]})

    @digest.mutate
    async def send(ctx: Any) -> None:
        await asyncio.sleep(0.01)
        sent.append(ctx.idempotency_key)

    handler = {"handler": {"http": {"url": "https://example.com"}}}
    outside = {"consumers": {"reader": {"subscribe": ["x"], **handler}}}
    async with virtual(app, start=START) as time:
        await time.advance("150m")
        assert len(set(sent)) == 3  # a producer begins at once
        with pytest.raises(Invalid, match="only Python handlers run"):
            await app.workflows.put("outside", outside)


# --- what is replaced ------------------------------------------------------------------------------------------------


async def test_commands_are_replaced_by_a_function(app: Wakeful) -> None:
    """Text is its output, a number its exit code, an exception fails it."""
    answers: list[Any] = ["done", 3, ValueError("no")]
    asked: list[Any] = []

    async def on_command(command: Any, fire: Any) -> Any:
        asked.append((command.argv, fire.slug))
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async with virtual(app, start=START, on_command=on_command) as time:
        await app.add("make", every("1h"), command=["make", "report"], max_consecutive_errors=0)
        await time.advance("5h")
        runs = (await app.runs("make"))[::-1]
        assert [(run.outcome, run.error or run.output) for run in runs[:3]] == [
            ("succeeded", "done"),
            ("failed", "exited with 3"),
            ("failed", "ValueError: no"),
        ]
        assert asked[0] == (("make", "report"), "make")


async def test_requests_are_replaced_by_a_function(app: Wakeful) -> None:
    async with virtual(app, start=START, on_http=lambda request: 503 if "down" in request.url else "hello") as time:
        await app.add("up", every("1h"), http="https://example.com/up")
        await app.add("down", every("1h"), http="https://example.com/down")
        await time.advance("1h")
        assert (await app.runs("up"))[0].output == "hello"
        assert (await app.runs("down"))[0].error == "HTTP 503 Service Unavailable"


async def test_agents_are_replaced_by_functions(tmp_path: Path) -> None:
    """Also for the heartbeat; an agent that is a function of the app stays."""
    app = Wakeful(tmp_path / "wakeful.db", timezone="UTC", heartbeat=Heartbeat(every="30m"))
    prompts: list[str] = []

    @app.agent("own")
    async def own(prompt: str) -> str:
        return "from the app"

    async def answer(prompt: str) -> str:
        prompts.append(prompt)
        return "HEARTBEAT_OK"

    async with virtual(app, start=START, agents={"default": answer}) as time:
        await app.add("ask", every("1h"), prompt="What is new?")
        await app.add("ask-own", every("1h"), prompt="And you?", agent="own")
        await time.advance("61m")
        assert (await app.runs("ask"))[0].outcome == "succeeded"
        assert (await app.runs("ask-own"))[0].reply == "from the app"
        assert any("What is new?" in prompt for prompt in prompts)
        _, turns = await app.turns.heartbeat()
        assert len(turns) >= 2


@pytest.mark.parametrize(
    ("action", "cure"),
    [
        ({"command": ["true"]}, "on_command=function"),
        ({"http": "https://example.com"}, "on_http=function"),
        ({"prompt": "hello"}, "agents={'default': function}"),
        ({"prompt": "hello", "agent": "other"}, "there is no agent 'other'"),
    ],
)
async def test_what_would_reach_outside_is_refused_with_the_cure(
    app: Wakeful, action: dict[str, Any], cure: str
) -> None:
    async with virtual(app, start=START):
        with pytest.raises(Invalid) as refused:
            await app.add("x", every("2h"), **action)
        assert cure in str(refused.value)


async def test_a_stored_command_is_refused_when_it_is_due(app: Wakeful) -> None:
    """It was written when there was a function for it."""
    async with virtual(app, start=START, on_command=lambda command: None):
        await app.add("make", every("1h"), command=["make"])
    async with virtual(app) as time:
        await time.advance("1h")
        (run,) = await app.runs("make")
        assert run.outcome == "failed"
        assert "on_command=function" in run.error


# --- wrong use -------------------------------------------------------------------------------------------------------


async def test_an_app_that_is_started_is_refused(app: Wakeful) -> None:
    async with virtual(app, start=START):
        with pytest.raises(RuntimeError, match="already started"):
            async with virtual(app, start=START):
                pass


def test_a_start_without_an_offset_is_refused(app: Wakeful) -> None:
    with pytest.raises(Invalid, match="add Z or an offset"):
        virtual(app, start="2026-03-28T12:00")
    with pytest.raises(Invalid, match="add Z or an offset"):
        virtual(app, start=datetime(2026, 3, 28, 12))  # noqa: DTZ001 - that is the point


async def test_time_does_not_go_back(app: Wakeful) -> None:
    async with virtual(app, start=START) as time:
        with pytest.raises(Invalid):
            await time.advance("-1h")
        with pytest.raises(Invalid):
            await time.advance(timedelta(hours=-1))
        with pytest.raises(Invalid, match="is in the past"):
            await time.advance_to("2026-03-28T11:59Z")
        await time.advance("1h")
    with pytest.raises(Invalid, match="has passed in"):
        async with virtual(app, start=START):
            pass


async def test_a_call_cannot_move_its_own_time(app: Wakeful) -> None:
    times: list[VirtualTime] = []

    @app.job(every("1h"))
    async def cheat(fire: Any) -> None:
        await times[0].advance("1h")

    async with virtual(app, start=START) as time:
        times.append(time)
        await time.advance("1h")
        assert "await app.sleep" in (await app.runs("cheat"))[0].error


async def test_time_does_not_move_after_the_app_was_stopped(app: Wakeful) -> None:
    async with virtual(app, start=START) as time:
        await app.stop()
        with pytest.raises(RuntimeError, match="the app is stopped"):
            await time.advance("1h")
    with pytest.raises(RuntimeError, match="the app is stopped"):
        await time.advance("1h")


async def test_a_file_of_real_time_is_not_touched(app: Wakeful, tmp_path: Path) -> None:
    """Its ledger would be written years ahead; and one of virtual time is not opened in real time."""
    async with app:
        await app.add("report", every("1h"), call=jobs.note)
    with pytest.raises(ValueError, match="was used in real time"):
        async with virtual(app, start=START):
            pass
    async with virtual(app, start=START, store=tmp_path / "test.db"):
        assert await app.list() == []
    async with app:
        assert [one.slug for one in await app.list()] == ["report"]
    with pytest.raises(ValueError, match="virtual clock"):
        await Wakeful(tmp_path / "test.db").start()


async def test_a_server_is_no_store_for_it() -> None:
    with pytest.raises(ValueError, match="needs a file, not postgresql"):
        async with virtual(Wakeful("postgresql://me:secret@localhost/live"), start=START):
            pass


async def test_an_app_that_does_not_tick_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="tick=False"):
        async with virtual(Wakeful(tmp_path / "wakeful.db", tick=False), start=START):
            pass


async def test_an_app_that_cannot_start_leaves_nothing_behind(app: Wakeful) -> None:
    """It is on its real clock and file again, and can be entered again."""
    broken = app.job(every("1h"), active_hours={"start": "25:00", "end": "26:00"})(jobs.note)
    assert broken is jobs.note
    with pytest.raises(Invalid):
        async with virtual(app, start=START):
            pass
    assert not app._is_started
    assert abs(app._moment().now / 1000 - real_time.time()) < 3600


async def test_with_is_for_the_blocking_app(app: Wakeful) -> None:
    with pytest.raises(TypeError, match="async with"), virtual(app):
        pass


# --- other ways in ---------------------------------------------------------------------------------------------------


def test_the_blocking_app_has_it_too(tmp_path: Path) -> None:
    app = blocking.Wakeful(tmp_path / "wakeful.db", timezone="UTC")
    with virtual(app, start=START) as time:
        app.add("report", every("1d"), call=jobs.note_in_thread)
        time.advance("2d")
        assert [run.outcome for run in app.runs("report")] == ["succeeded"] * 2
        assert time.now == datetime(2026, 3, 30, 12, tzinfo=UTC)


async def test_the_fixture_gives_a_file_of_its_own(wakeful_virtual: Callable[..., Any], app: Wakeful) -> None:
    async with wakeful_virtual(app, start=START) as time:
        await app.add("report", once("2026-03-28T13:00Z"), call=jobs.note)
        await time.advance("1h")
        assert await outcomes(app, "report") == ["succeeded"]
    assert not Path(app._url).exists()


def test_the_plugin_loads_no_scheduler() -> None:
    """Every run of pytest loads it, also in projects that do not use it."""
    import subprocess
    import sys

    code = (
        "import sys, wakeful.testing.pytest_plugin;"
        "print(sorted(name for name in sys.modules if name.startswith('wakeful')))"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert eval(loaded.stdout) == ["wakeful", "wakeful.testing", "wakeful.testing.pytest_plugin"]
