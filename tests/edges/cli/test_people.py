"""The outbox, the channels and the inbox at the command line, over a real daemon."""

import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from edges.cli.kit import Cli, daemon
from patience import PATIENCE
from wakeful.server.daemon.home import holder_of

SETTINGS = """
[channels.hook]
type = "webhook"
url = "http://127.0.0.1:9/in"
allow_private = true
"""


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    """A daemon with a channel that leads nowhere."""
    home = tmp_path_factory.mktemp("people") / "home"
    home.mkdir(mode=0o700)
    (home / "wakeful.toml").write_text(SETTINGS)
    with daemon(home) as one:
        yield one


def send(home: Path, body: str) -> None:
    """Queue something over REST."""
    holder = holder_of(home)
    assert holder is not None
    request = urllib.request.Request(f"{holder.address}/api/deliveries", body.encode(), method="POST")
    urllib.request.urlopen(request, timeout=PATIENCE).close()


def test_the_outbox_lists_shows_retries_and_discards(cli: Cli) -> None:
    """In words for people, in JSON for programs; what is not there is said."""
    send(cli.home, '{"text": "hello\\u0007 there", "channel": "hook", "to": "7"}')
    cli.until(lambda: cli.ask("outbox", "-o", "json").json["deliveries"][0]["lastError"])
    (one,) = cli.ask("outbox", "-o", "json").json["deliveries"]
    assert (one["status"], one["text"]) == ("pending", "hello there")
    listed = cli.run("outbox", "--status", "pending")
    assert listed.code == 0
    assert one["id"] in listed.out
    shown = cli.ask("outbox", "show", one["id"])
    assert "connection refused" in shown.out
    assert "text: hello there" in shown.out
    assert re.search(r"queued: \w{3} \d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)? CES?T \(", shown.out)
    assert "will be retried now" in cli.ask("outbox", "retry", one["id"]).out
    assert cli.ask("outbox", "discard", one["id"]).out == f"{one['id']} is discarded\n"
    gone = cli.ask("outbox", "show", one["id"])
    assert gone.code == 1
    assert "there is no delivery" in gone.err
    assert cli.ask("outbox", "retry").code == 2
    assert "no deliveries are dead" in cli.ask("outbox", "--status", "dead").err


def test_channels_are_listed_with_their_trouble(cli: Cli) -> None:
    """The settings' first, the inbox last."""
    listed = cli.run("channels")
    assert listed.code == 0
    assert [line.split()[0] for line in listed.out.splitlines()] == ["NAME", "hook", "inbox"]
    assert [one["name"] for one in cli.ask("channels", "-o", "json").json["channels"]] == ["hook", "inbox"]


def test_the_inbox_is_read(cli: Cli) -> None:
    """A star for what nobody has read."""
    assert "the inbox is empty" in cli.ask("inbox").err
    send(cli.home, '{"text": "for you", "channel": "inbox"}')
    cli.until(lambda: cli.ask("inbox", "-o", "json").json["items"])
    number = cli.ask("inbox", "-o", "json").json["items"][0]["id"]
    assert cli.run("inbox").out.startswith(f"* {number}  ")
    assert cli.ask("inbox", "read", number).code == 0
    assert cli.ask("inbox").out.startswith(f"  {number}  ")
    assert "no unread items" in cli.ask("inbox", "--unread").err
    assert cli.ask("inbox", "unread", number).code == 0
    assert cli.ask("inbox", "rm", number).out == f"{number} is removed\n"
    assert cli.ask("inbox", "rm", number).code == 1
