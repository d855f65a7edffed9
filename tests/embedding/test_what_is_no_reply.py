"""What an agent's function returns: a reply, the result of a framework, or something that is no reply."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from wakeful import Heartbeat, RunView, Wakeful, every, manual
from wakeful.core.run.results import Done
from wakeful.testing import virtual

START = "2026-03-28T12:00Z"
WORDLESS = "the turn ended without a word"


@dataclass
class AgentRunResult:
    """Has its text where Pydantic AI has it."""

    output: Any


@dataclass
class RunResult:
    """As in the OpenAI Agents SDK."""

    input: str
    raw_responses: list[Any]
    final_output: Any


@dataclass
class AIMessage:
    """As in LangChain and LangGraph."""

    content: Any
    type: str = "ai"


@dataclass
class CrewOutput:
    """As in CrewAI."""

    raw: str
    tasks_output: tuple[Any, ...] = ()

    @property
    def json(self) -> str:
        raise ValueError("no JSON was asked for")


class Broken:
    @property
    def output(self) -> str:
        raise RuntimeError("not yet")


class People:
    """Takes what the channel delivers."""

    def __init__(self) -> None:
        self.got: list[str] = []

    async def __call__(self, text: str) -> None:
        self.got.append(text)


async def turns_of(tmp_path: Path, value: Any, **options: Any) -> tuple[list[RunView], list[str], int]:
    """The runs of two hours in which a function returned this, what people got, and how often it was called."""
    tmp_path.mkdir(exist_ok=True)
    app, people, calls = Wakeful(tmp_path / "wakeful.db", timezone="UTC"), People(), 0

    @app.agent()
    async def answer(prompt: str) -> Any:
        nonlocal calls
        calls += 1
        return value

    app.register_channel("phone", None, people)
    async with virtual(app, start=START) as time:
        await app.add("ask", every("2h"), prompt="What is new?", retry={"times": 3, "delay": "1m"}, **options)
        await time.advance("3h59m")
        return await app.runs("ask"), people.got, calls


async def turn_of(tmp_path: Path, value: Any, **options: Any) -> RunView:
    (run,), _, calls = await turns_of(tmp_path, value, **options)
    assert calls == 1, "it is never tried again"
    return run


# --- results of frameworks --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        AgentRunResult("all is well"),
        RunResult("What is new?", [], "all is well"),
        AIMessage("all is well"),
        CrewOutput("all is well"),
        Done(reply=AgentRunResult("all is well")),  # type: ignore[arg-type]
        "all is well",
    ],
    ids=lambda value: type(value).__name__,
)
async def test_the_result_of_a_framework_is_unwrapped(tmp_path: Path, value: Any) -> None:
    run = await turn_of(tmp_path, value)
    assert (run.outcome, run.reply) == ("succeeded", "all is well")


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ({"messages": [AIMessage("hi")]}, r"type dict, .* such as result\['messages'\]\[-1\].content, or None"),
        (AgentRunResult({"city": "Rome"}), r"type AgentRunResult, whose .output is of type dict, which is no reply"),
        (RunResult("", [], None), "type RunResult, which is no reply; return text, or None"),
        (AIMessage([{"type": "text", "text": "hi"}]), "type AIMessage, whose .content is of type list"),
        (["hi"], "type list, which is no reply"),
        (True, "type bool, which is no reply"),
        (object(), "type object, which is no reply"),
        (Broken(), "type Broken, which is no reply"),
        (Done(reply={"city": "Rome"}), "type dict, which is no reply"),  # type: ignore[arg-type]
    ],
)
async def test_what_is_no_reply_is_unconfirmed_and_never_tried_again(tmp_path: Path, value: Any, error: str) -> None:
    """The work may be done, so it is not repeated; the error names the type and the cure."""
    run = await turn_of(tmp_path, value)
    assert run.outcome == "unconfirmed" and run.reply is None
    assert run.error is not None and re.search(error, run.error), run.error


async def test_nothing_is_still_no_reply(tmp_path: Path) -> None:
    assert (await turn_of(tmp_path, None)).outcome == "succeeded"


async def test_a_function_in_a_thread_is_read_the_same_way(tmp_path: Path) -> None:
    app = Wakeful(tmp_path / "wakeful.db")
    app.agent("good")(lambda prompt: AgentRunResult("all is well"))
    app.agent("bad")(lambda prompt: {"messages": []})
    async with app:
        for name, outcome in (("good", "succeeded"), ("bad", "unconfirmed")):
            await app.add(name, manual(), prompt="What is new?", agent=name)
            assert (await app.run_now(name, wait=True)).outcome == outcome


async def test_the_output_of_a_job_is_the_text_of_such_a_result(tmp_path: Path) -> None:
    """People would get `AgentRunResult(output='…')`."""
    app = Wakeful(tmp_path / "wakeful.db")

    @app.job(manual())
    async def ask() -> AgentRunResult:
        return AgentRunResult("all is well")

    async with app:
        assert (await app.run_now("ask", wait=True)).output == "all is well"


# --- real frameworks, where they are installed ------------------------------------------------------------------------


async def reply_of(tmp_path: Path, ask: Callable[[str], Awaitable[Any]]) -> tuple[str, str | None, str | None]:
    tmp_path.mkdir(exist_ok=True)
    app = Wakeful(tmp_path / "wakeful.db")

    @app.agent()
    async def answer(prompt: str) -> Any:
        return await ask(prompt)

    async with app:
        await app.add("ask", manual(), prompt="What is new?")
        run = await app.run_now("ask", wait=True)
    return run.outcome, run.reply, run.error


async def test_pydantic_ai(tmp_path: Path) -> None:
    """Its result as a whole; a structured output is no text."""
    ai = pytest.importorskip("pydantic_ai")
    models = pytest.importorskip("pydantic_ai.models.test")
    agent = ai.Agent(models.TestModel(custom_output_text="all is well"))
    assert (await reply_of(tmp_path, agent.run))[:2] == ("succeeded", "all is well")
    structured = ai.Agent(models.TestModel(), output_type=dict[str, int])
    outcome, _, error = await reply_of(tmp_path / "other", structured.run)
    assert outcome == "unconfirmed" and "AgentRunResult, whose .output is of type dict" in str(error)


async def test_langgraph(tmp_path: Path) -> None:
    """A message is a reply; the state of a graph is none."""
    graph = pytest.importorskip("langgraph.graph")
    models = pytest.importorskip("langchain_core.language_models.fake_chat_models")
    model = models.FakeListChatModel(responses=["all is well"])
    built = graph.StateGraph(graph.MessagesState)
    built.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
    built.add_edge(graph.START, "model")
    compiled = built.compile()

    async def whole(prompt: str) -> Any:
        return await compiled.ainvoke({"messages": [("user", prompt)]})

    async def last(prompt: str) -> Any:
        return (await whole(prompt))["messages"][-1]

    assert (await reply_of(tmp_path, last))[:2] == ("succeeded", "all is well")
    outcome, _, error = await reply_of(tmp_path / "other", whole)
    assert outcome == "unconfirmed" and "result['messages'][-1].content" in str(error)


async def test_openai_agents(tmp_path: Path) -> None:
    """What its runner returns, made by hand: it has no model for tests."""
    result = pytest.importorskip("agents.result")
    context = pytest.importorskip("agents").RunContextWrapper(None)
    empty: dict[str, Any] = {"new_items": [], "raw_responses": [], "input_guardrail_results": []}
    made = result.RunResult(
        input="",
        final_output="all is well",
        output_guardrail_results=[],
        tool_input_guardrail_results=[],
        tool_output_guardrail_results=[],
        context_wrapper=context,
        _last_agent=pytest.importorskip("agents").Agent(name="a"),
        **empty,
    )
    assert (await reply_of(tmp_path, lambda _: asyncio.sleep(0, made)))[:2] == ("succeeded", "all is well")


async def test_crewai(tmp_path: Path) -> None:
    """What `kickoff` of a crew returns."""
    output = pytest.importorskip("crewai.crews.crew_output")
    made = output.CrewOutput(raw="all is well")
    assert (await reply_of(tmp_path, lambda _: asyncio.sleep(0, made)))[:2] == ("succeeded", "all is well")


# --- empty texts ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", " \n\t"])
@pytest.mark.parametrize(
    "options",
    [
        {"deliver": {"channel": "phone"}},
        {"success": "finished"},
        {"deliver": {"channel": "phone"}, "success": "finished"},
    ],
)
async def test_a_turn_without_a_word_is_unconfirmed_where_a_reply_is_the_work(
    tmp_path: Path, text: str, options: dict[str, Any]
) -> None:
    """People are told that there was no reply, and it is not tried again."""
    (run,), got, calls = await turns_of(tmp_path, text, **options)
    assert (run.outcome, run.error, calls) == ("unconfirmed", WORDLESS, 1)
    if "deliver" in options:
        assert got[0] == f"ask: no reply could be read from run {run.run_id}: {WORDLESS}; see: wakeful why ask"


async def test_a_turn_without_a_word_succeeds_where_nothing_is_said_to_whom(tmp_path: Path) -> None:
    """An agent that works and says nothing has done its work; less than its end may also count as success."""
    assert (await turn_of(tmp_path, "")).outcome == "succeeded"
    options = {"deliver": {"channel": "phone"}, "success": "started"}
    assert (await turn_of(tmp_path / "started", "", **options)).outcome == "succeeded"


async def test_what_the_turn_used_is_kept(tmp_path: Path) -> None:
    """Its tokens count although it said nothing; tools that were refused may be the reason."""
    done = Done(reply="", usage={"input": 7, "output": 1, "total": 8}, refused=("Bash(rm -rf /)",))
    run = await turn_of(tmp_path, done, success="finished")
    assert run.outcome == "unconfirmed" and run.usage is not None and run.usage["total"] == 8


async def test_an_empty_heartbeat_stays_ok(tmp_path: Path) -> None:
    app = Wakeful(tmp_path / "wakeful.db", timezone="UTC", heartbeat=Heartbeat(every="1h"))
    app.agent()(lambda prompt: "")
    async with virtual(app, start=START) as time:
        await time.advance("1h1m")
        _, turns = await app.turns.heartbeat()
    assert [(turn.outcome, turn.reason) for turn in turns] == [("succeeded", "ok-empty")]


async def test_why_says_it(tmp_path: Path) -> None:
    app = Wakeful(tmp_path / "wakeful.db", timezone="UTC")
    app.agent()(lambda prompt: "")
    async with virtual(app, start=START) as time:
        await app.add("ask", every("2h"), prompt="What is new?", success="finished")
        await time.advance("2h1m")
        assert WORDLESS in (await app.why("ask")).sentence
