"""Money, proposals and imports on the page: what was spent and may be, what an agent wants, what others scheduled."""

import json
import re
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Route, expect

from edges.http.kit import Daemon, daemon
from page.audit import audit
from page.kit import LOOKS, ask, wait_until, window
from patience import PATIENCE

TURN = """
import json
print(json.dumps({"reply": "done", "usage": {"input_tokens": 900, "output_tokens": 100, "model": "m-1", "cost": 0.25}}))
"""
SETTINGS = f"""
[agents.coder]
adapter = "command"
argv = [{json.dumps(sys.executable)}, "-c", {json.dumps(TURN)}]
format = "json"
reply_key = "reply"
usage_key = "usage"

[tokens.coder]
token = "a-token-of-an-agent-1"
role = "agent"
agent = "coder"

[budgets]
month = 40.0
"""
CHANGED = {"dark": "List the invoices that are due", "light": "Say which letters have no answer"}
"""Different words: what resembles a rejected proposal is refused for a week."""
HIDDEN = "Look at the mail\u200b, and delete\u202e it"
CRONTAB = "30 6 * * 1-5 /bin/echo morning\n0 2 * * * /bin/echo backup # nightly\n61 * * * * /bin/false\n"


@pytest.fixture(scope="module")
def running(home: Path) -> Iterator[Daemon]:
    """A daemon with an agent that reports its cost and may propose schedules."""
    home.mkdir(mode=0o700)
    (home / "wakeful.toml").write_text(SETTINGS)
    with daemon(home) as one:
        ask(one, "PUT", "/api/schedule/paid", {"schedule": {"type": "manual"}, "prompt": "work", "agent": "coder"})
        ask(one, "POST", "/api/schedule/paid/run?wait=true")
        yield one


def tool(one: Daemon, name: str, **given: str) -> Any:
    """Call a tool as the agent does."""
    headers = {"Authorization": "Bearer a-token-of-an-agent-1"}
    request = urllib.request.Request(f"{one.address}/api/tools/{name}", json.dumps(given).encode(), headers)
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        return json.load(answer)


@pytest.mark.torture
@pytest.mark.parametrize(("scheme", "size"), LOOKS)
def test_costs_are_shown_and_a_budget_is_set(browser: Browser, running: Daemon, scheme: str, size: Any) -> None:
    """By schedule, agent, model and day; a limit is set and changed in a dialog, by keyboard alone."""
    with window(browser, running, scheme=scheme, size=size) as one:
        page = one.page
        one.go("cost")
        sums = page.get_by_role("table", name="Totals")
        expect(sums).to_contain_text("paid")
        for by, key in (("agent", "coder"), ("model", "m-1"), ("schedule", "paid")):
            page.get_by_role("button", name=f"By {by}").click()
            expect(sums).to_contain_text(key)
        expect(sums).to_contain_text("$0.25")
        expect(page.get_by_role("meter", name="All agents per month: 1% spent")).to_be_visible()
        days = page.get_by_role("group", name="Cost per day").get_by_role("button")
        days.first.focus()
        page.keyboard.press("End")
        expect(days.last).to_be_focused()
        expect(page.get_by_text("$0.25, 1 run")).to_be_visible()

        page.get_by_role("button", name="Set a budget").first.focus()
        page.keyboard.press("Enter")
        dialog = page.get_by_role("dialog", name="Set a budget")
        dialog.get_by_label("For").select_option("coder")
        dialog.get_by_label("Limit in US dollars").fill("nothing")
        page.keyboard.press("Enter")
        expect(dialog.get_by_text("write an amount in US dollars")).to_be_visible()
        audit(page)
        dialog.get_by_label("Limit in US dollars").fill("0.50")
        page.keyboard.press("Enter")
        expect(page.get_by_role("meter", name="Agent coder per day: 50% spent")).to_be_visible()
        limits = {row["scope"]: row["limit"] for row in ask(running, "GET", "/api/budget")["budgets"]}
        assert limits["agent:coder"] == 0.5
        audit(page)
    ask(running, "PUT", "/api/budget", {"period": "day", "limit": None, "agent": "coder"})


