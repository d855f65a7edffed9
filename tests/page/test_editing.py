"""Slots and workflows are created, changed and removed on the page; fields that name something offer what there is."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from edges.http.kit import Daemon, daemon
from page.audit import audit
from page.kit import LOOKS, ask, is_there, window

HANDLER = """
import json, sys
asked = json.load(sys.stdin)
if asked["phase"] == "prepare":
    taken = [one["id"] for one in asked["messages"].get("mail", []) if one["payload"] != "leave"]
    shown = {"looked at": len(asked["messages"].get("mail", []))}
    print(json.dumps({"reservations": [{"topic": "mail", "ids": taken}], "data": {}, "ui": shown}))
else:
    print("{}")
"""
SETTINGS = """
[agents.coder]
adapter = "echo"

[channels.hook]
type = "webhook"
url = "http://127.0.0.1:9/in"
allow_private = true
"""


@pytest.fixture(scope="module")
def running(home: Path) -> Iterator[Daemon]:
    """A daemon with two agents and a channel."""
    home.mkdir(mode=0o700)
    (home / "wakeful.toml").write_text(SETTINGS)
    with daemon(home) as one:
        yield one


def consumer() -> dict[str, Any]:
    handler = {"command": {"argv": [sys.executable, "-c", HANDLER]}}
    return {"subscribe": ["mail"], "mutate": False, "handler": handler}


@pytest.mark.torture
@pytest.mark.parametrize(("scheme", "size"), LOOKS)
def test_a_slot_from_its_making_to_its_end(browser: Browser, running: Daemon, scheme: str, size: Any) -> None:
    """With the fields of its provider; a missing one is named at its field."""
    name = f"main-{scheme}"
    with window(browser, running, scheme=scheme, size=size, may_refuse=True) as one:
        page = one.page
        one.go("slots")
        page.get_by_role("link", name="New slot").click()
        page.get_by_label("Name", exact=True).fill(name)
        page.get_by_role("button", name="command", exact=True).click()
        page.get_by_role("button", name="Create").click()
        expect(page.locator("[data-field=quotaArgv][aria-invalid=true]")).to_be_visible()
        audit(page)
        page.get_by_label("Quota argv").fill("echo '{\"percentage\": 12}'")
        page.get_by_role("button", name="Create").click()
        expect(page.get_by_role("heading", name=name, exact=True)).to_be_visible()
        assert ask(running, "GET", f"/api/slots/{name}")["quotaArgv"] == ["echo", '{"percentage": 12}']

        page.get_by_role("link", name=f"Edit {name}").click()
        page.get_by_label("Poll", exact=True).fill("7m")
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_role("heading", name="Quota slots", exact=True)).to_be_visible()
        stored = ask(running, "GET", f"/api/slots/{name}")
        assert (stored["poll"], stored["quotaArgv"][0]) == ("7m", "echo")

        page.get_by_role("link", name=f"Edit {name}").click()
        page.get_by_role("button", name="Remove").click()
        page.get_by_role("dialog").get_by_role("button", name="Remove").click()
        expect(page.get_by_role("heading", name="Quota slots", exact=True)).to_be_visible()
    assert not is_there(running, f"/api/slots/{name}")


@pytest.mark.parametrize(("scheme", "size"), LOOKS)
def test_a_workflow_from_its_making_to_its_end(browser: Browser, running: Daemon, scheme: str, size: Any) -> None:
    """Written as JSON under its picture, changed, its messages read and skipped, and deleted."""
    name = f"post-{scheme}"
    with window(browser, running, scheme=scheme, size=size, may_refuse=True) as one:
        page = one.page
        one.go("new-workflow")
        page.get_by_label("Name", exact=True).fill(name)
        text = page.get_by_label("Definition")
        text.fill("{")
        expect(page.get_by_text("This is not JSON")).to_be_visible()
        text.fill(json.dumps({"status": "active", "consumers": {"read": consumer()}}))
        expect(page.get_by_role("img", name="0 producers, 1 topic, 1 consumer")).to_be_visible()
        expect(page.get_by_text("The definition is valid.")).to_be_visible()
        audit(page, "#main")
        page.get_by_role("button", name="Deploy").click()
        expect(page.get_by_role("heading", name=name, exact=True)).to_be_visible()
        for message_id in ("one", "two"):
            body = {"id": message_id, "payload": "leave"}
            ask(running, "POST", f"/api/workflows/{name}/topics/mail/messages", body)

        messages = page.get_by_role("list", name="Messages").locator("> li")
        expect(messages).to_have_count(2)
        messages.first.get_by_role("checkbox").check()
        page.get_by_role("button", name="Skip the selected messages").click()
        expect(messages).to_have_count(1)
        page.get_by_label("Status", exact=True).select_option("skipped")
        expect(messages).to_contain_text(["one"])
        messages.first.locator("summary").click()
        expect(messages.first.locator("pre")).to_have_text('"leave"')
        expect(page.get_by_role("table", name="Sessions")).to_contain_text("looked at")
        audit(page, "#main")
        messages.first.get_by_role("checkbox").check()
        page.get_by_role("button", name="Replay the selected messages").click()
        expect(messages).to_have_count(0)
        page.get_by_label("Status", exact=True).select_option("pending")
        expect(messages).to_have_count(2)

        page.get_by_role("link", name="Edit").click()
        expect(page.get_by_label("Definition")).not_to_have_value(re.compile("lastRun"))
        page.get_by_role("button", name="Add a producer").click()
        page.get_by_label("Deploy even if a handler cannot be reached").check()
        page.get_by_role("button", name="Deploy", exact=True).click()
        expect(page.get_by_role("img", name="1 producer, 1 topic, 1 consumer")).to_be_visible()
        expect(page.get_by_role("button", name="Delete")).to_be_visible()
        assert list(ask(running, "GET", f"/api/workflows/{name}")["producers"]) == ["producer-1"]
        page.get_by_role("button", name="Delete").click()
        page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        expect(page.get_by_role("heading", name="Workflows", exact=True)).to_be_visible()
    assert not is_there(running, f"/api/workflows/{name}")


def test_fields_that_name_something_offer_what_there_is(browser: Browser, running: Daemon) -> None:
    """The agent and the channels are chosen; an option says what it means; a name that is unknown by now is kept."""
    definition = {
        "schedule": {"type": "manual"},
        "prompt": "look",
        "agent": "coder",
        "deliver": [{"channel": "hook"}, {"channel": "inbox"}],
    }
    ask(running, "PUT", "/api/schedule/asks", definition)
    with window(browser, running) as one:
        page = one.page
        one.go("schedules/asks/edit")
        agent = page.get_by_label("Agent", exact=True)
        expect(agent).to_have_value("coder")
        expect(agent.locator("option")).to_have_text(["coder", "default"])
        page.get_by_text("More options").click()
        expect(page.get_by_label("After an outage")).to_contain_text("once: one run, for the latest of them")
        channels = page.get_by_role("group", name="Deliver the reply to")
        expect(channels.get_by_role("checkbox", name="hook")).to_be_checked()
        channels.get_by_role("checkbox", name="hook").uncheck()
        agent.select_option("default")
        page.get_by_label("Alert to").select_option("hook")
        page.get_by_label("Check command").fill('{"argv": ["true"]}')
        audit(page, "#main details[open]")
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_role("heading", name="asks", exact=True)).to_be_visible()
    stored = ask(running, "GET", "/api/schedule/asks")
    assert (stored["agent"], stored["deliver"]) == ("default", {"channel": "inbox"})
    assert (stored["alert"], stored["check"]["command"]["argv"]) == ({"channel": "hook"}, ["true"])
