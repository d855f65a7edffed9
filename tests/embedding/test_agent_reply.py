"""`AgentReply`: how a function that is an agent reports what its turn used, and its session."""

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from wakeful import AgentReply, Budgets, Price, RunView, Usage, Wakeful, every, manual
from wakeful.testing import virtual

START = "2026-03-28T12:00Z"
PRICES = {"glm-4.6": Price(1.0, 2.0)}
USED: Usage = {"input": 1_000_000, "output": 500_000, "model": "glm-4.6"}  # 2 US dollars


def app_of(tmp_path: Path, reply: Any, **options: Any) -> Wakeful:
    """An app whose agent returns this."""
    app = Wakeful(tmp_path / "wakeful.db", timezone="UTC", **options)

    @app.agent()
    async def answer(prompt: str) -> Any:
        return reply

    return app


async def turn_of(tmp_path: Path, reply: Any, **options: Any) -> RunView:
    async with app_of(tmp_path, reply, **options) as app:
        await app.add("ask", manual(), prompt="What is new?")
        return await app.run_now("ask", wait=True)


async def test_text_usage_and_cost_are_recorded(tmp_path: Path) -> None:
    """Tokens of a model with a price have a cost, which is spent by the schedule."""
    app = app_of(tmp_path, AgentReply("all is well", usage=USED), budgets=Budgets(prices=PRICES))
    async with app:
        await app.add("ask", manual(), prompt="What is new?")
        run = await app.run_now("ask", wait=True)
        (row,) = (await app.cost("schedule")).rows
    assert (run.outcome, run.reply) == ("succeeded", "all is well")
    assert run.usage is not None
    assert (run.usage["input"], run.usage["total"], run.usage["cost"]) == (1_000_000, 1_500_000, 2.0)
    assert (row.key, row.runs, row.tokens, row.unknown) == ("ask", 1, 1_500_000, 0) and row.cost


@pytest.mark.parametrize(
    ("budget", "budgets"),
    [
        ({"tokensPerDay": 2_000_000}, None),
        ({"perDay": 3.0}, Budgets(prices=PRICES)),
        (None, Budgets(day=3.0, prices=PRICES)),
    ],
    ids=["tokens of the schedule", "dollars of the schedule", "dollars of all"],
)
async def test_what_it_used_counts_into_budgets(
    tmp_path: Path, budget: dict[str, Any] | None, budgets: Budgets | None
) -> None:
    """The third turn of a day does not fit: two have used 4 dollars, or 3 million tokens."""
    app = app_of(tmp_path, AgentReply("all is well", usage=USED), budgets=budgets)
    async with virtual(app, start=START) as time:
        await app.add("ask", every("1h"), prompt="What is new?", budget=budget)
        await time.advance("3h")
        runs = [(run.outcome, run.reason) for run in reversed(await app.runs("ask"))]
    assert runs[-1] == ("skipped", "budget")
    assert 1 <= len([run for run in runs if run[0] == "succeeded"]) <= 2


async def test_a_lost_usage_would_not_stop_it(tmp_path: Path) -> None:
    """The same turns without a usage."""
    app = app_of(tmp_path, "all is well", budgets=Budgets(prices=PRICES))
    async with virtual(app, start=START) as time:
        await app.add("ask", every("1h"), prompt="What is new?", budget={"tokensPerDay": 2_000_000})
        await time.advance("3h")
        assert [run.outcome for run in await app.runs("ask")] == ["succeeded"] * 3


async def test_the_next_turn_gets_its_session(tmp_path: Path) -> None:
    app, sessions = Wakeful(tmp_path / "wakeful.db", timezone="UTC"), []

    @app.agent()
    async def answer(prompt: str, session_id: str | None) -> AgentReply:
        sessions.append(session_id)
        return AgentReply("all is well", session="thread-7")

    async with virtual(app, start=START) as time:
        await app.add("ask", every("1h"), prompt="What is new?", session_config={"persistSession": True})
        await time.advance("2h")
    assert sessions == [None, "thread-7"]


@dataclass
class AgentRunResult:
    """As in Pydantic AI."""

    output: Any


async def test_the_result_of_a_framework_is_its_text(tmp_path: Path) -> None:
    assert (await turn_of(tmp_path, AgentReply(AgentRunResult("all is well")))).reply == "all is well"


async def test_none_is_nothing_to_report(tmp_path: Path) -> None:
    """And what is no text is no reply, but its usage counts."""
    run = await turn_of(tmp_path, AgentReply(None, usage={"input": 7, "output": 1}))
    assert (run.outcome, run.reply) == ("succeeded", None) and run.usage is not None and run.usage["total"] == 8
    (tmp_path / "other").mkdir()
    other = await turn_of(tmp_path / "other", AgentReply({"city": "Rome"}, usage={"input": 7, "output": 1}))
    assert other.outcome == "unconfirmed" and "type dict, which is no reply" in str(other.error)
    assert other.usage is not None and other.usage["total"] == 8


async def test_the_names_of_providers_are_read(tmp_path: Path) -> None:
    given: Any = {"prompt_tokens": 5, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 3}}
    run = await turn_of(tmp_path, AgentReply("hello", usage=given))
    assert run.usage is not None and (run.usage["input"], run.usage["cachedInput"], run.usage["output"]) == (5, 3, 2)


@pytest.mark.parametrize("given", [{"inptu": 5}, "5 tokens", {"input": "5"}])
async def test_a_usage_that_is_not_understood_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, given: Any
) -> None:
    """The turn has happened: it is not repeated because of its report."""
    with caplog.at_level(logging.WARNING, "wakeful"):
        run = await turn_of(tmp_path, AgentReply("hello", usage=given))
    assert (run.outcome, run.reply, run.usage) == ("succeeded", "hello", None)
    assert "write for example {'input': 1200, 'output': 210}" in caplog.text


async def test_a_job_reports_with_it_too(tmp_path: Path) -> None:
    """A job that asks an agent: its text is the output."""
    app = Wakeful(tmp_path / "wakeful.db")

    @app.job(manual())
    async def ask() -> AgentReply:
        return AgentReply("all is well", usage={"input": 7, "output": 1})

    async with app:
        run = await app.run_now("ask", wait=True)
    assert run.output == "all is well" and run.usage is not None and run.usage["total"] == 8
