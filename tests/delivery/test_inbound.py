"""Trouble with what people write to a bot: seen from outside, on a running daemon, in every place people look."""

import asyncio
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import forking
from channels.bot_api import TOKEN, BotApi, bot_api
from delivery.running import WITHIN, Running, daemon


def phone(api: BotApi, *senders: str) -> str:
    """Settings with one bot that is listened to."""
    allowed = ", ".join(f'"{sender}"' for sender in senders)
    table = f'[channels.phone]\ntype = "telegram"\ntoken = "{TOKEN}"\nchat = 42\nbase_url = "{api.url}"\n'
    return f"{table}inbound = true\nsenders = [{allowed}]\n"


def about_phone(found: Any) -> list[str]:
    """What `/healthz` says of it."""
    return [one["sentence"] for one in found["findings"] if one["name"] == "channels" and one["level"] == "warn"]


async def wakeful(home: Path, *words: str) -> str:
    """What the command line prints, on both streams."""
    ended = await asyncio.to_thread(forking.run, "wakeful.cli.main", "--home", home, *words, stderr=subprocess.STDOUT)
    return ended.out


async def until_health(running: Running, condition: Callable[[list[str]], Any]) -> list[str]:
    return about_phone(await running.until("/healthz", lambda found: condition(about_phone(found))))


@pytest.mark.waits
async def test_refused_polling_is_a_finding_everywhere_until_it_works_again(tmp_path: Path) -> None:
    """401, then 409, then neither: `/healthz`, `doctor` and `channels` name the error and the cure."""
    home = tmp_path / "home"
    async with bot_api() as api:
        api.token = "110201543:another"
        async with daemon(home, phone(api)) as running:
            (said,) = await until_health(running, lambda found: found)
            assert said.startswith("phone: no messages have been received since ")
            assert "HTTP 401 Unauthorized" in said
            doctor, channels = await asyncio.gather(wakeful(home, "doctor"), wakeful(home, "channels"))
            for out in (doctor, channels):
                assert "HTTP 401 Unauthorized" in " ".join(out.split())
                assert "BotFather" in out
            api.token, api.is_shared = TOKEN, True
            (said,) = await until_health(running, lambda found: any("409" in one for one in found))
            doctor, channels = await asyncio.gather(wakeful(home, "doctor"), wakeful(home, "channels"))
            for out in (doctor, channels):
                assert "another program polls the same bot" in " ".join(out.split())
            api.is_shared = False
            await until_health(running, lambda found: not found)
            assert "409" not in await wakeful(home, "channels")


async def test_a_stranger_is_a_finding_with_the_id_until_it_is_allowed(tmp_path: Path) -> None:
    """Allowed while the daemon runs: the finding is gone, and what it writes next is answered."""
    home = tmp_path / "home"
    async with bot_api() as api, daemon(home, phone(api)) as running:
        api.write(666, "let me in")
        api.write(666, "please")
        (said,) = await until_health(running, lambda found: found and "2 times" in found[0])
        assert "Ann @ann (id 666) wrote without permission" in said
        (channel,) = [one for one in (await running.ask("GET", "/api/channels"))["channels"] if one["name"] == "phone"]
        assert [one["sentence"] for one in channel["findings"]] == [said]
        listed = json.loads(await wakeful(home, "doctor", "-o", "json"))["findings"]
        (found,) = [one for one in listed if one["what"] == "channels"]
        assert '"666" to senders under [channels.phone]' in found["cure"]
        assert "(id 666) wrote without permission" in " ".join((await wakeful(home, "channels")).split())
        assert api.sent == []
        (home / "wakeful.toml").write_text(phone(api, "666"))
        await until_health(running, lambda found: not found)
        api.write(666, "and now?")
        async with asyncio.timeout(WITHIN):
            while not api.sent:
                await asyncio.sleep(0.05)
        assert (api.sent[0]["chat"], "and now?" in api.sent[0]["text"]) == (666, True)


async def test_what_cannot_be_read_is_a_finding_and_its_sender_is_told(tmp_path: Path) -> None:
    """Once; and a photo's caption is read like any text."""
    async with bot_api() as api, daemon(tmp_path / "home", phone(api)) as running:
        api.write(42, voice={"file_id": "x", "duration": 3})
        (said,) = await until_health(running, lambda found: found)
        assert said == "phone: a message from 42 could not be read: it is a voice message"
        api.write(42, photo=[{"file_id": "x"}], caption="what is this?")
        async with asyncio.timeout(WITHIN):
            while len(api.sent) < 2:
                await asyncio.sleep(0.05)
        told, answer = (one["text"] for one in api.sent)
        assert told == ("Your message could not be answered: it is a voice message without text; write it as text")
        assert "what is this?" in answer
