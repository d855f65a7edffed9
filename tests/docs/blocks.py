"""Pages in Markdown: their fenced blocks, and whether running one takes minutes."""

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGES = sorted(page for folder in ("", "docs/", "docs/decisions/", "examples/") for page in ROOT.glob(f"{folder}*.md"))
FENCE = re.compile(
    r"(?:^<!-- (?P<long>takes minutes) -->\n)?^(?P<indent> *)```(?P<language>\w*)\n(?P<text>.*?)^(?P=indent)```$",
    re.M | re.S,
)
LANGUAGES = {"sh", "zsh", "fish", "python", "toml", "json", "text"}
"""What may be in a block; `text` is shown and not typed."""


class Block(NamedTuple):
    """One fenced block."""

    page: Path
    line: int
    language: str
    text: str
    takes_minutes: bool
    """The page says so in a comment; then it is run by `make torture`, and checked otherwise."""

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(page: Path) -> list[Block]:
    """Those of a page, in the order a reader meets them."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(
            page, text.count("\n", 0, one.start("language")) + 1, one["language"], one["text"], one["long"] is not None
        )
        for one in FENCE.finditer(text)
    ]


def prose(page: Path) -> str:
    """What stands outside of blocks."""
    return FENCE.sub("", page.read_text(encoding="utf-8"))


ALL = [block for page in PAGES for block in blocks(page)]
WITH_BLOCKS = sorted({block.page for block in ALL if block.language != "text"})
