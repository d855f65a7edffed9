"""The telegram channel against a server that speaks its API."""

import asyncio

from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from channels.receiver import Receiver, status
from wakeful.core.time.instants import SECOND
from wakeful.engine.clock import SystemClock
from wakeful.integrations.channels.telegram import PART_MAX, PARTS_MAX, Bot, TelegramChannel, parts
from wakeful.ports.channel import Outcome, OutgoingMessage, Refused, Sent, Unsent

LETTER = OutgoingMessage("abc-7", "phone", None, "hello <b>*you*</b>", None, None, 0)


async def send(receiver: Receiver, letter: OutgoingMessage = LETTER) -> Outcome:
    """Send one letter."""
    channel = TelegramChannel(Bot("123:secret", receiver.url, SystemClock(), None), "42", SystemClock())
    try:
        return await channel.send(letter)
    finally:
        await channel.close()


async def test_a_letter_is_a_plain_message(receiver: Receiver) -> None:
    """To the chat of the settings, or to the one it is for; markup stays text."""
    assert await send(receiver) == Sent()
    assert await send(receiver, LETTER._replace(to="99")) == Sent()
    assert [got.path for got in receiver.got] == ["/bot123:secret/sendMessage"] * 2
    assert [got.body for got in receiver.got] == [
        {"chat_id": "42", "text": "hello <b>*you*</b>"},
        {"chat_id": "99", "text": "hello <b>*you*</b>"},
    ]


async def test_what_it_says_about_errors_counts(receiver: Receiver) -> None:
    """A chat that is not there is a no; too many requests is a later."""
    receiver.script = [
        status(400, {"ok": False, "description": "Bad Request: chat not found"}),
        status(429, {"ok": False, "description": "Too Many Requests", "parameters": {"retry_after": 33}}),
        status(502),
        status(200, {"ok": False}),
        lambda _: web.Response(text="<html>welcome to the hotel's network</html>"),
    ]
    assert await send(receiver) == Refused(
        "HTTP 400 Bad Request: Bad Request: chat not found; write to the bot once, so that it may reply; "
        "then check chat, a number or @name"
    )
    before = SystemClock().read().now
    slow = await send(receiver)
    assert isinstance(slow, Unsent)
    assert slow.retry_at is not None
    assert 0 <= slow.retry_at - before - 33 * SECOND < 30 * SECOND
    for _ in range(3):
        assert isinstance(await send(receiver), Unsent)


async def test_a_long_letter_goes_in_pieces_and_goes_on_where_it_was_stopped(receiver: Receiver) -> None:
    """Nobody gets the first half twice because of the second."""
    text = "\n".join(f"line {n:05}" for n in range(1_000))
    receiver.script = [receiver.usual, status(429, {"ok": False, "parameters": {"retry_after": 1}})]
    stopped = await send(receiver, LETTER._replace(text=text))
    assert isinstance(stopped, Unsent)
    assert stopped.parts_sent == 1
    assert await send(receiver, LETTER._replace(text=text, parts_sent=stopped.parts_sent)) == Sent()
    sent = [got.body["text"] for n, got in enumerate(receiver.got) if n != 1]
    assert "".join(sent) == text
    assert all(len(piece) <= PART_MAX for piece in sent)


@given(st.text(alphabet=st.sampled_from("ab \n😀é"), max_size=30_000))
def test_pieces_fit_and_lose_nothing(text: str) -> None:
    """In UTF-16, which is how the other side counts."""
    pieces = parts(text, "abc-7")
    assert all(len(piece.encode("utf-16-le")) // 2 <= PART_MAX for piece in pieces)
    assert "".join("".join(pieces).split()) == "".join(text.split())


def test_what_is_far_too_long_ends_with_where_the_rest_is() -> None:
    """Ten messages are enough for anyone's phone."""
    pieces = parts("😀" * 60_000, "abc-7")
    assert len(pieces) == PARTS_MAX
    assert pieces[-1].endswith("more characters; full text: wakeful outbox show abc-7]")
    assert all(len(piece.encode("utf-16-le")) // 2 <= PART_MAX for piece in pieces)


class Hurried(SystemClock):
    """A clock on which waiting takes no time."""

    async def sleep(self, duration: int) -> None:
        await asyncio.sleep(0)
