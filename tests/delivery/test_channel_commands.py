"""`wakeful channels test` and `channels add`, from outside: a running daemon, a Bot API on loopback, real files."""

import asyncio
import json
import os
import pty
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import forking
from channels.bot_api import TOKEN, BotApi, bot_api
from delivery.running import WITHIN, daemon
from wakeful.config import load

FILE = """# mine, with care
[schedules]
timezone = "Europe/Berlin"   # at home

[channels.box]
type = "inbox"
# the end"""


async def wakeful(home: Path, *words: str, feed: str | None = None) -> tuple[int, str]:
    """How the command line ended, and what it printed on both streams."""
    ended = await asyncio.to_thread(
        forking.run, "wakeful.cli.main", "--home", home, *words, feed=feed or "", stderr=subprocess.STDOUT
    )
    return ended.code, " ".join(ended.out.split())


async def test_a_bot_is_added_with_the_chat_of_the_next_sender_and_works_at_once(tmp_path: Path) -> None:
    """The token is in a private file and nowhere else, the settings keep every word, and the daemon takes them over."""
    home = tmp_path / "home"
    async with bot_api() as api, daemon(home, FILE) as running:
        api.write(666, "from before")
        adding = asyncio.create_task(
            wakeful(home, "channels", "add", "telegram", "phone", "--base-url", api.url, "--inbound", feed=TOKEN)
        )
        async with asyncio.timeout(WITHIN):
            while api.calls.count("getUpdates") < 2:
                await asyncio.sleep(0.05)
        api.write(42, "/start")
        code, out = await adding
        assert (code, "the chat id is 42" in out, TOKEN in out) == (0, True, False)
        secret = home / "channel-phone.token"
        assert stat.S_IMODE(secret.stat().st_mode) == 0o600
        written = (home / "wakeful.toml").read_text()
        assert written.startswith(FILE + "\n\n[channels.phone]\n")
        assert TOKEN not in written
        phone = load(home).settings.channels["phone"]
        assert (phone.chat, phone.inbound, phone.token.reveal()) == ("42", True, TOKEN)  # type: ignore[union-attr]
        await running.until("/api/channels", lambda found: "phone" in [one["name"] for one in found["channels"]])
        code, out = await wakeful(home, "channels", "test", "phone")
        assert (code, out) == (0, "phone: a test message was delivered to 42")
        assert api.sent == [{"chat": 42, "text": "This is a test message from Wakeful: the channel works."}]


async def test_a_test_that_fails_names_the_error_and_leaves_nothing_behind(tmp_path: Path) -> None:
    """Exit code 1 with the cure; the message does not arrive later; an unknown name, and a channel that works."""
    home = tmp_path / "home"
    async with bot_api() as api:
        table = f'[channels.phone]\ntype = "telegram"\ntoken = "{TOKEN}"\nchat = 7\nbase_url = "{api.url}"\n'
        async with daemon(home, f"{table}{FILE}\n") as running:
            code, out = await wakeful(home, "channels", "test", "phone")
            assert code == 1
            assert "chat not found; write to the bot once" in out
            api.is_down = True
            code, out = await wakeful(home, "channels", "test", "phone", "-o", "json")
            told = json.loads(out)
            assert (code, told["status"], "502" in told["error"]) == (1, "failed", True)
            assert "channels.phone" in told["cure"]
            assert (await running.ask("GET", "/api/deliveries?status=pending"))["deliveries"] == []
            code, out = await wakeful(home, "channels", "test", "nowhere")
            assert (code, "there is no channel" in out) == (1, True)
            code, out = await wakeful(home, "channels", "test", "box")
            assert (code, out) == (0, "box: a test message was delivered")
            assert len((await running.ask("GET", "/api/inbox"))["items"]) >= 1


@pytest.mark.parametrize(
    ("words", "feed", "said"),
    [
        (("phone",), "not a token", "this is not a bot token"),
        (("phone",), "110201543:wrong", "the token was not accepted: HTTP 401"),
        (("box",), TOKEN, "channel 'box' already exists"),
        (("last",), TOKEN, "cannot name a channel"),
        (("phone", "--wait", "1s"), TOKEN, "no message to the bot arrived in time"),
        (("phone", "--wait", "soon"), TOKEN, "--wait"),
        (("phone", "--chat", 'x" y'), TOKEN, "is unchanged"),
        (("phone", "--token-file", "/nowhere"), "", "/nowhere cannot be read"),
    ],
)
async def test_what_cannot_be_added_changes_nothing(
    tmp_path: Path, words: tuple[str, ...], feed: str, said: str
) -> None:
    """Neither the settings nor a file more."""
    (tmp_path / "wakeful.toml").write_text(FILE)
    async with bot_api() as api:
        code, out = await wakeful(tmp_path, "channels", "add", "telegram", *words, "--base-url", api.url, feed=feed)
    assert code in (1, 2)
    assert said in out
    assert [file.name for file in tmp_path.iterdir()] == ["wakeful.toml"]
    assert (tmp_path / "wakeful.toml").read_text() == FILE


async def test_a_typed_token_is_not_shown(tmp_path: Path) -> None:
    """On a terminal it is asked for, and never echoed; a home without settings gets some."""
    async with bot_api() as api:
        out = await _typed(tmp_path / "home", api)
    assert "The bot's token" in out
    assert TOKEN not in out
    assert (tmp_path / "home" / "channel-phone.token").read_text() == f"{TOKEN}\n"
    assert stat.S_IMODE((tmp_path / "home" / "wakeful.toml").stat().st_mode) == 0o600


async def _typed(home: Path, api: BotApi) -> str:
    """What a terminal shows while the token is typed."""
    ours, theirs = pty.openpty()
    words = ("channels", "add", "telegram", "phone", "--chat", "42", "--base-url", api.url)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "wakeful.cli.main", "--home", str(home), *words),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    shown = b""
    async with asyncio.timeout(WITHIN):
        while b"token" not in shown:
            shown += await asyncio.to_thread(os.read, ours, 1024)
        os.write(ours, f"{TOKEN}\n".encode())
        assert await process.wait() == 0
    shown += await asyncio.to_thread(os.read, ours, 65536)
    os.close(ours)
    return shown.decode()
