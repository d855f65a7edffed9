"""Telegram: letters become messages of a bot, and people's messages to the bot are heard.

A message holds 4096 UTF-16 units, so a long letter goes in several; what already went out is remembered, and a retry
goes on after it. Texts are sent plain: whatever markup is in them stays text.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from wakeful.adapters.exchange import Exchanges, NoAnswer, NoConnection, Request, Response
from wakeful.adapters.text import one_line
from wakeful.channels.http_outcome import ANSWER_WITHIN, outcome_of
from wakeful.core.instants import MINUTE, SECOND, Duration, Instant
from wakeful.ports.channel import Hear, Heard, Letter, Outcome, Refused, Sent, Unsent
from wakeful.ports.clock import Clock
from wakeful.ports.exchange import About, ExchangeListener

PART_MAX: Final = 4096
PARTS_MAX: Final = 10
POLL: Final = 25
"""How many seconds the other side holds a question for updates."""

_BACKOFF_MAX: Final[Duration] = MINUTE
_READ_MAX: Final = 4 * 1024 * 1024


class Bot:
    """The bot's API."""

    def __init__(self, token: str, base_url: str, clock: Clock, listener: ExchangeListener | None) -> None:
        self._token = token
        self._base_url = base_url.rstrip("/")
        self._exchanges = Exchanges(clock, listener)

    async def call(
        self, method: str, body: Mapping[str, Any], about: About, *, limit: Duration = ANSWER_WITHIN
    ) -> Response:
        """One call. The token is part of the address, so the address is not shown."""
        request = Request(
            "POST",
            f"{self._base_url}/bot{self._token}/{method}",
            {"Content-Type": "application/json"},
            json.dumps(body).encode(),
            read_max=_READ_MAX,
            shown=f"{self._base_url}/bot…/{method}",
        )
        return await self._exchanges.send(request, about, limit=limit)

    async def close(self) -> None:
        await self._exchanges.close()


class TelegramChannel:
    """A bot that writes to chats."""

    kind = "telegram"

    def __init__(self, bot: Bot, chat: str, clock: Clock) -> None:
        self.to: str | None = chat
        self._bot = bot
        self._chat = chat
        self._clock = clock

    async def send(self, letter: Letter) -> Outcome:
        pieces = parts(letter.text, letter.delivery_id)
        for number in range(letter.parts_sent, len(pieces)):
            outcome = await self._send_part(letter, pieces[number])
            if isinstance(outcome, Unsent):
                return Unsent(outcome.error, outcome.retry_at, parts_sent=number)
            if isinstance(outcome, Refused):
                return outcome
        return Sent()

    async def close(self) -> None:
        await self._bot.close()

    async def _send_part(self, letter: Letter, text: str) -> Outcome:
        body = {"chat_id": letter.to or self._chat, "text": text}
        try:
            response = await self._bot.call("sendMessage", body, About("deliver", slug=letter.slug))
        except (NoConnection, NoAnswer) as error:
            return Unsent(str(error))
        answer = await response.json()
        said, asked = told(answer, self._clock.read().now)
        if response.is_ok and not (isinstance(answer, Mapping) and answer.get("ok") is True):
            return Unsent(f"{response.line}, without the word that it was sent")  # it may be no Telegram at all
        return outcome_of(response, self._clock.read().now, said, asked=asked)


class ListeningTelegramChannel:
    """The same, and what is said to the bot by those who may."""

    kind = "telegram"

    def __init__(self, bot: Bot, chat: str, clock: Clock, senders: frozenset[str] = frozenset()) -> None:
        self._channel = TelegramChannel(bot, chat, clock)
        self.to = self._channel.to
        self._bot = bot
        self._clock = clock
        self._senders = senders | {chat}

    async def send(self, letter: Letter) -> Outcome:
        return await self._channel.send(letter)

    async def close(self) -> None:
        await self._channel.close()

    async def listen(self, mark: str | None, hear: Hear) -> None:
        """Ask for updates, over and over; the mark is the first that was not heard yet."""
        offset = int(mark) if mark is not None and mark.isdecimal() else 0
        pause: Duration = SECOND
        while True:
            before, asked_at = offset, self._clock.read().monotonic
            updates, wait = await self._updates(offset)
            if updates is None:
                await self._clock.sleep(max(pause, wait))
                pause = min(pause * 2, _BACKOFF_MAX)
                continue
            pause = SECOND
            for update in updates:
                number = update.get("update_id") if isinstance(update, Mapping) else None
                if not isinstance(number, int) or number < offset:
                    continue
                offset = number + 1
                await hear(self._heard(update, str(offset)))
            # Nothing new, and it did not wait for any as it was asked to: it is not asked again without a pause.
            if offset == before and self._clock.read().monotonic - asked_at < SECOND:
                await self._clock.sleep(SECOND)

    async def _updates(self, offset: int) -> tuple[list[Any] | None, Duration]:
        """What is new; None with how long to wait when it cannot be asked."""
        body = {"offset": offset, "timeout": POLL, "allowed_updates": ["message"]}
        try:
            response = await self._bot.call("getUpdates", body, About("hear"), limit=(POLL + 10) * SECOND)
        except (NoConnection, NoAnswer):
            return None, 0
        answer = await response.json()
        result = answer.get("result") if isinstance(answer, Mapping) else None
        if response.is_ok and isinstance(result, list):
            return result, 0
        now = self._clock.read().now
        _, asked = told(answer, now)
        return None, max((asked or now) - now, 5 * SECOND)

    def _heard(self, update: Mapping[str, Any], mark: str) -> Heard:
        """A text from a chat that may speak; anything else only moves the mark."""
        message = update.get("message")
        chat = message.get("chat") if isinstance(message, Mapping) else None
        if not isinstance(message, Mapping) or not isinstance(chat, Mapping):
            return Heard(mark, None)
        names = {str(chat.get("id")), f"@{chat.get('username')}"}
        text = message.get("text")
        if not names & self._senders or not isinstance(text, str):
            return Heard(mark, None)
        return Heard(mark, str(chat.get("id")), text)


def told(answer: Any, now: Instant) -> tuple[str, Instant | None]:
    """What the API says about an error, and until when it wants to be left alone."""
    if not isinstance(answer, Mapping):
        return "", None
    said = answer.get("description")
    parameters = answer.get("parameters")
    wait = parameters.get("retry_after") if isinstance(parameters, Mapping) else None
    until = now + min(int(wait), 86_400) * SECOND if isinstance(wait, int | float) and wait > 0 else None
    return one_line(said) if isinstance(said, str) else "", until


def parts(text: str, delivery_id: str) -> list[str]:
    """The text in pieces that fit, broken at lines or words where possible; too long a text ends with where it is."""
    pieces: list[str] = []
    rest = text
    while rest:
        head = _head(rest, PART_MAX)
        if len(head) < len(rest):
            cut = max(head.rfind("\n"), head.rfind(" "))
            head = head[: cut + 1] if cut > len(head) // 2 else head
        pieces.append(head)
        rest = rest[len(head) :]
        if len(pieces) == PARTS_MAX and rest:
            note = f"\n[… {len(rest)} characters more; the whole text: wakeful outbox show {delivery_id}]"
            pieces[-1] = _head(pieces[-1], PART_MAX - len(note)) + note
            break
    return [piece for piece in pieces if piece.strip()]


def _head(text: str, units_max: int) -> str:
    """As much of the beginning as fits into so many UTF-16 units, never half a character."""
    head = text[:units_max]
    units = head.encode("utf-16-le")
    return units[: units_max * 2].decode("utf-16-le", "ignore") if len(units) > units_max * 2 else head
