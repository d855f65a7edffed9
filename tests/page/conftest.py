"""One browser and one daemon a module."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from edges.http.kit import Daemon, daemon
from page.browser import NoBrowser, find_chromium

# Inside a container there is often neither a user namespace for the sandbox nor room in /dev/shm. Memory can only be
# measured exactly, and after its garbage was collected, where the browser is told to allow both.
ARGS = ["--no-sandbox", "--disable-dev-shm-usage", "--js-flags=--expose-gc", "--enable-precise-memory-info"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium, without a window. It ends with the module: while it is there, no other event loop can run."""
    try:
        path = find_chromium()
    except NoBrowser as error:
        pytest.skip(f"browser tests need Chromium: {error}")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=ARGS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty home."""
    return tmp_path_factory.mktemp("page") / "home"


@pytest.fixture(scope="module")
def running(home: Path) -> Iterator[Daemon]:
    """A daemon for the tests of one module."""
    with daemon(home) as one:
        yield one
    shutil.rmtree(home, ignore_errors=True)