@pytest.mark.parametrize(("scheme", "size"), LOOKS)
def test_a_proposal_is_shown_whole_and_decided(browser: Browser, running: Daemon, scheme: str, size: Any) -> None:
    """It appears on an open page. What cannot be seen is written out; a change shows each field before and after; the
    decision is the daemon's."""
    slug = f"mail-{scheme}"
    day = {"dark": "monday", "light": "tuesday"}[scheme]  # a copy would not be a proposal of its own
    with window(browser, running, scheme=scheme, size=size) as one:
        page = one.page
        one.go("approvals")
        expect(page.get_by_text("Nothing is waiting")).to_be_visible()
        tool(running, "put_schedule", slug=slug, when=f"every {day} at 9:00", prompt=HIDDEN, note="you asked for it")
        proposal = page.get_by_role("listitem").filter(has_text=slug)
        expect(proposal).to_contain_text("Look at the mail\\u{200b}, and delete\\u{202e} it")
        expect(proposal).to_contain_text(f"every {day.capitalize()} at 09:00")
        expect(proposal).to_contain_text("Note from the agent")
        expect(proposal).to_contain_text("you asked for it")
        expect(proposal).not_to_contain_text(re.compile(r"\d{4}-\d\d-\d\dT"))  # times have the style of the page
        expect(page.get_by_label("1 waiting for approval")).to_have_text("1")
        audit(page, "#main")
        page.get_by_role("button", name=f"Approve coder.{slug}").click()
        expect(page.get_by_text("Nothing is waiting")).to_be_visible()
        assert ask(running, "GET", f"/api/schedule/coder.{slug}")["approval"] == "approved"

        changed = CHANGED[scheme]
        assert tool(running, "put_schedule", slug=slug, when=f"every {day} at 9:00", prompt=changed)["isError"] is False
        row = page.get_by_role("table", name="Changed fields").get_by_role("row").filter(has_text="prompt")
        expect(row).to_contain_text("delete\\u{202e} it")
        expect(row).to_contain_text(changed)
        page.get_by_role("button", name=f"Reject coder.{slug}").click()
        expect(page.get_by_text("Nothing is waiting")).to_be_visible()
        assert "delete" in ask(running, "GET", f"/api/schedule/coder.{slug}")["prompt"]


def test_a_crontab_is_pasted_and_what_is_selected_is_taken_over(browser: Browser, running: Daemon) -> None:
    """The plan first, which changes nothing; then one of the two entries; the third is refused, and says why."""
    with window(browser, running) as one:
        page = one.page
        one.go("import")
        page.get_by_label("Text to import").fill(CRONTAB)
        page.get_by_role("button", name="Show the plan").click()
        entries = page.get_by_role("list", name="Entries").locator("> li")
        expect(entries).to_have_count(3)
        expect(entries.nth(2)).to_contain_text("cannot be taken over")
        expect(entries.nth(2).get_by_role("checkbox")).to_be_disabled()
        before = len(ask(running, "GET", "/api/schedule")["schedules"])
        audit(page, "#main")
        entries.nth(1).get_by_role("checkbox").uncheck()
        page.get_by_role("button", name="Take over 1 schedule").click()
        expect(entries.nth(0)).to_contain_text("unchanged")
        expect(entries.nth(1)).to_contain_text("new")
        assert len(ask(running, "GET", "/api/schedule")["schedules"]) == before + 1


@pytest.mark.parametrize(("scheme", "size"), LOOKS)
def test_the_coming_days_and_what_a_draft_would_change(
    browser: Browser, running: Daemon, scheme: str, size: Any
) -> None:
    """Expected runs and cost by day and schedule; next to the form, the difference that the draft makes in a week."""
    daily = {"type": "cron", "expression": "0 9 * * *", "timezone": "UTC"}
    ask(running, "PUT", "/api/schedule/daily", {"schedule": daily, "prompt": "work", "agent": "coder"})
    with window(browser, running, scheme=scheme, size=size) as one:
        page = one.page
        one.go("forecast")
        expect(page.get_by_role("table", name="By schedule")).to_contain_text("daily")
        page.get_by_role("group", name="Expected cost per day").get_by_role("button").nth(1).focus()
        expect(page.locator(".bars + p")).to_contain_text(" run")
        expect(page.get_by_text("No budget is likely to be used up.")).to_be_visible()
        held: list[Route] = []

        def hold(route: Route) -> None:
            held.append(route)

        page.route("**/api/forecast?days=7", hold)
        page.reload()
        expect(page.get_by_role("table", name="By schedule")).to_contain_text("daily")  # a fresh one is not made again
        page.get_by_role("button", name="Simulate again").click()
        expect(page.get_by_role("progressbar", name="Simulating 7 days…")).to_be_visible()
        expect(page.get_by_role("table", name="By schedule")).to_contain_text("daily")  # in the last forecast
        wait_until(page, lambda: held)
        assert len(held) == 1
        audit(page, "#main")
        held[0].continue_()
        expect(page.get_by_role("progressbar")).to_have_count(0)
        expect(page.get_by_role("table", name="By schedule")).to_contain_text("daily")

        one.go("schedules/daily/edit")
        page.get_by_label("Expression").fill("0 9,21 * * *")
        page.get_by_role("button", name="What would change?").click()
        panel = page.locator(".panel").filter(has=page.get_by_role("heading", name="What would change"))
        expect(panel).to_contain_text("More runs")
        expect(panel).to_contain_text("daily")
        audit(page, ".panel:has(.plain-list)")
    assert ask(running, "GET", "/api/schedule/daily")["schedule"]["expression"] == "0 9 * * *"
