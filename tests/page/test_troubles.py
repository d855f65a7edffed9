"""What somebody sees who has never seen the page: five troubles, each named on the first view with a way out."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from edges.http.kit import Daemon, daemon
from page.audit import audit
from page.kit import LOOKS, PHONE, ask, wait_until, window
from page.troubles import plant, write_settings


@pytest.fixture(scope="module")
def running(home: Path) -> Iterator[Daemon]:
    """A daemon with the five troubles."""
    write_settings(home)
    with daemon(home) as one:
        plant(one)
        yield one


CURES = (
    ("Agent coder", "wakeful.toml, [agents.coder] argv", "Test"),
    ("nightly-import", "Fix the command", "Run again"),
    ("review", "Install the program of agent coder, or correct its path", "Run again"),
    ("Message to pager", "wakeful.toml, [channels.pager] url", "Send again"),
    ("digest: daily budget", "To run them sooner, raise the limit: $1.50 is enough for one more", "Raise the limit"),
    ("stand-up", "Resume it if it was paused by mistake", "Resume"),
)
"""The title of each item, its cure, and what to press. A dead agent is two: itself, and the schedule that needs it."""


@pytest.mark.parametrize(("scheme", "size"), LOOKS)
def test_each_trouble_is_on_the_first_view_once_with_its_cure_and_a_button(
    browser: Browser, running: Daemon, scheme: str, size: Any
) -> None:
    """A dead agent, a failing command, a stuck delivery, a budget that is reached, a schedule paused by mistake."""
    with window(browser, running, scheme=scheme, size=size, may_refuse=True) as one:
        page = one.page
        one.go("today")
        items = page.locator(".attention")
        expect(items).to_have_count(len(CURES))
        for title, cure, press in CURES:
            item = items.filter(has=page.get_by_role("heading", name=title))
            expect(item).to_contain_text(cure)
            expect(item.get_by_role("button", name=press).or_(item.get_by_role("link", name=press))).to_be_visible()
        audit(page, "#main")
        items.get_by_role("button", name="Test: Agent coder").click()
        expect(page.locator(".toast")).to_contain_text("agent: 'coder' cannot be used: ")
        page.get_by_role("button", name="Close this message").click()
        expect(page.locator(".toast")).to_have_count(0)
        page.get_by_role("link", name="Raise the limit: digest").click()
        expect(page.get_by_role("group", name="Budget").get_by_label("Per day, in USD")).to_be_focused()
        expect(page.locator("[data-field='budget.perDay']:focus")).to_be_in_viewport()
        expect(page.locator("#f-budget-perDay-hint")).to_contain_text("1.50 is enough for one more run")


def test_a_cure_is_where_its_button_leads(browser: Browser, running: Daemon) -> None:
    """A command is edited at its field, also from its failed run; a message is open in the outbox."""
    with window(browser, running, size=PHONE, may_refuse=True) as one:
        page = one.page
        one.go("today")
        page.get_by_role("link", name="Edit: nightly-import").click()
        expect(page.locator("[data-field='command.argv']")).to_be_focused()
        one.go("today")
        page.locator(".attention").get_by_role("link", name="nightly-import", exact=True).click()
        page.get_by_role("link", name="Edit").click()
        expect(page.locator("[data-field='command.argv']")).to_be_focused()
        one.go("today")
        page.get_by_role("link", name="Open: Message to pager").click()
        expect(page.locator("details[data-delivery][open]")).to_contain_text("disk is full")


def test_a_start_without_a_budget_is_not_announced_as_a_run(browser: Browser, running: Daemon) -> None:
    """It comes before the budget frees."""
    frees_at = next(row["freesAt"] for row in ask(running, "GET", "/api/budget")["budgets"])
    assert ask(running, "GET", "/api/schedule/digest")["nextRun"] < frees_at
    with window(browser, running, may_refuse=True) as one:
        page = one.page
        one.go("today")
        following = page.locator(".glances li").filter(has_text="digest").filter(has_text="in ")
        said = following.get_by_text("will be skipped: budget used up until")
        expect(said).to_have_count(1)
        one.go("schedules/digest")
        expect(page.locator(".chip.boxed").first).to_have_text("budget used up")
        expect(page.locator(".why")).to_contain_text("will be skipped")


def test_the_bar_counts_what_the_view_of_the_health_shows(browser: Browser, running: Daemon) -> None:
    """Problems first; on a phone the number alone."""
    with window(browser, running, size=PHONE, may_refuse=True) as one:
        page = one.page
        one.go("health")
        levels = page.locator("[aria-label=Findings] td[data-column=Level]")
        expect(levels.first).to_have_text("warning")
        shown = levels.all_inner_texts()
        assert shown == sorted(shown, key=["warning", "ok"].index)

        def is_the_same() -> bool:  # both are read now and then, and a busy machine is a warning that passes
            warnings = levels.all_inner_texts().count("warning")
            bar = page.locator(".bar .health")
            return (
                bar.locator("b").text_content() == str(warnings)
                and bar.locator("span").text_content() == f"{warnings} warnings"
                and f"{warnings} warnings" in (page.locator(".verdict").text_content() or "")
            )

        wait_until(page, is_the_same)
