"""The webhook channel against a real receiver, and what it must never reach."""

import re
import socket
from typing import Any

import pytest
from aiohttp import web

from channels.receiver import Receiver, hangs, status
from wakeful.core.time.instants import SECOND
from wakeful.engine.clock import SystemClock
from wakeful.integrations.channels import webhook
from wakeful.integrations.channels.webhook import WebhookChannel
from wakeful.integrations.net import exchange, guard
from wakeful.integrations.net.guard import is_public
from wakeful.ports.channel import Outcome, OutgoingMessage, Refused, Sent, Unsent
from wakeful.ports.exchange import ExchangeStep, RequestContext

LETTER = OutgoingMessage("abc-7", "hook", None, "hello <b>&</b>", "daily", 12, 1_767_225_600_000)


async def post(url: str, letter: OutgoingMessage = LETTER, **options: Any) -> Outcome:
    """Send one letter."""
    channel = WebhookChannel(url, SystemClock(), **{"allow_private": True, **options})
    try:
        return await channel.send(letter)
    finally:
        await channel.close()


async def test_a_letter_is_one_post_with_its_id(receiver: Receiver) -> None:
    """Body and header as promised; what is not known is left out."""
    assert await post(f"{receiver.url}/in", token="secret") == Sent()
    (got,) = receiver.got
    assert got.path == "/in"
    assert got.body == {
        "id": "abc-7",
        "text": "hello <b>&</b>",
        "channel": "hook",
        "slug": "daily",
        "runId": "12",
        "at": "2026-01-01T00:00:00.000Z",
    }
    assert got.headers["X-Wakeful-Delivery"] == "abc-7"
    assert got.headers["Authorization"] == "Bearer secret"
    assert await post(receiver.url, LETTER._replace(to="7", slug=None, run_id=None)) == Sent()
    assert set(receiver.got[1].body) == {"id", "text", "channel", "to", "at"}


@pytest.mark.parametrize("code", [400, 401, 403, 404, 405, 410, 413, 422])
async def test_a_no_is_permanent(receiver: Receiver, code: int) -> None:
    """With what the receiver says about it."""
    receiver.usual = status(code, {"error": "not like this"})
    outcome = await post(receiver.url)
    assert isinstance(outcome, Refused)
    assert f"HTTP {code}" in outcome.error
    assert "not like this" in outcome.error


@pytest.mark.parametrize("code", [408, 425, 429, 500, 502, 503, 504])
async def test_trouble_may_pass(receiver: Receiver, code: int) -> None:
    """And is tried again."""
    receiver.usual = status(code)
    assert isinstance(await post(receiver.url), Unsent)


async def test_retry_after_is_heard(receiver: Receiver) -> None:
    """In seconds, for 429 and 503."""
    receiver.usual = status(429, Retry_After="90")
    before = SystemClock().read().now
    outcome = await post(receiver.url)
    assert isinstance(outcome, Unsent)
    assert outcome.retry_at is not None
    assert 0 <= outcome.retry_at - before - 90 * SECOND < 30 * SECOND


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
async def test_redirects_are_refused(receiver: Receiver, code: int) -> None:
    """Nothing is posted to wherever they lead."""
    receiver.usual = status(code, Location=f"{receiver.url}/elsewhere")
    outcome = await post(f"{receiver.url}/in")
    assert isinstance(outcome, Refused)
    assert "redirects" in outcome.error
    assert [got.path for got in receiver.got] == ["/in"]


async def test_one_that_cannot_be_reached_may_be_reached_later() -> None:
    """Nobody listens there."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    outcome = await post(f"http://127.0.0.1:{port}/")
    assert isinstance(outcome, Unsent)
    assert "connection refused" in outcome.error


async def test_one_that_takes_too_long_is_left(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may have got it: the same id goes again."""
    monkeypatch.setattr(webhook, "ANSWER_WITHIN", 200)
    receiver.usual = hangs(20)
    outcome = await post(receiver.url)
    assert isinstance(outcome, Unsent)
    assert "no answer within 0.2 s" in outcome.error


async def test_one_that_breaks_off_is_not_believed(receiver: Receiver) -> None:
    """It promised more than it sent."""

    async def lie(_: Any) -> web.StreamResponse:
        return web.StreamResponse(headers={"Content-Length": "1000"})

    receiver.usual = lie
    outcome = await post(receiver.url)
    assert isinstance(outcome, Unsent)


async def test_an_answer_without_end_is_not_read_to_its_end(receiver: Receiver) -> None:
    """Two hundred is two hundred."""
    receiver.usual = lambda _: web.Response(text="x" * 5_000_000)
    assert await post(receiver.url) == Sent()


