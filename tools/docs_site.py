"""`make docs`: the documentation as a static site with search, in `site/`.

Every Markdown page of the root, `docs/`, `docs/decisions/` and `examples/` becomes an HTML page at the same place, so
that links stay what they are. The site needs no server and fetches nothing: it can be read from the disk. A link that
leads nowhere fails the build.
"""

import html
import json
import os
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT: Final = Path(__file__).parents[1]
FILES: Final = Path(__file__).parent / "docs_theme"
INDEX: Final = PurePosixPath("docs/README.md")
ROOT_PAGES: Final = (
    *("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"),
    *("UPGRADING.md", "CHANGELOG.md"),
)
FOLDERS: Final = ("docs", "docs/decisions", "examples")
MARKDOWN: Final = MarkdownIt("commonmark").enable("table")
LINK: Final = re.compile(r"\[([^\]]+)\]\(([\w./-]+\.md)\)")
PICTURE: Final = re.compile(r'<img [^>]*src="([^"]+)"')
PASSAGE_MAX: Final = 4_000
"""Characters of a section that can be found."""


class BadPage(Exception):
    """A page that cannot be shown as it is."""


@dataclass(slots=True)
class Page:
    """One page: where it comes from, its title and sections, and its HTML."""

    source: PurePosixPath
    title: str = ""
    body: str = ""
    sections: list["Section"] = field(default_factory=list)
    targets: list[str] = field(default_factory=list)

    @property
    def path(self) -> PurePosixPath:
        """Where it is on the site."""
        return self.source.with_name("index.html") if self.source.stem == "README" else self.source.with_suffix(".html")


@dataclass(slots=True)
class Section:
    """A heading with the text up to the next one."""

    level: int
    title: str
    anchor: str
    words: list[str] = field(default_factory=list)


def sources(root: Path) -> list[PurePosixPath]:
    """All pages, as paths from the root."""
    found = [root / name for name in ROOT_PAGES if (root / name).exists()]
    for folder in FOLDERS:
        found += sorted((root / folder).glob("*.md"))
    return [PurePosixPath(file.relative_to(root).as_posix()) for file in found]


def read(root: Path, source: PurePosixPath) -> Page:
    """Parse a page: headings get anchors, links to pages lead to their HTML."""
    page = Page(source)
    tokens = MARKDOWN.parse((root / source).read_text(encoding="utf-8"))
    used: dict[str, int] = {}
    for number, token in enumerate(tokens):
        if token.type == "heading_open":
            text = _text(tokens[number + 1])
            anchor = anchor_of(text, used)
            token.attrSet("id", anchor)
            page.sections.append(Section(int(token.tag[1]), text, anchor))
        elif token.type == "inline":
            _link(root, page, token)
            if page.sections and tokens[number - 1].type != "heading_open":
                page.sections[-1].words.append(_text(token))
        elif token.type == "html_block":
            page.targets += PICTURE.findall(token.content)
        elif token.type == "fence" and page.sections:
            page.sections[-1].words.append(token.content)
    if not page.sections or page.sections[0].level != 1:
        raise BadPage(f"{source} does not begin with a heading of the first level")
    page.title = page.sections[0].title
    page.body = MARKDOWN.renderer.render(tokens, MARKDOWN.options, {})
    return page


def anchor_of(title: str, used: dict[str, int]) -> str:
    """As code hosts make it; the second heading of a name gets a number."""
    plain = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
    number = used[plain] = used.get(plain, -1) + 1
    return f"{plain}-{number}" if number else plain


def _text(token: Token) -> str:
    return "".join(one.content if one.type in ("text", "code_inline") else " " for one in token.children or ()).strip()


def _link(root: Path, page: Page, token: Token) -> None:
    """Lead links to where their targets are on the site; what is not part of it becomes text."""
    kept: list[Token] = []
    is_dropped = False
    for one in token.children or ():
        if one.type == "link_open":
            target = str(one.attrs["href"])
            is_dropped = _is_folder(root, page, target)
            if not is_dropped:
                one.attrSet("href", _moved(page, target))
        elif one.type == "image":
            page.targets.append(str(one.attrs["src"]))
        elif one.type == "html_inline":
            page.targets += PICTURE.findall(one.content)
        elif one.type == "link_close" and is_dropped:
            is_dropped = False
            continue
        if not (one.type == "link_open" and is_dropped):
            kept.append(one)
    token.children = kept


def _is_folder(root: Path, page: Page, target: str) -> bool:
    return "://" not in target and (root / page.source.parent / target.partition("#")[0]).is_dir() and target[0] != "#"


def _moved(page: Page, target: str) -> str:
    if "://" in target or target.startswith("mailto:"):
        return target
    page.targets.append(target)
    path, mark, anchor = target.partition("#")
    if path.endswith(".md"):
        path = str(Page(PurePosixPath(path)).path)
    return f"{path}{mark}{anchor}"


