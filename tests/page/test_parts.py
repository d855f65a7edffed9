"""The other parts on the page: the heartbeat and its wakes, what is on its way to people, workflows, quota slots."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from edges.http.kit import Daemon, daemon
from page.kit import ask, window

SETTINGS = """
[heartbeat]
enabled = true
every = "1h"
"""


@pytest.fixture(scope="module")
def running(home: Path) -> Iterator[Daemon]:
    """A daemon that has all of them."""
    home.mkdir(mode=0o700)
    (home / "wakeful.toml").write_text(SETTINGS)
    with daemon(home) as one:
        yield one


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
        expect(page.get_by_text("Nothing waits to be told")).to_be_visible()
    assert ask(running, "GET", "/api/heartbeat")["budget"]["turnsInLastHour"] == 1
