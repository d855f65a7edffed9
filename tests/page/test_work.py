"""What people do on the page: create, edit, pause, run, follow, ask why, delete; in both schemes and on a phone."""

import re
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from edges.http.kit import Daemon
from far_away import hour_away
from page.kit import LOOKS, PHONE, WIDE, Window, ask, wait_until, window
from sampling import sampled

GATE = "import os, pathlib, time\nwhile not pathlib.Path({0!r}).exists(): time.sleep(0.02)\nprint('through the gate')"
CUT = "[...document.querySelectorAll('.table-wrap:has(table)')].some(one => one.scrollWidth > one.clientWidth)"
QUOTED = r"sh -c 'echo '\''a b'\'''"


def fill_in(one: Window, slug: str, argv: str) -> None:
    """The form of a new schedule that runs a command each day."""
    page = one.page
    one.go("new")
    page.get_by_label("Name", exact=True).fill(slug)
    page.get_by_role("button", name="Times of day").click()
    page.get_by_label("Times", exact=True).fill("07:30, 21:45")
    page.get_by_label("Time zone", exact=True).fill("Europe/Berlin")
    page.get_by_role("button", name="Run a command").click()
    page.get_by_label("Command", exact=True).fill(argv)


@pytest.mark.parametrize(
    ("scheme", "size"), sampled([("dark", WIDE), ("light", WIDE), ("light", PHONE)], every=3, offset=2)
)
def test_a_schedule_from_its_making_to_its_end(browser: Browser, running: Daemon, scheme: str, size: Any) -> None:
    """Create with a preview, run, edit, pause, resume, delete: each is seen on the page and is so in the daemon."""
    slug = f"made-{scheme}-{size['width']}"
    with window(browser, running, scheme=scheme, size=size) as one:
        page = one.page
        fill_in(one, slug, "echo 'two words' three")
        preview = page.get_by_label("Preview")
        expect(preview).to_contain_text("at 07:30 and 21:45 every day (Europe/Berlin)")
        expect(preview.locator("li")).to_have_count(5)
        page.get_by_role("button", name="Create").click()
        expect(page.get_by_role("heading", name=slug, exact=True)).to_be_visible()
        written = ask(running, "GET", f"/api/schedule/{slug}")
        assert written["command"]["argv"] == ["echo", "two words", "three"]
        assert written["schedule"] == {"type": "times", "times": ["07:30", "21:45"], "timezone": "Europe/Berlin"}

        page.get_by_role("button", name="Run now").click()
        expect(page.locator(".run").first).to_contain_text("succeeded")
        page.locator(".run summary").first.click()
        expect(page.locator(".run pre").first).to_have_text("two words three\n")
        expect(page.locator(".run .ladder li.reached")).to_have_count(5)

        page.get_by_role("link", name="Edit").click()
        page.get_by_label("Times", exact=True).fill("06:15")
        expect(page.get_by_label("Preview")).to_contain_text("at 06:15 every day")
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_role("button", name="Pause")).to_be_visible()
        expect(page.get_by_text("at 06:15 every day (Europe/Berlin)").first).to_be_visible()
        assert ask(running, "GET", f"/api/schedule/{slug}")["schedule"]["times"] == ["06:15"]

        page.get_by_role("button", name="Pause").click()
        expect(page.get_by_role("button", name="Resume")).to_be_visible()
        assert ask(running, "GET", f"/api/schedule/{slug}")["status"] == "paused"
        expect(page.locator(".why")).to_contain_text("paused")
        page.get_by_role("button", name="Resume").click()
        expect(page.get_by_role("button", name="Pause")).to_be_visible()

        one.seen.removed = slug
        page.get_by_role("button", name="Delete").click()
        page.locator("dialog").get_by_role("button", name="Delete").click()
        expect(page.get_by_role("heading", name="Schedules", exact=True)).to_be_visible()
        expect(page.locator(f"[data-slug={slug}]")).to_have_count(0)
        assert slug not in [one["slug"] for one in ask(running, "GET", "/api/schedule")["schedules"]]


