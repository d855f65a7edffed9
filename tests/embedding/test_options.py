"""The keywords of `add`, `job`, `update` and `New`: their names, their types, and what is said about mistakes."""

import asyncio
import os
import signal
import sys
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from embedding import jobs
from wakeful import Invalid, New, NotFound, Wakeful, every, manual
from wakeful import sync as blocking
from wakeful.app import schedule_options
from wakeful.testing import virtual

START = "2026-03-28T12:00Z"


@pytest.fixture
def app(tmp_path: Path) -> Wakeful:
    app = Wakeful(tmp_path / "wakeful.db", timezone="UTC")
    app.on_due(lambda: None)
    return app


@pytest.mark.parametrize(
    ("typed", "known"),
    [
        (schedule_options.AddOptions, schedule_options.ADD_NAMES),
        (schedule_options.JobOptions, schedule_options.JOB_NAMES),
        (schedule_options.ScheduleChanges, schedule_options.UPDATE_NAMES),
    ],
)
def test_type_checkers_know_every_keyword(typed: type, known: tuple[str, ...]) -> None:
    """The keywords are the fields of a definition; a new field needs a line in `ScheduleOptions`."""
    assert set(typed.__annotations__) == set(known)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"comand": ["true"]}, "comand: unknown option; did you mean command?"),
        ({"timout": "5m"}, "timout: unknown option; did you mean timeout?"),
        ({"max_consecutive_errors": -1}, "max_consecutive_errors: -1 is too small"),
        ({"catch_up": "twice"}, "catch_up: 'twice' is not"),
        ({"retries": -1}, "retries: -1 is too small"),
        ({"retries": 1, "retry_delay": "1x", "colour": 1}, "colour: unknown option; the options are"),
        ({"active_hours": {"start": "9", "end": "18:00"}}, r"active_hours.start: '9'"),
        ({"agent": "coder", "command": ["true"]}, "agent: only works with a prompt; leave it out with command"),
        ({"args": {"days": 7}, "http": "http://127.0.0.1/"}, "args: only works with a call; leave it out with http"),
    ],
)
async def test_a_mistake_is_named_as_it_was_written(app: Wakeful, options: dict[str, Any], said: str) -> None:
    """In snake_case, wherever the schedule is written."""
    async with virtual(app, start=START):
        await app.add("there", every("2h"))
        with pytest.raises(Invalid, match=said):
            await app.add("it", every("2h"), **options)
        with pytest.raises(Invalid, match=said):
            await app.add_many([New("it", every("2h"), **options)])
        if not {"agent", "args"} & set(options):
            with pytest.raises(Invalid, match=said):
                await app.update("there", **options)
        assert [view.slug for view in await app.list()] == ["there"]


def test_a_misspelt_option_is_refused_where_it_is_written(app: Wakeful) -> None:
    """Not when the app starts."""
    with pytest.raises(Invalid, match="retriess: unknown option; did you mean retries"):
        app.job(every("2h"), retriess=3)  # type: ignore[call-arg]
    with pytest.raises(Invalid, match="prompt: unknown option"):
        app.job(every("2h"), prompt="What is new?")  # type: ignore[call-arg]
    with pytest.raises(Invalid, match="comand: unknown option"):
        New("it", every("2h"), comand=["true"])  # type: ignore[call-arg]


async def test_new_takes_what_add_takes(app: Wakeful) -> None:
    """Each action, the options, and no slug; the stored definitions are the same."""
    many: list[dict[str, Any]] = [
        {"call": jobs.note, "args": {}, "retries": 2, "retry_on": OSError},
        {"call": "embedding.jobs:note", "isolate": "process"},
        {"command": ["true"], "timeout": timedelta(minutes=5)},
        {"http": "http://127.0.0.1:9/x", "catch_up": "skip"},
        {"event": "hello", "lane": "a"},
        {},
    ]
    app.agent()(lambda prompt: prompt)
    many.append({"prompt": "What is new?", "agent": "default", "session_config": {"persistSession": False}})
    async with app:
        for n, options in enumerate(many):
            await app.add(f"a{n}", every("2h"), **options)
        await app.add_many([New(f"b{n}", every("2h"), **options) for n, options in enumerate(many)])
        read = {view.slug: view.definition for view in await app.list()}
        (made,) = await app.add_many([New(None, every("2h"))])
        assert (await app.get(made)).slug == made
    for n in range(len(many)):
        one, other = read[f"a{n}"], read[f"b{n}"]
        assert one is not None and other is not None
        assert (one.action, one.retry, one.timeout, one.lane) == (other.action, other.retry, other.timeout, other.lane)


