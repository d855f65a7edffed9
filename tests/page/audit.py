"""What holds for every view in every look: axe-core finds nothing, nothing is wider than the screen, and on a phone
nothing that is pressed is smaller than a finger."""

from importlib.resources import files
from typing import Final

from playwright.sync_api import Page

AXE: Final = (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
VIOLATIONS: Final = """async ([context, contrast]) => {
  const rules = { "color-contrast": { enabled: contrast } };
  const found = await axe.run(context, { resultTypes: ["violations"], rules });
  return found.violations.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.html.slice(0, 160)}`));
}"""
# What scrolls sideways by itself (a table, the next runs) may be wider inside, and what is off the screen on purpose
# (the closed menu, labels for screen readers) is not in the way.
TOO_WIDE: Final = """() => {
  const wide = document.documentElement.clientWidth;
  const right = (element) => element.getBoundingClientRect().right;
  const scrolls = (box) =>
    box && (/(auto|scroll|hidden|clip)/.test(getComputedStyle(box).overflowX) || scrolls(box.parentElement));
  const page = document.documentElement.scrollWidth;
  return [...document.querySelectorAll("#main *, .bar *, .tabs-bottom *, dialog *")]
    .filter((element) => element.checkVisibility() && right(element) > wide + 0.5 && !scrolls(element.parentElement))
    .map((element) => `${element.tagName}.${element.className}: ${Math.round(right(element))} px`)
    .concat(page > wide ? [`the page: ${page} px`] : []);
}"""
FINGER: Final = 44
TOO_SMALL: Final = f"""() => [...document.querySelectorAll(
    "#main :is(button, select, summary, a.button, input:not([type=checkbox])), .bar :is(a.pill, button), " +
      ".tabs-bottom :is(a, button), .side.open :is(nav a, button), dialog button"
  )]
  .map((element) => [element, element.getBoundingClientRect().height])
  .filter(([element, height]) => element.checkVisibility() && height < {FINGER} - 0.5)
  .map(([element, height]) => `${{element.outerHTML.slice(0, 120)}}: ${{Math.round(height)}} px`)"""
PHONE_MAX: Final = 600


def audit(page: Page, within: str = "html", *, contrast: bool = True) -> None:
    """Check the view that is open. What an action adds to a view, such as a dialog, can be named by a selector:
    axe-core then looks at nothing else, which takes a fraction of the time. Contrast takes three quarters of it."""
    if not page.evaluate("typeof axe === 'object'"):
        page.evaluate(AXE)
    found = [*page.evaluate(VIOLATIONS, [within, contrast]), *page.evaluate(TOO_WIDE)]
    if page.evaluate("innerWidth") <= PHONE_MAX:
        found += page.evaluate(TOO_SMALL)
    assert not found, "\n".join(found)
