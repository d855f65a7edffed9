"""Console, apprise, functions, and channels as the settings describe them."""

import io
import sys
from pathlib import Path
from typing import Any

import pytest

from channels.receiver import Receiver, status
from wakeful.config import load
from wakeful.engine.clock import SystemClock
from wakeful.features.delivery.registry import ChannelRegistry
from wakeful.integrations.channels.apprise import AppriseChannel
from wakeful.integrations.channels.console import ConsoleChannel
from wakeful.integrations.channels.from_settings import ConfiguredChannels
from wakeful.integrations.channels.program import ProgramChannel
from wakeful.ports.channel import OutgoingMessage, Refused, Sent, Unsent

LETTER = OutgoingMessage("abc-7", "x", None, "hello\nworld", "daily", None, 1_767_225_600_000)


async def test_the_console_prints() -> None:
    """Who, when, what."""
    out = io.StringIO()
    assert await ConsoleChannel(out).send(LETTER) == Sent()
    assert out.getvalue() == "2026-01-01T00:00:00.000Z daily\n  hello\n  world\n"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # the library's own, when it is imported
async def test_apprise_notifies_its_services(receiver: Receiver) -> None:
    """Its own JSON service, against a real server."""
    channel = AppriseChannel(receiver.url.replace("http://", "json://"))
    assert await channel.send(LETTER) == Sent()
    assert receiver.got[0].body["message"] == "hello\nworld"
    receiver.usual = status(500)
    assert isinstance(await channel.send(LETTER), Unsent)
    assert isinstance(await AppriseChannel("nonsense://").send(LETTER), Refused)


async def test_without_the_library_its_absence_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the command that installs it; the delivery waits for it."""
    monkeypatch.setitem(sys.modules, "apprise", None)
    outcome = await AppriseChannel("json://127.0.0.1").send(LETTER)
    assert outcome == Unsent("the apprise library is not installed; install it with pip install 'wakeful[apprise]'")


async def test_functions_get_the_text_and_the_letter_if_they_want_it() -> None:
    """Plain or async; what they answer themselves counts."""
    got: list[Any] = []

    def plain(text: str) -> None:
        got.append(text)

    async def full(text: str, letter: OutgoingMessage) -> object:
        got.append((text, letter.to))
        return Refused("no")

    def formatted(text: str, parse_mode: str = "html") -> None:
        got.append((text, parse_mode))

    assert await ProgramChannel(plain, None).send(LETTER) == Sent()
    assert await ProgramChannel(full, "me").send(LETTER) == Refused("no")
    assert await ProgramChannel(got.append, None).send(LETTER) == Sent()
    assert await ProgramChannel(formatted, None).send(LETTER) == Sent() and got[-1] == (LETTER.text, "html")
    assert got[:3] == ["hello\nworld", ("hello\nworld", "me"), "hello\nworld"]


SETTINGS = """
[channels.phone]
type = "telegram"
token = "123:secret"
chat = 42
inbound = {inbound}

[channels.hook]
type = "webhook"
url = "http://127.0.0.1:9/in"
allow_private = true

[channels.here]
type = "console"

[channels.rest]
type = "apprise"
url = "json://127.0.0.1"

[channels.inbox]
type = "inbox"

[channels.box]
type = "inbox"
"""


async def test_every_kind_of_the_settings_is_made_in_their_order(tmp_path: Path) -> None:
    """And what did not change stays the same object: a bot goes on listening. Cures name the lines that say where
    messages go."""
    file = tmp_path / "wakeful.toml"
    file.write_text(SETTINGS.replace("{inbound}", "false"))
    book, clock = ConfiguredChannels(), SystemClock()
    first = book.channels(load(tmp_path).settings.channels, clock, None)
    assert {name: one.kind for name, one in first.items()} == {
        "phone": "telegram",
        "hook": "webhook",
        "here": "console",
        "rest": "apprise",
        "box": "inbox",
    }
    assert list(first) == ["phone", "hook", "here", "rest", "box"]
    registry = ChannelRegistry()
    registry.configure(first)
    assert {name: registry.place_of(name) for name in ("phone", "hook", "here", "rest", "other")} == {
        "phone": "wakeful.toml, [channels.phone] token and chat",
        "hook": "wakeful.toml, [channels.hook] url",
        "here": "wakeful.toml, [channels.here]",
        "rest": "wakeful.toml, [channels.rest] url",
        "other": None,
    }
    assert first["phone"].to == "42"
    file.write_text(SETTINGS.replace("{inbound}", "true"))
    second = book.channels(load(tmp_path).settings.channels, clock, None)
    assert second["hook"] is first["hook"]
    assert second["phone"] is not first["phone"]
    assert hasattr(second["phone"], "listen")
    assert not hasattr(first["phone"], "listen")
