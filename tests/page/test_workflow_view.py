"""A workflow on the page: one that stopped can be resumed there, and its messages are shown by status."""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, expect

from edges.http.kit import Daemon
from page.kit import ask, window
from patience import PATIENCE

HANDLER = """
import json, pathlib, sys
asked = json.load(sys.stdin)
if asked["phase"] == "prepare":
    if not asked["dryRun"] and pathlib.Path(sys.argv[1]).exists():
        sys.exit("the address book is gone")
    taken = [one["id"] for one in asked["messages"]["mail"] if one["payload"] == "take"]
    print(json.dumps({"reservations": [{"topic": "mail", "ids": taken}]}))
"""


def until(running: Daemon, is_so: Callable[[Any], object]) -> None:
    """Wait until the workflow stands like this."""
    give_up = time.monotonic() + PATIENCE
    while not is_so(view := ask(running, "GET", "/api/workflows/letters")):
        assert time.monotonic() < give_up, view
        time.sleep(0.05)


def publish(running: Daemon, message_id: str, payload: str) -> None:
    ask(running, "POST", "/api/workflows/letters/topics/mail/messages", {"id": message_id, "payload": payload})


def test_a_workflow_that_stopped_is_resumed_on_the_page_and_its_messages_are_shown_by_status(
    browser: Browser, running: Daemon, tmp_path: Path
) -> None:
    """Resume is there while it is stopped, and gone when it is not; the list follows the status that is chosen."""
    broken = tmp_path / "broken"
    handler = {"command": {"argv": [sys.executable, "-c", HANDLER, str(broken)]}}
    consumer = {"subscribe": ["mail"], "mutate": False, "handler": handler}
    ask(running, "PUT", "/api/workflows/letters", {"consumers": {"read": consumer}})
    publish(running, "taken-1", "take")
    until(running, lambda view: view["topics"]["mail"]["consumed"] == 1)
    broken.touch()
    publish(running, "left-1", "leave")
    until(running, lambda view: view["error"])
    with window(browser, running) as one:
        page = one.page
        one.go("workflows/letters")
        expect(page.get_by_text("the address book is gone").first).to_be_visible()
        messages = page.get_by_role("list", name="Messages").locator("> li")
        expect(messages.filter(has_text="left-1")).to_be_visible()
        expect(messages.filter(has_text="taken-1")).to_have_count(0)
        page.get_by_label("Status", exact=True).select_option("consumed")
        expect(messages.filter(has_text="taken-1")).to_be_visible()
        expect(messages.filter(has_text="left-1")).to_have_count(0)
        broken.unlink()
        page.get_by_role("button", name="Resume").click()
        expect(page.get_by_role("button", name="Resume")).to_have_count(0)
        expect(page.get_by_role("button", name="Pause")).to_be_visible()
    until(running, lambda view: view["error"] is None)