@pytest.mark.parametrize(("scheme", "size"), LOOKS)
def test_a_run_is_followed_up_its_ladder_live(browser: Browser, running: Daemon, scheme: str, size: Any) -> None:
    """Nobody loads the page anew: the rungs fill while it runs, and the outcome arrives when it ends."""
    gate = running.home.parent / f"gate-{scheme}"
    job = {"schedule": {"type": "manual"}, "command": {"argv": [sys.executable, "-c", GATE.format(str(gate))]}}
    ask(running, "PUT", "/api/schedule/followed", job)
    with window(browser, running, scheme=scheme, size=size) as one:
        page = one.page
        one.go("schedules/followed")
        expect(page.locator(".pill").first).to_have_text("live")
        run_id = ask(running, "POST", "/api/schedule/followed/run")["runId"]
        row = page.locator(f"[data-run='{run_id}']")
        expect(row).to_contain_text("running")
        row.locator("summary").click()
        expect(row.locator(".ladder li.reached").last).to_contain_text("started")
        expect(row.locator(".ladder li.reached")).to_have_count(4)
        gate.touch()
        expect(row).to_contain_text("succeeded")
        expect(row.locator(".ladder li.reached")).to_have_count(5)
        expect(row.locator("pre")).to_have_text("through the gate\n")
        requests = page.evaluate("performance.getEntriesByType('navigation').length")
        assert requests == 1


@pytest.mark.parametrize(("scheme", "size"), LOOKS)
def test_why_is_read_for_now_and_for_an_instant(browser: Browser, running: Daemon, scheme: str, size: Any) -> None:
    """The sentence of the daemon, for how it stands and for a time that is asked about."""
    daily = {"type": "cron", "expression": f"0 {hour_away()} * * *", "timezone": "UTC"}
    ask(running, "PUT", "/api/schedule/asked", {"schedule": daily, "command": {"argv": ["true"]}})
    told = ask(running, "GET", "/api/schedule/asked/why")["sentence"]
    told = re.sub(r"\d{4}-\d\d-\d\d .*", "", told)  # times have the style of the page
    with window(browser, running, scheme=scheme, size=size) as one:
        page = one.page
        one.go("schedules/asked")
        expect(page.locator(".why")).to_contain_text(told)
        page.get_by_text("Ask about a different time").click()
        page.get_by_label("Time (").fill("2020-02-03T09:00:00")
        page.get_by_role("button", name="Ask").click()
        expect(page.locator(".why")).to_contain_text("3 Feb 2020")


def test_each_fault_is_shown_at_its_field(browser: Browser, running: Daemon) -> None:
    """While one types, and again when one saves; nothing is written meanwhile."""
    with window(browser, running, may_refuse=True) as one:
        page = one.page
        one.go("new")
        page.get_by_label("Name", exact=True).fill("Bad Name")
        page.get_by_label("Expression").fill("61 * * * *")
        page.get_by_label("Time zone", exact=True).fill("Mars/Olympus")
        page.get_by_label("Prompt", exact=True).fill("hello")
        expression = page.get_by_label("Expression")
        expect(expression).to_have_attribute("aria-invalid", "true")
        expect(page.locator("#f-schedule-expression-wrong")).not_to_be_empty()
        page.get_by_label("Name", exact=True).fill("good-name")
        page.get_by_label("Expression").fill("0 9 * * *")
        expect(page.locator("#f-schedule-timezone-wrong")).to_contain_text("Mars/Olympus")
        page.get_by_role("button", name="Create").click()
        expect(page.get_by_label("Time zone", exact=True)).to_be_focused()
        assert "good-name" not in [one["slug"] for one in ask(running, "GET", "/api/schedule")["schedules"]]
        assert {line.partition(" ")[0] for line in one.seen.refused} <= {"400", "404"}


