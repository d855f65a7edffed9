"""What is wrong and what to press: the first view, runs, the ledger, agents; each in both schemes and on a phone."""

import json
import sys
import urllib.request
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Route, expect

from edges.http.kit import Daemon, daemon
from page.audit import audit
from page.door import Door, opened_door
from page.kit import PHONE, WIDE, ask, wait_until, window
from patience import PATIENCE
from sampling import IS_THOROUGH, sampled

LOOKS = sampled([("dark", WIDE), ("light", PHONE)], every=2, offset=1)
MANUAL = {"schedule": {"type": "manual"}}
FAILS = ["sh", "-c", "echo the output; echo no such table >&2; exit 3"]
QUOTA = 'import json, time; print(json.dumps({"percentage": 42, "nextResetTime": int(time.time() * 1000) + 3600000}))'
SETTINGS = f"""
[agents.default]
adapter = "echo"

[agents.coder]
adapter = "echo"

[tokens.coder]
token = "a-token-of-an-agent-2"
role = "agent"
agent = "coder"

[agents.absent]
adapter = "command"
argv = ["/nowhere/agent"]

[agents.tool]
adapter = "claude"
program = "/nowhere/tool"

[heartbeat]
enabled = true
every = "1h"

[slots.main]
provider = "command"
quota_argv = [{json.dumps(sys.executable)}, "-c", {json.dumps(QUOTA)}]
wake_argv = ["true"]
interval = "60m"
"""
TAKES_NOTHING = '{"reservations": []}'
FLOW = {
    "producers": {"poll": {**MANUAL, "publishes": ["mail"], "handler": {"command": {"argv": ["echo", "{}"]}}}},
    "consumers": {"digest": {"subscribe": ["mail"], "handler": {"command": {"argv": ["echo", TAKES_NOTHING]}}}},
}


@pytest.fixture(scope="module")
def door() -> Iterator[Door]:
    with opened_door() as one:
        yield one


@pytest.fixture(scope="module")
def running(home: Path, door: Door) -> Iterator[Daemon]:
    """A daemon with something of everything, some of it wrong."""
    home.mkdir(mode=0o700)
    (home / "wakeful.toml").write_text(SETTINGS + door.settings)
    with daemon(home) as one:
        ask(one, "PUT", "/api/schedule/tables", {"schedule": "in 1s", "command": {"argv": FAILS}})
        ask(one, "PUT", "/api/schedule/hello", {**MANUAL, "prompt": "good morning", "deliver": {"channel": "inbox"}})
        ask(one, "PUT", "/api/schedule/halted", {"schedule": {"type": "every", "every": "1h"}, "prompt": "news"})
        ask(one, "PUT", "/api/schedule/hourly", {"schedule": {"type": "every", "every": "1h"}, "prompt": "tidy"})
        ask(one, "POST", "/api/schedule/halted/pause")
        ask(one, "POST", "/api/schedule/hello/run?wait=true")
        ask(one, "PUT", "/api/workflows/letters", {**FLOW, "status": "active"})
        ask(one, "PUT", "/api/slots/own", {"provider": "command", "quotaArgv": ["false"], "wakeArgv": ["true"]})
        yield one


def propose(one: Daemon, slug: str, prompt: str) -> None:
    """A schedule that an agent wants, which waits for a person."""
    body = json.dumps({"slug": slug, "when": "every 2h", "prompt": prompt}).encode()
    headers = {"Authorization": "Bearer a-token-of-an-agent-2"}
    request = urllib.request.Request(f"{one.address}/api/tools/put_schedule", body, headers)
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        assert answer.status == 200


VIEWS = (
    "today",
    "timeline",
    "schedules",
    "schedules/hello",
    "schedules/tables/edit",
    "new",
    "runs",
    "runs/1",
    "agents",
    "heartbeat",
    "workflows",
    "workflows/letters",
    "workflows/letters/edit",
    "new-workflow",
    "slots",
    "slots/own/edit",
    "new-slot",
    "forecast",
    "cost",
    "approvals",
    "import",
    "inbox",
    "outbox",
    "channels",
    "health",
    "log",
)
COLOURFUL = ("today", "schedules", "schedules/hello", "schedules/tables/edit", "runs/1", "agents", "slots", "outbox")
"""Views with the colours of the others: only `make torture` measures the contrast of each."""


