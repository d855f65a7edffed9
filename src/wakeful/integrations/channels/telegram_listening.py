"""Receives a Telegram bot's messages from allowed senders by polling `getUpdates`.

Refused polling is reported: a wrong token immediately, a conflict after two refusals in a row (the server may still
hold a poll that was just ended), everything else after half a minute.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from wakeful.core.time.instants import MINUTE, SECOND, Duration
from wakeful.integrations.channels.telegram import Bot, TelegramChannel, error_of
from wakeful.integrations.channels.telegram_updates import (
    BotIdentity,
    Message,
    is_addressed,
    message_of,
    without_mention,
)
from wakeful.integrations.net.exchange import NoAnswer, NoConnection, Response
from wakeful.ports.channel import IncomingMessage, ListenTrouble, MessageReceiver, Outcome, OutgoingMessage
from wakeful.ports.clock import Clock
from wakeful.ports.exchange import RequestContext

POLL: Final = 25
"""How many seconds the server holds a poll open."""

PATIENCE: Final[Duration] = 30 * SECOND
"""How long polling may fail for transient reasons before it is reported."""

_BACKOFF_MAX: Final[Duration] = MINUTE // 2
_REFUSED_WAIT: Final[Duration] = 5 * SECOND
_ABOUT: Final = RequestContext("hear")


class Refusal(NamedTuple):
    """A failed poll."""

    trouble: ListenTrouble
    wait: Duration = 0
    is_certain: bool = False  # it will not resolve by itself
    is_conflict: bool = False


class ListeningTelegramChannel:
    """A bot that writes to chats and receives messages from allowed senders."""

    kind = "telegram"
    address = TelegramChannel.address

    def __init__(self, bot: Bot, chat: str, clock: Clock, senders: frozenset[str] = frozenset()) -> None:
        self._channel = TelegramChannel(bot, chat, clock)
        self.to = self._channel.to
        self._bot = bot
        self._clock = clock
        self._senders = senders | {chat}
        self._me: BotIdentity | None = None

    async def send(self, message: OutgoingMessage) -> Outcome:
        return await self._channel.send(message)

    async def close(self) -> None:
        await self._channel.close()

    def is_allowed(self, sender: str) -> bool:
        return sender in self._senders

    async def listen(self, mark: str | None, ear: MessageReceiver) -> None:
        """Poll for updates; the mark is the first update not received yet."""
        self._senders |= {new for old, new in ear.moved.items() if old in self._senders}
        offset = int(mark) if mark is not None and mark.isdecimal() else 0
        watch = _Watch(self._clock, ear)
        while True:
            before, asked_at = offset, self._clock.read().monotonic
            updates = await self._updates(offset)
            if isinstance(updates, Refusal):
                await self._clock.sleep(await watch.refused(updates))
                continue
            await watch.works()
            for update in updates:
                number = update.get("update_id") if isinstance(update, Mapping) else None
                if not isinstance(number, int) or number < offset:
                    continue
                offset = number + 1
                await ear.hear(await self._heard(update, str(offset)))
            # Nothing new, and the server did not hold the poll: pause before the next one.
            if offset == before and self._clock.read().monotonic - asked_at < SECOND:
                await self._clock.sleep(SECOND)

    async def _updates(self, offset: int) -> list[Any] | Refusal:
        """New updates, or why polling failed."""
        body = {"offset": offset, "timeout": POLL, "allowed_updates": ["message"]}
        try:
            response = await self._bot.call("getUpdates", body, _ABOUT, limit=(POLL + 10) * SECOND)
        except (NoConnection, NoAnswer) as error:
            return Refusal(ListenTrouble(str(error), "check the network, and base_url if one is set"))
        answer = await response.json()
        result = answer.get("result") if isinstance(answer, Mapping) else None
        if response.is_ok and isinstance(result, list):
            return result
        now = self._clock.read().now
        said, asked = error_of(answer, now)
        return _refusal(response, said, max((asked or now) - now, _REFUSED_WAIT))

    async def _heard(self, update: Mapping[str, Any], mark: str) -> IncomingMessage:
        """The message of an update; an irrelevant update only moves the mark."""
        message = message_of(update)
        if message is None:
            return IncomingMessage(mark, None)
        if not message.names & self._senders:
            is_said = message.text is not None or message.content is not None
            return IncomingMessage(mark, None, unknown=message.sender if is_said else None)
        if message.moved_to is not None:
            self._senders |= {message.moved_to}
            return IncomingMessage(mark, None, moved=(message.chat, message.moved_to))
        if message.is_group:
            return await self._heard_in_group(message, mark)
        return _said(message, message.text, mark)

    async def _heard_in_group(self, message: Message, mark: str) -> IncomingMessage:
        me = await self._who_am_i()
        if not is_addressed(message, me):
            return IncomingMessage(mark, None)
        return _said(message, None if message.text is None else without_mention(message.text, me), mark)

    async def _who_am_i(self) -> BotIdentity:
        if self._me is None:
            me = await ask_me(self._bot)
            self._me = me if isinstance(me, BotIdentity) else None
        return self._me or BotIdentity()


class _Watch:
    """Tracks polling: when to report a failure, and how long to wait."""

    def __init__(self, clock: Clock, ear: MessageReceiver) -> None:
        self._clock = clock
        self._ear = ear
        self._pause: Duration = SECOND
        self._times = 0
        self._since = 0

    async def works(self) -> None:
        self._pause, self._times = SECOND, 0
        await self._ear.failing(None)

    async def refused(self, refusal: Refusal) -> Duration:
        """Returns how long to wait."""
        now = self._clock.read().monotonic
        if self._times == 0:
            self._since = now
        self._times += 1
        is_lasting = now - self._since >= PATIENCE or (refusal.is_conflict and self._times >= 2)
        if refusal.is_certain or is_lasting:
            await self._ear.failing(refusal.trouble)
        wait = max(self._pause, refusal.wait)
        self._pause = min(self._pause * 2, _BACKOFF_MAX)
        return wait


_TOKEN: Final = (
    "the bot API does not know this token; ask @BotFather for the right one (/token) and put it into the settings"  # noqa: S105 - words
)
_OTHER: Final = "another program polls the same bot; stop it, or use another bot here"
_WEBHOOK: Final = "a webhook is set for this bot, which prevents polling; remove it with the API's deleteWebhook"
_WRONG: Final = "check the error message; if base_url is set, check it"


def _refusal(response: Response, said: str, wait: Duration) -> Refusal:
    error = f"{response.line}: {said}" if said else response.line
    match response.status:
        case 401 | 403 | 404:
            return Refusal(ListenTrouble(error, _TOKEN), wait, is_certain=True)
        case 409:
            cure = _WEBHOOK if "webhook" in said.casefold() else _OTHER
            return Refusal(ListenTrouble(error, cure), wait, is_conflict=True)
        case _:
            return Refusal(ListenTrouble(error, _WRONG), wait)


def _said(message: Message, text: str | None, mark: str) -> IncomingMessage:
    if text is not None:
        return IncomingMessage(mark, message.chat, text, author=message.author)
    if message.content is None:  # someone joined, a title changed: not a message
        return IncomingMessage(mark, None)
    return IncomingMessage(mark, message.chat, unreadable=message.content)


async def ask_me(bot: Bot) -> BotIdentity | str:
    """The bot's identity, or an error."""
    try:
        response = await bot.call("getMe", {}, _ABOUT)
    except (NoConnection, NoAnswer) as error:
        return str(error)
    answer = await response.json()
    result = answer.get("result") if isinstance(answer, Mapping) else None
    if not response.is_ok or not isinstance(result, Mapping):
        said, _ = error_of(answer, 0)
        if response.status in (401, 404):
            return f"{response.line}: {_TOKEN}"
        return f"{response.line}: {said or 'this is not the bot API'}"
    number, username = result.get("id"), result.get("username")
    return BotIdentity(number if isinstance(number, int) else None, username if isinstance(username, str) else None)
