"""Takes the pictures of the documentation from the running demo: `make pictures`.

The demo begins in a folder of its own and is given some minutes, so that there is something to see; then Chromium,
without a window, looks at it as a reader would: in light and dark, wide and on a phone.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from playwright.sync_api import Browser, sync_playwright

HERE: Final = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "tests"))

from page.browser import find_chromium  # noqa: E402 - it lives beside the browser tests

BYTES_MAX: Final = 300_000
"""Of one picture: a page of documentation should load at once."""
WIDE: Final = {"width": 1280, "height": 800}
PHONE: Final = {"width": 390, "height": 844}
PATIENCE: Final = 30_000
ZONE: Final = "Europe/Berlin"
AXIS: Final = "timeline?span=15m"
"""A quarter of an hour: the demo is quicker than life."""


class Picture(NamedTuple):
    """One of them: the view, the scheme, the size."""

    name: str
    view: str
    scheme: str
    size: dict[str, int] = WIDE


PICTURES: Final = (
    Picture("timeline-dark", AXIS, "dark"),
    Picture("timeline-light", AXIS, "light"),
    Picture("timeline-phone", AXIS, "dark", PHONE),
    Picture("schedules", "schedules", "light"),
    Picture("schedule", "schedules/import", "dark"),
    Picture("schedule-phone", "schedules/import", "light", PHONE),
    Picture("workflow", "workflows/letters", "light"),
    Picture("slots", "slots", "dark"),
    Picture("inbox", "inbox", "light"),
    Picture("outbox", "outbox", "dark"),
    Picture("heartbeat", "heartbeat", "light"),
)


@contextmanager
def demo(home: Path) -> Iterator[tuple[str, str]]:
    """The demo on a free port; its address and its token."""
    command = [
        sys.executable,
        "-m",
        "wakeful.cli.main",
        "up",
        "--demo",
        "--home",
        str(home),
        "--port",
        "0",
        "-o",
        "json",
    ]
    with (home.parent / "said").open("w") as said:
        environ = {**os.environ, "TZ": ZONE}  # sentences of the daemon and times of the page are on one clock
        child = subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=said, text=True)
    try:
        assert child.stdout is not None
        yield json.loads(child.stdout.readline())["url"], (home / "token").read_text().strip()
    finally:
        child.send_signal(signal.SIGTERM)
        child.communicate(timeout=60)


def take(browser: Browser, address: str, token: str, picture: Picture) -> Path:
    """Look at one view, and write what is seen."""
    context = browser.new_context(
        color_scheme=picture.scheme,  # type: ignore[arg-type]
        viewport=picture.size,  # type: ignore[arg-type]
        device_scale_factor=1 if picture.size is WIDE else 2,
        reduced_motion="reduce",
        locale="en-GB",
        timezone_id=ZONE,
    )
    context.set_default_timeout(PATIENCE)
    context.request.post(f"{address}/login", data={"token": token})
    page = context.new_page()
    page.goto(f"{address}/#/{picture.view}")
    page.wait_for_selector(f"#main[data-at='{picture.view.partition('?')[0]}']")
    page.wait_for_timeout(2_000)  # the numbers come with the first answers, a moment after the view itself
    file = HERE / f"{picture.name}.png"
    page.screenshot(path=file)
    context.close()
    size = file.stat().st_size
    assert size <= BYTES_MAX, f"{file.name} has {size} bytes"
    return file


def ask(address: str, token: str, path: str) -> Any:
    request = urllib.request.Request(address + path, headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=300.0, help="how long the demo runs before it is looked at")
    parser.add_argument("names", nargs="*", help="which pictures; all if none is named")
    asked = parser.parse_args()
    wanted = [one for one in PICTURES if not asked.names or one.name in asked.names]
    with tempfile.TemporaryDirectory() as folder, demo(Path(folder) / "home") as (address, token):
        time.sleep(asked.seconds)
        assert ask(address, token, "/api/runs?outcome=failed")["runs"], "the demo has nothing to show"
        with sync_playwright() as playwright:
            args = ["--no-sandbox", "--disable-dev-shm-usage"]
            browser = playwright.chromium.launch(executable_path=find_chromium(), args=args)
            for picture in wanted:
                file = take(browser, address, token, picture)
                sys.stdout.write(f"{file.name}  {file.stat().st_size // 1000} kB\n")
            browser.close()


if __name__ == "__main__":
    main()
