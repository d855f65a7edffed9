"""Telegram: sends messages through a bot. `telegram_listening` receives messages.

A Telegram message holds 4096 UTF-16 units, so long text is sent in parts; sent parts are remembered, and a retry
continues after them. Text is sent plain: markup in it stays text.
"""

import json
import logging
from collections.abc import Mapping
from typing import Any, Final

from wakeful.core.time.instants import SECOND, Duration, Instant
from wakeful.integrations.channels.http_outcome import ANSWER_WITHIN, outcome_of
from wakeful.integrations.net.exchange import Exchanges, NoAnswer, NoConnection, Request, Response
from wakeful.integrations.system.text import one_line
from wakeful.ports.channel import Outcome, OutgoingMessage, Refused, Sent, Unsent
from wakeful.ports.clock import Clock
from wakeful.ports.exchange import ExchangeListener, RequestContext

log = logging.getLogger("wakeful.delivery")

PART_MAX: Final = 4096
PARTS_MAX: Final = 10
_READ_MAX: Final = 4 * 1024 * 1024


class Bot:
    """The bot's API."""

    def __init__(self, token: str, base_url: str, clock: Clock, listener: ExchangeListener | None) -> None:
        self._token = token
        self._base_url = base_url.rstrip("/")
        self._exchanges = Exchanges(clock, listener)

    async def call(
        self, method: str, body: Mapping[str, Any], about: RequestContext, *, limit: Duration = ANSWER_WITHIN
    ) -> Response:
        """Make one call. The token is part of the URL, so the URL is not logged."""
        request = Request(
            "POST",
            f"{self._base_url}/bot{self._token}/{method}",
            {"Content-Type": "application/json"},
            json.dumps(body).encode(),
            read_max=_READ_MAX,
            shown=f"{self._base_url}/bot…/{method}",
        )
        return await self._exchanges.send(request, about, limit=limit)

    async def prepare(self) -> None:
        await self._exchanges.prepare()

    async def close(self) -> None:
        await self._exchanges.close()


class TelegramChannel:
    """A bot that writes to chats."""

    kind = "telegram"
    address = "token and chat"

    def __init__(self, bot: Bot, chat: str, clock: Clock) -> None:
        self.to: str | None = chat
        self._bot = bot
        self._chat = chat
        self._clock = clock
        self._moved: dict[str, str] = {}  # groups that became supergroups, by the id they had

    async def send(self, outgoing: OutgoingMessage) -> Outcome:
        pieces = parts(outgoing.text, outgoing.delivery_id)
        for number in range(outgoing.parts_sent, len(pieces)):
            outcome = await self._send_part(outgoing, pieces[number])
            if isinstance(outcome, Unsent):
                return Unsent(outcome.error, outcome.retry_at, parts_sent=number)
            if isinstance(outcome, Refused):
                return outcome
        return Sent()

    async def prepare(self) -> None:
        await self._bot.prepare()

    async def close(self) -> None:
        await self._bot.close()

    async def _send_part(self, outgoing: OutgoingMessage, text: str) -> Outcome:
        chat = outgoing.to or self._chat
        sent = await self._ask(outgoing, self._moved.get(chat, chat), text)
        if isinstance(sent, str) and chat not in self._moved:
            log.warning('the group %s now has the id %s; set chat = "%s" in the settings', chat, sent, sent)
            self._moved[chat] = sent
            sent = await self._ask(outgoing, sent, text)
        return Unsent(f"the group {chat} now has the id {sent}") if isinstance(sent, str) else sent

    async def _ask(self, outgoing: OutgoingMessage, chat: str, text: str) -> Outcome | str:
        """The outcome of one message, or the chat's new id."""
        body = {"chat_id": chat, "text": text}
        try:
            response = await self._bot.call("sendMessage", body, RequestContext("deliver", slug=outgoing.slug))
        except (NoConnection, NoAnswer) as error:
            return Unsent(str(error))
        answer = await response.json()
        said, asked = error_of(answer, self._clock.read().now)
        moved_to = _moved_to(answer)
        if not response.is_ok and moved_to is not None:
            return moved_to
        if response.is_ok and not (isinstance(answer, Mapping) and answer.get("ok") is True):
            return Unsent(f"{response.line}, but the message is not confirmed")  # the server may not be Telegram at all
        return outcome_of(response, self._clock.read().now, _with_cure(response.status, said), asked=asked)


# Cures by a phrase in the error; Telegram has used the same phrases for years.
_CURES: Final = {
    "chat not found": "write to the bot once, so that it may reply; then check chat, a number or @name",
    "bot was blocked by the user": "unblock the bot in Telegram",
    "bot was kicked": "add the bot to the group again",
    "bot can't initiate conversation": "write to the bot once, so that it may reply",
    "not enough rights to send": "allow the bot to write in this group",
}


def _with_cure(status: int, said: str) -> str:
    if status in (401, 404):
        return f"{said}; the token is wrong; ask @BotFather for the right one (/token) and put it into the settings"
    cure = next((cure for words, cure in _CURES.items() if words in said), None)
    return said if cure is None else f"{said}; {cure}"


def _moved_to(answer: Any) -> str | None:
    parameters = answer.get("parameters") if isinstance(answer, Mapping) else None
    moved = parameters.get("migrate_to_chat_id") if isinstance(parameters, Mapping) else None
    return str(moved) if isinstance(moved, int) and not isinstance(moved, bool) else None


def error_of(answer: Any, now: Instant) -> tuple[str, Instant | None]:
    """The API's error message, and the time until which it must not be called."""
    if not isinstance(answer, Mapping):
        return "", None
    said = answer.get("description")
    parameters = answer.get("parameters")
    wait = parameters.get("retry_after") if isinstance(parameters, Mapping) else None
    until = now + min(int(wait), 86_400) * SECOND if isinstance(wait, int | float) and wait > 0 else None
    return one_line(said) if isinstance(said, str) else "", until


def parts(text: str, delivery_id: str) -> list[str]:
    """The text in parts that fit, split at lines or words where possible; a long one ends with a reference."""
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
            note = f"\n[… {len(rest)} more characters; full text: wakeful outbox show {delivery_id}]"
            pieces[-1] = _head(pieces[-1], PART_MAX - len(note)) + note
            break
    return [piece for piece in pieces if piece.strip()]


def _head(text: str, units_max: int) -> str:
    """The longest prefix that fits into `units_max` UTF-16 units, without splitting a character."""
    head = text[:units_max]
    units = head.encode("utf-16-le")
    return units[: units_max * 2].decode("utf-16-le", "ignore") if len(units) > units_max * 2 else head
