"""From a heartbeat, a cron event or a message to the person, the start order and the recovery: a daemon that is a
process, a real HTTP server as the agent, another as the receiver."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from agents.server import AgentServer, serving
from channels.receiver import Got, Receiver, receiving
from delivery.running import WITHIN, bot, daemon, hook

pytestmark = pytest.mark.promise

TOKEN = "HEARTBEAT_OK"


@pytest.fixture
async def agent() -> AsyncIterator[AgentServer]:
    async with serving(AgentServer()) as one:
        one.reply = TOKEN
        yield one


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as one:
        yield one


def settings(agent: AgentServer, channels: str, **heartbeat: str) -> str:
    """Settings with a heartbeat, an agent and ways to a person."""
    written = "".join(f"{name} = {value}\n" for name, value in heartbeat.items())
    return f'[agents.default]\nadapter = "sessions"\nurl = "{agent.url}"\n[heartbeat]\n{written}{channels}'


async def come_to_pass(condition: Callable[[], Any]) -> Any:
    async with asyncio.timeout(WITHIN):
        while not (found := condition()):
            await asyncio.sleep(0.02)
    return found


async def test_the_heartbeat_flow(tmp_path: Path, agent: AgentServer, receiver: Receiver) -> None:
    """Interval, prompt in a session of its own, the token kept back; what there is to say arrives without it."""
    every_second = settings(agent, hook(receiver), enabled="true", every='"1s"', prompt='"Look. {ack_token} if well."')
    async with daemon(tmp_path / "home", every_second, agent.environ) as running:
        (tmp_path / "home" / "HEARTBEAT.md").write_text("- water the plants\n")
        await running.until(
            "/api/heartbeat", lambda now: len([run for run in now["lastTurns"] if run["reason"] == "ok-ack"]) >= 2
        )
        assert receiver.got == []
        agent.reply = f"{TOKEN} The plants are dry. {'x' * 300}"
        (got, *_) = await come_to_pass(lambda: receiver.got)
        agent.reply = TOKEN
        assert got.body["text"].startswith("The plants are dry.")
        assert TOKEN not in got.body["text"]
        assert got.body["slug"] == "heartbeat"
        run = await running.until(f"/api/runs/{got.body['runId']}", lambda one: one["outcome"] == "succeeded")
        assert (run["reason"], run["trigger"]) == ("sent", "schedule")
        prompts = [one.body["prompt"] for one in agent.messages()]
        assert prompts[-1].startswith(f"Look. {TOKEN} if well.\n\n# HEARTBEAT.md\n\n- water the plants")
        assert prompts[-1].endswith("(woken by: interval)")
        assert len({one.path for one in agent.messages()}) == 1  # one session


async def test_the_cron_flow(tmp_path: Path, agent: AgentServer, receiver: Receiver) -> None:
    """A cron event wakes the agent, which sees it; its answer is delivered, and the run ends with the turn."""
    agent.reply = "RSI is 71"
    async with daemon(
        tmp_path / "home", settings(agent, hook(receiver)) + '\n[limits]\nevery_min = "1s"\n', agent.environ
    ) as running:
        each = {"schedule": {"type": "cron", "expression": "* * * * * *"}, "event": {"text": "Check BTC RSI"}}
        await running.ask("PUT", "/api/schedule/btc", each)
        (got, *_) = await come_to_pass(lambda: receiver.got)
        assert (got.body["text"], got.body["channel"]) == ("RSI is 71", "hook")
        prompt = agent.messages()[0].body["prompt"]
        assert "from cron:btc at" in prompt
        assert "> Check BTC RSI" in prompt
        assert prompt.endswith("(woken by: cron)")
        runs = (await running.until("/api/schedule/btc/runs", lambda page: page["runs"][-1]["outcome"] == "succeeded"))[
            "runs"
        ]
        assert (runs[-1]["rung"], runs[-1]["trigger"]) == ("finished", "schedule")


async def test_the_user_message_flow_by_rest(tmp_path: Path, agent: AgentServer, receiver: Receiver) -> None:
    """Heard on a channel: the answer goes straight back to its sender, and what the heartbeat says next goes there."""
    agent.reply = "hello Ann"
    other = f'[channels.first]\ntype = "webhook"\nurl = "{receiver.url}/first"\nallow_private = true\n'
    async with daemon(tmp_path / "home", settings(agent, other + hook(receiver)), agent.environ) as running:
        taken = await running.ask(
            "POST", "/api/channels/hook/messages", {"to": "ann", "text": "hi\x07, it is <b>Ann</b>"}
        )
        assert taken == {"status": "taken"}
        (got,) = await come_to_pass(lambda: receiver.got)
        assert (got.path, got.body["text"], got.body["to"]) == ("/in", "hello Ann", "ann")
        assert got.body["slug"] == "message:hook:ann"
        assert agent.messages()[0].body["prompt"] == "hi, it is <b>Ann</b>"  # the bare words
        last = (await running.ask("GET", "/api/channels"))["last"]
        assert (last["channel"], last["to"]) == ("hook", "ann")
        agent.reply = "news"
        await running.ask("POST", "/api/wake", {"reason": "manual"})
        await come_to_pass(lambda: len(receiver.got) == 2)
        assert (receiver.got[1].path, receiver.got[1].body["text"], receiver.got[1].body["to"]) == (
            "/in",
            "news",
            "ann",
        )
        sessions = [one.path for one in agent.messages()]
        assert sessions[0] != sessions[1]  # a conversation is not the heartbeat
        agent.reply = TOKEN
        await running.ask("POST", "/api/channels/hook/messages", {"to": "ann", "text": "say nothing"})
        await running.until("/api/runs?limit=1", lambda page: page["runs"][0]["reason"] == "ok-ack")
        assert len(receiver.got) == 2


async def test_the_user_message_flow_by_telegram(tmp_path: Path, agent: AgentServer, receiver: Receiver) -> None:
    """From the bot's updates to the agent over HTTP and back to the chat; a stranger's word goes nowhere."""
    agent.reply = "yes, *here* & <i>well</i>"
    sent: list[Any] = []
    updates = [
        {"update_id": 4, "message": {"chat": {"id": 666}, "text": "let me in"}},
        {"update_id": 5, "message": {"chat": {"id": 42}, "text": "are you there?"}},
    ]

    async def telegram(got: Got) -> web.StreamResponse:
        if got.path.endswith("/sendMessage"):
            sent.append(got.body)
            return web.json_response({"ok": True, "result": {}})
        fresh = [one for one in updates if int(str(one["update_id"])) >= got.body["offset"]]
        if not fresh:
            await asyncio.sleep(1)
        return web.json_response({"ok": True, "result": fresh})

    receiver.usual = telegram
    first = f'[channels.first]\ntype = "webhook"\nurl = "{receiver.url}/first"\nallow_private = true\n'
    async with daemon(
        tmp_path / "home", settings(agent, first + bot(receiver, "1:x") + "inbound = true\n"), agent.environ
    ) as running:
        await come_to_pass(lambda: sent)
        assert sent == [{"chat_id": "42", "text": "yes, *here* & <i>well</i>"}]  # plain: no parse mode
        assert [one.body["prompt"] for one in agent.messages()] == ["are you there?"]
        last = (await running.ask("GET", "/api/channels"))["last"]
        assert (last["channel"], last["to"]) == ("phone", "42")
        agent.reply = "news"
        await running.ask("POST", "/api/wake", {"reason": "manual"})
        await come_to_pass(lambda: len(sent) == 2)
        assert sent[1] == {"chat_id": "42", "text": "news"}


async def test_another_agent_in_the_settings_begins_conversations_anew(
    tmp_path: Path, agent: AgentServer, receiver: Receiver
) -> None:
    """A changed file: the next message of the same person is another agent's, in a session that this one made."""
    agent.reply = "old"
    async with serving(AgentServer()) as second:
        second.reply = "new"
        other = f'[agents.other]\nadapter = "sessions"\nurl = "{second.url}"\nhistory_file = "{second.history_file}"\n'
        both = settings(agent, hook(receiver)) + other
        async with daemon(tmp_path / "home", both, agent.environ) as running:
            await running.ask("POST", "/api/channels/hook/messages", {"to": "ann", "text": "one"})
            await come_to_pass(lambda: receiver.got)
            (tmp_path / "home" / "wakeful.toml").write_text(
                both.replace("[heartbeat]\n", '[heartbeat]\nagent = "other"\n')
            )
            await running.until("/api/heartbeat", lambda now: now["agent"] == "other")
            await running.ask("POST", "/api/channels/hook/messages", {"to": "ann", "text": "two"})
            await come_to_pass(lambda: len(receiver.got) == 2)
        assert [got.body["text"] for got in receiver.got] == ["old", "new"]
        known = {one.session_id for one in second.sessions.values()}
        assert {one.path.split("/")[3] for one in second.messages()} <= known
        assert len(second.messages()) == 1  # not first to a session it never had