@pytest.mark.parametrize(("scheme", "size"), LOOKS)
def test_every_view_is_sound(browser: Browser, running: Daemon, door: Door, scheme: str, size: Any) -> None:
    """No errors, no request elsewhere, nothing that axe-core finds, nothing wider than the screen or too small to
    touch; and the word that says nothing is nowhere."""
    ask(running, "POST", "/api/deliveries", {"text": f"for nobody {scheme}", "channel": "hook"})
    with window(browser, running, scheme=scheme, size=size) as one:
        for view in VIEWS:
            one.go(view)
            audit(one.page, contrast=IS_THOROUGH or view in COLOURFUL)
            assert "idle" not in one.page.locator("#main").inner_text().split(), view


@pytest.mark.parametrize(("scheme", "size"), LOOKS)
def test_the_first_view_names_each_trouble_and_cures_it(
    browser: Browser, running: Daemon, door: Door, scheme: str, size: Any
) -> None:
    """A message is sent again, what was paused goes on, a proposal is read and approved: all from there."""
    text = f"the kettle boils {scheme}"
    propose(running, f"watch-{scheme}", f"look\u200b at the {scheme} mail")
    door.is_open = False
    ask(running, "POST", "/api/schedule/halted/pause")
    ask(running, "POST", "/api/deliveries", {"text": text, "channel": "hook"})
    with window(browser, running, scheme=scheme, size=size) as one:
        page = one.page
        page.goto(running.address)
        expect(page.get_by_role("heading", name="Today", exact=True)).to_be_visible()
        item = page.locator(".attention")
        expect(item.filter(has_text="/nowhere/agent")).to_contain_text("agent missing")

        letter = item.filter(has_text=text)
        expect(letter).to_contain_text("undelivered")
        door.is_open = True
        letter.get_by_role("button", name="Send again").click()
        expect(letter).to_have_count(0)

        halted = page.locator(".attention[data-kind=paused]").filter(has_text="halted")
        halted.get_by_role("button", name="Resume").click()
        expect(halted).to_have_count(0)
        expect(page.locator(".glances").filter(has_text="halted")).to_be_visible()
        proposal = page.locator(".attention[data-kind=approval]").filter(has_text=f"watch-{scheme}")
        proposal.get_by_role("button", name="Approve").click()
        asked = page.get_by_role("dialog")
        expect(asked).to_contain_text(f"look\\u{{200b}} at the {scheme} mail")
        audit(page, "dialog")
        asked.get_by_role("button", name="Approve").click()
        expect(proposal).to_have_count(0)
        wait_until(page, lambda: text in door.taken)
    assert ask(running, "GET", f"/api/schedule/coder.watch-{scheme}")["approval"] == "approved"
    assert door.taken.count(text) == 1
    assert ask(running, "GET", "/api/schedule/halted")["status"] == "idle"


def test_a_failure_is_run_again_and_acknowledged(browser: Browser, running: Daemon) -> None:
    """From the first view to the run: the error first, output and stderr apart; nobody has to find it."""
    with window(browser, running, size=PHONE) as one:
        page = one.page
        one.go("today")
        item = page.locator(".attention[data-kind=failing]").filter(has_text="tables")
        expect(item).to_contain_text("exited with 3: no such table")
        item.get_by_role("link", name="tables", exact=True).click()
        expect(page.locator("h1")).to_contain_text("Run ")
        expect(page.locator("#main .note.bad").first).to_have_text("exited with 3: no such table")
        expect(page.locator("#main .note.bad + .cure")).to_have_text("Run it again, or acknowledge it.")
        expect(page.locator(".field").filter(has=page.get_by_text("Output", exact=True))).to_contain_text("the output")
        expect(page.locator(".field").filter(has_text="stderr")).to_contain_text("no such table")
        expect(page.locator(".why")).to_contain_text("exited with 3")
        page.get_by_role("button", name="Why", exact=True).click()
        expect(page.get_by_role("heading", name="Why")).to_be_in_viewport()
        before = page.url
        page.get_by_role("button", name="Run again").click()
        expect(page).not_to_have_url(before)
        expect(page.locator(".chip.boxed")).to_have_text("failed")
        again = page.url
        page.get_by_role("button", name="Replay").click()
        expect(page).not_to_have_url(again)
        expect(page.locator("#main")).to_contain_text("as a replay")
        expect(page.locator(".chip.boxed")).to_have_text("failed")  # or its end would be one more failure, later
        one.go("today")
        item.get_by_role("button", name="Acknowledge").click()
        expect(item).to_have_count(0)


