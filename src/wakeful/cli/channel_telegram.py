"""Add a Telegram bot: its token goes into a private file, its table to the end of wakeful.toml."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from wakeful.cli.errors import Ended, Misused
from wakeful.cli.invocation import Invocation
from wakeful.cli.render import json_out, note, say

if TYPE_CHECKING:
    from wakeful.integrations.channels.telegram import Bot
    from wakeful.integrations.channels.telegram_updates import BotIdentity

NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
RESERVED: Final = ("last", "inbox")
POLL: Final = 20
"""Long-poll timeout for updates, in seconds."""
TOKEN_MAX: Final = 4096


class BotChat(NamedTuple):
    """Who wrote to the bot."""

    chat: str
    name: str


def add(
    invocation: Invocation,
    name: str,
    *,
    token_file: str | None,
    chat: str | None,
    inbound: bool,
    wait: str,
    base_url: str,
) -> None:
    """Add the bot under this name."""
    from wakeful.core.errors import Invalid
    from wakeful.core.time.instants import SECOND, parse_duration

    _check_name(name)
    file = invocation.home / "wakeful.toml"
    if name in _channels_of(invocation.home):
        raise Misused(f"channel {name!r} already exists; choose another name, or edit [channels.{name}] in {file}")
    try:
        patience = parse_duration(wait) / SECOND
    except Invalid as invalid:
        raise Misused(f"--wait: {invalid}") from invalid
    token = _token(token_file)
    recipient = asyncio.run(_find_chat(token, base_url, chat, patience, invocation))
    written = _write(invocation.home, name, token, recipient.chat, inbound=inbound, base_url=base_url)
    if invocation.is_json:
        json_out({"channel": name, "chat": recipient.chat, "sender": recipient.name or None, "tokenFile": str(written)})
        return
    say(f"channel {name} was added to {file}; its token is in {written}, readable only by you")
    note(f"try it: wakeful channels test {name}")


def _check_name(name: str) -> None:
    if not NAME.fullmatch(name) or name in RESERVED:
        raise Misused(f"{name!r} cannot name a channel; use 1 to 64 letters, digits, - and _, not last or inbox")


def _channels_of(home: Path) -> set[str]:
    from wakeful.config import SettingsRefused, load

    try:
        return set(load(home).settings.channels)
    except SettingsRefused as refused:
        hint = f"correct it first: wakeful check {home / 'wakeful.toml'}"
        raise Ended(f"the settings cannot be read: {refused.errors[0]}", hint=hint) from refused


def _token(file: str | None) -> str:
    """The token: from a file, from a pipe, or typed without echo."""
    if file is not None and file != "-":
        try:
            with Path(file).expanduser().open(encoding="utf-8") as opened:
                token = opened.read(TOKEN_MAX)
        except (OSError, UnicodeDecodeError) as error:
            raise Misused(f"--token-file: {file} cannot be read: {error}") from error
    elif file == "-" or not sys.stdin.isatty():
        token = sys.stdin.read(TOKEN_MAX)
    else:
        token = str(click.prompt("The bot's token (from @BotFather)", hide_input=True, err=True))
    token = token.strip()
    if not re.fullmatch(r"\d+:[\w-]+", token, re.ASCII):
        raise Misused("this is not a bot token; it looks like 110201543:AAHdqTcv…, @BotFather shows it (/token)")
    return token


async def _find_chat(token: str, base_url: str, chat: str | None, patience: float, invocation: Invocation) -> BotChat:
    """Check the token; return the given chat, or the chat of the next person who writes."""
    from wakeful.engine.clock import SystemClock
    from wakeful.integrations.channels.telegram import Bot
    from wakeful.integrations.channels.telegram_listening import ask_me

    bot = Bot(token, base_url, SystemClock(), None)
    try:
        me = await ask_me(bot)
        if isinstance(me, str):
            raise Ended(f"the token was not accepted: {me}", hint="nothing was written")
        if not invocation.is_json:
            note(f"the token is valid: this is @{me.username}")
        return BotChat(chat, "") if chat is not None else await _next_sender(bot, me, patience, invocation)
    finally:
        await bot.close()


async def _next_sender(bot: Bot, me: BotIdentity, patience: float, invocation: Invocation) -> BotChat:
    """The sender of the next message; older messages are confirmed and skipped."""
    from wakeful.integrations.channels.telegram_updates import message_of

    earlier = await _updates(bot, {"offset": -1, "timeout": 0})
    offset = earlier[-1]["update_id"] + 1 if earlier else 0
    note(f"now write anything to @{me.username} in Telegram, from the chat that should receive messages …")
    ends = asyncio.get_running_loop().time() + patience
    while (left := ends - asyncio.get_running_loop().time()) > 0:
        for update in await _updates(bot, {"offset": offset, "timeout": int(min(POLL, left))}):
            offset = update["update_id"] + 1
            message = message_of(update)
            if message is not None:
                await _updates(bot, {"offset": offset, "timeout": 0})  # confirmed: the daemon does not receive it again
                if not invocation.is_json:
                    say(f"{message.sender.name} wrote: the chat id is {message.chat}")
                return BotChat(message.chat, message.sender.name)
    raise Ended(
        "no message to the bot arrived in time; the settings are unchanged", hint="run it again, or give --chat ID"
    )


async def _updates(bot: Bot, body: dict[str, Any]) -> list[dict[str, Any]]:
    from wakeful.core.time.instants import SECOND
    from wakeful.integrations.channels.telegram import error_of
    from wakeful.integrations.net.exchange import NoAnswer, NoConnection
    from wakeful.ports.exchange import RequestContext

    limit = (int(body["timeout"]) + 10) * SECOND
    try:
        response = await bot.call(
            "getUpdates", {**body, "allowed_updates": ["message"]}, RequestContext("hear"), limit=limit
        )
    except (NoConnection, NoAnswer) as error:
        raise Ended(f"cannot fetch messages for the bot: {error}", hint="nothing was written") from error
    answer = await response.json()
    result = answer.get("result") if isinstance(answer, dict) else None
    if response.is_ok and isinstance(result, list):
        return [update for update in result if isinstance(update, dict) and isinstance(update.get("update_id"), int)]
    hint = "the settings are unchanged; give --chat ID if you know the chat"
    if response.status == 409:
        hint = "another program polls this bot, or a webhook is set: stop it, or give --chat ID"
    raise Ended(f"cannot fetch messages for the bot: {response.line}: {error_of(answer, 0)[0]}", hint=hint)


def _write(home: Path, name: str, token: str, chat: str, *, inbound: bool, base_url: str) -> Path:
    """Write token file and table; both, or neither. The settings are checked before they replace the old ones."""
    from wakeful.cli.home import make_home
    from wakeful.config import SettingsRefused, load

    file, secret = home / "wakeful.toml", home / f"channel-{name}.token"
    draft = home / f".wakeful.toml.{os.getpid()}"
    try:
        make_home(home)
        _put(secret, f"{token}\n", 0o600)
        before = file.read_text(encoding="utf-8") if file.exists() else ""
        _put(draft, before + _table(before, name, secret.name, chat, inbound, base_url), _mode_of(file))
        load(home, file=draft)
        draft.replace(file.resolve())
    except (OSError, SettingsRefused) as error:
        secret.unlink(missing_ok=True)
        draft.unlink(missing_ok=True)
        why = str(error.errors[0]) if isinstance(error, SettingsRefused) else str(error)
        raise Ended(f"{file} is unchanged: {why}", hint=f"write [channels.{name}] into it by hand") from error
    return secret


def _table(before: str, name: str, secret: str, chat: str, inbound: bool, base_url: str) -> str:
    gap = "" if not before else "\n" if before.endswith("\n") else "\n\n"
    lines = [f"[channels.{name}]", 'type = "telegram"', f'token = {{file = "{secret}"}}', f"chat = {json.dumps(chat)}"]
    if inbound:
        lines.append("inbound = true")
    if base_url != "https://api.telegram.org":
        lines.append(f"base_url = {json.dumps(base_url)}")
    return gap + "\n".join(lines) + "\n"


def _put(path: Path, text: str, mode: int) -> None:
    """Write a file that is private from the start."""
    path.unlink(missing_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with os.fdopen(handle, "w", encoding="utf-8") as opened:
        opened.write(text)


def _mode_of(file: Path) -> int:
    return file.stat().st_mode & 0o777 if file.exists() else 0o600
