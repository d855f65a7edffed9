"""Prompts through the whole of it: the API, the engine, an agent and its receipts."""

from pathlib import Path

from wakeful import Wakeful, every
from wakeful.agents.echo import EchoAgent


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
    app = Wakeful(tmp_path / "w.db", agents=lambda _clock, _registry: {"default": EchoAgent()}, receipts_at="http://x")
    async with app:
        await app.add("ask", every("2h"), prompt="hello")
        run = await app.run_now("ask", wait=True)
        parts = app._open
        row = (await parts.store.read(lambda tx: tx.runs.lock([run.run_id])))[run.run_id]
        await parts.store.write(lambda tx: tx.runs.save_many([row._replace(outcome="unconfirmed", result=None)]))
        assert parts.receipts is not None
        assert await app.receive(run.run_id, "wrong", "finished") == "forged"
        assert (await app.get_run(run.run_id)).outcome == "unconfirmed"
        token = parts.receipts.token(run.run_id)
        assert await app.receive(run.run_id, token, "finished", text="done after all") == "late"
        proven = await app.get_run(run.run_id)
    assert (proven.outcome, proven.reply) == ("succeeded", "done after all")
