"""A page in a real browser over a real daemon, which notes what must never happen: errors, and requests elsewhere."""

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, ConsoleMessage, Page, Request, Response, expect

from access import TOKEN
from edges.http.kit import Daemon
from patience import PATIENCE
from sampling import sampled

PATIENCE_MS = 1_000 * PATIENCE
expect.set_options(timeout=PATIENCE_MS)
WIDE = {"width": 1400, "height": 900}
PHONE = {"width": 390, "height": 844}
LOOKS = sampled([("dark", WIDE), ("light", PHONE)], every=2)
"""Both schemes, a wide screen and a phone."""


@dataclass(slots=True)
class Seen:
    """What a page did."""

    errors: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    """Requests the daemon did not grant: a browser calls each of them an error of the page."""
    removed: str = "/"
    """A schedule that the test removes: its view may ask for it once more before it closes."""


@dataclass(slots=True)
class Window:
    """One page."""

    page: Page
    address: str
    seen: Seen

    def go(self, place: str) -> None:
        """Go to a view, and wait until it is there."""
        self.page.goto(f"{self.address}/#/{place}")
        self.page.wait_for_selector(f"#main[data-at='{place.partition('?')[0]}']")


@contextmanager
def window(
    browser: Browser,
    one: Daemon,
    *,
    scheme: str = "dark",
    size: dict[str, int] = WIDE,
    may_refuse: bool = False,
    logged_in: bool = True,
) -> Iterator[Window]:
    """A page of its own; at its end nothing may have gone wrong in it, and nobody else may have been asked."""
    context = browser.new_context(color_scheme=scheme, viewport=size, reduced_motion="reduce", locale="en-GB")  # type: ignore[arg-type]
    context.set_default_timeout(PATIENCE_MS)
    if logged_in:
        context.request.post(f"{one.address}/login", data={"token": TOKEN})
    page = context.new_page()
    seen = Seen()
    host = urlsplit(one.address).netloc

    def on_console(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and "Failed to load resource" not in message.text:
            seen.errors.append(message.text)

    def on_request(request: Request) -> None:
        if urlsplit(request.url).netloc != host:
            seen.elsewhere.append(request.url)

    def on_response(response: Response) -> None:
        is_rehearsal = response.status == 400 and "dryRun=true" in response.url  # half a form is refused as it should
        is_gone = response.status == 404 and f"/api/schedule/{seen.removed}" in response.url
        if response.status >= 400 and not is_rehearsal and not is_gone:
            seen.refused.append(f"{response.status} {response.request.method} {response.url}")

    page.on("console", on_console)
    page.on("pageerror", lambda error: seen.errors.append(str(error)))
    page.on("request", on_request)
    page.on("response", on_response)
    try:
        yield Window(page, one.address, seen)
        assert seen.errors == [], seen.errors
        assert seen.elsewhere == [], seen.elsewhere
        assert may_refuse or seen.refused == [], seen.refused
    finally:
        context.close()


def wait_until(page: Page, condition: Callable[[], object]) -> None:
    """Let the page run until a condition holds that Playwright cannot wait for."""
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until, "the condition never held"
        page.wait_for_timeout(20)


def ask(one: Daemon, method: str, path: str, body: Any = None) -> Any:
    """Ask the daemon itself."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(one.address + path, data, method=method)
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        return json.loads(answer.read() or b"null")


def is_there(one: Daemon, path: str) -> bool:
    """Whether it answers with something."""
    try:
        ask(one, "GET", path)
    except urllib.error.HTTPError as error:
        error.close()
        return False
    return True