async def test_options_may_have_their_json_names(app: Wakeful) -> None:
    """A program may pass a part of a definition that it has read."""
    part: dict[str, Any] = {"catchUp": "skip", "maxConsecutiveErrors": 7}
    async with app:
        await app.add("added", every("2h"), **part)
        await app.add_many([New("many", every("2h"), **part)])
        await app.add("updated", every("2h"))
        await app.update("updated", **part)
        for slug in ("added", "many", "updated"):
            assert (await app.get(slug)).to_json().items() >= part.items()


async def test_schedules_given_the_same_share_nothing_but_that(app: Wakeful) -> None:
    """Neighbours with equal options, and one that differs."""
    argv = ["true"]
    async with app:
        given = [New(f"s{n}", every("1h"), command=argv, timeout="5m" if n != 2 else "7m") for n in range(4)]
        await app.add_many(given)
        read = [(await app.get(f"s{n}")).to_json() for n in range(4)]
    assert [one["timeout"] for one in read] == ["5m", "5m", "7m", "5m"]
    assert [one["command"]["argv"] for one in read] == [argv] * 4


async def test_a_missing_schedule_is_none_from_find_and_an_error_from_get(app: Wakeful) -> None:
    async with virtual(app, start=START):
        await app.add("there", every("2h"))
        found = await app.find("there")
        assert found is not None and found.slug == "there"
        assert await app.find("missing") is None
        with pytest.raises(NotFound):
            await app.get("missing")


class Desk:
    """Has a method that is a job."""

    def __init__(self) -> None:
        self.tidied = 0

    def tidy(self, times: int = 1) -> None:
        self.tidied += times


async def test_a_bound_method_and_a_partial_are_jobs(app: Wakeful) -> None:
    """The slug of a method is its name; a partial has none."""
    desk = Desk()
    app.job(every("1h"))(desk.tidy)
    app.job(every("1h"), "thrice")(partial(desk.tidy, times=3))
    with pytest.raises(Invalid, match=r"slug: a partial has no name; give the job a slug"):
        app.job(every("1h"))(partial(desk.tidy, times=3))
    async with virtual(app, start=START) as time:
        await time.advance("1h1s")
        assert sorted([run.slug for run in await app.runs()]) == ["thrice", "tidy"]
    assert desk.tidied == 4


def test_the_blocking_methods_take_the_same(tmp_path: Path) -> None:
    """They are made from the other ones: signatures, results and errors."""
    with blocking.Wakeful(tmp_path / "wakeful.db") as app:
        app.on_due(jobs.note)
        assert app.add("it", manual(), command=["true"], timeout=timedelta(minutes=5)) == "it"
        assert app.add_many([New("other", manual())]) == ["other"]
        app.update("it", timeout="7m")
        view = app.find("it")
        assert view is not None and view.to_json()["timeout"] == "7m"
        assert app.find("missing") is None
        assert [one.slug for one in app.list(limit=1)] == ["it"]
        app.pause("it")
        assert app.get("it").status == "paused" and "paused" in app.why("it").sentence
        app.resume("it")
        run = app.run_now("it", wait=True)
        assert (run.outcome, app.runs("it")[0].run_id) == ("succeeded", run.run_id)
        with pytest.raises(Invalid, match="comand: unknown option"):
            app.add("it", manual(), comand=["true"])  # type: ignore[call-arg]


def loop_of(app: Wakeful) -> str:
    """The event loop on which an app runs."""
    seen: list[str] = []

    @app.job("in 1s", "look")
    async def look() -> None:
        seen.append(type(asyncio.get_running_loop()).__module__)
        os.kill(os.getpid(), signal.SIGINT)

    app.run()
    return seen[0].partition(".")[0]


@pytest.mark.parametrize("is_installed", [True, False])
def test_run_uses_uvloop_if_it_is_installed(app: Wakeful, monkeypatch: pytest.MonkeyPatch, is_installed: bool) -> None:
    if not is_installed:
        monkeypatch.setitem(sys.modules, "uvloop", None)
    assert loop_of(app) == ("uvloop" if is_installed else "asyncio")
