"""One browser for as long as tests of this folder follow one another, and one daemon a module."""

import shutil
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, sync_playwright

from edges.http.kit import Daemon, daemon
from page.browser import NoBrowser, find_chromium

# Inside a container there is often neither a user namespace for the sandbox nor room in /dev/shm. Memory can only be
# measured exactly, and after its garbage was collected, where the browser is told to allow both.
ARGS = ["--no-sandbox", "--disable-dev-shm-usage", "--js-flags=--expose-gc", "--enable-precise-memory-info"]


class Chromium:
    """The browser of this process, and whether the next module uses it too."""

    def __init__(self) -> None:
        self.is_needed_again = False
        self._browser: Browser | None = None
        self._stop: Callable[[], None] = lambda: None

    def start(self) -> Browser:
        """The one that runs, or else a new one."""
        if self._browser is None:
            path = find_chromium()
            playwright = sync_playwright().start()
            self._stop = playwright.stop
            self._browser = playwright.chromium.launch(executable_path=path, args=ARGS)
        return self._browser

    def end(self) -> None:
        """While it is there, no other event loop can run."""
        self.is_needed_again = False
        if self._browser is not None:
            self._browser.close()
        self._stop()
        self._browser, self._stop = None, lambda: None


_chromium = Chromium()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, Any, Any]:
    """End the browser before a test of another folder starts: it may need an event loop."""
    _chromium.is_needed_again = nextitem is not None and nextitem.path.parent == Path(__file__).parent
    try:
        return (yield)
    finally:
        if not _chromium.is_needed_again:
            _chromium.end()


def pytest_unconfigure() -> None:
    """Also if the tests were stopped in between."""
    _chromium.end()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium, without a window and without anything of the modules before. In another folder it ends with the
    module."""
    try:
        chromium = _chromium.start()
    except NoBrowser as error:
        pytest.skip(f"browser tests need Chromium: {error}")
    yield chromium
    for context in chromium.contexts:
        context.close()
    if not _chromium.is_needed_again:
        _chromium.end()


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