def test_the_form_and_the_json_say_the_same(browser: Browser, running: Daemon) -> None:
    """One becomes the other, both ways, and what the form does not show is kept."""
    job = {
        "schedule": {"type": "every", "every": "2h"},
        "command": {"argv": ["sh", "-c", "echo 'a b'"], "env": {"KEPT": "yes"}},
        "catchUpMax": 3,
        "timeout": "5m",
        "deliver": [{"channel": "inbox"}, {"channel": "last", "to": "ann"}],
    }
    ask(running, "PUT", "/api/schedule/both-ways", job)
    before = ask(running, "GET", "/api/schedule/both-ways")
    with window(browser, running) as one:
        page = one.page
        one.go("schedules/both-ways/edit")
        page.get_by_role("button", name="JSON").click()
        text = page.get_by_label("Definition as JSON")
        text.fill(text.input_value().replace('"timeout": "5m"', '"timeout": "6m"'))
        page.get_by_role("button", name="Form").click()
        expect(page.get_by_label("Command", exact=True)).to_have_value(QUOTED)
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_role("heading", name="both-ways", exact=True)).to_be_visible()
        expect(page.get_by_text("inbox, last → ann")).to_be_visible()
        after = ask(running, "GET", "/api/schedule/both-ways")
        assert (after["timeout"], after["command"], after["catchUpMax"]) == ("6m", before["command"], 3)
        assert after["deliver"] == job["deliver"]
        one.go("schedules/both-ways/edit")
        page.locator('[data-field="deliver.channel"]').evaluate("one => one.closest('details').open = true")
        channels = page.get_by_role("group", name="Deliver the reply to")
        channels.get_by_role("checkbox", name="last").check()
        channels.get_by_label("Other recipients").fill("last → ben")
        page.get_by_role("button", name="Save").click()
        page.wait_for_selector("#main[data-at='schedules/both-ways']")
        expect(page.get_by_text("last → ben")).to_be_visible()
    after = ask(running, "GET", "/api/schedule/both-ways")
    wanted = [{"channel": "inbox"}, {"channel": "last"}, {"channel": "last", "to": "ben"}]
    assert sorted(after["deliver"], key=str) == sorted(wanted, key=str)


@pytest.mark.torture
def test_an_address_names_the_span_of_the_axis(browser: Browser, running: Daemon) -> None:
    """So that it can be linked to."""
    with window(browser, running) as one:
        for place, words in (
            ("timeline?span=15m", "15 min"),
            ("timeline?span=24h", "24 hours"),
            ("timeline?span=7d", "7 days"),
        ):
            one.page.goto("about:blank")
            one.go(place)
            expect(one.page.get_by_role("button", name=words)).to_have_attribute("aria-pressed", "true")


def test_a_schedule_shows_what_it_does_and_when_on_the_readers_clock(browser: Browser, running: Daemon) -> None:
    """The command itself, and the moment of its grid as all other times are shown."""
    every = {"type": "every", "every": "2h", "anchor": "2026-01-30T09:00:00Z"}
    command = {"argv": ["echo", "what it does"]}
    ask(running, "PUT", "/api/schedule/telling", {"schedule": every, "command": command})
    with window(browser, running) as one:
        one.go("schedules/telling")
        main = one.page.locator("#main")
        expect(main).to_contain_text("echo what it does")
        expect(main.locator(".head")).to_contain_text("every 2 hours, aligned to Fri")
        expect(main.locator(".head")).not_to_contain_text("2026-01-30T09:00:00")


def test_the_palette_goes_anywhere_by_keyboard(browser: Browser, running: Daemon) -> None:
    """Ctrl-K, some letters, Enter: a place, and a schedule by its name."""
    ask(running, "PUT", "/api/schedule/needle", {"schedule": {"type": "manual"}, "command": {"argv": ["true"]}})
    with window(browser, running) as one:
        page = one.page
        one.go("timeline")
        page.keyboard.press("Control+k")
        page.keyboard.type("live log")
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="Live log", exact=True)).to_be_visible()
        page.keyboard.press("Control+k")
        page.keyboard.type("needl")
        expect(page.get_by_role("option", name="needle").first).to_be_visible()
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="needle", exact=True)).to_be_visible()


@pytest.mark.torture
@pytest.mark.parametrize(("scheme", "size"), LOOKS)
def test_every_view_opens_in_both_schemes_and_on_a_phone(
    browser: Browser, running: Daemon, scheme: str, size: Any
) -> None:
    """Each has a heading and something to read; none scrolls sideways; what this build lacks says so."""
    places = ["timeline", "schedules", "runs", "heartbeat", "workflows", "slots"]
    places += ["inbox", "outbox", "channels", "health", "log", "new"]
    with window(browser, running, scheme=scheme, size=size) as one:
        background = None
        for place in places:
            one.go(place)
            expect(one.page.locator("h1")).to_be_visible()
            wide = one.page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert wide <= 0, (place, scheme)
            assert not one.page.evaluate(CUT), f"a table of {place} is cut off"
            background = one.page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        assert (background == "rgb(14, 15, 23)") == (scheme == "dark")


