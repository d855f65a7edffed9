"""The blocking face in this very process: many threads, handlers in threads, and a portal that cannot lock itself."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from nested import top_level
from processes.kit import eventually
from wakeful import Conflict, Invalid, every, manual
from wakeful.sync import Wakeful

pytestmark = pytest.mark.promise


@pytest.fixture
def app(tmp_path: Path) -> Iterator[Wakeful]:
    with Wakeful(tmp_path / "wakeful.db", shutdown_grace="1s") as app:
        yield app


def test_many_threads_add_and_read_at_once(app: Wakeful) -> None:
    """Two hundred schedules from eight threads: each is there for its writer at once, and for all in the end."""
    app.on_due(lambda fire: None)

    def work(number: int) -> None:
        slug = app.add(f"job-{number:03}", every("1h"))
        assert app.get(slug).status == "idle"

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(200)))
    assert [view.slug for view in app.list()] == [f"job-{number:03}" for number in range(200)]


def test_many_threads_run_one_schedule_one_at_a_time(app: Wakeful) -> None:
    """L5: whoever comes second is told, and nobody overlaps."""
    inside: list[int] = []
    overlaps: list[int] = []

    def job(fire: Any) -> None:
        inside.append(1)
        overlaps.append(len(inside))
        inside.pop()

    app.add("job", manual(), call=top_level(job))

    def ask(_: int) -> str:
        try:
            return str(app.run_now("job", wait=True).outcome)
        except Conflict:
            return "conflict"

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(ask, range(24)))
    assert set(answers) <= {"succeeded", "conflict"}
    assert answers.count("succeeded") == len(overlaps) == len(app.runs("job"))
    assert set(overlaps) == {1}


def test_a_plain_handler_may_use_the_app_it_runs_in(app: Wakeful) -> None:
    """It runs in a thread of its own, so it may add the next step."""
    app.on_due(lambda fire: None)
    app.add("first", manual(), call=top_level(lambda fire: app.add("second", every("1h"))))
    run = app.run_now("first", wait=True)
    assert (run.outcome, run.output) == ("succeeded", "second")
    assert app.get("second").status == "idle"


def test_an_async_handler_that_calls_the_blocking_api_is_told_and_not_locked(app: Wakeful) -> None:
    """It would wait for the loop it is running on."""

    async def handler(fire: Any) -> None:
        app.list()

    app.add("job", manual(), call=top_level(handler))
    run = app.run_now("job", wait=True)
    assert run.outcome == "failed"
    assert "make the handler a plain function" in (run.error or "")


def test_a_thread_that_does_not_end_is_stuck_and_seen_to_end(app: Wakeful) -> None:
    """L6: nothing can end a thread, so its run is unknown and keeps its place until it returns."""
    leave = threading.Event()
    app.add("job", manual(), call=top_level(lambda fire: leave.wait(60)), timeout="100ms")
    run = app.run_now("job", wait=True)
    assert (run.outcome, run.is_stuck) == ("unknown", True)
    assert "isolate: process" in (run.error or "")
    with pytest.raises(Conflict, match="open run"):
        app.run_now("job")
    leave.set()
    eventually(lambda: app.ledger.get(run.run_id).outcome == "timedOut")
    assert app.get("job").status == "idle"


def test_a_callable_that_is_gone_fails_its_own_run_and_says_so(tmp_path: Path) -> None:
    """L9: a restart that does not register it again."""
    with Wakeful(tmp_path / "wakeful.db") as app:
        app.add("gone", manual(), call=top_level(lambda fire: None))
    with Wakeful(tmp_path / "wakeful.db") as app:
        run = app.run_now("gone", wait=True)
        assert run.outcome == "failed"
        assert "correct the target" in (run.error or "")


def test_stopping_without_having_started_is_no_error(tmp_path: Path) -> None:
    """And asking before the start says what to do."""
    app = Wakeful(tmp_path / "wakeful.db")
    with pytest.raises(RuntimeError, match="not started"):
        app.list()
    app.stop()
    app.stop()
    with pytest.raises(RuntimeError, match="create a new Wakeful"):
        app.list()


def test_a_start_that_fails_leaves_no_thread_behind(tmp_path: Path) -> None:
    """A folder is no database, a wrong setting no setting; the message says so, and the portal is gone."""
    with pytest.raises(Exception, match="is not a file"), Wakeful(tmp_path):
        pass
    with pytest.raises(Invalid, match="shutdown_grace"):
        Wakeful(tmp_path / "wakeful.db", shutdown_grace="soon")
    assert not [thread for thread in threading.enumerate() if thread.name == "wakeful-portal"]