def test_a_manual_run_that_failed_can_be_acknowledged(browser: Browser, running: Daemon) -> None:
    """Its schedule is failing and there is no alert, so the button acknowledges the schedule."""
    ask(running, "PUT", "/api/schedule/tried", {**MANUAL, "command": {"argv": FAILS}})
    ask(running, "POST", "/api/schedule/tried/run?wait=true")
    with window(browser, running, size=WIDE) as one:
        one.go("today")
        item = one.page.locator("li.attention").filter(has_text="Its last manual run failed")
        expect(item).to_have_count(1)
        item.get_by_role("button", name="Acknowledge").click()
        expect(item).to_have_count(0)


@pytest.mark.parametrize(
    "by_key", sampled([pytest.param(False, id="pointer"), pytest.param(True, id="space bar")], every=2)
)
def test_a_redraw_does_not_lose_a_click(browser: Browser, running: Daemon, by_key: bool) -> None:
    """Data that arrives while a button is held down is drawn after its release: a new button would get no click."""
    slug = "by-key" if by_key else "by-pointer"
    ask(running, "PUT", f"/api/schedule/{slug}", {**MANUAL, "command": {"argv": ["true"]}})
    run_id = ask(running, "POST", f"/api/schedule/{slug}/run?wait=true")["runId"]
    with window(browser, running) as one:
        page = one.page
        one.go(f"runs/{run_id}")
        expect(page.locator(".why")).to_contain_text("succeeded")
        button = page.get_by_role("button", name="Why", exact=True)
        requests: list[Route] = []
        page.route(f"**/api/runs/{run_id}", lambda route: requests.insert(0, route))
        with page.expect_request(f"**/api/runs/{run_id}"):  # the view loads again every few seconds
            pass
        wait_until(page, lambda: requests)
        button.focus()
        button.hover()
        button.evaluate("button => { window.pressed = button; }")
        with page.expect_response(f"**/api/runs/{run_id}"):
            page.keyboard.down("Space") if by_key else page.mouse.down()
            requests[0].continue_()
        page.evaluate("new Promise((go) => requestAnimationFrame(() => setTimeout(go)))")
        page.keyboard.up("Space") if by_key else page.mouse.up()
        expect(page.locator(".panel:focus h2")).to_have_text("Why")
        wait_until(page, lambda: page.evaluate("!window.pressed.isConnected"))  # drawn again


def test_a_run_is_cancelled(browser: Browser, running: Daemon) -> None:
    """After a question; the page shows that it ended."""
    ask(running, "PUT", "/api/schedule/long", {**MANUAL, "command": {"argv": ["sleep", "600"]}})
    with window(browser, running) as one:
        page = one.page
        run_id = ask(running, "POST", "/api/schedule/long/run")["runId"]
        one.go(f"runs/{run_id}")
        expect(page.get_by_role("button", name="Run again")).to_have_count(0)
        page.get_by_role("button", name="Cancel", exact=True).click()
        page.locator("dialog").get_by_role("button", name="Keep running").click()
        expect(page.locator("dialog")).to_have_count(0)
        page.get_by_role("button", name="Cancel", exact=True).click()
        page.locator("dialog").get_by_role("button", name="Cancel the run").click()
        expect(page.locator(".chip.boxed")).to_have_text("cancelled")
        expect(page.get_by_role("button", name="Run again")).to_be_visible()


def test_the_ledger_is_narrowed_and_the_address_says_so(browser: Browser, running: Daemon) -> None:
    """By text, outcome, schedule and day; loaded again, it is the same."""
    (first,) = ask(running, "GET", "/api/schedule/hello/runs")["runs"][-1:]
    day = datetime.fromisoformat(first["startedAt"]).astimezone().date()  # also if it was before midnight
    with window(browser, running, size=PHONE) as one:
        page = one.page
        one.go("runs")
        page.get_by_label("Search", exact=True).fill("good morning")
        expect(page.locator(".run").filter(has_text="tables")).to_have_count(0)
        expect(page.locator(".run").filter(has_text="hello").first).to_be_visible()
        expect(page).to_have_url(f"{running.address}/#/runs?q=good+morning")
        page.get_by_role("button", name="Failed", exact=True).click()
        expect(page.get_by_text("No run in the ledger matches")).to_be_visible()
        page.get_by_role("button", name="Show all").click()
        expect(page.locator(".run").filter(has_text="tables").first).to_be_visible()
        page.get_by_text("Schedule and dates").click()
        page.get_by_label("Schedule", exact=True).fill("hello")
        page.get_by_label("From", exact=True).fill(str(day - timedelta(days=2)))
        page.get_by_label("Until", exact=True).fill(str(day - timedelta(days=1)))
        expect(page.get_by_text("No run in the ledger matches")).to_be_visible()
        page.get_by_label("Until", exact=True).fill(str(day + timedelta(days=2)))
        expect(page.locator(".run").filter(has_text="hello").first).to_be_visible()
        page.reload()
        expect(page.locator(".run").filter(has_text="hello").first).to_be_visible()
        expect(page.locator(".run").filter(has_text="tables")).to_have_count(0)
        expect(page.get_by_label("Schedule", exact=True)).to_have_value("hello")