@pytest.mark.torture
def test_the_scheme_can_be_switched_and_is_remembered(browser: Browser, running: Daemon) -> None:
    """Against what the system says, and after a reload."""
    look = "getComputedStyle(document.documentElement).colorScheme"
    with window(browser, running, scheme="dark", is_new=True) as one:
        one.go("timeline")
        one.page.get_by_label("Dark or light").click()
        assert one.page.evaluate(look) == "light"
        one.page.reload()
        one.go("timeline")
        assert one.page.evaluate(look) == "light"


@pytest.mark.torture
def test_the_time_axis_knows_where_clocks_change(browser: Browser, running: Daemon) -> None:
    """Found to the minute, in the zones of the schedules: an hour, half an hour, a whole day that was left out."""
    look = """async ([zone, from, until]) => {
      const { zoneChanges } = await import("/page/lib/time.js");
      const found = zoneChanges(zone, Date.parse(from), Date.parse(until));
      return found.map((one) => [new Date(one.at).toISOString(), one.by]);
    }"""
    cases = [
        ("America/New_York", "2026-10-30T00:00Z", "2026-11-08T00:00Z", [["2026-11-01T06:00:00.000Z", -60]]),
        ("Europe/Berlin", "2026-03-25T00:00Z", "2026-04-02T00:00Z", [["2026-03-29T01:00:00.000Z", 60]]),
        ("Australia/Lord_Howe", "2026-10-01T00:00Z", "2026-10-08T00:00Z", [["2026-10-03T15:30:00.000Z", 30]]),
        ("Asia/Shanghai", "2026-01-01T00:00Z", "2026-12-31T00:00Z", []),
    ]
    with window(browser, running) as one:
        one.go("timeline")
        for zone, since, until, changes in cases:
            assert one.page.evaluate(look, [zone, since, until]) == changes


def test_the_time_axis_is_pointed_at_and_leads_on(browser: Browser, running: Daemon) -> None:
    """A mark says what it is, and a click on it opens the run; keys zoom and move."""
    ask(running, "PUT", "/api/schedule/pointed", {"schedule": {"type": "manual"}, "command": {"argv": ["false"]}})
    run_id = ask(running, "POST", "/api/schedule/pointed/run?wait=true")["runId"]
    with window(browser, running) as one:
        page = one.page
        one.go("timeline")
        page.locator("input[type=search]").fill("pointed")
        expect(page.locator(".tl-rows li")).to_have_count(1)
        page.get_by_role("button", name="3 hours").click()
        axis = page.locator(".tl-scroll canvas")
        box = axis.bounding_box()
        assert box is not None
        tip = page.get_by_role("tooltip")
        expect(axis).to_be_visible()
        started = datetime.fromisoformat(ask(running, "GET", f"/api/runs/{run_id}")["startedAt"])

        def is_pointed_at() -> bool:  # now is a quarter from the left, and the mark moves away from it
            share = 0.25 - (datetime.now(UTC) - started) / timedelta(hours=3)
            page.mouse.move(box["x"] + box["width"] * share - 30, box["y"] + 17)
            page.mouse.move(box["x"] + box["width"] * share, box["y"] + 17)
            return tip.is_visible()

        wait_until(page, is_pointed_at)
        expect(tip).to_contain_text("pointed")
        expect(tip).to_contain_text("failed")
        axis.focus()
        page.keyboard.press("+")
        page.keyboard.press("ArrowLeft")
        expect(page.get_by_role("button", name="Now")).to_be_visible()
        page.keyboard.press("0")
        expect(page.get_by_role("button", name="Now")).to_be_hidden()
        page.get_by_role("button", name="3 hours").click()
        wait_until(page, is_pointed_at)
        page.mouse.down()
        page.mouse.up()
        expect(page.get_by_role("heading", name=f"Run {run_id}", exact=True)).to_be_visible()
