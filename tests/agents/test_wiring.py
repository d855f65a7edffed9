"""Prompts through the whole of it: the API, the engine, an agent and its receipts."""

import asyncio
from pathlib import Path

import pytest

from patience import PATIENCE
from wakeful import Conflict, Heartbeat, Invalid, Wakeful, every
from wakeful.app.options import Host
from wakeful.integrations.agents.command import CommandAgent, CommandSettings
from wakeful.integrations.agents.echo import EchoAgent


async def test_a_prompt_is_answered_and_its_reply_is_in_the_ledger(tmp_path: Path) -> None:
    """The built-in agent, from `add` to the reply."""
    app = Wakeful(tmp_path / "w.db", agents=lambda _clock, _registry: {"default": EchoAgent()})
    async with app:
        await app.add("ask", every("2h"), prompt="how are you?")
        run = await app.run_now("ask", wait=True)
    assert (run.outcome, run.rung) == ("succeeded", "finished")
    assert run.reply is not None and "how are you?" in run.reply


async def test_late_proof_turns_an_unknown_run_into_what_it_was(tmp_path: Path) -> None:
    """A receipt for a run that was closed without proof settles it; a forged one changes nothing."""
    app = Wakeful(
        tmp_path / "w.db", agents=lambda _clock, _registry: {"default": EchoAgent()}, host=Host(receipts_at="http://x")
    )
    async with app:
        await app.add("ask", every("2h"), prompt="hello")
        run = await app.run_now("ask", wait=True)
        parts = app._open
        row = (await parts.store.read(lambda tx: tx.runs.lock([run.run_id])))[run.run_id]
        await parts.store.write(lambda tx: tx.runs.save_many([row._replace(outcome="unconfirmed", result=None)]))
        assert parts.receipts is not None
        assert await app._post_receipt(run.run_id, "wrong", "finished") == "forged"
        assert (await app.ledger.get(run.run_id)).outcome == "unconfirmed"
        token = parts.receipts.token(run.run_id)
        assert await app._post_receipt(run.run_id, token, "finished", text="done after all") == "late"
        proven = await app.ledger.get(run.run_id)
    assert (proven.outcome, proven.reply) == ("succeeded", "done after all")


async def test_a_function_is_an_agent_for_prompts_and_for_the_heartbeat(tmp_path: Path) -> None:
    """With public names alone: a prompt is answered by it, a wake is a turn of it, HEARTBEAT.md is in its prompt."""
    (tmp_path / "HEARTBEAT.md").write_text("look at the kettle")
    app = Wakeful(tmp_path / "w.db", heartbeat=Heartbeat(agent="mine", every="1h", home=tmp_path))
    prompts: list[str] = []
    turned = asyncio.Event()

    @app.agent("mine")
    async def answer(prompt: str) -> str:
        prompts.append(prompt)
        if "kettle" in prompt:
            turned.set()
            return "HEARTBEAT_OK"
        return f"answer to {prompt}"

    async with app:
        await app.add("ask", every("2h"), prompt="how are you?", agent="mine")
        run = await app.run_now("ask", wait=True)
        await app.request_wake("manual", "the door is open")
        await asyncio.wait_for(turned.wait(), PATIENCE)
        view, _ = await app.turns.heartbeat()
    assert run.reply is not None and run.reply.endswith("how are you?")
    assert "look at the kettle" in prompts[-1] and "the door is open" in prompts[-1]
    assert view.next_beat is not None


async def test_functions_stand_beside_agents_that_are_described(tmp_path: Path) -> None:
    """Both are there, also after the described ones were changed."""
    app = Wakeful(tmp_path / "w.db", agents=lambda _clock, _registry: {"default": EchoAgent()})

    @app.agent("mine")
    def answer(prompt: str) -> str:
        return "mine"

    async with app:
        await app.add("one", every("2h"), prompt="hello")
        await app.add("two", every("2h"), prompt="hello", agent="mine")
        app._change_agents(lambda _clock, _registry: {"default": EchoAgent()})
        assert "hello" in ((await app.run_now("one", wait=True)).reply or "")
        assert (await app.run_now("two", wait=True)).reply == "mine"


def test_a_heartbeat_is_checked_by_the_rules_of_the_settings() -> None:
    """Every fault at once, by the names it was given; the token stands in the prompt that is not given."""
    with pytest.raises(Invalid) as refused:
        Heartbeat(every="soon", ack_chars_max=-1, active_hours={"start": "25:00", "end": "22:00"})
    assert [error.field for error in refused.value.errors] == ["every", "ack_chars_max", "active_hours.start"]
    terms = Heartbeat(ack_token="QUIET", active_hours={"start": "09:00", "end": "22:00"}).feature().terms
    assert terms.enabled and "QUIET" in terms.prompt and terms.beats.hours is not None


async def test_what_is_wrong_about_an_agent_is_told_under_its_own_field(tmp_path: Path) -> None:
    """The prompt is as it should be."""
    app = Wakeful(tmp_path / "w.db", agents=lambda _clock, _registry: {"default": EchoAgent()})
    async with app:
        with pytest.raises(Invalid, match=r"^agent: there is no agent 'other'; add"):
            await app.add("ask", every("2h"), prompt="hello", agent="other")
        with pytest.raises(Invalid, match=r"^session_config: agent 'default': sessionConfig.tone is not supported"):
            await app.add("ask", every("2h"), prompt="hello", session_config={"tone": "kind"})


async def test_a_wake_that_nobody_would_take_is_refused_with_the_cure(tmp_path: Path) -> None:
    """Without an agent there is nobody to wake, and silence would be worse."""
    async with Wakeful(tmp_path / "w.db") as app:
        with pytest.raises(Conflict, match=r"the heartbeat cannot be woken: .*; give this program an agent"):
            await app.request_wake("manual")


async def test_a_program_that_prints_nothing_ends_without_a_word(tmp_path: Path) -> None:
    """Its exit code proves that it ended, and not that it did what a schedule with a reply asks for."""
    quiet = CommandSettings(argv=("true",))
    app = Wakeful(tmp_path / "w.db", agents=lambda clock, _registry: {"default": CommandAgent(quiet, clock)})
    async with app:
        await app.add("asks", every("2h"), prompt="what is new?", success="finished")
        await app.add("tells", every("2h"), prompt="what is new?", deliver={"channel": "inbox"})
        await app.add("works", every("2h"), prompt="what is new?")
        runs = [await app.run_now(slug, wait=True) for slug in ("asks", "tells", "works")]
    assert [run.outcome for run in runs] == ["unconfirmed", "unconfirmed", "succeeded"]
    assert runs[0].error == "the turn ended without a word"