async def test_start_order_and_recovery(tmp_path: Path, agent: AgentServer, receiver: Receiver) -> None:
    """Killed with an event that was not heard and a text that did not arrive: both go on, and find their channels."""
    down = asyncio.Event()

    async def refuse(_: Got) -> web.StreamResponse:
        down.set()
        return web.Response(status=503)

    receiver.usual = refuse
    agent.reply = "heard it"
    agent.gate.clear()
    home = tmp_path / "home"
    async with daemon(home, settings(agent, hook(receiver)), agent.environ) as first:
        left = await first.ask("POST", "/api/deliveries", {"text": "left over"})
        await first.ask("POST", "/api/wake", {"reason": "hook", "text": "the door", "contextKey": "door"})
        await come_to_pass(agent.messages)
        await asyncio.wait_for(down.wait(), WITHIN)
        await first.kill()
    receiver.got.clear()
    receiver.usual = lambda _: web.Response()
    agent.gate.set()
    async with daemon(home, environ=agent.environ) as second:
        await come_to_pass(lambda: len(receiver.got) >= 2)
        assert [got.body["text"] for got in receiver.got] == ["left over", "heard it"]
        assert receiver.got[0].body["id"] == left["id"]
        await second.until("/api/system-events", lambda found: not found["events"])
        await second.until("/api/deliveries?status=pending", lambda page: not page["deliveries"])
    assert len(receiver.got) == 2


