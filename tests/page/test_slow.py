"""A slow daemon: answers that arrive after newer events, and a stream that connects after the page has loaded."""

import json
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import APIResponse, Browser, Page, Route, expect

from edges.http.kit import Daemon
from page.kit import ask, wait_until, window
from sampling import sampled

GATE = "import pathlib, time\nwhile not pathlib.Path({0!r}).exists(): time.sleep(0.02)"


@pytest.fixture
def gate(running: Daemon) -> Iterator[Path]:
    """A file whose appearance ends the command of the schedule `slow`."""
    path = running.home.parent / f"gate-{uuid.uuid4()}"
    yield path
    path.touch()


def put_slow(running: Daemon, gate: Path, **more: Any) -> None:
    argv = [sys.executable, "-c", GATE.format(str(gate))]
    ask(running, "PUT", "/api/schedule/slow", {"schedule": {"type": "manual"}, "command": {"argv": argv}, **more})


def remember_rungs(page: Page) -> None:
    """Let the page keep which rungs it heard of."""
    page.evaluate(
        "window.heard = []; wakeful.stream.hear((events) => events.forEach("
        "(one) => one.what === 'climbed' && window.heard.push(`${one.runId} ${one.rung}`))); null"
    )


def test_an_answer_older_than_an_event_does_not_undo_it(browser: Browser, running: Daemon, gate: Path) -> None:
    """The page reads the runs, the run starts, and the answer from before arrives last: the row climbs all the same."""
    put_slow(running, gate)
    with window(browser, running) as one:
        page = one.page
        one.go("schedules/slow")
        expect(page.locator(".pill").first).to_have_text("live")
        remember_rungs(page)
        held: list[Route] = []

        def hold_first(route: Route) -> None:
            if held:
                route.continue_()
            else:
                held.append(route)

        page.route("**/api/schedule/slow/runs*", hold_first)
        put_slow(running, gate, timeout="5m")  # the page hears of it, and reads again
        wait_until(page, lambda: held)
        run_id = ask(running, "POST", "/api/schedule/slow/run")["runId"]
        wait_until(page, lambda: f"{run_id} started" in page.evaluate("window.heard"))
        page.wait_for_timeout(1_500)  # whatever those events made the page read at once has been read
        answer: APIResponse = held[0].fetch()
        body = answer.json()
        mine = next(row for row in body["runs"] if row["runId"] == run_id)
        mine["rung"], mine["ladder"] = "claimed", {}  # as it was a moment before
        held[0].fulfill(response=answer, body=json.dumps(body))
        row = page.locator(f"[data-run='{run_id}']")
        row.locator("summary").click()
        expect(row.locator(".ladder li.reached").last).to_contain_text("started")
        expect(row.locator(".ladder li.reached")).to_have_count(4)
        page.unroute("**/api/schedule/slow/runs*")


@pytest.mark.parametrize("place", sampled(["schedules/slow", "schedules", "runs"], every=3))
def test_what_happens_before_the_stream_connects_is_seen(
    browser: Browser, running: Daemon, gate: Path, place: str
) -> None:
    """The page has loaded, its stream has not connected yet, and a run starts: it is there once the page is live."""
    put_slow(running, gate)
    with window(browser, running, is_new=True) as one:
        page = one.page
        held: list[Route] = []

        def hold(route: Route) -> None:
            held.append(route)

        page.route("**/api/stream", hold)
        one.go(place)
        wait_until(page, lambda: held)
        run_id = ask(running, "POST", "/api/schedule/slow/run")["runId"]
        held[0].continue_()
        row = page.locator("[data-slug=slow]" if place == "schedules" else f"[data-run='{run_id}']")
        expect(row).to_contain_text("running")
        page.unroute("**/api/stream")


@pytest.mark.torture
def test_what_the_stream_missed_is_repaired(browser: Browser, running: Daemon, gate: Path) -> None:
    """Events that never arrive: the page looks at the data by itself, and soon shows what is so."""
    put_slow(running, gate)
    with window(browser, running, is_new=True) as one:
        page = one.page
        one.go("schedules")
        expect(page.locator(".pill").first).to_have_text("live")
        row = page.locator("[data-slug=slow]")
        expect(row.get_by_role("switch")).to_have_attribute("aria-checked", "true")
        page.evaluate("wakeful.stream._push = () => {}; null")
        ask(running, "POST", "/api/schedule/slow/pause")
        expect(row).to_contain_text("paused")
        ask(running, "POST", "/api/schedule/slow/resume")
        one.go("today")
        page.evaluate("wakeful.stream._push = () => {}; null")
        run_id = ask(running, "POST", "/api/schedule/slow/run")["runId"]
        expect(page.locator(f".glances a[href='#/runs/{run_id}']")).to_be_visible()


@pytest.mark.torture
def test_a_view_that_was_left_while_it_loaded_never_comes_back(browser: Browser, running: Daemon, gate: Path) -> None:
    """Two addresses at once: the notice of the first, which is due later, does not cover the second."""
    put_slow(running, gate)
    with window(browser, running) as one:
        page = one.page
        one.go("schedules")
        page.route("**/api/schedule/slow/**", lambda _: None)  # never loads
        page.evaluate("location.hash = '#/schedules/slow'; setTimeout(() => { location.hash = '#/runs'; }, 20)")
        page.wait_for_selector("#main[data-at='runs']")
        page.evaluate("new Promise((done) => setTimeout(done, 200))")  # after every timer of the view that was left
        expect(page.locator("#main h1")).to_be_visible()
        expect(page.locator("#main")).not_to_contain_text("Loading…")
        page.unroute("**/api/schedule/slow/**")
