"""Ten thousand schedules that fire a hundred times a second: the page shows what is in sight, and does not grow.

How fast it is, `make page-speed` measures."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from edges.http.kit import Daemon, daemon
from page.kit import ask, wait_until, window
from wakeful import New
from wakeful.core.time.timing import Every
from wakeful.sync import Wakeful

MEASURING = (Path(__file__).parent / "measuring.js").read_text()
MANY = 10_000
PERIOD = 100_000
"""Milliseconds between two fires of one schedule: all of them together fire a hundred times a second."""
TEN_MINUTES = 60_000
"""Fires in ten minutes."""


@pytest.fixture(scope="module")
def running(home: Path) -> Iterator[Daemon]:
    """A daemon over ten thousand schedules, spread evenly over their period."""
    home.mkdir(mode=0o700)
    begun = int(time.time() * 1000)
    spread = PERIOD // MANY
    with Wakeful(home / "wakeful.db", tick=False) as app:
        for start in range(0, MANY, 1_000):
            some = range(start, start + 1_000)
            app.add_many([New(f"s{n:05}", Every(PERIOD, begun + n * spread), call="os:getpid") for n in some])
    with daemon(home) as one:
        yield one


@pytest.mark.torture
def test_only_what_is_in_sight_is_in_the_page(browser: Browser, running: Daemon) -> None:
    """Found among ten thousand, and scrolled through, with a handful of rows in the page."""
    with window(browser, running) as one:
        page = one.page
        one.go("schedules")
        page.locator("input[type=search]").fill("s0777")
        expect(page.locator(".list-row")).to_have_count(10)
        page.locator("input[type=search]").fill("")
        expect(page.get_by_text("s00000", exact=True)).to_be_visible()
        wanted = page.get_by_text("s00330", exact=True)
        down = "(list) => { list.scrollTop = Math.min(list.scrollHeight, 330 * 56); }"

        def is_found() -> bool:  # each time as far down as there is something yet
            page.locator(".list-scroll").evaluate(down)
            return wanted.count() > 0

        wait_until(page, is_found)
        expect(wanted).to_be_visible()
        assert page.locator(".list-row").count() < 60


@pytest.mark.torture
def test_the_page_does_not_grow_over_ten_minutes_of_traffic(browser: Browser, running: Daemon) -> None:
    """Sixty thousand fires, three events each, over the views that show them: neither the heap nor the page grows."""
    with window(browser, running) as one:
        page = one.page
        for place in ("timeline", "schedules", "log"):
            one.go(place)
            page.evaluate(MEASURING)
            if not page.evaluate("typeof gc === 'function' && 'memory' in performance"):
                pytest.skip("this browser does not tell how much memory it holds")
            page.evaluate("measuring.simulate(10000)")  # what is bounded fills up to its bound
            heap, elements = page.evaluate("measuring.held()")
            page.evaluate(f"measuring.simulate({TEN_MINUTES // 3 - 10_000})")
            later_heap, later_elements = page.evaluate("measuring.held()")
            assert later_heap - heap < 4_000_000, (place, heap, later_heap)
            assert later_elements - elements < 1_000, (place, elements, later_elements)


@pytest.mark.torture  # likewise
def test_the_clock_keeps_up(browser: Browser, running: Daemon) -> None:
    """While the page looks on, runs start on time."""
    with window(browser, running) as one:
        one.go("health")
        expect(one.page.get_by_text("ticks, last seen").first).to_be_visible()
    assert ask(running, "GET", "/healthz")["status"] == "ok"