async def test_hostile_replies_arrive_bounded_and_inert_and_the_doctor_knows_what_did_not(
    tmp_path: Path, agent: AgentServer, receiver: Receiver
) -> None:
    """Megabytes, control characters, markup; then a receiver that refuses for good, which is a finding."""
    async with daemon(tmp_path / "home", settings(agent, hook(receiver)), agent.environ) as running:
        agent.reply = "begin\x1b[31m" + "x" * 10_000_000 + "<script>alert(1)</script>\u202eend"
        await running.ask("POST", "/api/wake", {"reason": "manual"})
        (got,) = await come_to_pass(lambda: receiver.got)
        text = got.body["text"]
        assert len(text.encode()) < 70_000
        assert text.startswith("begin")
        assert not {"\x1b", "\u202e"} & set(text)
        assert text.endswith("<script>alert(1)</script>end") or "bytes left out" in text
        receiver.usual = lambda _: web.Response(status=403)
        agent.reply = "for nobody"
        await running.ask("POST", "/api/wake", {"reason": "manual"})
        health = await running.until(
            "/healthz",
            lambda now: any(one["level"] == "warn" and one["name"] == "deliveries" for one in now["findings"]),
        )
        assert (health["status"], health["problems"]) == ("degraded", [])  # the clock is alive all the same
        (found,) = [one for one in health["findings"] if one["name"] == "deliveries"]
        assert found["sentence"].startswith("dead letters: ")
        assert "to hook" in found["sentence"]
        (dead,) = [
            one for one in (await running.ask("GET", "/api/deliveries?status=dead"))["deliveries"] if one["slug"]
        ]
        assert dead["text"] == "for nobody"