def check(root: Path, pages: Sequence[Page]) -> None:
    """Every link within the repository leads to a page, a heading of it, or a file."""
    known = {str(page.source): {section.anchor for section in page.sections} for page in pages}
    wrong = []
    for page in pages:
        for target in page.targets:
            path, _, anchor = target.partition("#")
            source = os.path.normpath(page.source.parent / path) if path else str(page.source)
            if source in known:
                if anchor and anchor not in known[source]:
                    wrong.append(f"{page.source} links to {target}: there is no such heading")
            elif not (root / source).is_file():
                wrong.append(f"{page.source} links to {target}: there is no such file, or it is no page of the site")
    if wrong:
        raise BadPage("\n".join(wrong))


def menu(root: Path, pages: Sequence[Page]) -> list[tuple[str, list[Page]]]:
    """The sections of docs/README.md with their pages in its order, and the pages of the root."""
    known = {str(page.source): page for page in pages}
    found: list[tuple[str, list[Page]]] = []
    for part in re.split(r"^## ", (root / INDEX).read_text(encoding="utf-8"), flags=re.M)[1:]:
        listed = [os.path.normpath(INDEX.parent / target) for _, target in LINK.findall(part)]
        found.append((part.splitlines()[0], [known[one] for one in listed if one in known]))
    rest = [known[name] for name in ROOT_PAGES if name in known and known[name].source != PurePosixPath("README.md")]
    named = {str(page.source) for _, listed in found for page in listed}
    found.append(("The project", [page for page in rest if str(page.source) not in named]))
    return found


def render(page: Page, parts: Sequence[tuple[str, list[Page]]]) -> str:
    """The whole HTML of a page."""
    up = "../" * (len(page.path.parts) - 1)
    in_order = [one for _, listed in parts for one in listed]
    values = {
        "title": html.escape(page.title if page.title == "Wakeful" else f"{page.title} · Wakeful"),
        "up": up,
        "menu": "".join(_menu_part(title, listed, page, up) for title, listed in parts),
        "contents": _contents(page),
        "body": page.body,
        "around": _around(page, in_order, up),
    }
    template = (FILES / "page.html").read_text(encoding="utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda found: values[found[1]], template)


def _menu_part(title: str, listed: Sequence[Page], current: Page, up: str) -> str:
    rows = ""
    for page in listed:
        mark = ' aria-current="page"' if page is current else ""
        rows += f'<li><a href="{up}{page.path}"{mark}>{html.escape(page.title)}</a></li>'
    return f"<h2>{html.escape(title)}</h2><ul>{rows}</ul>"


def _contents(page: Page) -> str:
    rows = [one for one in page.sections if one.level == 2]
    if len(rows) < 2:
        return ""
    listed = "".join(f'<li><a href="#{one.anchor}">{html.escape(one.title)}</a></li>' for one in rows)
    return f'<nav class="contents" aria-label="On this page"><h2>On this page</h2><ul>{listed}</ul></nav>'


def _around(page: Page, in_order: Sequence[Page], up: str) -> str:
    if page not in in_order:
        return ""
    place = in_order.index(page)
    before = in_order[place - 1] if place else None
    after = in_order[place + 1] if place + 1 < len(in_order) else None
    links = [
        f'<a rel="{rel}" href="{up}{one.path}">{html.escape(one.title)}</a>' if one else "<span></span>"
        for rel, one in (("prev", before), ("next", after))
    ]
    return "".join(links)


def passages(pages: Sequence[Page]) -> Iterator[dict[str, str]]:
    """What search looks through: one entry for each section."""
    for page in pages:
        for section in page.sections:
            text = re.sub(r"\s+", " ", " ".join(section.words))[:PASSAGE_MAX]
            url = str(page.path) if section.level == 1 else f"{page.path}#{section.anchor}"
            yield {"page": page.title, "title": section.title, "url": url, "text": text}


def build(root: Path, target: Path) -> list[Page]:
    """Write the site; raises `BadPage` for links that lead nowhere."""
    pages = [read(root, source) for source in sources(root)]
    check(root, pages)
    parts = menu(root, pages)
    shutil.rmtree(target, ignore_errors=True)
    for page in pages:
        file = target / page.path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(render(page, parts), encoding="utf-8")
    _copy_files(root, target, pages)
    for name in ("style.css", "search.js"):
        shutil.copy(FILES / name, target / name)
    shutil.copy(ROOT / "src" / "wakeful" / "server" / "page" / "static" / "icon.svg", target / "icon.svg")
    # A script and not JSON: a page that is read from the disk may load the one and not the other.
    index = json.dumps(list(passages(pages)), ensure_ascii=False, separators=(",", ":"))
    (target / "search-index.js").write_text(f"const PASSAGES = {index};\n", encoding="utf-8")
    return pages


def _copy_files(root: Path, target: Path, pages: Sequence[Page]) -> None:
    """Pictures, and the files that pages link to."""
    known = {str(page.source) for page in pages}
    for page in pages:
        for one in page.targets:
            path = one.partition("#")[0]
            source = os.path.normpath(page.source.parent / path)
            if path and source not in known:
                (target / source).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(root / source, target / source)


if __name__ == "__main__":
    try:
        built = build(ROOT, ROOT / "site")
    except BadPage as bad:
        sys.exit(str(bad))
    size = sum(file.stat().st_size for file in (ROOT / "site").rglob("*") if file.is_file())
    print(f"{len(built)} pages, {size / 1e6:.1f} MB; open site/docs/index.html")