@pytest.mark.parametrize(("scheme", "size"), LOOKS)
def test_an_agent_is_tested_for_real(browser: Browser, running: Daemon, scheme: str, size: Any) -> None:
    """The stand-in is called one, a missing program is named, and a test shows its reply."""
    with window(browser, running, scheme=scheme, size=size) as one:
        page = one.page
        one.go("agents")
        echo = page.locator(".panel").filter(has=page.get_by_role("heading", name="default", exact=True))
        expect(echo).to_contain_text("a stand-in")
        absent = page.locator(".panel").filter(has=page.get_by_role("heading", name="absent", exact=True))
        expect(absent.locator(".note.bad")).to_contain_text("/nowhere/agent")
        expect(absent.locator("header")).to_contain_text("missing")
        echo.get_by_role("button", name="Test").click()
        expect(echo.locator(".note")).to_contain_text("succeeded")
        expect(echo.locator(".note")).to_contain_text("Reply with one short sentence")
        expect(page.get_by_label("main: 42% used")).to_be_visible()
        audit(page, ".panel:has(.note)")
        turn, test = echo.locator(".turns a").first, echo.get_by_role("button", name="Test")
        before = str(turn.get_attribute("href"))
        test.focus()
        ask(running, "POST", "/api/schedule/hello/run?wait=true")
        expect(turn).not_to_have_attribute("href", before)
        expect(test).to_be_focused()  # though its card was drawn again
        if size == PHONE:
            more = page.get_by_role("button", name="More")
            more.click()
            expect(page.get_by_role("link", name="Timeline")).to_be_visible()
            expect(more).to_have_attribute("aria-expanded", "true")
            audit(page, ".side")
            page.keyboard.press("Escape")
            expect(more).to_be_focused()
            expect(more).to_have_attribute("aria-expanded", "false")


NEVER_IS_LAST = """() => {
    const never = [...document.querySelectorAll(".list-row")].map((row) => /no run yet/.test(row.innerText))
    return never.includes(true) && never.every((is, n) => n === 0 || is || !never[n - 1])
}"""


IN_ORDER = """() => {
    const tops = [...document.querySelectorAll(".list-row")].map((row) => row.getBoundingClientRect().top)
    return tops.every((top, n) => n === 0 || top > tops[n - 1])
}"""
"""Whether Tab, which follows the document, goes from one row to the one below it."""


IN_SIGHT = """() => {
    const end = document.querySelector(".list-scroll").getBoundingClientRect().right
    return [...document.querySelectorAll(".list-row .switch")].every((one) => one.getBoundingClientRect().right <= end)
}"""
"""Whether the buttons of all rows can be seen without scrolling sideways."""


def test_health_is_filtered_and_never_is_last(browser: Browser, running: Daemon) -> None:
    """In the address too; what never ran is at the end, whichever way it is sorted."""
    ask(running, "POST", "/api/schedule/halted/pause")
    with window(browser, running) as one:
        page = one.page
        one.go("schedules?health=off")
        expect(page.locator("[data-slug=halted]")).to_be_visible()
        expect(page.locator("[data-slug=hourly]")).to_have_count(0)
        page.get_by_role("button", name="All", exact=True).click()
        expect(page.locator("[data-slug=hourly]")).to_be_visible()
        expect(page).to_have_url(f"{running.address}/#/schedules")
        expect(page.locator("[data-slug=tables]")).to_contain_text("failed")  # a later run does not sort again
        last = page.get_by_role("button", name="Last", exact=True)
        for order in ("in order", "in reverse order"):
            last.click()
            expect(last).to_have_attribute("aria-description", order)
            wait_until(page, lambda: page.evaluate(NEVER_IS_LAST))
        switch = page.get_by_role("switch", name="hourly on or off")
        switch.focus()
        page.keyboard.press("Space")
        expect(switch).to_have_attribute("aria-checked", "false")
        expect(switch).to_be_focused()  # though its row was drawn again
        page.keyboard.press("Space")
        expect(switch).to_have_attribute("aria-checked", "true")
        assert page.evaluate(IN_ORDER)
        for order in ("in order", "in reverse order"):  # rows are moved in the document
            page.evaluate("document.querySelector('[data-name=slug]').click()")
            expect(page.locator("[data-name=slug]")).to_have_attribute("aria-description", order)
            wait_until(page, lambda: page.evaluate(IN_ORDER))
            expect(switch).to_be_focused()
        for width in (1_280, 1_024, 880):
            page.set_viewport_size({"width": width, "height": 800})
            wait_until(page, lambda: page.evaluate(IN_SIGHT))


