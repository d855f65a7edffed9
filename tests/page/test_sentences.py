"""Sentences on the page: in the palette, after what exists, and in the first field of the form."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from edges.http.kit import Daemon, daemon
from page.audit import audit
from page.kit import LOOKS, ask, is_there, window

SETTINGS = """
[agents.default]
adapter = "echo"
"""
MANUAL = {"schedule": {"type": "manual"}, "command": {"argv": ["true"]}}
SENTENCE = "every weekday at 9 summarise my mail, send to inbox"


@pytest.fixture(scope="module")
def running(home: Path) -> Iterator[Daemon]:
    """A daemon with an agent, two schedules and a workflow."""
    home.mkdir(mode=0o700)
    (home / "wakeful.toml").write_text(SETTINGS)
    with daemon(home) as one:
        for slug in ("seo", "billing"):
            ask(one, "PUT", f"/api/schedule/{slug}", MANUAL)
        reader = {
            "subscribe": ["mail"],
            "mutate": False,
            "handler": {"command": {"argv": ["echo", '{"reservations": [], "data": {}}']}},
        }
        body = {"status": "active", "consumers": {"read": reader}}
        ask(one, "PUT", "/api/workflows/postbox?force=true", body)
        yield one


def palette(page: Any, text: str) -> None:
    page.keyboard.press("Control+k")
    page.keyboard.type(text)


@pytest.mark.parametrize(("scheme", "size"), LOOKS)
def test_what_is_said_is_shown_as_understood_and_created_with_its_own_key(
    browser: Browser, running: Daemon, scheme: str, size: Any
) -> None:
    """Enter takes what exists; only Ctrl-Enter creates."""
    slug = "summarise-my-mail"
    with window(browser, running, scheme=scheme, size=size) as one:
        page = one.page
        one.go("timeline")
        palette(page, SENTENCE)
        offer = page.get_by_role("region", name="Create a schedule")
        expect(offer).to_contain_text("every weekday at 09:00")
        expect(offer).to_contain_text("summarise my mail, sent to inbox")
        expect(offer.get_by_role("listitem")).to_have_count(5)
        audit(page, "dialog.palette")
        page.keyboard.press("Enter")
        assert not is_there(running, f"/api/schedule/{slug}")
        page.keyboard.press("Control+Enter")
        expect(page.get_by_role("heading", name=slug, exact=True)).to_be_visible()
    assert ask(running, "GET", f"/api/schedule/{slug}")["deliver"] == {"channel": "inbox"}
    ask(running, "DELETE", f"/api/schedule/{slug}")


def test_what_is_unclear_is_asked_and_a_click_answers_it(browser: Browser, running: Daemon) -> None:
    with window(browser, running) as one:
        page = one.page
        one.go("timeline")
        palette(page, "every day at 5 feed the cat")
        offer = page.get_by_role("region", name="Create a schedule")
        expect(offer).to_contain_text("'at 5' can mean 05:00 or 17:00; which one?")
        offer.get_by_role("button", name="every day at 17:00 feed the cat").click()
        expect(offer).to_contain_text("at 17:00 every day")
        expect(page.get_by_role("combobox")).to_be_focused()


@pytest.mark.parametrize(
    ("typed", "first"),
    [
        ("run seo", "Run seo now"),
        ("pause billing", "Pause billing"),
        ("edit seo", "Edit seo"),
        ("seo", "seo"),
        ("postbox", "postbox"),
        ("pause postbox", "Pause workflow postbox"),
        ("failing", "All failing schedules"),
        ("12", "Run 12"),
        ("live log", "Live log"),
    ],
)
def test_existing_things_and_actions_are_found_in_the_words_people_type(
    browser: Browser, running: Daemon, typed: str, first: str
) -> None:
    """And nothing is offered to be created: no time was named."""
    with window(browser, running) as one:
        one.go("timeline")
        palette(one.page, typed)
        expect(one.page.get_by_role("option").first.locator("bdi")).to_have_text(first)
        expect(one.page.get_by_role("region", name="Create a schedule")).to_be_hidden()


def test_a_schedule_is_paused_from_the_palette(browser: Browser, running: Daemon) -> None:
    with window(browser, running) as one:
        one.go("timeline")
        palette(one.page, "pause billing")
        expect(one.page.get_by_role("option").first.locator("bdi")).to_have_text("Pause billing")
        one.page.keyboard.press("Enter")
        expect(one.page.get_by_text("billing: paused", exact=True)).to_be_visible()
    assert ask(running, "GET", "/api/schedule/billing")["status"] == "paused"


@pytest.mark.parametrize(("scheme", "size"), LOOKS)
def test_the_first_field_of_the_form_fills_in_the_others(
    browser: Browser, running: Daemon, scheme: str, size: Any
) -> None:
    with window(browser, running, scheme=scheme, size=size) as one:
        page = one.page
        one.go("new")
        expect(page.get_by_label("In words")).to_be_focused()
        page.get_by_label("In words").fill("every morning water the plants")
        expect(page.get_by_label("Name", exact=True)).to_have_value("water-the-plants")
        expect(page.get_by_label("Prompt", exact=True)).to_have_value("water the plants")
        expect(page.get_by_text("Assumed: no time was given: 08:00.")).to_be_visible()
        expect(page.get_by_role("complementary", name="Preview")).to_contain_text("at 08:00 every day")
        audit(page, "#main")
        page.get_by_label("In words").fill("on monday at 9:00 water the plants")
        page.get_by_role("button", name="every monday at 09:00 water the plants").click()
        expect(page.get_by_role("complementary", name="Preview")).to_contain_text("every Monday at 09:00")


def test_a_new_form_complains_only_about_fields_that_were_reached(browser: Browser, running: Daemon) -> None:
    """When it is sent, about all."""
    with window(browser, running, may_refuse=True) as one:
        page = one.page
        one.go("new")
        page.get_by_label("Name", exact=True).fill("Morning Digest")
        page.get_by_label("Expression").fill("0 9 * * *")
        expect(page.get_by_label("Name", exact=True)).to_have_value("morning-digest")
        expect(page.get_by_text("Fill in a timing and an action")).to_be_visible()
        wrong = page.locator("[aria-invalid=true]")
        expect(wrong).to_have_count(0)
        page.get_by_label("Expression").fill("0 99 * * *")
        expect(wrong).to_have_count(1)
        page.get_by_label("Expression").fill("0 9 * * *")
        page.get_by_role("button", name="Create").click()
        expect(page.get_by_label("Prompt", exact=True)).to_have_attribute("aria-invalid", "true")
        expect(wrong).to_have_count(1)
        page.get_by_label("Prompt", exact=True).fill("digest")
        page.get_by_role("button", name="Create").click()
        expect(page.get_by_role("heading", name="morning-digest", exact=True)).to_be_visible()


def test_the_choices_for_clock_changes_are_folded_below_the_expression(browser: Browser, running: Daemon) -> None:
    with window(browser, running) as one:
        page = one.page
        one.go("new")
        expect(page.get_by_label("Expression")).to_be_visible()
        expect(page.get_by_label("When the clocks go back")).to_be_hidden()
        page.get_by_text("Daylight saving", exact=True).click()
        expect(page.get_by_label("When the clocks go back")).to_be_visible()
