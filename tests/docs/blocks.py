"""Pages in Markdown: their fenced blocks, what is said before a block about running it, and their links."""

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/decisions/*.md")])
FENCE = re.compile(
    r"(?:^<!-- not run: (?P<why>[^\n]+?) -->\n)?^(?P<indent> *)```(?P<language>\w*)\n(?P<text>.*?)^(?P=indent)```$",
    re.M | re.S,
)
LANGUAGES = {"sh", "python", "toml", "json", "text"}
"""What may be in a block; `text` is shown and not typed."""


class Block(NamedTuple):
    """One fenced block."""

    page: Path
    line: int
    language: str
    text: str
    not_run: str | None
    """Why it cannot be run here, as the page says it in a comment."""

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(page: Path) -> list[Block]:
    """Those of a page, in the order a reader meets them."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(page, text.count("\n", 0, one.start("language")) + 1, one["language"], one["text"], one["why"])
        for one in FENCE.finditer(text)
    ]


def prose(page: Path) -> str:
    """What stands outside of blocks."""
    return FENCE.sub("", page.read_text(encoding="utf-8"))


ALL = [block for page in PAGES for block in blocks(page)]
WITH_BLOCKS = sorted({block.page for block in ALL if block.language != "text"})