PRIVATE = [
    *("127.0.0.1", "127.8.8.8", "0.0.0.0", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1"),
    *("192.0.2.1", "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255"),
    *("::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1", "fd12:3456::1", "ff02::1", "2001:db8::1"),
    *("::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:10.0.0.1", "::127.0.0.1"),
    *("64:ff9b::7f00:1", "64:ff9b::a00:1", "2002:7f00:1::", "2002:a00:1::", "not an address", ""),
]


@pytest.mark.parametrize("address", PRIVATE)
def test_what_is_somebodys_own_is_not_public(address: str) -> None:
    """This machine, its network, the cloud's metadata, whichever way it is written."""
    assert not is_public(address)


@pytest.mark.parametrize(
    "address", ["1.1.1.1", "93.184.216.34", "2606:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101"]
)
def test_what_lies_in_the_open_is(address: str) -> None:
    """So the guard is no wall."""
    assert is_public(address)


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "localhost", "169.254.169.254", "127.1", "0x7f.1"),
        *("2130706433", "0177.0.0.1", "[::]", "[fe80::1]", "[64:ff9b::7f00:1]"),
    ],
)
async def test_private_addresses_are_refused_unless_allowed(receiver: Receiver, host: str) -> None:
    """For good, with the cure; nothing arrives."""
    port = receiver.url.rpartition(":")[2]
    outcome = await post(f"http://{host}:{port}/", allow_private=False)
    assert isinstance(outcome, Refused | Unsent)
    assert receiver.got == []
    if isinstance(outcome, Unsent):  # this resolver does not read such spellings at all
        assert re.search("there is no such host|cannot connect|this is not a web address", outcome.error)
    else:
        assert "private network" in outcome.error


class Rebinding:
    """A name that means something public when it is looked at, and this machine when it is used."""

    def __init__(self, answers: list[str]) -> None:
        self.answers = answers
        self.asked = 0

    async def resolve(self, host: str, port: int = 0, family: Any = socket.AF_INET) -> list[dict[str, Any]]:
        address = self.answers[min(self.asked, len(self.answers) - 1)]
        self.asked += 1
        return [{"hostname": host, "host": address, "port": port, "family": socket.AF_INET, "proto": 0, "flags": 0}]

    async def close(self) -> None: ...


async def test_a_name_that_is_bound_anew_changes_nothing(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was looked at is what is connected to: the name is asked once for each connection."""
    names = Rebinding(["203.0.113.7", "127.0.0.1"])
    monkeypatch.setattr("aiohttp.resolver.ThreadedResolver", lambda: names)
    port = receiver.url.rpartition(":")[2]
    monkeypatch.setattr(guard, "is_public", lambda address: address == "203.0.113.7")
    monkeypatch.setattr(webhook, "ANSWER_WITHIN", 500)
    outcome = await post(f"http://rebind.example:{port}/", allow_private=False)
    assert isinstance(outcome, Unsent)  # nobody is at the public address; the private one was never tried
    assert names.asked == 1
    assert receiver.got == []


async def test_a_name_that_leads_here_is_refused(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it is called."""
    monkeypatch.setattr("aiohttp.resolver.ThreadedResolver", lambda: Rebinding(["127.0.0.1"]))
    port = receiver.url.rpartition(":")[2]
    outcome = await post(f"http://innocent.example:{port}/", allow_private=False)
    assert isinstance(outcome, Refused)
    assert "private network" in outcome.error
    assert receiver.got == []


async def test_secrets_are_nowhere_in_what_is_said(receiver: Receiver) -> None:
    """Neither in errors nor in what listeners hear: paths of such addresses are passwords."""
    heard: list[Any] = []

    def listener(about: RequestContext) -> ExchangeStep:
        heard.append((about.action, about.slug))
        return lambda phase, details: heard.append((phase, details))

    receiver.usual = status(404)
    channel = WebhookChannel(
        f"{receiver.url}/services/T0/s3cr3t", SystemClock(), listener, token="t0k3n", allow_private=True
    )
    outcome = await channel.send(LETTER)
    await channel.close()
    assert heard[0] == ("deliver", "daily")
    assert len(heard) == 3
    assert "s3cr3t" not in f"{heard} {outcome}"
    assert "t0k3n" not in f"{heard} {outcome}"


def test_the_parts_are_the_real_ones() -> None:
    """The guard stands in the session that is used."""
    assert exchange.public_resolver is guard.public_resolver
