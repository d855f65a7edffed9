"""When the daemon goes away and comes back, and when it wants to know who asks."""

from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, expect

from edges.http.kit import EVERY, daemon
from page.kit import ask, window

TOKEN = "s3cret-of-the-page"
SETTINGS = f'[server]\nhost = "0.0.0.0"\ntoken = "{TOKEN}"\n'


@pytest.mark.torture
def test_the_page_comes_back_with_the_daemon(browser: Browser, tmp_path: Path) -> None:
    """It says that it is not connected, and reads anew what happened meanwhile, without being loaded again."""
    with daemon(tmp_path / "home") as first:
        ask(first, "PUT", "/api/schedule/before", EVERY)
        with window(browser, first, may_refuse=True, is_new=True) as one:
            page = one.page
            one.go("schedules")
            state = page.locator(".bar .pill").first
            expect(state).to_have_text("live")
            expect(page.locator("[data-slug=before]")).to_be_visible()
            health = page.locator(".bar .health span")
            expect(health).not_to_have_text("unknown")
            first.end()
            expect(state).to_have_text("offline")
            expect(page.get_by_role("alert")).to_contain_text("What you see is from")
            expect(page.locator("html.offline .content")).to_have_css("filter", "grayscale(1)")
            expect(health).to_have_text("unknown")
            with daemon(tmp_path / "home", "--port", str(urlsplit(first.address).port)) as second:
                ask(second, "PUT", "/api/schedule/meanwhile", EVERY)
                expect(state).to_have_text("live")
                expect(page.get_by_role("alert")).to_have_count(0)
                expect(health).not_to_have_text("unknown")
                expect(page.locator("[data-slug=meanwhile]")).to_be_visible()
                ask(second, "PUT", "/api/schedule/afterwards", EVERY)
                expect(page.locator("[data-slug=afterwards]")).to_be_visible()
                assert page.evaluate("performance.getEntriesByType('navigation').length") == 1


def test_the_page_asks_for_a_login_where_one_is_needed(browser: Browser, tmp_path: Path) -> None:
    """A wrong token is asked for again; the right one becomes a cookie that scripts cannot read."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "wakeful.toml").write_text(SETTINGS)
    with daemon(home) as started:
        one_here = started._replace(address=f"http://127.0.0.1:{urlsplit(started.address).port}")
        with window(browser, one_here, may_refuse=True, logged_in=False) as one:
            page = one.page
            page.goto(one_here.address)
            page.get_by_label("Token", exact=True).fill("wrong")
            page.get_by_role("button", name="Log in").click()
            expect(page.get_by_label("Token", exact=True)).to_have_value("")
            page.get_by_label("Token", exact=True).fill(TOKEN)
            page.get_by_role("button", name="Log in").click()
            expect(page.get_by_role("heading", name="Today", exact=True)).to_be_visible()
            expect(page.locator(".bar .pill").first).to_have_text("live")
            page.reload()
            expect(page.get_by_role("heading", name="Today", exact=True)).to_be_visible()
            assert TOKEN not in page.url
            assert TOKEN not in page.evaluate("JSON.stringify([localStorage, sessionStorage, document.cookie])")
            assert {line.partition(" ")[0] for line in one.seen.refused} == {"401"}


def test_a_link_logs_in_once(browser: Browser, tmp_path: Path) -> None:
    """The code leaves the address at once; a second browser with the same link has to log in."""
    with daemon(tmp_path / "home") as started:
        code = ask(started, "POST", "/api/login-codes")["code"]
        link = f"{started.address}/#code={code}"
        with window(browser, started, logged_in=False) as one:
            one.page.goto(link)
            expect(one.page.get_by_role("heading", name="Today", exact=True)).to_be_visible()
            expect(one.page.get_by_text("No real agent is configured yet")).to_be_visible()
            expect(one.page.get_by_text("Nothing needs attention.")).to_be_visible()
            assert code not in one.page.url
        with window(browser, started, may_refuse=True, logged_in=False) as other:
            other.page.goto(link)
            expect(other.page.get_by_label("Token", exact=True)).to_be_visible()
            expect(other.page.get_by_text("is not valid")).to_be_visible()


def test_a_view_that_cannot_be_loaded_is_loaded_later(browser: Browser, tmp_path: Path) -> None:
    """By itself, when the daemon is back; until then the page says what is wrong."""
    with daemon(tmp_path / "home") as first, window(browser, first, may_refuse=True, is_new=True) as one:
        page = one.page
        one.go("today")
        first.end()
        page.goto(f"{first.address}/#/schedules")
        expect(page.get_by_role("heading", name="Could not load")).to_be_visible()
        expect(page.get_by_text("Trying again every few seconds")).to_be_visible()
        with daemon(tmp_path / "home", "--port", str(urlsplit(first.address).port)):
            expect(page.get_by_role("heading", name="Schedules", exact=True)).to_be_visible()
