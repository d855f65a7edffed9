"""On a virtual clock, a check before a prompt is performed by the test, like any command or request."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from wakeful import Heartbeat, Invalid, Wakeful, every
from wakeful.testing import virtual

START = "2026-03-28T12:00Z"


@pytest.fixture
def app(tmp_path: Path) -> Iterator[Wakeful]:
    app = Wakeful(tmp_path / "wakeful.db", timezone="UTC", heartbeat=Heartbeat(enabled=False))
    app.agent()(lambda prompt: f"I was asked: {prompt}")
    yield app
    assert not (tmp_path / "ran").exists(), "the program ran for real"


def command_of(tmp_path: Path) -> dict[str, Any]:
    """Leaves a trace if it is run."""
    return {"command": {"argv": ["touch", str(tmp_path / "ran")]}}


@pytest.mark.parametrize(
    ("answer", "outcome", "reason"),
    [("3 new mails", "succeeded", None), (None, "skipped", "nothing to do"), ("", "skipped", "nothing to do")],
)
async def test_a_schedules_check_is_the_tests_function(
    app: Wakeful, tmp_path: Path, answer: str | None, outcome: str, reason: str | None
) -> None:
    """Its output decides whether the agent is prompted, and is part of the prompt."""
    asked: list[tuple[Any, str]] = []

    def on_command(command: Any, fire: Any) -> str | None:
        asked.append((command.argv, fire.slug))
        return answer

    async with virtual(app, start=START, on_command=on_command) as time:
        await app.add("mail", every("1h"), prompt="Read it.", check=command_of(tmp_path))
        await time.advance("1h")
        (run,) = await app.runs("mail")
    assert (run.outcome, run.reason) == (outcome, reason)
    assert asked == [(("touch", str(tmp_path / "ran")), "mail")]
    assert answer is None or answer in (run.reply or "")


@pytest.mark.parametrize("on_error", ["skip", "wake"])
async def test_a_check_that_fails_is_what_the_test_says(app: Wakeful, tmp_path: Path, on_error: str) -> None:
    """By its exit code, as with a real one."""
    async with virtual(app, start=START, on_command=lambda command: 3) as time:
        check = {**command_of(tmp_path), "onError": on_error}
        await app.add("mail", every("1h"), prompt="Read it.", check=check)
        await time.advance("1h")
        (run,) = await app.runs("mail")
    assert run.outcome == ("skipped" if on_error == "skip" else "succeeded")
    assert "exited with 3" in f"{run.error} {run.reply}"


async def test_a_request_is_replaced_too(app: Wakeful) -> None:
    """Nothing is sent; 204, for example, is what the function returns."""
    asked: list[str] = []

    def on_http(request: Any) -> int:
        asked.append(request.url)
        return 204

    async with virtual(app, start=START, on_http=on_http) as time:
        check = {"http": {"method": "GET", "url": "http://127.0.0.1:9/mail"}}
        await app.add("mail", every("1h"), prompt="Read it.", check=check)
        await time.advance("1h")
        (run,) = await app.runs("mail")
    assert (asked, run.outcome, run.reason) == (["http://127.0.0.1:9/mail"], "skipped", "nothing to do")


async def test_without_a_function_a_check_is_refused(app: Wakeful, tmp_path: Path) -> None:
    """As the command itself would be; a stored one fails instead of running."""
    async with virtual(app, start=START, on_command=lambda command: None):
        await app.add("mail", every("1h"), prompt="Read it.", check={**command_of(tmp_path), "onError": "skip"})
    async with virtual(app) as time:
        with pytest.raises(Invalid, match=r"check.command: commands do not run on a virtual clock; pass virtual"):
            await app.add("other", every("1h"), prompt="Read it.", check=command_of(tmp_path))
        await time.advance("1h")
        (run,) = await app.runs("mail")
    assert run.outcome == "skipped" and "do not run on a virtual clock" in str(run.error)


async def test_the_heartbeats_check_is_replaced_too(tmp_path: Path) -> None:
    """A beat whose check finds nothing takes no turn."""
    asked: list[Any] = []
    beats = Heartbeat(every="1h", check=command_of(tmp_path))
    app = Wakeful(tmp_path / "wakeful.db", timezone="UTC", heartbeat=beats)
    app.agent()(lambda prompt: "HEARTBEAT_OK")
    async with virtual(app, start=START, on_command=lambda command: asked.append(command.argv)) as time:
        await time.advance("1h1m")
    assert asked == [("touch", str(tmp_path / "ran"))]
    assert not (tmp_path / "ran").exists()
