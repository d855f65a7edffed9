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
WIDE = {"width": 1400, "height": 600}
PHONE = {"width": 390, "height": 664}
"""Without what the browser itself shows."""
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

    def leave(self) -> None:
        """Go where nothing is shown, with nothing left that a test has opened or intercepted."""
        self.page.unroute_all(behavior="ignoreErrors")
        self.page.evaluate(LEAVE)
        self.page.wait_for_selector(f"#main[data-at='{NOWHERE}']", state="attached")


NOWHERE = "nowhere"
LEAVE = f"""() => {{
  for (const dialog of document.querySelectorAll("dialog[open]")) dialog.close();
  for (const toast of document.querySelectorAll(".toast")) toast.remove();
  location.hash = "#/{NOWHERE}";
}}"""
_kept: list[Window] = []
"""Pages that ended well. To load the page is most of the work of a short test, so the next test goes on with one."""


@contextmanager
def window(
    browser: Browser,
    one: Daemon,
    *,
    scheme: str = "dark",
    size: dict[str, int] = WIDE,
    may_refuse: bool = False,
    logged_in: bool = True,
    is_new: bool = False,
) -> Iterator[Window]:
    """A page; at its end nothing may have gone wrong in it, and nobody else may have been asked. It may have been open
    in an earlier test of the same daemon. With `is_new` it has its own storage and cookies, and no test uses it again.
    """
    is_new = is_new or not logged_in
    mine = (None if is_new else _reused(browser, one)) or _opened(browser, one, logged_in=logged_in)
    page, mine.seen = mine.page, Seen()
    try:
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]
        page.set_viewport_size(size)  # type: ignore[arg-type]
        yield mine
        if not is_new:
            mine.leave()
        assert mine.seen.errors == [], mine.seen.errors
        assert mine.seen.elsewhere == [], mine.seen.elsewhere
        assert may_refuse or mine.seen.refused == [], mine.seen.refused
    except BaseException:
        is_new = True  # whatever went wrong in it is of no concern to the next test
        raise
    finally:
        if is_new:
            page.context.close()
        else:
            _kept.append(mine)


def _reused(browser: Browser, one: Daemon) -> Window | None:
    """A page of this daemon that is open and not in use."""
    while _kept:
        kept = _kept.pop()
        if not kept.page.is_closed() and kept.page.context.browser is browser and kept.address == one.address:
            return kept
    return None


def _opened(browser: Browser, one: Daemon, *, logged_in: bool) -> Window:
    """A new page that notes what it does."""
    context = browser.new_context(locale="en-GB")
    context.set_default_timeout(PATIENCE_MS)
    if logged_in:
        context.request.post(f"{one.address}/login", data={"token": TOKEN})
    mine = Window(context.new_page(), one.address, Seen())
    host = urlsplit(one.address).netloc

    def on_console(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and "Failed to load resource" not in message.text:
            mine.seen.errors.append(message.text)

    def on_request(request: Request) -> None:
        if urlsplit(request.url).netloc != host:
            mine.seen.elsewhere.append(request.url)

    def on_response(response: Response) -> None:
        is_rehearsal = response.status == 400 and "dryRun=true" in response.url  # half a form is refused as it should
        is_gone = response.status == 404 and f"/api/schedule/{mine.seen.removed}" in response.url
        if response.status >= 400 and not is_rehearsal and not is_gone:
            mine.seen.refused.append(f"{response.status} {response.request.method} {response.url}")

    mine.page.on("console", on_console)
    mine.page.on("pageerror", lambda error: mine.seen.errors.append(str(error)))
    mine.page.on("request", on_request)
    mine.page.on("response", on_response)
    return mine


def wait_until(page: Page, condition: Callable[[], object]) -> None:
    """Let the page run until a condition holds that Playwright cannot wait for."""
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until, "the condition never held"
        page.wait_for_timeout(50)


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
