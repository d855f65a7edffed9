"""Listening to a bot, against a server that speaks its API: who is heard, what is read, and what is reported."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from channels.bot_api import TOKEN, BotApi, bot_api
from channels.test_telegram import Hurried
from patience import PATIENCE
from wakeful.engine.clock import SystemClock
from wakeful.integrations.channels.telegram import Bot, TelegramChannel
from wakeful.integrations.channels.telegram_listening import ListeningTelegramChannel, ask_me
from wakeful.integrations.channels.telegram_updates import BotIdentity
from wakeful.ports.channel import IncomingMessage, ListenTrouble, OutgoingMessage, Refused, Sender, Sent

WITHIN = PATIENCE
LETTER = OutgoingMessage("abc-7", "phone", None, "hello", None, None, 0)
GROUP = -5


class Listener:
    """An ear that keeps everything."""

    def __init__(self, moved: dict[str, str] | None = None) -> None:
        self.moved = moved or {}
        self.heard: list[IncomingMessage] = []
        self.reported: list[ListenTrouble | None] = []

    async def hear(self, heard: IncomingMessage) -> None:
        self.heard.append(heard)

    async def failing(self, trouble: ListenTrouble | None) -> None:
        if not self.reported or self.reported[-1] != trouble:
            self.reported.append(trouble)

    @property
    def said(self) -> list[tuple[str, str]]:
        return [(one.to, one.text) for one in self.heard if one.to is not None and one.text]

    async def until(self, condition: Callable[[], Any]) -> None:
        async with asyncio.timeout(WITHIN):
            while not condition():
                await asyncio.sleep(0.01)


@pytest.fixture
async def api() -> AsyncIterator[BotApi]:
    """The other side."""
    async with bot_api() as one:
        yield one


@asynccontextmanager
async def listening(
    api: BotApi, *senders: str, token: str = TOKEN, moved: dict[str, str] | None = None
) -> AsyncIterator[Listener]:
    """A bot of chat 42 that is listened to; waiting takes no time."""
    clock = Hurried()
    channel = ListeningTelegramChannel(Bot(token, api.url, clock, None), "42", clock, frozenset(senders))
    ear = Listener(moved)
    task = asyncio.create_task(channel.listen(None, ear))
    try:
        yield ear
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await channel.close()


async def test_each_message_is_heard_once_and_none_again(api: BotApi) -> None:
    """From the mark on, whatever trouble comes between; a name counts as well as a number."""
    for text in "abc":
        api.write(42, text)
    api.write(7, "me too")
    api.is_down = True
    async with listening(api, "@ann") as ear:
        await ear.until(lambda: api.calls)
        api.is_down = False
        await ear.until(lambda: len(ear.said) == 4)
        await ear.until(lambda: api.unconfirmed == 0)
        assert ear.said == [("42", "a"), ("42", "b"), ("42", "c"), ("7", "me too")]
        marks = [int(one.mark) for one in ear.heard]
        assert marks == sorted(set(marks))
    assert set(api.calls) == {"getUpdates"}


async def test_a_caption_is_text_and_what_has_none_is_named(api: BotApi) -> None:
    """A photo with words is a message; a voice message is told of; someone who joins says nothing."""
    api.write(42, photo=[{"file_id": "x", "width": 1, "height": 1}], caption="what is this?")
    api.write(42, voice={"file_id": "y", "duration": 3})
    api.write(42, photo=[{"file_id": "x"}], caption="  ")
    api.write(42, pinned_message={"message_id": 1})
    api.write(42, "the end")
    async with listening(api) as ear:
        await ear.until(lambda: ("42", "the end") in ear.said)
        assert ear.said == [("42", "what is this?"), ("42", "the end")]
        assert [one.unreadable for one in ear.heard] == [None, "a voice message", "a photo", None, None]
        assert [one.to for one in ear.heard] == ["42", "42", "42", None, "42"]


async def test_a_stranger_is_named_and_not_heard(api: BotApi) -> None:
    """With the id to allow; a group that is not listed is a stranger too."""
    api.write(666, "let me in")
    api.write(-100_500, "@wakeful_test_bot hello")
    api.write(42, "hi")
    async with listening(api) as ear:
        await ear.until(lambda: ear.said)
        assert ear.said == [("42", "hi")]
        unknown = [one.unknown for one in ear.heard if one.unknown]
        assert unknown == [Sender("666", "Ann @ann"), Sender("-100500", "the group The Office")]


async def test_in_a_group_only_what_is_meant_for_the_bot_counts(api: BotApi) -> None:
    """A mention, a command, a reply to it; the mention is no part of the text, and the reply goes to the group."""
    said: list[tuple[str, dict[str, Any]]] = [
        ("lunch at noon?", {}),
        ("@Wakeful_Test_Bot, what is due today?", {}),
        ("write to me@wakeful_test_bot.example", {}),
        ("/status", {}),
        ("/status@wakeful_test_bot now", {}),
        ("/status@other_bot", {}),
        ("yes please", {"reply_to_message": {"message_id": 1, "from": api.me}}),
        ("no thanks", {"reply_to_message": {"message_id": 2, "from": {"id": 1}}}),
    ]
    for text, more in said:
        api.write(GROUP, text, **more)
    api.write(GROUP, photo=[{"file_id": "x"}], caption="@wakeful_test_bot and this?")
    api.write(42, "done")
    async with listening(api, str(GROUP)) as ear:
        await ear.until(lambda: ("42", "done") in ear.said)
        assert [text for to, text in ear.said if to == str(GROUP)] == [
            "what is due today?",
            "/status",
            "/status now",
            "yes please",
            "and this?",
        ]


async def test_a_group_that_became_a_supergroup_is_the_same_group(api: BotApi) -> None:
    """What is sent follows it, what is said there counts, also after a restart."""
    new = -1_000_000_000_005
    api.chats |= {GROUP, new}
    api.write(GROUP, migrate_to_chat_id=new)
    api.write(new, "/hello")
    async with listening(api, str(GROUP)) as ear:
        await ear.until(lambda: ear.said)
        assert ear.heard == [IncomingMessage(ear.heard[0].mark, None, moved=(str(GROUP), str(new))), ear.heard[1]]
        assert ear.said == [(str(new), "/hello")]
    api.write(new, "/again")
    async with listening(api, str(GROUP), moved={str(GROUP): str(new)}) as ear:
        await ear.until(lambda: (str(new), "/again") in ear.said)
    api.moved[GROUP] = new
    channel = TelegramChannel(Bot(TOKEN, api.url, SystemClock(), None), str(GROUP), SystemClock())
    assert [await channel.send(LETTER), await channel.send(LETTER)] == [Sent(), Sent()]
    await channel.close()
    assert [one["chat"] for one in api.sent] == [new, new]
    assert api.calls[-3:] == ["sendMessage"] * 3  # the second letter knows the way


async def test_refused_polling_is_reported_with_its_cure_and_so_is_its_end(api: BotApi) -> None:
    """A wrong token, another program, a webhook; in between it works."""
    api.token = "110201543:another"
    async with listening(api) as ear:
        await ear.until(lambda: ear.reported)
        assert "HTTP 401 Unauthorized" in _error(ear.reported[-1])
        assert "BotFather" in _cure(ear.reported[-1])
        api.token = TOKEN
        await ear.until(lambda: ear.reported[-1] is None)
        api.is_shared = True
        await ear.until(lambda: ear.reported[-1] is not None)
        assert "409 Conflict" in _error(ear.reported[-1])
        assert "another program polls the same bot" in _cure(ear.reported[-1])
        api.is_shared = False
        await ear.until(lambda: ear.reported[-1] is None)
        api.webhook = "https://example.org/hook"
        await ear.until(lambda: ear.reported[-1] is not None)
        assert "deleteWebhook" in _cure(ear.reported[-1])
        api.webhook = ""
        api.write(42, "still there?")
        await ear.until(lambda: ear.said)
        assert len(ear.reported) == 6


async def test_a_short_outage_of_the_api_is_not_reported(api: BotApi) -> None:
    """It passes by itself; only what lasts is worth a word."""
    api.is_down = True
    async with listening(api) as ear:
        await ear.until(lambda: len(api.calls) > 3)
        api.is_down = False
        api.write(42, "hi")
        await ear.until(lambda: ear.said)
        assert ear.reported == [None]


async def test_a_letter_that_is_refused_says_what_to_do(api: BotApi) -> None:
    """The words of the API, and the cure."""
    channel = TelegramChannel(Bot(TOKEN, api.url, SystemClock(), None), "42", SystemClock())
    unknown = await channel.send(LETTER._replace(to="7"))
    api.blocked.add(42)
    blocked = await channel.send(LETTER)
    api.token = "110201543:another"
    wrong = await channel.send(LETTER)
    await channel.close()
    assert isinstance(unknown, Refused)
    assert "chat not found; write to the bot once" in unknown.error
    assert isinstance(blocked, Refused)
    assert "unblock the bot" in blocked.error
    assert isinstance(wrong, Refused)
    assert "the token is wrong" in wrong.error


async def test_a_bot_knows_who_it_is(api: BotApi) -> None:
    """Or why that cannot be found out."""
    bot = Bot(TOKEN, api.url, SystemClock(), None)
    assert await ask_me(bot) == BotIdentity(110201543, "wakeful_test_bot")
    api.token = "110201543:another"
    assert "BotFather" in str(await ask_me(bot))
    await bot.close()


def _error(trouble: ListenTrouble | None) -> str:
    return "" if trouble is None else trouble.error


def _cure(trouble: ListenTrouble | None) -> str:
    return "" if trouble is None else trouble.cure
