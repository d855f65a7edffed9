"""How fast the page is, in a real browser over a real daemon: `make page-speed`.

Measured are, on a quiet daemon and with an empty cache, the first paint, the time until the first view shows its data,
and the bytes transferred; then, while ten thousand schedules fire a hundred times a second, how much the layout shifts
by itself, and how long it takes from a key to the paint that shows it. A busy machine makes all of it slower, so each
figure is the best of some rounds.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import quantiles
from typing import Final, NamedTuple

from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

TESTS: Final = Path(__file__).parents[1] / "tests"
sys.path.insert(0, str(TESTS))

from access import TOKEN  # noqa: E402 - it lives beside the browser tests
from edges.http.kit import Daemon, daemon  # noqa: E402 - likewise
from page.browser import find_chromium  # noqa: E402 - likewise
from wakeful import New  # noqa: E402 - after the path is set
from wakeful.core.time.timing import Every  # noqa: E402 - likewise
from wakeful.sync import Wakeful  # noqa: E402 - likewise

MEASURING: Final = (TESTS / "page" / "measuring.js").read_text()
PERIOD: Final = 100_000
"""Milliseconds between two fires of one schedule."""
QUIET: Final = 10
"""Schedules of a daemon that has little to do."""
WIDE: Final = {"width": 1400, "height": 900}
LOADED: Final = """() => {
  const navigation = performance.getEntriesByType("navigation")[0];
  const files = performance.getEntriesByType("resource").filter((one) => !one.name.endsWith("/api/stream"));
  const paint = performance.getEntriesByName("first-contentful-paint")[0];
  return [paint.startTime, files.reduce((sum, one) => sum + one.transferSize, navigation.transferSize), files.length];
}"""
SHIFTS: Final = """async (ms) => {
  let sum = 0;
  new PerformanceObserver((list) => {
    for (const one of list.getEntries()) if (!one.hadRecentInput) sum += one.value;
  }).observe({ type: "layout-shift" });
  await new Promise((go) => setTimeout(go, ms));
  return sum;
}"""


class Figure(NamedTuple):
    """One line of the report."""

    name: str
    value: float
    unit: str
    target: float

    def __str__(self) -> str:
        state = "ok" if self.value <= self.target else "above the target"
        return f"{self.name:<44} {self.value:>9.3g} {self.unit:<3} (target {self.target:g}): {state}"


@contextmanager
def loaded_daemon(folder: Path, many: int) -> Iterator[Daemon]:
    """A daemon over many schedules, spread evenly over their period."""
    home = folder / "home"
    home.mkdir(mode=0o700)
    begun, spread = int(time.time() * 1_000), PERIOD // many
    with Wakeful(home / "wakeful.db", tick=False) as app:
        for start in range(0, many, 1_000):
            some = range(start, min(start + 1_000, many))
            app.add_many([New(f"s{n:05}", Every(PERIOD, begun + n * spread), call="os:getpid") for n in some])
    with daemon(home) as one:
        yield one


def opened(browser: Browser, one: Daemon) -> tuple[BrowserContext, Page]:
    """A page of its own, logged in, with an empty cache."""
    context = browser.new_context(viewport=WIDE)  # type: ignore[arg-type]
    context.request.post(f"{one.address}/login", data={"token": TOKEN})
    return context, context.new_page()


def first_visit(browser: Browser, one: Daemon) -> tuple[float, float, float]:
    """First paint and first data in milliseconds, and kilobytes transferred."""
    context, page = opened(browser, one)
    page.goto(one.address)
    page.wait_for_selector("#main[data-at=today]")
    shown = page.evaluate("performance.now()")
    paint, size, _ = page.evaluate(LOADED)
    context.close()
    return paint, shown, size / 1_000


def shift(browser: Browser, one: Daemon, place: str, seconds: float) -> float:
    """How far the layout of a view shifts by itself (cumulative layout shift)."""
    context, page = opened(browser, one)
    page.goto(f"{one.address}/#/{place}")
    page.wait_for_selector(f"#main[data-at={place}]")
    value: float = page.evaluate(SHIFTS, seconds * 1_000)
    context.close()
    return value


def paint_after_key(browser: Browser, one: Daemon, place: str, rounds: int) -> float:
    """Milliseconds from a key to its paint, nine of ten, while everything fires."""
    context, page = opened(browser, one)
    page.goto(f"{one.address}/#/{place}")
    page.wait_for_selector(f"#main[data-at={place}]")
    page.evaluate(MEASURING)
    page.evaluate("measuring.flows(300, 50)")
    search = page.locator("input[type=search]")
    search.focus()
    best = min(_keys(page, "s012", search.fill) for _ in range(rounds))
    context.close()
    return best


def _keys(page: Page, keys: str, fill: object) -> float:
    fill("")  # type: ignore[operator]
    page.evaluate("measuring.taken()")
    for key in keys:
        page.keyboard.press(key)
    page.evaluate("measuring.painted()")
    told: list[float] = page.evaluate("measuring.taken()")  # what took 16 ms or longer
    return quantiles([*told, *[0.0] * (len(keys) - len(told))], n=10)[-1]


def figures_at_rest(browser: Browser, one: Daemon, rounds: int) -> Iterator[Figure]:
    """The first visit."""
    paints, shows, sizes = zip(*(first_visit(browser, one) for _ in range(rounds)), strict=True)
    yield Figure("first paint", min(paints), "ms", 200)
    yield Figure("first view with its data", min(shows), "ms", 1_000)
    yield Figure("transferred, first visit", max(sizes), "kB", 150)


def figures_under_load(browser: Browser, one: Daemon, rounds: int) -> Iterator[Figure]:
    """While everything fires."""
    for place in ("today", "schedules", "timeline"):
        yield Figure(f"layout shift in 10 s, {place}", shift(browser, one, place, 10), "", 0.1)
    for place in ("schedules", "timeline", "runs"):
        yield Figure(f"from a key to its paint, {place}", paint_after_key(browser, one, place, rounds), "ms", 100)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--schedules", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args(argv)
    with sync_playwright() as playwright:
        args = ["--no-sandbox", "--disable-dev-shm-usage"]
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=args)
        for many, measured in ((QUIET, figures_at_rest), (asked.schedules, figures_under_load)):
            with tempfile.TemporaryDirectory() as folder, loaded_daemon(Path(folder), many) as one:
                for figure in measured(browser, one, asked.rounds):
                    sys.stdout.write(f"{figure}\n")
                    sys.stdout.flush()
        browser.close()


if __name__ == "__main__":
    main()
