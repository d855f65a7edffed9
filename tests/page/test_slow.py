"""A slow daemon: answers that arrive after newer events, and a stream that connects after the page has loaded."""

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import APIResponse, Browser, Page, Route, expect

from edges.http.kit import Daemon
from page.kit import ask, window
from patience import PATIENCE
from sampling import sampled

GATE = "import pathlib, time\nwhile not pathlib.Path({0!r}).exists(): time.sleep(0.02)"


@pytest.fixture
def gate(running: Daemon, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A file whose appearance ends the command of the schedule `slow`."""
    path = running.home.parent / f"gate-{len(request.node.name)}"
    yield path
    path.touch()


def put_slow(running: Daemon, gate: Path, **more: Any) -> None:
    argv = [sys.executable, "-c", GATE.format(str(gate))]
    ask(running, "PUT", "/api/schedule/slow", {"schedule": {"type": "manual"}, "command": {"argv": argv}, **more})


def wait_until(page: Page, condition: Callable[[], object]) -> None:
    """Let the page go on until something holds."""
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until, "waited in vain"
        page.wait_for_timeout(20)


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
    with window(browser, running) as one:
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
