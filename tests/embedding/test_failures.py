"""Calls that fail: tried again by type of exception, with backoff, and logged."""

import logging
import subprocess
import sys
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from embedding import jobs
from wakeful import Invalid, Wakeful, every
from wakeful.testing import virtual

START = "2026-03-28T12:00Z"


@pytest.fixture
def app(tmp_path: Path) -> Wakeful:
    return Wakeful(tmp_path / "wakeful.db", timezone="UTC")


async def attempts_after(app: Wakeful, *errors: BaseException | None, **options: Any) -> tuple[str, int]:
    """The outcome and the number of attempts of one instant that raises these."""
    jobs.TROUBLE[:] = errors
    async with virtual(app, start=START) as time:
        await app.add("flaky", every("10h"), call=jobs.flaky, **options)
        await time.advance("19h")
        (run,) = await app.runs("flaky")
        return run.outcome, run.attempt


# --- retries ---------------------------------------------------------------------------------------------------------


async def test_retries_back_off_exponentially(app: Wakeful) -> None:
    """After 10, 20 and 40 seconds."""
    jobs.TROUBLE[:] = [ValueError()] * 3
    async with virtual(app, start=START) as time:
        await app.add("flaky", every("1h"), call=jobs.flaky, retries=3)
        await time.advance("61m10s")
        (run,) = await app.runs("flaky")
        assert (run.outcome, run.attempt) == ("succeeded", 4)
        assert run.ended_at - run.planned_at == timedelta(seconds=70)


async def test_the_delay_may_be_longer(app: Wakeful) -> None:
    jobs.TROUBLE[:] = [ValueError()] * 2
    async with virtual(app, start=START) as time:
        await app.add("flaky", every("10h"), call=jobs.flaky, retries=2, retry_delay=timedelta(hours=2))
        await time.advance("17h")
        (run,) = await app.runs("flaky")
        assert run.ended_at - run.planned_at == timedelta(hours=6)


async def test_only_some_exceptions_are_tried_again(app: Wakeful) -> None:
    """A subclass counts as what it inherits from."""
    options = {"retries": 3, "retry_on": (ConnectionError,)}
    assert await attempts_after(app, ConnectionResetError("gone"), **options) == ("succeeded", 2)


async def test_others_fail_at_once(app: Wakeful) -> None:
    assert await attempts_after(app, ValueError("wrong"), retries=3, retry_on=ConnectionError) == ("failed", 1)


async def test_some_exceptions_are_given_up_on(app: Wakeful) -> None:
    assert await attempts_after(
        app, OSError("busy"), PermissionError("no"), retries=3, retry_on=[OSError], give_up_on=[PermissionError]
    ) == ("failed", 2)


async def test_a_timeout_counts_as_a_timeout_error(app: Wakeful) -> None:
    """For retries that depend on what was raised."""
    for slug, kind in (("again", TimeoutError), ("once", ValueError)):
        options = {"retries": 1, "retry_on": kind, "timeout": "1m", "max_consecutive_errors": 1}

        @app.job(every("1h"), slug, **options)
        async def slow(fire: Any) -> None:
            await app.sleep("5m")

    async with virtual(app, start=START) as time:
        await time.advance("70m")
        assert [(await app.runs(slug))[0].attempt for slug in ("again", "once")] == [2, 1]


async def test_a_job_takes_the_same_options_and_they_are_stored(app: Wakeful) -> None:
    """By name, so that another process reads them; in one shape, whoever writes it."""
    app.job(every("1h"), "flaky", retries=2, retry_on=(ConnectionError, Invalid))(jobs.flaky)
    async with virtual(app, start=START):
        view = await app.get("flaky")
        assert view.to_json()["retry"] == {
            "times": 2,
            "delay": "10s",
            "backoff": 2,
            "delayMax": "1h",
            "on": ["ConnectionError", "wakeful.core.errors.Invalid"],
        }
        await app.update("flaky", retries=5)
        assert (await app.get("flaky")).to_json()["retry"]["times"] == 5


