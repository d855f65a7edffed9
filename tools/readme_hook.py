"""The README as the package index shows it (a metadata hook of hatchling).

The README of the repository links to files beside it. An index has no such files, so links and pictures get the base
address of `[tool.hatch.metadata.hooks.custom] base-url`. While that is empty, links become their text and pictures are
left out: nothing on the index leads nowhere.
"""

import re
from pathlib import Path
from typing import Any, Final

from hatchling.metadata.plugin.interface import MetadataHookInterface

FENCE: Final = re.compile(r"(^```.*?^```$)", re.M | re.S)
IMAGE: Final = re.compile(r"<img\s[^>]*?src=\"([^\"]+)\"[^>]*>[ \n]*")
PICTURE: Final = re.compile(r"!\[([^\]]*)\]\(([^)\s]+)\)\n*")
LINK: Final = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)\s]+)\)")
ABSOLUTE: Final = ("http://", "https://", "mailto:", "#")


class ReadmeHook(MetadataHookInterface):
    """Sets `readme` from README.md."""

    def update(self, metadata: dict[str, Any]) -> None:
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        shown = for_an_index(text, self.config.get("base-url", ""))
        metadata["readme"] = {"content-type": "text/markdown", "text": shown}


def for_an_index(text: str, base_url: str) -> str:
    """The text with its relative links and pictures made absolute, or without them if there is no base address."""
    if base_url and not base_url.startswith("https://"):
        raise ValueError(f"base-url is {base_url!r}; it must be empty or begin with https://")
    base = base_url and f"{base_url.rstrip('/')}/"
    parts = FENCE.split(text)  # every second part is a block of code, which has no links
    return "".join(part if number % 2 else _linked(part, base) for number, part in enumerate(parts))


def _linked(text: str, base: str) -> str:
    def picture(found: re.Match[str]) -> str:
        if found[2].startswith(ABSOLUTE):
            return found[0]
        # Code hosts show a page around a picture unless they are asked for the file itself; others ignore the query.
        return f"![{found[1]}]({base}{found[2]}?raw=true)\n\n" if base else ""

    def link(found: re.Match[str]) -> str:
        if found[2].startswith(ABSOLUTE):
            return found[0]
        return f"[{found[1]}]({base}{found[2]})" if base else found[1]

    def image(found: re.Match[str]) -> str:
        if found[1].startswith(ABSOLUTE):
            return found[0]
        return found[0].replace(f'"{found[1]}"', f'"{base}{found[1]}?raw=true"') if base else ""

    return LINK.sub(link, PICTURE.sub(picture, IMAGE.sub(image, text)))
