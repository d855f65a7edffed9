"""Delivery in a running daemon: real processes, a real receiver, kill -9."""

import asyncio
from collections import defaultdict
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from access import HEADERS
from channels.receiver import Got, receiving, status
from delivery.running import WITHIN, bot, daemon, hook


async def test_kill_9_between_send_and_acknowledge_sends_once_more_under_the_same_id(tmp_path: Path) -> None:
    """The receiver has it and has not answered when the process dies; the next one sends it again, once."""
    async with receiving() as receiver:
        held = asyncio.Event()

        async def hold(_: Got) -> web.StreamResponse:
            await held.wait()
            return web.Response()

        receiver.script = [hold]
        async with daemon(tmp_path / "home", hook(receiver)) as first:
            made = await first.ask("POST", "/api/deliveries", {"text": "hello"})
            await first.ask("POST", "/api/deliveries", {"text": "behind"})
            async with asyncio.timeout(WITHIN):
                while not receiver.got:
                    await asyncio.sleep(0.01)
            await first.kill()
        async with daemon(tmp_path / "home") as second:
            seen = await second.until(f"/api/deliveries/{made['id']}", lambda one: one["status"] == "delivered")
            assert seen["attempts"] == 2
            await second.until("/api/deliveries?status=pending", lambda page: not page["deliveries"])
        held.set()
        assert [got.body["text"] for got in receiver.got] == ["hello", "hello", "behind"]
        assert [got.headers["X-Wakeful-Delivery"] for got in receiver.got[:2]] == [made["id"]] * 2
        assert receiver.got[0].body["id"] == receiver.got[1].body["id"] == made["id"]


@pytest.mark.torture
async def test_a_thousand_deliveries_to_a_receiver_that_fails_in_every_way(tmp_path: Path) -> None:
    """Nothing is lost, every recipient gets theirs in order, and the clock goes on."""
    recipients, each = 20, 50
    async with receiving() as receiver:
        arrived: dict[str, list[str]] = defaultdict(list)
        tried: dict[str, int] = defaultdict(int)

        def manner(got: Got) -> web.StreamResponse:
            number = int(got.body["text"])
            tried[got.body["id"]] += 1
            if tried[got.body["id"]] == 1 and number % 50 == 7:
                return web.Response(status=503, headers={"Retry-After": "1"})
            if tried[got.body["id"]] == 1 and number % 50 == 19:
                return web.Response(status=429, headers={"Retry-After": "2"})
            if tried[got.body["id"]] == 1 and number % 50 == 31:
                return web.Response(text="half", headers={"Content-Length": "1000"})  # it lies about what follows
            arrived[got.body["to"]].append(got.body["text"])
            return web.Response()

        receiver.usual = manner
        async with daemon(tmp_path / "home", hook(receiver) + '\n[limits]\nevery_min = "1s"\n') as running:
            ticking = {"schedule": {"type": "every", "every": "1s"}, "call": {"target": "os:getpid"}}
            await running.ask("PUT", "/api/schedule/tick", ticking)
            for n in range(each):
                await asyncio.gather(
                    *(
                        running.ask(
                            "POST", "/api/deliveries", {"text": str(n), "channel": "hook", "to": f"r{recipient}"}
                        )
                        for recipient in range(recipients)
                    )
                )
            await running.until("/api/deliveries?status=pending&limit=1", lambda page: not page["deliveries"])
            assert (await running.ask("GET", "/api/deliveries?status=dead"))["deliveries"] == []
            runs = (await running.ask("GET", "/api/schedule/tick/runs?limit=1000"))["runs"]
            bad = [run for run in runs if run["outcome"] in ("missed", "failed", "skipped")]
            # On a busy machine a run may still be open when the next second comes, or two seconds come at once.
            assert {(run["outcome"], run["reason"]) for run in bad} <= {
                ("skipped", "blocked"),
                ("skipped", "coalesced"),
            }
            await running.until("/healthz", lambda health: health["status"] == "ok")
        expected = [str(n) for n in range(each)]
        for recipient in range(recipients):
            got = arrived[f"r{recipient}"]
            assert list(dict.fromkeys(got)) == expected  # in order; a lie may have arrived twice
        assert max(tried.values()) <= 3


async def test_a_bad_channel_setting_is_refused_and_everything_goes_on(tmp_path: Path) -> None:
    """The daemon keeps the settings it has; a good edit brings the channel while it runs."""
    async with receiving() as receiver, daemon(tmp_path / "home", '[channels.here]\ntype = "console"\n') as running:
        file = tmp_path / "home" / "wakeful.toml"
        file.write_text('[channels.hook]\ntype = "webhook"\nurl = "http://127.0.0.1:1/"\n')
        await running.until("/api/config", lambda config: config["refused"])
        names = [one["name"] for one in (await running.ask("GET", "/api/channels"))["channels"]]
        assert names == ["here", "inbox"]
        file.write_text(hook(receiver))
        await running.until("/api/channels", lambda found: found["channels"][0]["name"] == "hook")
        await running.ask("POST", "/api/deliveries", {"text": "hello", "channel": "hook"})
        await running.until("/api/deliveries?status=pending", lambda page: not page["deliveries"])
        assert [got.body["text"] for got in receiver.got] == ["hello"]


