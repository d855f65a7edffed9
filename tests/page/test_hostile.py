"""Markup, scripts, control characters and marks that turn the writing: inert in everything that others may write."""

import sys

import pytest
from playwright.sync_api import Browser, Page, expect

from edges.http.kit import Daemon
from page.kit import ask, window

MARKUP = "<img src=x onerror='window.hacked=1'><script>window.hacked=2</script><b id=bold>bold</b>"
TURNED = "safe\u202egnp.exe\u2066\u200f\u061c"
CONTROL = "bell\x07 escape\x1b[31m back\x08"
HOSTILE = f"{MARKUP} {TURNED} {CONTROL} javascript:window.hacked=3 ${{window.hacked=4}}"
ACTING = "\u202e\u2066\u200f\u061c\x07\x1b\x08"
# What a page would be made of, had any of it become markup.
LOOK = """() => ({
  hacked: window.hacked ?? null,
  made: document.querySelectorAll("#main img, #main script, #bold, #main iframe, #main [onerror]").length,
  text: document.body.innerText,
  titles: [...document.querySelectorAll("[title], [aria-label]")].map((e) => `${e.title} ${e.ariaLabel}`).join(" "),
  addresses: [...document.querySelectorAll("a")].map((a) => a.getAttribute("href")),
})"""


def is_inert(page: Page) -> str:
    """Nothing of it acts, wherever it stands; answers the text that is seen."""
    seen = page.evaluate(LOOK)
    assert (seen["hacked"], seen["made"]) == (None, 0)
    for char in ACTING:
        assert char not in seen["text"], f"U+{ord(char):04X} is in the text"
        assert char not in seen["titles"], f"U+{ord(char):04X} is in a title"
    assert all(address.startswith(("#", "/")) for address in seen["addresses"])
    text: str = seen["text"]
    return text


def test_what_others_write_is_shown_and_does_nothing(browser: Browser, running: Daemon) -> None:
    """Prompts, replies, output, errors and session names, in every view that shows them."""
    manual = {"type": "manual"}
    printing = f"import sys; print({HOSTILE!r}); print({HOSTILE!r}, file=sys.stderr); sys.exit(3)"
    jobs = {
        "prompted": {"schedule": manual, "prompt": HOSTILE},
        "printed": {"schedule": manual, "command": {"argv": [sys.executable, "-c", printing]}, "lane": MARKUP},
        "daily": {"schedule": {"type": "times", "times": ["09:00"]}, "prompt": HOSTILE, "agent": "default"},
    }
    runs = {}
    for slug, job in jobs.items():
        ask(running, "PUT", f"/api/schedule/{slug}", job)
        runs[slug] = ask(running, "POST", f"/api/schedule/{slug}/run?wait=true")["runId"]
    with window(browser, running) as one:
        page = one.page
        for place in ("timeline", "schedules", "schedules/prompted", "schedules/printed", "runs", "log", "health"):
            one.go(place)
            text = is_inert(page)
            if place == "schedules":
                assert "<img src=x" in text  # as it was written, and as nothing else
        for run_id in runs.values():
            one.go(f"runs/{run_id}")
            text = is_inert(page)
            assert "<script>window.hacked=2</script>" in text
            assert "⟨U+202E⟩" in text
        one.go("schedules/prompted/edit")
        is_inert(page)
        assert page.get_by_label("Prompt", exact=True).input_value() == HOSTILE  # what is edited is kept as it is
        page.keyboard.press("Control+k")
        page.keyboard.type("prompted")
        expect(page.get_by_role("option", name="prompted").first).to_be_visible()
        is_inert(page)


@pytest.mark.torture
def test_events_of_the_stream_are_inert_as_they_arrive(browser: Browser, running: Daemon) -> None:
    """While they come: in the log, in the list and on the axis."""
    failing = {"argv": [sys.executable, "-c", f"import sys; sys.exit({HOSTILE!r})"]}
    ask(running, "PUT", "/api/schedule/arriving", {"schedule": {"type": "manual"}, "command": failing})
    with window(browser, running) as one:
        for place in ("log", "schedules", "timeline", "schedules/arriving"):
            one.go(place)
            run_id = ask(running, "POST", "/api/schedule/arriving/run?wait=true")["runId"]
            if place == "log":
                expect(one.page.locator(".log")).to_contain_text(f"run {run_id}")
            is_inert(one.page)


def test_the_address_of_the_page_is_no_way_in(browser: Browser, running: Daemon) -> None:
    """What a link to the page may carry is shown as text or refused."""
    places = [
        "schedules/%3Cimg%20src=x%20onerror=hacked=1%3E",
        "schedules?q=%3Cscript%3E",
        "runs/1%3Cb%3E",
        "__proto__",
    ]
    with window(browser, running, may_refuse=True) as one:
        for place in places:
            one.page.goto(f"{running.address}/#/{place}")
            one.page.wait_for_selector("#main h1, #main h2")
            is_inert(one.page)
