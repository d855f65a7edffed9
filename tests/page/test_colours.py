"""The colours of the time axis are those of the scheme, however little somebody wants to see moving."""

from itertools import product

import pytest
from playwright.sync_api import Browser

from access import TOKEN
from edges.http.kit import Daemon
from page.kit import PATIENCE_MS
from sampling import sampled

READ = """async () => {
  const { colours } = await import("/page/parts/axis.js");
  return colours();
}"""

SCHEMES = ("dark", "light")
MOTIONS = ("reduce", "no-preference")


@pytest.mark.torture
@pytest.mark.parametrize(("scheme", "motion"), sampled(product(SCHEMES, MOTIONS), every=4))
def test_every_outcome_has_a_colour_of_its_own(browser: Browser, running: Daemon, scheme: str, motion: str) -> None:
    """What fades in elsewhere must not be read half way: all would have the colour of the first."""
    page = browser.new_page(color_scheme=scheme, reduced_motion=motion)  # type: ignore[arg-type]
    page.set_default_timeout(PATIENCE_MS)
    page.request.post(f"{running.address}/login", data={"token": TOKEN})
    try:
        page.goto(f"{running.address}/#/timeline")
        page.wait_for_selector("#main[data-at='timeline']")
        found = page.evaluate(READ)
        outcomes = [found[name] for name in ("succeeded", "failed", "unconfirmed", "running", "line", "sunken")]
        assert len(set(outcomes)) == len(outcomes), found
    finally:
        page.close()
