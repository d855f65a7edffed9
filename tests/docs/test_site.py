"""`make docs`: every page is on the site, its links lead somewhere, and search finds it."""

import re
from pathlib import Path, PurePosixPath

import pytest
from playwright.sync_api import Browser
from tools.docs_site import BadPage, Page, anchor_of, build

from docs.blocks import PAGES, ROOT
from page.conftest import browser
from patience import PATIENCE

__all__ = ["browser"]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of this checkout."""
    target = tmp_path_factory.mktemp("site")
    build(ROOT, target)
    return target


def targets(file: Path) -> list[str]:
    """Where the links, pictures, scripts and styles of a page lead."""
    return re.findall(r'(?:href|src)="([^"]+)"', file.read_text(encoding="utf-8"))


def test_every_page_is_there_and_every_link_leads_somewhere(site: Path) -> None:
    """Nothing is fetched from elsewhere, and every page can be reached from the first one."""
    files = {file for file in site.rglob("*.html") if "pictures" not in file.parts}
    assert len(files) == len([page for page in PAGES if (ROOT / page).exists()])
    reached, waiting = set(), [site / "docs" / "index.html"]
    while waiting:
        file = waiting.pop()
        if file in reached:
            continue
        reached.add(file)
        for target in targets(file):
            if "://" in target:
                continue
            path, _, anchor = target.partition("#")
            found = (file.parent / path).resolve() if path else file
            assert found.is_file(), f"{file} leads to {target}"
            if anchor:
                assert f'id="{anchor}"' in found.read_text(encoding="utf-8"), f"{file} leads to {target}"
            if found.suffix == ".html":
                waiting.append(found)
    assert files <= reached


def test_a_link_that_leads_nowhere_fails_the_build(tmp_path: Path) -> None:
    """To a page, to a heading, and to a file."""
    (tmp_path / "docs").mkdir()
    for target in ("gone.md", "#nothing", "../src/gone.py"):
        (tmp_path / "docs" / "README.md").write_text(f"# Documentation\n\n[there]({target})\n")
        with pytest.raises(BadPage, match=re.escape(target)):
            build(tmp_path, tmp_path / "site")
    assert not (tmp_path / "site").exists()


def test_headings_of_one_name_have_anchors_of_their_own() -> None:
    """Numbered as code hosts do; pages keep their place."""
    used: dict[str, int] = {}
    assert [anchor_of(title, used) for title in ("It runs!", "It runs!", "`a-b` c")] == [
        "it-runs",
        "it-runs-1",
        "a-b-c",
    ]
    assert str(Page(PurePosixPath("docs/README.md")).path) == "docs/index.html"


def test_search_finds_a_section_from_the_disk(site: Path, browser: Browser) -> None:
    """A reader presses / and types; Enter leads to the section, where the words are. A phone shows no wider page."""
    page = browser.new_page(viewport={"width": 390, "height": 800})
    page.set_default_timeout(PATIENCE * 1000)
    trouble: list[str] = []
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on("console", lambda message: trouble.append(message.text) if message.type == "error" else None)
    page.goto((site / "docs" / "index.html").as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.keyboard.press("/")
    page.keyboard.type("linger logged in")
    page.wait_for_selector("#found [role=option]")
    assert "As a service" in page.locator("#found [role=option]").first.inner_text()
    page.keyboard.press("Enter")
    page.wait_for_url("**/operating.html#as-a-service")
    assert "loginctl enable-linger" in page.locator("article").inner_text()
    page.fill("#search", "qqqqqq")
    page.wait_for_selector("text=Nothing found.")
    assert trouble == []
    page.close()