def test_everything_is_within_reach_of_the_keyboard(browser: Browser, running: Daemon) -> None:
    """`?` lists the keys; each leads where it says; `n` goes to the first field; a problem is reached with Tab."""
    with window(browser, running) as one:
        page = one.page
        one.go("timeline")
        page.keyboard.press("?")
        keys = page.get_by_role("dialog", name="Keys")
        expect(keys).to_contain_text("new schedule")
        audit(page, "dialog")
        page.keyboard.press("Escape")
        expect(keys).to_have_count(0)
        for key, heading in (("s", "Schedules"), ("l", "Ledger"), ("t", "Timeline"), ("d", "Today")):
            page.keyboard.press(key)
            expect(page.get_by_role("heading", name=heading, exact=True)).to_be_visible()
        reached = page.evaluate("document.activeElement.id")
        assert reached == "main"
        for _ in range(12):
            page.keyboard.press("Tab")
            if page.evaluate("!!document.activeElement.closest('.attention')"):
                break
        expect(page.locator(".attention :focus")).to_have_count(1)
        page.keyboard.press("n")
        expect(page.get_by_label("In words")).to_be_focused()

        skip = page.get_by_role("link", name="Skip to the content")
        skip.focus()
        page.keyboard.press("Enter")
        expect(page.locator("#main[data-at=new]")).to_be_focused()


COPIED = "navigator.clipboard.readText()"
MANIFEST = """async () => {
    const manifest = await (await fetch(document.querySelector("link[rel=manifest]").href)).json()
    const icons = await Promise.all(manifest.icons.map(async ({ src }) => (await fetch(src)).status))
    return [manifest.display, manifest.start_url, ...new Set(icons)]
}"""


def test_what_is_copied_what_is_new_and_what_is_installed(browser: Browser, running: Daemon) -> None:
    """A run as a request that names this daemon's token, an agent's command from a dialog, the time since the last
    visit, and what a phone needs to install the page."""
    run_id = ask(running, "GET", "/api/schedule/hello/runs")["runs"][0]["runId"]
    with window(browser, running, scheme="light", size=PHONE, is_new=True) as one:
        page = one.page
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        one.go(f"runs/{run_id}")
        copy = page.get_by_role("button", name="Copy as curl")
        copy.click()
        expect(page.get_by_role("button", name="Copied")).to_be_visible()
        copied = page.evaluate(COPIED)
        assert copied.startswith(f'curl -X POST -H "Authorization: Bearer $(cat {running.home}/token)" ')
        assert copied.endswith("/api/schedule/hello/run")

        one.go("agents")
        connect = page.get_by_role("button", name="Connect tool to Wakeful's tools")
        connect.focus()
        page.keyboard.press("Enter")
        dialog = page.get_by_role("dialog", name="Connect tool")
        dialog.get_by_role("button", name="Copy").click()
        expect(dialog.get_by_text("Copied")).to_be_visible()
        assert page.evaluate(COPIED) == "wakeful agents connect tool"
        audit(page, "dialog")
        with page.expect_response("**/api/agents"):  # the view behind it is drawn again
            pass
        page.keyboard.press("Escape")
        expect(connect).to_be_focused()

        page.evaluate("localStorage.setItem('wakeful.visit', `${Date.now() - 3_700_000},`)")
        one.go("today")
        page.reload()
        expect(page.get_by_role("heading", name="Since your last visit, 1 h 1 min ago")).to_be_visible()
        expect(page.locator(".today-facts")).to_contain_text("$0.00 spent today")
        assert page.evaluate(MANIFEST) == ["standalone", "/", 200]


def test_what_is_not_there_offers_no_second_try(browser: Browser, running: Daemon) -> None:
    """A run, a schedule and a view that do not exist: said plainly, with a way out."""
    with window(browser, running, may_refuse=True) as one:
        page = one.page
        for place in ("runs/999999", "schedules/nowhere", "no/such/view"):
            page.goto(f"{running.address}/#/{place}")
            expect(page.get_by_role("heading", name="Not found")).to_be_visible()
            expect(page.get_by_role("button", name="Try again")).to_have_count(0)
            page.locator("#main").get_by_role("link", name="Today").click()
            expect(page.get_by_role("heading", name="Today", exact=True)).to_be_visible()
