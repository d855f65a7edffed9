"""Takes pictures of every view from the running demo, in light, dark and on a phone: `make pictures`.

The demo begins in a folder of its own and is given some minutes, so that there is something to see; then Chromium,
without a window, looks at it as a reader would. All pictures go to `.pictures`; those that the documentation shows are
copied here.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any, Final, NamedTuple

from playwright.sync_api import Browser, sync_playwright

HERE: Final = Path(__file__).parent
ALL: Final = HERE.parents[1] / ".pictures"
sys.path.insert(0, str(HERE.parents[1] / "tests"))

from page.browser import find_chromium  # noqa: E402 - it lives beside the browser tests

BYTES_MAX: Final = 300_000
"""Of one picture: a page of documentation should load at once."""
WIDE: Final = {"width": 1280, "height": 800}
PHONE: Final = {"width": 390, "height": 844}
PATIENCE: Final = 30_000
FORECAST_WITHIN: Final = 600.0
ZONE: Final = "Europe/Berlin"
AXIS: Final = "timeline?span=15m"
"""A quarter of an hour: the demo is quicker than life."""


class Look(NamedTuple):
    """A scheme and a size."""

    scheme: str
    size: dict[str, int] = WIDE


LOOKS: Final = {"light": Look("light"), "dark": Look("dark"), "phone": Look("dark", PHONE)}
VIEWS: Final = {
    "today": "today",
    "timeline": AXIS,
    "timeline-week": "timeline?span=7d",
    "schedules": "schedules",
    "schedule": "schedules/import",
    "edit": "schedules/changelog/edit",
    "new": "new",
    "ledger": "runs",
    "run": "runs/{failed}",
    "agents": "agents",
    "heartbeat": "heartbeat",
    "workflows": "workflows",
    "workflow": "workflows/letters",
    "workflow-edit": "workflows/letters/edit",
    "slots": "slots",
    "slot-new": "new-slot",
    "forecast": "forecast",
    "cost": "cost",
    "approvals": "approvals",
    "import": "import",
    "inbox": "inbox",
    "outbox": "outbox",
    "channels": "channels",
    "health": "health",
    "log": "log",
}
SHOWN: Final = (
    "today-light",
    "today-dark",
    "today-phone",
    "agents-dark",
    "timeline-dark",
    "timeline-light",
    "timeline-phone",
    "schedules-light",
    "schedule-dark",
    "schedule-phone",
    "workflow-light",
    "slots-dark",
    "inbox-light",
    "outbox-dark",
    "heartbeat-light",
    "cost-light",
    "approvals-light",
)
"""Those in the documentation."""


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


def take(browser: Browser, address: str, token: str, name: str, view: str, look: Look) -> Path:
    """Look at one view, and write what is seen."""
    context = browser.new_context(
        color_scheme=look.scheme,  # type: ignore[arg-type]
        viewport=look.size,  # type: ignore[arg-type]
        device_scale_factor=1 if look.size is WIDE else 2,
        reduced_motion="reduce",
        locale="en-GB",
        timezone_id=ZONE,
    )
    context.set_default_timeout(PATIENCE)
    context.request.post(f"{address}/login", data={"token": token})
    page = context.new_page()
    page.goto(f"{address}/#/{view}")
    page.wait_for_selector(f"#main[data-at='{view.partition('?')[0]}']")
    page.wait_for_timeout(2_000)  # the numbers come with the first answers, a moment after the view itself
    file = ALL / f"{name}.png"
    page.screenshot(path=file)
    context.close()
    return file


def show(file: Path) -> None:
    """Copy one into the documentation."""
    size = file.stat().st_size
    assert size <= BYTES_MAX, f"{file.name} has {size} bytes"
    shutil.copy(file, HERE / file.name)


def ask(address: str, token: str, path: str, *, timeout: float = 30) -> Any:
    request = urllib.request.Request(address + path, headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=timeout) as answer:
        return json.load(answer)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=300.0, help="how long the demo runs before it is looked at")
    parser.add_argument("names", nargs="*", help="which pictures, such as cost-dark; all if none is named")
    asked = parser.parse_args()
    ALL.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="wakeful-") as folder, demo(Path(folder) / "home") as (address, token):
        time.sleep(asked.seconds)
        ask(address, token, "/api/forecast?days=1", timeout=FORECAST_WITHIN)  # the page shows it while it is fresh
        (failed, *_) = ask(address, token, "/api/runs?outcome=failed&limit=1")["runs"]
        with sync_playwright() as playwright:
            args = ["--no-sandbox", "--disable-dev-shm-usage"]
            browser = playwright.chromium.launch(executable_path=find_chromium(), args=args)
            for (view, path), (word, look) in product(VIEWS.items(), LOOKS.items()):
                name = f"{view}-{word}"
                if asked.names and name not in asked.names:
                    continue
                file = take(browser, address, token, name, path.format(failed=failed["runId"]), look)
                if name in SHOWN:
                    show(file)
                sys.stdout.write(f"{file.name}  {file.stat().st_size // 1000} kB\n")
            browser.close()


if __name__ == "__main__":
    main()
