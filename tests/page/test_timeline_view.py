"""The time axis: its span suits the data, few rows leave no void, other things have rows, and it works by keyboard."""

import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from edges.http.kit import Daemon
from page.audit import audit
from page.kit import LOOKS, ask, window

SUITS = """async (rows) => {
  const { spanFor } = await import("/page/lib/span.js");
  return rows.map(([last, next]) => {
    const runs = last === null ? [] : [{ startedAt: last, plannedAt: last }];
    return spanFor([{ runs, planned: next === null ? [] : [next], nextRun: null }], 0);
  });
}"""
DRAWN = """async ([planned, started, now]) => {
  const { Scale, colours, drawRow } = await import("/page/parts/axis.js");
  const run = { runId: "1", outcome: "succeeded", count: 1, plannedAt: planned, startedAt: started, endedAt: now };
  const row = { runs: [run], planned: [], excluded: [], createdAt: 0, wholeSince: 0, wholeUntil: now };
  const scale = new Scale(0, now, 1000);
  const pen = new OffscreenCanvas(1000, 40).getContext("2d");
  return drawRow(pen, scale, colours(), row, 0, now, false).map((cell) => scale.time(cell.x));
}"""
FINDS_NOTHING = {"command": {"argv": ["echo", '{"messages": []}']}}
PREPARES_NOTHING = """if grep -q '"prepare"'; then echo '{"reservations": []}'; fi"""
TAKES_NOTHING = {"command": {"argv": ["sh", "-c", PREPARES_NOTHING]}}
EVERY_HOUR = {"schedule": {"type": "every", "every": "1h"}, "publishes": ["mail"], "handler": FINDS_NOTHING}
FLOW = {
    "producers": {"poll": EVERY_HOUR, "fetch": EVERY_HOUR},
    "consumers": {"digest": {"subscribe": ["mail"], "handler": TAKES_NOTHING}},
}
MINUTE = 60_000
HOUR = 60 * MINUTE


@pytest.mark.parametrize(("scheme", "size"), LOOKS)
def test_one_schedule_fills_the_view_and_is_followed_by_keyboard(
    browser: Browser, running: Daemon, scheme: str, size: Any
) -> None:
    """The chart is as tall as its row, its runs and times are listed below, and a mark is opened with Enter."""
    now = datetime.now(UTC)
    excluded = (now + timedelta(minutes=40, days=1)).strftime("%Y-%m-%d")  # not the day of the next time
    soon = (now + timedelta(minutes=40)).minute
    job = {
        "schedule": {"type": "cron", "expression": f"{soon} * * * *", "timezone": "UTC"},
        "command": {"argv": [sys.executable, "-c", "print('ran')"]},
        "exclude": {"dates": [excluded]},
        "deliver": {"channel": "inbox"},
    }
    ask(running, "PUT", "/api/schedule/only", job)
    known = ask(running, "GET", "/api/schedule/only/runs")["runs"]  # of the other look: two would be one mark
    run_id = known[0]["runId"] if known else ask(running, "POST", "/api/schedule/only/run?wait=true")["runId"]
    with window(browser, running, scheme=scheme, size=size) as one:
        page = one.page
        one.go("timeline")
        expect(page.get_by_role("button", name="3 hours")).to_have_attribute("aria-pressed", "true")
        chart = page.locator(".tl-scroll").bounding_box()
        assert chart is not None and chart["height"] <= 3 * 34
        expect(page.get_by_role("heading", name="Next times")).to_be_visible()
        expect(page.locator(".times").first).to_contain_text("succeeded")
        audit(page, "#main")

        axis = page.get_by_role("img", name="Time axis.")
        axis.focus()
        page.keyboard.press("ArrowDown")
        expect(page.get_by_role("tooltip")).to_contain_text("only")
        page.keyboard.press(".")
        expect(page.get_by_role("tooltip")).to_contain_text("planned for")
        page.keyboard.press(",")
        expect(page.get_by_role("tooltip")).to_contain_text("succeeded")
        page.keyboard.press("Enter")
        page.wait_for_selector(f"#main[data-at='runs/{run_id}']")

        one.go("timeline?span=7d")
        expect(page.get_by_text("excluded day")).to_be_visible()
        expect(page.locator(".tl-rows li")).to_have_count(1)
        page.locator("summary", has_text="Rows").click()
        page.get_by_label("Deliveries").check()
        expect(page.locator(".tl-rows li").filter(has_text="delivery:inbox")).to_be_visible()
        audit(page, "#main")


def test_marks_are_where_things_happened_and_the_span_shows_them(browser: Browser, running: Daemon) -> None:
    """The span for a schedule of every minute, one of every hour, one of each day, one of each week, one whose last
    run is hours ago, and one that never ran. A run that started late is drawn where it started, not at its planned
    time. Each handler of a workflow has a row, which is live; a row begins with its health."""
    cases = [
        [-MINUTE, MINUTE],
        [-HOUR / 2, HOUR],
        [-7 * HOUR, 17 * HOUR],
        [-40 * HOUR, 120 * HOUR],
        [-7 * HOUR, MINUTE],
        [None, None],
    ]
    with window(browser, running) as one:
        page = one.page
        one.go("timeline")
        assert page.evaluate(SUITS, cases) == ["15m", "3h", "24h", "7d", "24h", "24h"]
        (drawn,) = page.evaluate(DRAWN, [HOUR, 2 * HOUR, 4 * HOUR])
        assert round(drawn) == 2 * HOUR

        ask(running, "PUT", "/api/workflows/post", {**FLOW, "status": "active"})
        rows = page.locator(".tl-rows li bdi").filter(has_text="post/")
        expect(rows).to_have_text(["post/digest", "post/fetch", "post/poll"])
        ask(running, "PUT", "/api/schedule/bad", {"schedule": "in 1s", "command": {"argv": ["false"]}})
        bad = page.locator(".tl-rows li").filter(has_text="bad")
        expect(bad.locator(".mark")).to_have_attribute("data-o", "failed")  # its health, not its state
        rows.last.click()
        page.wait_for_selector("#main[data-at='workflows/post']")
    ask(running, "DELETE", "/api/schedule/bad")
    ask(running, "DELETE", "/api/workflows/post")  # the test above needs the view for itself