async def test_an_unreachable_receiver_holds_up_nobody_else(tmp_path: Path) -> None:
    """Its deliveries wait with a clear error; others arrive."""
    settings = '[channels.dead]\ntype = "webhook"\nurl = "http://127.0.0.1:9/"\nallow_private = true\n'
    async with receiving() as receiver, daemon(tmp_path / "home", settings + hook(receiver)) as running:
        stuck = await running.ask("POST", "/api/deliveries", {"text": "1", "channel": "dead"})
        fine = await running.ask("POST", "/api/deliveries", {"text": "2", "channel": "hook"})
        await running.until(f"/api/deliveries/{fine['id']}", lambda one: one["status"] == "delivered")
        seen = await running.until(f"/api/deliveries/{stuck['id']}", lambda one: one["lastError"])
        assert "connection refused" in seen["lastError"]


async def test_secrets_are_in_no_file_of_the_home(tmp_path: Path) -> None:
    """Neither token nor the path of the webhook, in the log or in what is kept of a failed delivery."""
    async with receiving() as receiver:
        receiver.usual = status(403, {"error": "wrong token"})
        settings = f'[channels.hook]\ntype = "webhook"\nurl = "{receiver.url}/T0/pathsecret"\nallow_private = true\n'
        settings += 'token = {env = "HOOK_TOKEN"}\n'
        settings += (
            f'[channels.phone]\ntype = "telegram"\ntoken = "12:botsecret"\nchat = 1\nbase_url = "{receiver.url}"\n'
        )
        async with daemon(tmp_path / "home", settings, {"HOOK_TOKEN": "tokensecret"}) as running:
            for channel in ("hook", "phone"):
                made = await running.ask("POST", "/api/deliveries", {"text": "x", "channel": channel})
                await running.until(f"/api/deliveries/{made['id']}", lambda one: one["status"] == "dead")
            async with asyncio.timeout(WITHIN):  # the third is the alert about the first
                while '"deliveries-dead"} 3.0' not in await _text(f"{running.address}/metrics"):
                    await asyncio.sleep(0.05)
        assert {got.headers.get("Authorization") for got in receiver.got} == {"Bearer tokensecret", None}
        assert any("botsecret" in got.path for got in receiver.got)
        written = b"".join(
            file.read_bytes()
            for file in (tmp_path / "home").rglob("*")
            if file.is_file() and file.name != "wakeful.toml"
        )
        assert b'"action":"deliver"' in written.replace(b'": "', b'":"')
        for secret in (b"pathsecret", b"tokensecret", b"botsecret"):
            assert secret not in written


async def test_a_message_on_telegram_gets_its_answer(tmp_path: Path) -> None:
    """The user message flow: heard, a turn, the answer to its sender; and that is the last interaction."""
    async with receiving() as receiver:
        sent: list[Any] = []
        update = {"update_id": 5, "message": {"chat": {"id": 42}, "text": "are you there?"}}

        async def telegram(got: Got) -> web.StreamResponse:
            if got.path.endswith("/sendMessage"):
                sent.append(got.body)
                return web.json_response({"ok": True, "result": {}})
            if got.body["offset"] > 5:
                await asyncio.sleep(1)
                return web.json_response({"ok": True, "result": []})
            return web.json_response({"ok": True, "result": [update]})

        receiver.usual = telegram
        async with daemon(tmp_path / "home", bot(receiver, "1:x") + "inbound = true\n") as running:
            async with asyncio.timeout(WITHIN):
                while not sent:
                    await asyncio.sleep(0.05)
            assert sent[0]["chat_id"] == "42"
            assert "are you there?" in sent[0]["text"]
            last = (await running.ask("GET", "/api/channels"))["last"]
            assert (last["channel"], last["to"]) == ("phone", "42")
            await running.ask("POST", "/api/channels/phone/messages", {"to": "42", "text": "and over REST?"})
            async with asyncio.timeout(WITHIN):
                while len(sent) < 2:
                    await asyncio.sleep(0.05)
            assert "and over REST?" in sent[1]["text"]
            await running.until("/api/deliveries?status=pending", lambda page: not page["deliveries"])
            await running.kill()
        async with daemon(tmp_path / "home") as again:
            await again.until("/api/channels", lambda found: found["last"])

            def polls() -> list[Got]:
                return [got for got in receiver.got if got.path.endswith("getUpdates")]

            before = len(polls())
            async with asyncio.timeout(WITHIN):
                while len(polls()) <= before:
                    await asyncio.sleep(0.05)
            assert polls()[-1].body["offset"] == 6  # it was taken once
        assert len(sent) == 2


async def _text(url: str) -> str:
    async with aiohttp.ClientSession(headers=HEADERS) as session, session.get(url) as response:
        return await response.text()