async def test_an_isolated_call_tells_what_it_raised(app: Wakeful) -> None:
    async with virtual(app, start=START) as time:
        await app.add(
            "x", every("10h"), call="embedding.jobs:raise_os_error", isolate="process", retries=1, retry_on=OSError
        )
        await time.advance("11h")
        assert (await app.runs("x"))[0].attempt == 2


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"retry_on": (OSError,)}, "retries: is required with retry_on"),
        ({"retries": 2, "retry": {"times": 3}}, "write all of it in retry={…}"),
        ({"retries": 2, "retry_on": (7,)}, "7 is not a type of exception"),
        ({"retries": -1}, "too small"),
        ({"retries": 2, "retry_delay": "soon"}, "is not a duration"),
    ],
)
async def test_options_that_cannot_be_are_refused(app: Wakeful, options: dict[str, Any], part: str) -> None:
    async with virtual(app, start=START):
        with pytest.raises(Invalid) as refused:
            await app.add("x", every("1h"), call=jobs.note, **options)
        assert part in str(refused.value)


# --- the log ---------------------------------------------------------------------------------------------------------


async def test_a_failure_is_logged_with_slug_and_traceback(app: Wakeful, caplog: pytest.LogCaptureFixture) -> None:
    jobs.TROUBLE[:] = [ValueError("no stock")]
    async with virtual(app, start=START) as time:
        await app.add("order", every("1h"), call=jobs.flaky)
        await app.add("plain", every("1h"), call=jobs.raise_os_error)
        await time.advance("1h")
    records = {record.getMessage().partition(":")[0]: record for record in caplog.records if record.name == "wakeful"}
    assert records["order"].levelno == logging.ERROR
    assert records["order"].exc_info is not None
    assert "in flaky" in caplog.text
    assert "ValueError: no stock" in caplog.text
    assert "in raise_os_error" in caplog.text  # in a thread


async def test_a_failure_in_a_process_of_its_own_is_logged(app: Wakeful, caplog: pytest.LogCaptureFixture) -> None:
    async with virtual(app, start=START) as time:
        await app.add("apart", every("1h"), call="embedding.jobs:raise_os_error", isolate="process")
        await time.advance("1h")
    assert "apart: attempt 1 of run 1 failed: OSError: no disk" in caplog.text
    assert "in raise_os_error" in caplog.text


def test_it_is_on_stderr_without_any_setup(tmp_path: Path) -> None:
    """The standard library's handler of last resort is enough."""
    program = tmp_path / "program.py"
    program.write_text(
        "import asyncio\n"
        "from wakeful import Wakeful, manual\n"
        "app = Wakeful('wakeful.db')\n"
        "@app.job(manual())\n"
        "async def order(fire):\n"
        "    raise ValueError('no stock')\n"
        "async def main():\n"
        "    async with app:\n"
        "        await app.run_now('order', wait=True)\n"
        "asyncio.run(main())\n"
    )
    ended = subprocess.run(
        [sys.executable, str(program)], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=120
    )
    assert "order: attempt 1 of run 1 failed: ValueError" in ended.stderr
    assert "raise ValueError('no stock')" in ended.stderr


# --- functions that cannot be found again ----------------------------------------------------------------------------


async def test_a_lambda_is_refused_with_the_cure(app: Wakeful) -> None:
    async with virtual(app, start=START):
        with pytest.raises(Invalid, match=r"a lambda cannot be found again after a restart.*top level of a module"):
            await app.add("x", every("1h"), call=lambda fire: None)
        assert await app.list() == []


async def test_a_nested_function_is_refused_with_the_cure(app: Wakeful) -> None:
    def nested(fire: Any) -> None: ...

    class Shop:
        def order(self, fire: Any) -> None: ...

    async with virtual(app, start=START):
        for call in (nested, partial(nested), Shop().order):
            with pytest.raises(Invalid, match=r"a function inside a function.*@app\.job"):
                await app.add("x", every("1h"), call=call)


async def test_a_job_may_be_nested(app: Wakeful) -> None:
    """The program declares it at every start."""

    @app.job(every("1h"))
    async def nested(fire: Any) -> None:
        jobs.CALLS.append(fire.slug)

    async with virtual(app, start=START) as time:
        await time.advance("1h")
        assert jobs.CALLS == ["nested"]


async def test_an_object_is_missing_after_a_restart_and_not_mistaken_for_its_class(app: Wakeful) -> None:
    """Calling the class would make an object, and pass for a success."""
    async with virtual(app, start=START) as time:
        await app.add("object", every("1h"), call=jobs.Shop())
        await time.advance("1h")
        assert jobs.CALLS == ["sold"]
    again = Wakeful(app._url, timezone="UTC")
    async with virtual(again) as time:
        await time.advance("1h")
        run = (await again.runs("object"))[0]
        assert run.outcome == "failed"
        assert "correct the target" in (run.error or "")
