"""The other parts on the page: the heartbeat and its wakes, what is on its way to people, workflows, quota slots."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from edges.http.kit import Daemon, daemon
from page.door import Door, opened_door
from page.kit import LOOKS, PHONE, ask, window

# Finds one mail each time, and takes one message each time.
HANDLER = """
import json, sys
asked = json.load(sys.stdin)
if asked["phase"] == "produce":
    n = (asked.get("state") or {}).get("n", 0) + 1
    answer = {"messages": [{"topic": "mail", "id": f"m{n}", "payload": n}], "state": {"n": n}}
elif asked["phase"] == "prepare":
    ids = [one["id"] for one in (asked.get("messages") or {}).get("mail", [])][:1]
    answer = {"reservations": [{"topic": "mail", "ids": ids}] if ids else [], "data": {}}
else:
    answer = {}
print(json.dumps(answer))
"""
QUOTA = """
import json, time
print(json.dumps({"percentage": 42, "nextResetTime": int(time.time() * 1000) + 3_600_000}))
"""
SETTINGS = f"""
[heartbeat]
enabled = true
every = "1h"

[slots.main]
provider = "command"
quota_argv = [{json.dumps(sys.executable)}, "-c", {json.dumps(QUOTA)}]
wake_argv = ["true"]
interval = "60m"
"""


@pytest.fixture(scope="module")
def door() -> Iterator[Door]:
    with opened_door() as one:
        yield one


@pytest.fixture(scope="module")
def running(home: Path, door: Door) -> Iterator[Daemon]:
    """A daemon that has all of them."""
    home.mkdir(mode=0o700)
    (home / "wakeful.toml").write_text(SETTINGS + door.settings)
    with daemon(home) as one:
        yield one


@pytest.mark.torture
def test_the_agent_is_woken_from_the_page(browser: Browser, running: Daemon) -> None:
    """The turn arrives by itself, with what the agent was told, and nothing waits to be told any more."""
    with window(browser, running) as one:
        page = one.page
        one.go("heartbeat")
        expect(page.get_by_text("next beat")).to_be_visible()
        expect(page.get_by_text("No turn yet")).to_be_visible()
        page.get_by_role("button", name="Wake now").click()
        page.get_by_label("What should it know?").fill("the kettle boils")
        page.locator("dialog").get_by_role("button", name="Wake").click()
        turn = page.locator(".run").first
        expect(turn).to_contain_text("succeeded")
        turn.locator("summary").click()
        expect(turn.locator("pre").first).to_contain_text("the kettle boils")
        expect(page.get_by_text("No events are queued")).to_be_visible()
    assert ask(running, "GET", "/api/heartbeat")["budget"]["turnsInLastHour"] == 1


def test_a_workflow_is_seen_and_run(browser: Browser, running: Daemon) -> None:
    """Producers, topics and consumers, what waits in between, and the session that a person asks for, as it runs."""
    handler = {"command": {"argv": [sys.executable, "-c", HANDLER]}}
    flow = {
        "producers": {"poll": {"schedule": {"type": "manual"}, "publishes": ["mail"], "handler": handler}},
        "consumers": {"digest": {"subscribe": ["mail"], "handler": handler}},
    }
    ask(running, "PUT", "/api/workflows/letters", {**flow, "status": "active"})
    with window(browser, running) as one:
        page = one.page
        one.go("workflows")
        graph = page.get_by_label("1 producer, 1 topic, 1 consumer")
        expect(graph).to_contain_text("digest")
        page.get_by_role("link", name="letters", exact=True).click()
        expect(page.get_by_role("heading", name="letters", exact=True)).to_be_visible()
        page.get_by_role("button", name="Run now").click()
        session = page.get_by_role("table", name="Sessions").locator("tbody tr").filter(has_text="manual").first
        expect(session).to_contain_text("completed")
        expect(session).to_contain_text("1 published")
        expect(session).to_contain_text("1 taken")
        session.get_by_role("link", name="digest").first.click()
        expect(page.locator("h1")).to_contain_text("Run ")
        expect(page.locator(".chip.boxed")).to_have_text("succeeded")
    assert ask(running, "GET", "/api/workflows/letters")["topics"]["mail"]["consumed"] >= 1


@pytest.mark.torture
@pytest.mark.parametrize(("scheme", "size"), LOOKS)
def test_a_slot_counts_down(browser: Browser, running: Daemon, scheme: str, size: Any) -> None:
    """Its share on the gauge, the time until it begins anew, second by second, and its window on the time axis."""
    with window(browser, running, scheme=scheme, size=size) as one:
        page = one.page
        one.go("slots")
        expect(page.get_by_label("main: 42 percent used")).to_be_visible()
        countdown = page.locator("[data-countdown=main]")
        first = countdown.inner_text()
        expect(countdown).not_to_have_text(first)
        assert seconds(first) > seconds(countdown.inner_text()) > 1_000
        page.get_by_role("button", name="Poll now").click()
        expect(page.get_by_text("main is being polled")).to_be_visible()
        ask(running, "PUT", "/api/schedule/beside", {"schedule": {"type": "manual"}, "command": {"argv": ["true"]}})
        one.go("timeline")
        expect(page.get_by_text("quota window", exact=True)).to_be_visible()


def seconds(text: str) -> int:
    """A countdown as a number."""
    hours, minutes, rest = map(int, text.split(":"))
    return hours * 3_600 + minutes * 60 + rest


@pytest.mark.parametrize(("scheme", "size"), LOOKS)
def test_a_dead_letter_is_read_and_sent_again(
    browser: Browser, running: Daemon, door: Door, scheme: str, size: Any
) -> None:
    """It arrives on the page as it dies, says why, and goes its way when a person sends it; another is discarded."""
    for left in ask(running, "GET", "/api/deliveries?status=dead")["deliveries"]:  # of other tests
        ask(running, "DELETE", f"/api/deliveries/{left['id']}")
    first, second = f"<b>the first</b> {scheme}", f"the second {scheme}"
    door.is_open = False
    with window(browser, running, scheme=scheme, size=size) as one:
        page = one.page
        one.go("outbox?status=dead")
        expect(page.get_by_text("No undelivered messages")).to_be_visible()
        for text in (first, second):
            ask(running, "POST", "/api/deliveries", {"text": text, "channel": "hook"})
        letter = page.locator(".run").filter(has_text=first)
        expect(letter).to_contain_text("undelivered")
        expect(page.locator("[data-place=outbox] .badge")).to_have_text("2")
        letter.locator("summary").click()
        expect(letter.locator(".note.bad")).to_contain_text("410")
        expect(letter.locator("pre")).to_have_text(first)
        door.is_open = True
        letter.get_by_role("button", name="Send again").click()
        expect(letter).to_have_count(0)
        page.get_by_role("button", name="Delivered", exact=True).click()
        expect(page.locator(".run").filter(has_text=first)).to_contain_text("delivered")
        page.get_by_role("button", name="Undelivered").click()
        other = page.locator(".run").filter(has_text=second)
        other.locator("summary").click()
        other.get_by_role("button", name="Discard").click()
        page.locator("dialog").get_by_role("button", name="Discard").click()
        expect(page.get_by_text("No undelivered messages")).to_be_visible()
        one.go("channels")
        expect(page.locator(".panel").filter(has_text="webhook")).to_contain_text("hook")
    assert door.taken.count(first) == 1
    assert second not in door.taken


def test_the_inbox_is_read(browser: Browser, running: Daemon) -> None:
    """What has no other way to a person lies there, unread, counted beside its place; and is read and taken away."""
    with window(browser, running, size=PHONE) as one:
        page = one.page
        one.go("inbox")
        ask(running, "POST", "/api/deliveries", {"text": "tea is ready", "channel": "inbox"})
        message = page.locator(".message.unread").filter(has_text="tea is ready")
        expect(message).to_be_visible()
        message.get_by_role("button", name="Mark read").click()
        expect(message).to_have_count(0)
        seen = page.locator(".message").filter(has_text="tea is ready")
        expect(seen.get_by_role("button", name="Mark unread")).to_be_visible()
        seen.get_by_role("button", name="Remove").click()
        expect(seen).to_have_count(0)
        for text in ("the first", "the second"):
            ask(running, "POST", "/api/deliveries", {"text": text, "channel": "inbox"})
            expect(page.locator(".message.unread").filter(has_text=text)).to_be_visible()
        page.get_by_role("button", name="Mark all read").click()
        expect(page.locator(".message.unread")).to_have_count(0)
    assert ask(running, "GET", "/api/inbox")["unread"] == 0
    assert "tea is ready" not in [one["text"] for one in ask(running, "GET", "/api/inbox")["items"]]
